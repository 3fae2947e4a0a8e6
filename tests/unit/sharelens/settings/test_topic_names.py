"""The file behind --topic-names."""

from pathlib import Path

import pytest

from sharelens.settings.topic_names import read_topic_names
from state_model.errors import SharelensError, UsageError


def test_each_line_names_a_topic(tmp_path: Path) -> None:
    file = tmp_path / "names"
    file.write_text("# from the admin tool\n\nqWiuuiIrR325SFUd1eZw1g orders\nzRFV0Oo1RS68lZD_d8PhrA\taudit-log\n")
    assert read_topic_names(str(file)) == {"qWiuuiIrR325SFUd1eZw1g": "orders", "zRFV0Oo1RS68lZD_d8PhrA": "audit-log"}


@pytest.mark.parametrize("line", ["orders", "orders qWiuuiIrR325SFUd1eZw1g", "qWiuuiIrR325SFUd1eZw1g a b"])
def test_a_line_that_is_no_pair_is_refused_with_its_number(tmp_path: Path, line: str) -> None:
    file = tmp_path / "names"
    file.write_text(f"qWiuuiIrR325SFUd1eZw1g orders\n{line}\n")
    with pytest.raises(UsageError, match="line 2 of"):
        read_topic_names(str(file))


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "names"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SharelensError, match="can't read .*names"):
        read_topic_names(str(file))
