"""Read-only access to local paths and to any URI that fsspec or pyarrow opens.

Local files are read with `pread` into buffers and never mapped: Kafka truncates segments while they are
read, and touching a mapped page beyond the new end kills the process.
"""

import os
import socket
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Protocol, Self, cast
from urllib.parse import unquote, urlsplit

import numpy as np
import numpy.typing as npt

from kafka_log import archives
from kafka_log.errors import LogDirectoryError

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One name in a directory. `modified_ms`: when a file was last written (epoch ms); None where that is unknown."""

    name: str
    is_directory: bool
    size_bytes: int
    modified_ms: int | None = None


class RandomAccess(AbstractContextManager["RandomAccess"], Protocol):
    """An open file, read at positions; `read_at` returns fewer bytes than `length` only at the end of the file."""

    def size(self) -> int:
        """The size now: an active segment grows."""
        ...

    def read_at(self, position: int, length: int) -> Bytes:
        """Writable bytes from `position` on."""
        ...


class Filesystem(Protocol):
    """The operations of a file system that reading a log directory needs."""

    def entries(self, uri: str) -> list[Entry]:
        """The names in a directory, sorted. Raises FileNotFoundError, NotADirectoryError, PermissionError."""
        ...

    def read_text(self, uri: str, *, limit: int = 16 << 20) -> str:
        """A small text file, at most `limit` bytes. Raises FileNotFoundError."""
        ...

    def open(self, uri: str) -> RandomAccess:
        """Raises FileNotFoundError, PermissionError."""
        ...


class LocalFile:
    """A local file read by pread."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def size(self) -> int:
        """The size now."""
        return os.fstat(self._descriptor).st_size

    def read_at(self, position: int, length: int) -> Bytes:
        """Writable bytes; short only at the end of the file."""
        buffer = np.empty(max(0, min(length, self.size() - position)), dtype=np.uint8)
        view = buffer.data
        filled = 0
        while filled < len(view):
            count = os.preadv(self._descriptor, [view[filled:]], position + filled)
            if count == 0:
                break
            filled += count
        return buffer[:filled]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)


class LocalFilesystem:
    """Paths, file: URIs, and what lies in archives."""

    def entries(self, uri: str) -> list[Entry]:
        """The names in a directory, sorted; files that vanish meanwhile are left out."""
        entries = []
        with os.scandir(local_path(uri)) as names:
            for name in names:
                try:
                    is_directory = name.is_dir()
                    status = None if is_directory else name.stat()
                except FileNotFoundError:
                    continue
                entries.append(
                    Entry(
                        name=name.name,
                        is_directory=is_directory,
                        size_bytes=0 if status is None else status.st_size,
                        modified_ms=None if status is None else status.st_mtime_ns // 1_000_000,
                    )
                )
        return sorted(entries, key=lambda entry: entry.name)

    def read_text(self, uri: str, *, limit: int = 16 << 20) -> str:
        """A small text file."""
        with open(local_path(uri), "rb") as file:
            return file.read(limit).decode("utf-8", errors="replace")

    def open(self, uri: str) -> RandomAccess:
        """A file read by pread."""
        return LocalFile(local_path(uri))


class RemoteFile:
    """A file of an fsspec file system."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self._size = size

    def size(self) -> int:
        """The size when it was opened."""
        return self._size

    def read_at(self, position: int, length: int) -> Bytes:
        """Writable bytes; short only at the end of the file."""
        length = max(0, min(length, self._size - position))
        if length == 0:
            return np.empty(0, dtype=np.uint8)
        self._file.seek(position)
        return np.frombuffer(self._file.read(length), dtype=np.uint8).copy()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


class RemoteFilesystem:
    """Any scheme that fsspec knows, or else pyarrow."""

    def entries(self, uri: str) -> list[Entry]:
        """The names in a directory, sorted."""
        filesystem, path = _remote(uri)
        path = path.rstrip("/") or "/"
        entries = [
            Entry(
                name=str(entry["name"]).rstrip("/").rsplit("/", 1)[-1],
                is_directory=entry["type"] == "directory",
                size_bytes=int(entry["size"] or 0),
                modified_ms=_modified_ms(entry),
            )
            for entry in filesystem.ls(path, detail=True)
            if str(entry["name"]).strip("/") != path.strip("/")
        ]
        if not entries and filesystem.isfile(path):
            raise NotADirectoryError(uri)
        return sorted(entries, key=lambda entry: entry.name)

    def read_text(self, uri: str, *, limit: int = 16 << 20) -> str:
        """A small text file."""
        filesystem, path = _remote(uri)
        with filesystem.open(path, "rb") as file:
            return cast(bytes, file.read(limit)).decode("utf-8", errors="replace")

    def open(self, uri: str) -> RandomAccess:
        """A file read through fsspec."""
        filesystem, path = _remote(uri)
        size = int(filesystem.info(path)["size"] or 0)
        return RemoteFile(filesystem.open(path, "rb", cache_type="readahead", block_size=1 << 20), size)


REASON_LENGTH = 200
"""Of libraries that list every place where they looked."""


def _remote(uri: str) -> tuple["AbstractFileSystem", str]:
    """The fsspec file system of a URI and the path inside it; listings are never taken from a cache."""
    import fsspec  # only for URIs: a local start does not pay for it

    try:
        filesystem, path = fsspec.core.url_to_fs(uri)
    except (ValueError, ImportError, OSError) as error:
        reason = " ".join(str(error).split())[:REASON_LENGTH]
        raise LogDirectoryError(
            f"no file system opens {uri}: {reason}; give a path, as of a copy on this machine"
        ) from error
    filesystem.invalidate_cache()
    return filesystem, path


def _modified_ms(entry: Mapping[str, object]) -> int | None:
    """The time of the last write in an fsspec listing: seconds, or a datetime in object stores."""
    written = entry.get("mtime", entry.get("LastModified"))
    if isinstance(written, datetime):
        return int(written.timestamp() * 1000)
    return int(written * 1000) if isinstance(written, int | float) else None


def is_local(uri: str) -> bool:
    """Whether a path or URI names the local file system, or something in an archive on it."""
    return "://" not in uri or uri.startswith("file://") or archives.is_inside(uri)


def local_path(uri: str) -> str:
    """The path of a local URI; in an archive, the path of the unpacked file."""
    if archives.is_inside(uri):
        return archives.unpacked_path(uri)
    return unquote(urlsplit(uri).path) if uri.startswith("file://") else uri


def absolute(uri: str) -> str:
    """The canonical spelling of a path or URI: absolute, links resolved, no slash at the end."""
    if is_local(uri) and not archives.is_inside(uri):
        return str(Path(local_path(uri)).expanduser().resolve())
    scheme, _, rest = uri.partition("://")
    return f"{scheme}://{rest.rstrip('/') or '/'}"


def filesystem_of(uri: str) -> Filesystem:
    """The file system that opens a path or URI."""
    return LocalFilesystem() if is_local(uri) else RemoteFilesystem()


def join(uri: str, name: str) -> str:
    """A name inside a directory."""
    return f"{uri.rstrip('/')}/{name}"


def parent(uri: str) -> str:
    """The directory that holds `uri`."""
    return uri.rstrip("/").rsplit("/", 1)[0] or "/"


def host() -> str:
    """The name of this machine, for messages about directories that other machines see."""
    return socket.gethostname()
