"""Log directories inside tar archives (.tar, .tar.gz, .tgz, .tar.zst): `archive:///path/file.tar.gz!/folder`, or
`archive://s3://bucket/file.tar.gz!/folder`.

Segments are read at positions, which a compressed stream has not. So an archive is unpacked in one pass into a private
folder below `archives_folder()`, under a name made of its path, size and modification time (in a store: its ETag): as
long as these stay, no later command unpacks it again. Folders that no command used for a day are removed; those that a
killed command unpacked into go with the next one that unpacks.
"""

import fcntl
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sharelens.kafka_log.errors import ArchiveError
from sharelens.kafka_log.log_places import MARK, PARTITION, SEGMENT, SUFFIXES, Archive, archive_named, places_at

SCHEME, INSIDE = "archive://", "!"
URI = re.compile(
    rf"{SCHEME}(?P<archive>(/|[a-z0-9]+://).*?(\.tar|\.tar\.gz|\.tgz|\.tar\.zst)){INSIDE}(/(?P<name>.*))?",
    re.IGNORECASE,
)
FOLDER_VARIABLE = "SHARELENS_ARCHIVES_DIR"
UNUSED_S = 86_400
UNPACKING = ".unpacking-"
"""The beginning of the names of folders into which a process unpacks, and which it locks."""


def log_directories(uris: Iterable[str]) -> tuple[str, ...]:
    """The log directories that `uris` name, sorted: an archive stands for all that are inside, a folder of a store for
    all directories and archives below it.

    Raises:
        ArchiveError: no such file, it can't be unpacked, or no log directory is inside.
        LogDirectoryError: a store that refuses or does not answer.
    """
    places = (place for uri in uris for place in places_at(uri))
    return tuple(directory for place in places for directory in ([place] if isinstance(place, str) else _inside(place)))


def is_inside(uri: str) -> bool:
    """Whether a URI is of something in an archive."""
    return uri.startswith(SCHEME)


def unpacked_path(uri: str) -> str:
    """The local path of something in an archive, which is unpacked first unless it was.

    Raises:
        FileNotFoundError: the archive is gone.
        ArchiveError: it can't be unpacked.
    """
    parts = URI.fullmatch(uri)
    if parts is None or ".." in uri.split("/"):
        raise ArchiveError(f"{uri} is no URI of an archive; write {SCHEME}/path/file.tar.gz{INSIDE}/folder")
    return os.path.join(_unpacked(archive_named(parts["archive"])), parts["name"] or "")


def archives_folder() -> Path:
    """Where archives are unpacked: SHARELENS_ARCHIVES_DIR, or a folder of the user's cache."""
    named = os.environ.get(FOLDER_VARIABLE)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(named) if named else cache / "sharelens" / "archives"


def _inside(archive: Archive) -> list[str]:
    try:
        root = _unpacked(archive)
    except FileNotFoundError:
        raise ArchiveError(
            f"no such archive: {archive.name}; give the address of a {', '.join(SUFFIXES)} file"
        ) from None
    names = sorted(_directories(root))
    if not names:
        raise ArchiveError(
            f"{archive.name} has no log directory inside: pack the folder that holds folders TOPIC-N with *.log files"
        )
    return [f"{SCHEME}{archive.name}{INSIDE}/{name}".rstrip("/") for name in names]


def _directories(root: str) -> Iterator[str]:
    """Folders below `root` that hold meta.properties or a partition's folder with segments; "" is `root`."""
    for folder, below, files in os.walk(root):
        partitions = [name for name in below if PARTITION.fullmatch(name)]
        if MARK in files or any(_has_segment(os.path.join(folder, name)) for name in partitions):
            below.clear()
            name = os.path.relpath(folder, root)
            yield "" if name == "." else name


def _has_segment(folder: str) -> bool:
    return any(SEGMENT.fullmatch(name) for name in os.listdir(folder))


def _unpacked(archive: Archive) -> str:
    """The folder with the content of an archive as it is now."""
    version = archive.version()
    key = hashlib.sha256(f"{archive.name}\0{version}".encode()).hexdigest()[:32]
    place = archives_folder()
    target = place / key
    if not _is_used(target):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove_unused(place)
        _unpack_whole(archive, place, target)
        if archive.version() != version:
            _remove(target)
            raise ArchiveError(f"{archive.name} changed while it was read; repeat when it is written completely")
    return str(target)


def _is_used(target: Path) -> bool:
    """Notes that a command uses an unpacked archive; False where there is none."""
    try:
        os.utime(target)
    except FileNotFoundError:
        return False
    return True


def _unpack_whole(archive: Archive, place: Path, target: Path) -> None:
    """Unpacks into a folder that gets its name when it is complete; another process may have been first."""
    from sharelens.kafka_log.unpacking import unpack  # its libraries are for archives alone

    with _locked(place):
        scratch = Path(tempfile.mkdtemp(prefix=UNPACKING, dir=place))
        handle = _lock(scratch)
    try:
        unpack(archive, scratch)
        try:
            os.rename(scratch, target)
        except OSError:
            if not target.is_dir():
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        os.close(handle)


def _remove_unused(place: Path) -> None:
    """Removes complete folders that no command used for a day, and those that a command that is gone unpacked into."""
    oldest = time.time() - UNUSED_S
    with _locked(place):
        for folder in place.iterdir():
            try:
                is_left = _is_free(folder) if folder.name.startswith(UNPACKING) else folder.stat().st_mtime < oldest
                if is_left:
                    _remove(folder)
            except FileNotFoundError:
                continue


def _is_free(folder: Path) -> bool:
    """Whether no process unpacks into a folder."""
    try:
        os.close(_lock(folder, fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Holds the lock of a folder, which waits for others."""
    handle = _lock(folder)
    try:
        yield
    finally:
        os.close(handle)


def _lock(folder: Path, how: int = 0) -> int:
    """An open folder that is locked until it is closed, at the end of the process at the latest."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | how)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _remove(folder: Path) -> None:
    """Removes a folder, which has another name by then: one that is half removed is no archive to any command."""
    scratch = Path(tempfile.mkdtemp(prefix=".removing-", dir=folder.parent))
    with suppress(OSError):  # another command may have removed it
        os.rename(folder, scratch)
    shutil.rmtree(scratch, ignore_errors=True)
