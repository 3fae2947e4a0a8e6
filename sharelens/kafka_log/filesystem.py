"""Read-only access to local paths, to what lies in archives, and to object stores (`object_files.py`).

Local files are read with `pread` into buffers and never mapped: Kafka truncates segments while they are
read, and touching a mapped page beyond the new end kills the process.
"""

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import unquote, urlsplit

import numpy as np

from sharelens.kafka_log import archives
from sharelens.kafka_log.files import Bytes, Entry, Folder, RandomAccess, join
from sharelens.kafka_log.object_files import ObjectFolder, address_of
from sharelens.object_stores.addresses import scheme_of


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


@dataclass(frozen=True, slots=True)
class LocalFolder:
    """A folder on this machine, or of an archive that was unpacked; `path`: where it lies."""

    uri: str
    path: str

    def at(self, name: str) -> "LocalFolder":
        """A folder in this one."""
        return LocalFolder(join(self.uri, name), os.path.join(self.path, name))

    def entries(self) -> list[Entry]:
        """The names in the folder, sorted; files that vanish meanwhile are left out."""
        entries = []
        with os.scandir(self.path) as names:
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

    def is_empty(self) -> bool:
        """Whether the folder has no entry."""
        with os.scandir(self.path) as names:
            return next(names, None) is None

    def read_text(self, name: str, *, limit: int = 16 << 20) -> str:
        """A small text file."""
        with open(os.path.join(self.path, name), "rb") as file:
            return file.read(limit).decode("utf-8", errors="replace")

    def open(self, name: str, *, size_bytes: int | None = None, tag: str | None = None) -> RandomAccess:
        """A file read by pread, as far as it goes now."""
        return LocalFile(os.path.join(self.path, name))

    def modified_ms(self, name: str) -> int | None:
        """When a file was changed last."""
        return os.stat(os.path.join(self.path, name)).st_mtime_ns // 1_000_000

    def listed(self) -> "LocalFolder":
        """This one: a disk is asked directory by directory."""
        return self


def is_local(uri: str) -> bool:
    """Whether a path or URI names the local file system, or something in an archive."""
    return scheme_of(uri) in (None, "file", "archive")


def local_path(uri: str) -> str:
    """The path of a local URI; in an archive, the path of the unpacked file."""
    if archives.is_inside(uri):
        return archives.unpacked_path(uri)
    return unquote(urlsplit(uri).path) if uri.startswith("file://") else uri


def absolute(uri: str) -> str:
    """The canonical spelling of a path or URI: absolute, links resolved, no slash at the end."""
    if archives.is_inside(uri):
        return uri.rstrip("/")
    if is_local(uri):
        return str(Path(local_path(uri)).expanduser().resolve())
    return address_of(uri).root


def folder_at(uri: str) -> Folder:
    """The folder that a canonical URI or path names.

    Raises:
        FileNotFoundError, ArchiveError: it is in an archive that is gone, or can't be unpacked.
    """
    return LocalFolder(uri, local_path(uri)) if is_local(uri) else ObjectFolder(uri, address_of(uri))


def host() -> str:
    """The name of this machine, for messages about directories that other machines see."""
    return socket.gethostname()


def on_host(uri: str) -> str:
    """The name of this machine for messages about a directory, in brackets; nothing for a store, which all see."""
    return f" (host {host()})" if is_local(uri) else ""
