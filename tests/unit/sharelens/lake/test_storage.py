"""URIs, folders for their owner alone, full disks."""

import errno
import os
import uuid
from pathlib import Path

import pyarrow as pa
import pytest

from sharelens.lake import parquet
from sharelens.lake.errors import LakeError
from sharelens.lake.lake import Lake
from sharelens.lake.local_storage import LocalStorage, disk_full, is_disk_full
from sharelens.lake.locations import resolve
from sharelens.lake.parquet import ParquetSink
from sharelens.lake.tables import NAME, TABLES

TABLE = TABLES["silver.name"]


@pytest.mark.parametrize(
    ("uri", "root"),
    [("/a/b", "/a/b"), ("file:///a/b%20c", "/a/b c"), ("/a/../b/", "/b"), ("/with:colon", "/with:colon")],
)
def test_paths_and_file_uris_name_local_folders(uri: str, root: str) -> None:
    assert resolve(uri).root == root
    assert resolve(Path("some") / "where").root == str(Path.cwd() / "some" / "where")


def test_another_scheme_is_refused_in_one_line() -> None:
    with pytest.raises(
        LakeError, match=r"^ftp://host/lake: no storage for ftp:// URIs: known are s3://, az://, abfss://, gs://$"
    ):
        Lake("ftp://host/lake")


def test_a_new_file_and_its_folders_are_for_their_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with LocalStorage(root=str(tmp_path / "t")).create("x=1/part.parquet") as file:
            file.write(b"abc")
    finally:
        os.umask(before)
    assert (tmp_path / "t" / "x=1" / "part.parquet").read_bytes() == b"abc"
    assert {entry.stat().st_mode & 0o077 for entry in (tmp_path / "t").rglob("*")} == {0}


def rows(count: int) -> pa.Table:
    data = [{"topic_id": os.urandom(16).hex(), "topic": os.urandom(500).hex(), "source": "s"} for _ in range(count)]
    return pa.Table.from_pylist(data, schema=NAME)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("count", [1, 3000], ids=["when it is closed", "while it is written"])
def test_a_full_disk_is_one_line_that_names_it_and_leaves_no_file(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is a link to a device that is full: Arrow meets a real ENOSPC."""
    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", 100)

    def create(storage: LocalStorage, path: str) -> pa.NativeFile:
        os.makedirs(storage.root, exist_ok=True)
        os.symlink("/dev/full", os.path.join(storage.root, path))
        return pa.OSFile(os.path.join(storage.root, path), "wb")

    monkeypatch.setattr(LocalStorage, "create", create)
    with (
        pytest.raises(LakeError, match=r"^no space left on the disk at /.* \(writing .*part-.*\); free some") as caught,
        ParquetSink(Lake(tmp_path), TABLE, constants={"cluster_id": "c", "run_id": 1}) as sink,
    ):
        sink.write(rows(count))
    assert "\n" not in str(caught.value)
    assert not [entry for entry in tmp_path.rglob("*") if not entry.is_dir()]


def test_a_full_disk_is_known_by_what_arrow_and_delta_rs_say() -> None:
    assert is_disk_full(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    assert not is_disk_full(OSError(errno.EACCES, os.strerror(errno.EACCES)))
    assert str(disk_full(f"/{uuid.uuid4()}/file")).startswith("no space left on the disk at / (writing /")
