"""Files of the log directory: replaced atomically, kept open within a limit, errors of the disk in one line."""

import os
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sharelens.broker.errors import StorageError

MAX_OPEN_FILES: Final = 256


@contextmanager
def storage_errors(subject: str) -> Iterator[None]:
    """Turn an OSError into a StorageError of one line that begins with `subject`."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"{subject}: {error.strerror or error}") from error


def sync_directory(directory: Path) -> None:
    """Make names that were created, renamed or removed in a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: Path, content: str | bytes, *, durable: bool = False) -> None:
    """Replace a file as a whole: a reader, and a start after a crash of the process, see the old or the new one.

    durable: also after a loss of power. Raises StorageError; the old file is then still there.
    """
    raw = content.encode() if isinstance(content, str) else content
    scratch = path.with_name(path.name + ".tmp")
    with storage_errors(f"{path} can't be written"):
        descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            write_at(descriptor, raw, 0)
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        scratch.rename(path)
        if durable:
            sync_directory(path.parent)


def write_at(descriptor: int, data: bytes | memoryview, position: int) -> None:
    """Write all bytes, in as many calls as needed. Raises OSError."""
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, position)
        view, position = view[written:], position + written


class _Waiting:
    """Buffered bytes of one file, from a position on."""

    __slots__ = ("pieces", "position", "size_bytes")

    def __init__(self, position: int) -> None:
        self.position = position
        self.pieces: list[bytes | memoryview] = []
        self.size_bytes = 0


class OpenFiles:
    """File descriptors for reading and writing by path; the one unused for longest is closed beyond the limit.

    A descriptor is valid until the next call; the file then has all appended bytes.
    """

    def __init__(self, limit: int = MAX_OPEN_FILES, *, buffer_bytes: int = 0) -> None:
        """buffer_bytes: bytes of each file that `append` may buffer; 0: each append is in the file when it returns."""
        self._limit = limit
        self._buffer_bytes = buffer_bytes
        self._open: OrderedDict[str, int] = OrderedDict()
        self._waiting: dict[str, _Waiting] = {}

    def append(self, path: str, pieces: tuple[bytes | memoryview, ...], size_bytes: int, position: int) -> None:
        """Write pieces of so many bytes in all behind the last one of a file. Raises OSError."""
        if not self._buffer_bytes:
            descriptor = self.get(path)
            if os.pwritev(descriptor, pieces, position) != size_bytes:
                write_at(descriptor, b"".join(pieces), position)
            return
        waiting = self._waiting.get(path)
        if waiting is None:
            waiting = self._waiting[path] = _Waiting(position)
        waiting.pieces += pieces
        waiting.size_bytes += size_bytes
        if waiting.size_bytes >= self._buffer_bytes:
            self.get(path)

    def get(self, path: str) -> int:
        """The descriptor of a file, created when it is missing. Raises OSError."""
        descriptor = self._descriptor(path)
        waiting = self._waiting.pop(path, None) if self._waiting else None
        if waiting is not None:
            write_at(descriptor, b"".join(waiting.pieces), waiting.position)
        return descriptor

    def _descriptor(self, path: str) -> int:
        descriptor = self._open.get(path)
        if descriptor is not None:
            self._open.move_to_end(path)
            return descriptor
        descriptor = self._open[path] = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if len(self._open) > self._limit:
            os.close(self._open.popitem(last=False)[1])
        return descriptor

    def forget(self, path: str) -> None:
        """Close a file that is to be renamed or removed. Raises OSError where something of it waits to be written."""
        if path in self._waiting:
            self.get(path)
        descriptor = self._open.pop(path, None)
        if descriptor is not None:
            os.close(descriptor)

    def close(self) -> None:
        """Close all of them. Raises OSError as `forget` does."""
        for path in [*self._open, *self._waiting]:
            self.forget(path)
