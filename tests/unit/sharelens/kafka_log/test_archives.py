"""Archives as log directories: what is inside, and when an archive is unpacked."""

import fcntl
import gzip
import os
import shutil
import tarfile
from pathlib import Path

import obstore
import pyarrow as pa
import pytest

from sharelens.kafka_log import archives, unpacking
from sharelens.kafka_log.archives import log_directories
from sharelens.kafka_log.errors import ArchiveError, LogDirectoryError
from sharelens.kafka_log.layout import scan_log_directory
from sharelens.kafka_log.log_places import Archive
from tests.memory_stores import in_memory
from tools.log_writer import writer


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SHARELENS_ARCHIVES_DIR", str(tmp_path / "unpacked"))
    return tmp_path / "unpacked"


@pytest.fixture
def unpackings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The archives that were unpacked, in their order."""
    archives_read: list[str] = []
    original = unpacking.unpack

    def counted(archive: Archive, target: Path) -> None:
        archives_read.append(archive.name)
        original(archive, target)

    monkeypatch.setattr(unpacking, "unpack", counted)
    return archives_read


def broker(place: Path, *, topic: str = "orders", node: int | None = 1) -> Path:
    segment = place / f"{topic}-0" / f"{0:020d}.log"
    segment.parent.mkdir(parents=True)
    segment.write_bytes(writer.encode_batch(writer.record_columns([b"k"], [b"v"], [1]), base_offset=0))
    if node is not None:
        (place / "meta.properties").write_text(f"version=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\nnode.id={node}\n")
    return place


def pack(archive: Path, *members: tuple[Path, str]) -> Path:
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive, "w:gz" if archive.suffix == ".gz" else "w") as tar:
        for path, name in members:
            tar.add(path, arcname=name)
    return archive


def test_a_path_that_is_no_archive_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "log.tar").mkdir()
    uris = (str(tmp_path), str(tmp_path / "log.tar"), "archive:///x.tar!")
    assert log_directories(uris) == uris


@pytest.mark.parametrize(
    ("name", "inside"), [(".", ""), ("kafka-logs", "/kafka-logs"), ("var/lib/kafka/data", "/var/lib/kafka/data")]
)
@pytest.mark.parametrize("node", [None, 1])
def test_the_log_directory_inside_counts_at_any_depth(name: str, inside: str, node: int | None, tmp_path: Path) -> None:
    archive = pack(tmp_path / "log.tar.gz", (broker(tmp_path / "data", node=node), name))
    (uri,) = log_directories([str(archive)])
    assert uri == f"archive://{archive}!{inside}"
    directory = scan_log_directory(uri)
    assert directory.uri == uri
    assert directory.source_id == (uri if node is None else f"node 1: {uri}")
    assert [(part.topic, part.partition, part.segments[0].size_bytes) for part in directory.partitions] == [
        ("orders", 0, 70)
    ]


def test_several_brokers_in_an_archive_are_several_log_directories(tmp_path: Path) -> None:
    brokers = [(broker(tmp_path / f"b{node}", node=node), f"copies/broker-{node}") for node in (2, 1)]
    uris = log_directories([str(pack(tmp_path / "all.tar", *brokers))])
    assert [uri.rpartition("!")[2] for uri in uris] == ["/copies/broker-1", "/copies/broker-2"]
    assert [scan_log_directory(uri).node_id for uri in uris] == [1, 2]


def test_times_of_files_are_those_of_the_directory(tmp_path: Path) -> None:
    data = broker(tmp_path / "data")
    (data / "replication-offset-checkpoint").write_text("0\n0\n")
    for path in data.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    (uri,) = log_directories([str(pack(tmp_path / "log.tar", (data, ".")))])
    assert scan_log_directory(uri).checkpoint_ms == scan_log_directory(str(data)).checkpoint_ms == 1_700_000_000_000


def test_an_archive_is_unpacked_once_until_its_size_or_time_changes(tmp_path: Path, unpackings: list[str]) -> None:
    archive = pack(tmp_path / "log.tar", (broker(tmp_path / "data"), "."))
    for _ in range(3):
        (uri,) = log_directories([str(archive)])
        assert scan_log_directory(uri).partitions
    assert unpackings == [str(archive)]
    os.utime(archive, (1, 1))
    log_directories([str(archive)])
    assert unpackings == [str(archive)] * 2


def test_folders_that_no_command_used_for_a_day_are_removed(tmp_path: Path, folder: Path) -> None:
    first = pack(tmp_path / "first.tar", (broker(tmp_path / "data"), "."))
    log_directories([str(first)])
    (old,) = folder.iterdir()
    os.utime(old, (1, 1))
    log_directories([str(pack(tmp_path / "second.tar", (tmp_path / "data", ".")))])
    assert not old.exists()
    assert len(list(folder.iterdir())) == 1


def test_a_command_that_is_killed_while_it_removes_an_unused_folder_leaves_no_half_archive(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = pack(tmp_path / "first.tar", (broker(tmp_path / "data"), "."))
    second = pack(tmp_path / "second.tar", (tmp_path / "data", "."))
    log_directories([str(first)])
    (old,) = folder.iterdir()
    os.utime(old, (1, 1))

    def killed(path: str | Path, *, ignore_errors: bool = False) -> None:
        for segment in Path(path).rglob("*.log"):
            segment.unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            log_directories([str(second)])
    (uri,) = log_directories([str(first)])
    assert [len(part.segments) for part in scan_log_directory(uri).partitions] == [1]


def test_others_may_not_read_what_was_unpacked(tmp_path: Path, folder: Path) -> None:
    log_directories([str(pack(tmp_path / "log.tar", (broker(tmp_path / "data"), ".")))])
    modes = {path.stat().st_mode & 0o077 for path in [folder, *folder.rglob("*")]}
    assert modes == {0}


def test_a_refused_archive_leaves_nothing_behind(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "cut.tar").write_bytes(pack(tmp_path / "log.tar", (broker(tmp_path / "data"), ".")).read_bytes()[:1000])
    with pytest.raises(ArchiveError, match="cut off"):
        log_directories([str(tmp_path / "cut.tar")])
    assert list(folder.iterdir()) == []


def test_an_archive_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = pack(tmp_path / "log.tar", (broker(tmp_path / "data"), "."))
    original = unpacking.unpack

    def grows(archive: Archive, target: Path) -> None:
        original(archive, target)
        os.utime(archive.name, (5, 5))

    monkeypatch.setattr(unpacking, "unpack", grows)
    with pytest.raises(ArchiveError, match="changed while it was read"):
        log_directories([str(archive)])
    assert list(folder.iterdir()) == []


def test_what_is_missing_or_empty_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match=r"no such archive: .*none\.tar\.zst"):
        log_directories([str(tmp_path / "none.tar.zst")])
    (tmp_path / "notes").mkdir()
    with pytest.raises(ArchiveError, match="has no log directory inside: pack the folder that holds folders TOPIC-N"):
        log_directories([str(pack(tmp_path / "notes.tar", (tmp_path / "notes", "notes")))])


def test_what_a_killed_command_unpacked_goes_with_the_next_one_and_what_another_unpacks_stays(tmp_path: Path) -> None:
    place = archives.archives_folder()
    killed, busy = (place / f"{archives.UNPACKING}{name}" for name in ("killed", "busy"))
    for folder in (killed, busy):
        (folder / "orders-0").mkdir(parents=True)
    handle = os.open(busy, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    log_directories([str(pack(tmp_path / "log.tar", (broker(tmp_path / "data"), ".")))])
    assert (killed.exists(), busy.exists()) == (False, True)
    os.close(handle)
    log_directories([str(pack(tmp_path / "later.tar", (broker(tmp_path / "later"), ".")))])
    assert not busy.exists()


@pytest.mark.parametrize("uri", ["archive:///a/b", "archive:///x.tar!/../../etc", "archive://x.tar!/a"])
def test_a_uri_that_names_nothing_inside_is_refused(uri: str) -> None:
    with pytest.raises(LogDirectoryError, match=r"is no URI of an archive; write archive:///path"):
        archives.unpacked_path(uri)


def test_an_archive_in_a_bucket_is_streamed_once_until_its_content_changes(
    tmp_path: Path, unpackings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    buckets = in_memory(monkeypatch)
    archive = pack(tmp_path / "log.tar.gz", (broker(tmp_path / "data"), "kafka-logs"))
    for number in (1, 2):
        obstore.put(buckets.bucket("b"), "old/log.tar.gz", archive.read_bytes())
        for _ in range(2):
            (uri,) = log_directories(["s3://b/old//log.tar.gz"])
            assert uri == "archive://s3://b/old/log.tar.gz!/kafka-logs"
            assert scan_log_directory(uri).source_id == f"node 1: {uri}"
        assert buckets.requests["get"] == number
        archive = pack(
            tmp_path / "new" / "log.tar.gz", (broker(tmp_path / f"data-{number}", topic=f"t{number}"), "kafka-logs")
        )
    assert unpackings == ["s3://b/old/log.tar.gz"] * 2
    buckets.remove("s3://b/old/log.tar.gz")
    with pytest.raises(ArchiveError, match="^no such archive: s3://b/old/log.tar.gz; give the address of a"):
        log_directories(["s3://b/old/log.tar.gz"])


@pytest.mark.parametrize("suffix", [".tar", ".tar.gz", ".tar.zst"])
def test_an_archive_in_a_bucket_that_is_cut_off_is_one_line(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    buckets = in_memory(monkeypatch)
    tar = pack(tmp_path / "log.tar", (broker(tmp_path / "data"), ".")).read_bytes()
    packed = {".tar": tar, ".tar.gz": gzip.compress(tar), ".tar.zst": pa.compress(tar, "zstd", asbytes=True)}[suffix]
    obstore.put(buckets.bucket("b"), f"cut{suffix}", packed[: len(packed) // 2])
    with pytest.raises(ArchiveError, match=rf"^s3://b/cut{suffix}.* cut off.*; copy"):
        log_directories([f"s3://b/cut{suffix}"])


def test_a_folder_of_a_bucket_stands_for_the_directories_and_archives_below_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    buckets = in_memory(monkeypatch)
    for node, place in ((1, "broker-1"), (2, "rack/broker-2"), (None, "rack/broker-3"), (4, "a/b/c/d/too-deep")):
        buckets.put_folder(broker(tmp_path / place, node=node), f"s3://b/copies/{place}")
    archive = pack(tmp_path / "log.tar", (broker(tmp_path / "data"), "broker-5"))
    obstore.put(buckets.bucket("b"), "copies/2026/log.tar", archive.read_bytes())
    obstore.put(buckets.bucket("b"), "copies/notes.txt", b"no log")
    below = (
        "archive://s3://b/copies/2026/log.tar!/broker-5",
        "s3://b/copies/broker-1",
        "s3://b/copies/rack/broker-2",
        "s3://b/copies/rack/broker-3",
    )
    assert log_directories(["s3://b/copies"]) == below
    assert log_directories(["s3://b/copies/broker-1", "s3://b/absent"]) == ("s3://b/copies/broker-1", "s3://b/absent")
    assert {scan_log_directory(uri).partitions[0].topic for uri in below} == {"orders"}
