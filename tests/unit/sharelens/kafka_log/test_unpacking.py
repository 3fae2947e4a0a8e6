"""Archives that are as they should be, and those that claim what they must not."""

import gzip
import io
import os
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from sharelens.kafka_log import unpacking
from sharelens.kafka_log.errors import ArchiveError
from sharelens.kafka_log.log_places import LocalArchive
from sharelens.kafka_log.unpacking import unpack

NAMES = st.lists(st.sampled_from(["a", "b", "orders-0", "é", "x" * 120]), min_size=1, max_size=4).map("/".join)


def member(name: str, content: bytes = b"", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def tar_of(members: Iterable[tuple[tarfile.TarInfo, bytes]], kind: int = tarfile.PAX_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=kind) as tar:
        for info, content in members:
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def unpacked(content: bytes, folder: Path, name: str = "log.tar") -> dict[str, bytes]:
    archive, target = folder / name, folder / "target"
    archive.write_bytes(content)
    target.mkdir()
    unpack(LocalArchive(str(archive)), target)
    return {str(path.relative_to(target)): path.read_bytes() for path in target.rglob("*") if path.is_file()}


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "log.tar": bytes,
    "log.tar.gz": gzip.compress,
    "log.tgz": lambda content: gzip.compress(content[:700]) + gzip.compress(content[700:]),
    "log.tar.zst": zstandard.compress,
    "two.tar.zst": lambda content: zstandard.compress(content[:700]) + zstandard.compress(content[700:]),
}


@pytest.mark.parametrize("name", COMPRESS)
def test_files_come_out_as_they_went_in_with_their_times(name: str, tmp_path: Path) -> None:
    content = os.urandom(100_000)
    tar = tar_of([member("t-0", type=tarfile.DIRTYPE), member("t-0/0.log", content, mtime=1_700_000_000.25)])
    assert unpacked(COMPRESS[name](tar), tmp_path, name) == {"t-0/0.log": content}
    assert (tmp_path / "target" / "t-0" / "0.log").stat().st_mtime_ns == 1_700_000_000_250_000_000


@given(files=st.dictionaries(NAMES, st.binary(max_size=2000), max_size=5), kind=st.sampled_from([0, 1, 2]))
def test_every_tree_of_files_survives(
    files: dict[str, bytes], kind: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    files = {name: content for name, content in files.items() if not any(o.startswith(name + "/") for o in files)}
    if kind == tarfile.USTAR_FORMAT:
        files = {name: content for name, content in files.items() if len(name) < 100}
    tar = tar_of([member(name, content) for name, content in files.items()], kind)
    assert unpacked(tar, tmp_path_factory.mktemp("tree")) == files


def test_a_later_member_replaces_an_earlier_one_of_its_name(tmp_path: Path) -> None:
    assert unpacked(tar_of([member("a", b"longer"), member("a", b"new")]), tmp_path) == {"a": b"new"}


@pytest.mark.parametrize(
    ("info", "message"),
    [
        (member("/etc/passwd", b"x"), "leads out of the archive"),
        (member("a/../../b", b"x"), "leads out of the archive"),
        (member("a", type=tarfile.SYMTYPE, linkname="/etc"), "is a link; pack with tar --dereference"),
        (member("a", type=tarfile.LNKTYPE, linkname="b"), "is a link; pack with tar --dereference"),
        (member("a", type=tarfile.FIFOTYPE), "neither a plain file nor a folder"),
        (member("a", type=tarfile.CHRTYPE), "neither a plain file nor a folder"),
        (member("a/" * 40 + "b", b"x"), "deeper than 32 folders"),
        (member("a" * 256, b"x"), "a name in it has over 255 bytes"),
    ],
)
def test_members_that_have_no_place_in_a_log_directory_are_refused(
    info: tuple[tarfile.TarInfo, bytes], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ArchiveError, match=message) as refused:
        unpacked(tar_of([info]), tmp_path)
    assert str(refused.value).startswith(f"{tmp_path}/log.tar: ")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("names", [("a", "a/b"), ("a/b", "a")])
def test_a_name_that_is_a_file_and_a_folder_is_refused(names: tuple[str, str], tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="is a file and a folder"):
        unpacked(tar_of([member(name, b"x") for name in names]), tmp_path)


def test_a_size_above_the_free_disk_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    info, _ = member("bomb", b"")
    info.size = 1 << 60
    with pytest.raises(ArchiveError, match=r"'bomb' has 1152921504606846976 bytes, and the disk of"):
        unpacked(info.tobuf(tarfile.GNU_FORMAT) + bytes(1024), tmp_path)
    assert not list((tmp_path / "target").iterdir())


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_an_extended_header_that_claims_gigabytes_is_refused(kind: bytes, tmp_path: Path) -> None:
    info, _ = member("header", type=kind)
    info.size = 4 << 30
    with pytest.raises(ArchiveError, match="a header claims 4294967296 bytes"):
        unpacked(info.tobuf(tarfile.GNU_FORMAT) + bytes(1024), tmp_path)


def test_more_members_than_a_directory_has_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "MOST_MEMBERS", 2)
    with pytest.raises(ArchiveError, match="more than 2 members"):
        unpacked(tar_of([member(name) for name in "abc"]), tmp_path)


@pytest.mark.parametrize("name", COMPRESS)
def test_an_archive_that_is_cut_off_anywhere_is_refused(name: str, tmp_path: Path) -> None:
    full_archive = COMPRESS[name](tar_of([member("a.log", os.urandom(5000)), member("b.log", os.urandom(5000))]))
    refused = 0
    for number, end in enumerate([*range(1, 9000, 997), len(full_archive) - (9300 if name.endswith(".tar") else 3)]):
        folder = tmp_path / str(number)
        folder.mkdir()
        with pytest.raises(ArchiveError, match="cut off|no archive"):
            unpacked(full_archive[:end], folder, name)
        refused += 1
    assert refused == 11


def test_a_damaged_header_does_not_end_an_archive_early(tmp_path: Path) -> None:
    tar = bytearray(tar_of([member("a", b"a"), member("b", b"b")]))
    tar[1024] ^= 0xFF
    with pytest.raises(ArchiveError, match="cut off or damaged"):
        unpacked(bytes(tar), tmp_path)


@pytest.mark.slow
def test_bytes_behind_the_end_are_bounded(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="goes on behind its end"):
        unpacked(gzip.compress(tar_of([member("a", b"a")]) + bytes(70 << 20), 1), tmp_path, "log.tar.gz")


@pytest.mark.parametrize("name", ["log.tar", "log.tar.gz", "log.tar.zst"])
def test_what_is_no_archive_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="cut off"):
        unpacked(b"not an archive at all" * 100, tmp_path, name)
