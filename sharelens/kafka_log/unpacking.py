"""Unpacks a tar archive in one pass with bounded memory. Every size and name is checked before it is used."""

import os
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

import pyarrow as pa

from sharelens.kafka_log.errors import ArchiveError
from sharelens.kafka_log.log_places import Archive

COPY_BYTES = 1 << 20
MOST_MEMBERS = 4_000_000
MOST_HEADER_BYTES = 1 << 20
"""Of an extended header (long names, PAX), which is read into memory."""
MOST_DEPTH, MOST_NAME_BYTES = 32, 255
"""Of folders, and of the name of each."""
MOST_PADDING_BYTES = 64 << 20
"""Behind the last member; tar pads to some kilobytes."""
LEAST_FREE_BYTES = 64 << 20
"""Left on the disk whatever an archive claims to hold."""
EXTENDED = (
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
)


class _Member(tarfile.TarInfo):
    """A header of the archive, refused where it is damaged, or claims an extended header that fits no memory."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> "_Member":
        if len(buf) == tarfile.BLOCKSIZE and not any(buf):
            return super().frombuf(buf, encoding, errors)  # raises what tarfile takes for the end
        try:
            member = super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:  # tarfile would take it for the end, were it not the first
            raise ArchiveError(f"no archive, or cut off or damaged ({error}); copy it again") from error
        if member.size < 0 or (member.type in EXTENDED and member.size > MOST_HEADER_BYTES):
            raise ArchiveError(f"a header claims {member.size} bytes; pack the folder again")
        return member


def unpack(archive: Archive, folder: Path) -> None:
    """Writes the files of an archive into an empty folder, with their modification times.

    Raises:
        ArchiveError: it is no archive, is cut off, has a link, a device, a name that leads out of it, more members than
            MOST_MEMBERS, or claims more bytes than the disk has.
        FileNotFoundError, PermissionError: it can't be opened.
    """
    try:
        with archive.opened() as stream, tarfile.open(fileobj=stream, mode="r|", tarinfo=_Member) as tar:
            for number, member in enumerate(_members(tar)):
                if number >= MOST_MEMBERS:
                    raise ArchiveError(f"more than {MOST_MEMBERS} members; pack one log directory an archive")
                _write(tar, member, folder)
            _read_to_end(stream)
    except ArchiveError as error:
        raise ArchiveError(f"{archive.name}: {error}") from None
    except (tarfile.TarError, pa.ArrowException, EOFError) as error:
        problem = f"{archive.name} is no archive, or is cut off: {_first_line(error)}; copy it again"
        raise ArchiveError(problem) from error
    except OSError as error:
        if error.errno is not None:
            raise
        raise ArchiveError(f"{archive.name} is damaged or cut off: {_first_line(error)}; copy it again") from error


def _read_to_end(stream: IO[bytes]) -> None:
    """Reads what follows the last member, so that a compressed stream compares its checksum."""
    remaining_bytes = MOST_PADDING_BYTES
    while block := stream.read(COPY_BYTES):
        remaining_bytes -= len(block)
        if remaining_bytes < 0:
            raise ArchiveError("the archive goes on behind its end; pack the folder again")


def _members(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    for member in tar:
        yield member
        cast(Any, tar).members.clear()  # tarfile keeps all that it has passed


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    path = folder.joinpath(*_parts(member.name))
    try:
        _write_to(path, tar, member, folder)
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise ArchiveError(f"{member.name!r} is a file and a folder; pack the folder again") from error


def _write_to(path: Path, tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    if member.isdir():
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return
    if member.issym() or member.islnk():
        raise ArchiveError(f"{member.name!r} is a link; pack with tar --dereference --hard-dereference")
    if not member.isreg() or member.issparse():
        raise ArchiveError(
            f"{member.name!r} is neither a plain file nor a folder; pack without it (and without --sparse)"
        )
    free = shutil.disk_usage(folder).free - LEAST_FREE_BYTES
    if member.size > free:
        raise ArchiveError(
            f"{member.name!r} has {member.size} bytes, and the disk of {folder.parent} has {max(0, free)} to spare; "
            "free some, or name another folder in SHARELENS_ARCHIVES_DIR"
        )
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    source = tar.extractfile(member)
    assert source is not None  # it is a plain file
    _copy(source, path, member)


def _copy(source: IO[bytes], path: Path, member: tarfile.TarInfo) -> None:
    """Copies exactly the bytes that the header claims; a later member of the same name replaces an earlier one."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as target:
        shutil.copyfileobj(source, target, COPY_BYTES)
        if target.tell() != member.size:
            raise ArchiveError(f"{member.name!r} is cut off; copy the archive again")
    modified_ns = round(member.mtime * 1_000_000) * 1_000  # a float: it has no nanoseconds
    os.utime(path, ns=(modified_ns, modified_ns))


def _parts(name: str) -> tuple[str, ...]:
    """The folders and the file that a member's name says, all of them below the archive's root."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name:
        raise ArchiveError(f"{name!r} leads out of the archive; pack with paths relative to the log directory")
    if len(path.parts) > MOST_DEPTH or any(len(os.fsencode(part)) > MOST_NAME_BYTES for part in path.parts):
        raise ArchiveError(
            f"{name[:80]!r}… is deeper than {MOST_DEPTH} folders, or a name in it has over {MOST_NAME_BYTES} bytes"
        )
    return path.parts


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
