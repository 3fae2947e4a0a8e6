"""Log directories inside tar archives (.tar, .tar.gz, .tgz, .tar.zst): `archive:///path/file.tar.gz!/folder`.

Segments are read at positions, which a compressed stream has not. So an archive is unpacked in one pass into a private
folder below `archives_folder()`, under a name made of its path, size and modification time: as long as these stay, no
later command unpacks it again. Folders that no command used for a day are removed.
"""

import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from kafka_log.errors import ArchiveError

SCHEME, INSIDE = "archive://", "!"
SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.zst")
URI = re.compile(rf"{SCHEME}(?P<archive>/.*?(\.tar|\.tar\.gz|\.tgz|\.tar\.zst)){INSIDE}(/(?P<name>.*))?", re.IGNORECASE)
FOLDER_VARIABLE = "SHARELENS_ARCHIVES_DIR"
UNUSED_S = 86_400
PARTITION = re.compile(r".+-\d{1,10}(\.[0-9a-f]+-(delete|stray))?")
SEGMENT = re.compile(r"\d{20}\.log")
MARK = "meta.properties"


def log_directories(uris: Iterable[str]) -> tuple[str, ...]:
    """The log directories that `uris` name: an archive stands for all that are inside, sorted.

    Raises:
        ArchiveError: no such file, it can't be unpacked, or no log directory is inside.
    """
    return tuple(directory for uri in uris for directory in (_inside(uri) if is_archive(uri) else [uri]))


def is_archive(uri: str) -> bool:
    """Whether a path is one of an archive: by its name, unless it is a directory."""
    return "://" not in uri and uri.lower().endswith(SUFFIXES) and not os.path.isdir(uri)


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
    return os.path.join(_unpacked(Path(parts["archive"])), parts["name"] or "")


def archives_folder() -> Path:
    """Where archives are unpacked: SHARELENS_ARCHIVES_DIR, or a folder of the user's cache."""
    named = os.environ.get(FOLDER_VARIABLE)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(named) if named else cache / "sharelens" / "archives"


def _inside(path: str) -> list[str]:
    archive = Path(path).expanduser().resolve()
    try:
        root = _unpacked(archive)
    except FileNotFoundError:
        raise ArchiveError(f"no such archive: {archive}; give the path of a {', '.join(SUFFIXES)} file") from None
    names = sorted(_directories(root))
    if not names:
        raise ArchiveError(
            f"{archive} has no log directory inside: pack the folder that holds folders TOPIC-N with *.log files"
        )
    return [f"{SCHEME}{archive}{INSIDE}/{name}".rstrip("/") for name in names]


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


def _unpacked(archive: Path) -> str:
    """The folder with the content of an archive as it is now."""
    state = archive.stat()
    key = hashlib.sha256(f"{archive}\0{state.st_size}\0{state.st_mtime_ns}".encode()).hexdigest()[:32]
    place = archives_folder()
    target = place / key
    if not target.is_dir():
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove_unused(place)
        _unpack_whole(archive, place, target)
        after = archive.stat()
        if (after.st_size, after.st_mtime_ns) != (state.st_size, state.st_mtime_ns):
            shutil.rmtree(target, ignore_errors=True)
            raise ArchiveError(f"{archive} changed while it was read; repeat when it is written completely")
    os.utime(target)
    return str(target)


def _unpack_whole(archive: Path, place: Path, target: Path) -> None:
    """Unpacks into a folder that gets its name when it is complete; another process may have been first."""
    from kafka_log.unpacking import unpack  # its libraries are for archives alone

    scratch = tempfile.mkdtemp(prefix=".unpacking-", dir=place)
    try:
        unpack(archive, Path(scratch))
        try:
            os.rename(scratch, target)
        except OSError:
            if not target.is_dir():
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _remove_unused(place: Path) -> None:
    """Removes what no command used for a day: complete folders, and those of commands that were killed."""
    oldest = time.time() - UNUSED_S
    for folder in place.iterdir():
        try:
            if folder.stat().st_mtime < oldest:
                shutil.rmtree(folder, ignore_errors=True)
        except FileNotFoundError:
            continue
