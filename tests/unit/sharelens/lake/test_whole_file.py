"""Files are replaced as a whole, and nothing but a regular file is."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from sharelens.lake.whole_file import write_whole
from state_model.errors import SharelensError


def test_a_regular_file_is_replaced_as_a_whole(tmp_path: Path):
    target = tmp_path / "file"
    target.write_bytes(b"old")
    write_whole(target, b"new", mode=0o640)
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [target]


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link(path: Path) -> None:
    (path.parent / "there").write_bytes(b"kept")
    path.symlink_to(path.parent / "there")


@pytest.mark.parametrize("make", [pipe, link, Path.mkdir])
def test_what_is_no_regular_file_stays_what_it_is(tmp_path: Path, make: Callable[[Path], None]):
    target = tmp_path / "special"
    make(target)
    before = stat.S_IFMT(target.lstat().st_mode)
    with pytest.raises(SharelensError, match=f"can't write {target}: what is there is no regular file"):
        write_whole(target, b"new")
    assert stat.S_IFMT(target.lstat().st_mode) == before
    assert b"new" not in [path.read_bytes() for path in tmp_path.iterdir() if path.is_file()]
