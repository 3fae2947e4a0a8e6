"""The file behind --end-offsets."""

import pytest

from sharelens.settings.end_offsets import read_end_offsets
from state_model.errors import SharelensError, UsageError


def test_lines_are_topic_partition_and_offset_and_blank_ones_are_skipped(tmp_path):
    file = tmp_path / "ends"
    file.write_text("orders:0:120\norders:1:0\n\naudit.log-2:7:9223372036854775807\n", encoding="ascii")
    assert read_end_offsets(str(file)) == {("orders", 0): 120, ("orders", 1): 0, ("audit.log-2", 7): 2**63 - 1}


def test_a_partition_whose_offset_the_tool_could_not_tell_is_left_out(tmp_path):
    file = tmp_path / "ends"
    file.write_text("orders:0:\norders:1:5\n", encoding="ascii")
    assert read_end_offsets(str(file)) == {("orders", 1): 5}


@pytest.mark.parametrize(
    "line",
    ["orders", "orders:0", ":0:5", "orders:x:5", "orders:0:-1", "orders:0:5:6", "orders:2147483648:1", f"o:0:{2**63}"],
)
def test_another_line_is_refused_with_its_number(tmp_path, line):
    file = tmp_path / "ends"
    file.write_text(f"orders:0:5\n{line}\n", encoding="ascii")
    with pytest.raises(UsageError, match="line 2 of"):
        read_end_offsets(str(file))


def test_a_file_that_cannot_be_read_is_a_failure(tmp_path):
    with pytest.raises(SharelensError, match="can't read"):
        read_end_offsets(str(tmp_path / "none"))
