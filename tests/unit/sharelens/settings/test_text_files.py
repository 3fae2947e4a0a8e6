"""Small text files that an option names."""

import pytest

from sharelens.settings import text_files
from sharelens.settings.text_files import read_text_file
from state_model.errors import SharelensError, UsageError


def test_the_text_is_read_whole(tmp_path):
    file = tmp_path / "file"
    file.write_text("eins\nzwölf\n", encoding="utf-8")
    assert read_text_file(str(file), "--names", "lines") == "eins\nzwölf\n"


def test_a_device_without_an_end_is_refused_after_the_bound(monkeypatch):
    monkeypatch.setattr(text_files, "LARGEST_BYTES", 1 << 20)
    with pytest.raises(UsageError, match="--names: /dev/zero is larger than 1 MiB; give lines"):
        read_text_file("/dev/zero", "--names", "lines")


def test_what_cannot_be_read_is_one_line_that_says_why(tmp_path):
    with pytest.raises(SharelensError, match="^--names: can't read .*none: No such file or directory$"):
        read_text_file(str(tmp_path / "none"), "--names", "lines")
    with pytest.raises(SharelensError, match="Is a directory$"):
        read_text_file(str(tmp_path), "--names", "lines")
    file = tmp_path / "bytes"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(SharelensError, match="is no text in UTF-8; give lines$"):
        read_text_file(str(file), "--names", "lines")
