"""Files of a log directory, wherever it lies: names, sizes, and reads at positions."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One name in a directory. `modified_ms`: when a file was last written (epoch ms); None where that is unknown.

    `tag`: the ETag of an object.
    """

    name: str
    is_directory: bool
    size_bytes: int
    modified_ms: int | None = None
    tag: str | None = None


class RandomAccess(AbstractContextManager["RandomAccess"], Protocol):
    """An open file, read at positions; `read_at` returns fewer bytes than `length` only at the end of the file."""

    def size(self) -> int:
        """The size now: an active segment grows."""
        ...

    def read_at(self, position: int, length: int) -> Bytes:
        """Writable bytes from `position` on."""
        ...


class Folder(Protocol):
    """A folder of a log, wherever it lies: its canonical URI, parsed once, and what reading it needs."""

    @property
    def uri(self) -> str:
        """The canonical URI or path, without a slash at the end."""
        ...

    def at(self, name: str) -> "Folder":
        """A folder in this one, whether it is there or not."""
        ...

    def entries(self) -> list[Entry]:
        """The names in the folder, sorted. Raises FileNotFoundError, NotADirectoryError, PermissionError."""
        ...

    def is_empty(self) -> bool:
        """Whether the folder has no entry. Raises as `entries`."""
        ...

    def read_text(self, name: str, *, limit: int = 16 << 20) -> str:
        """A small text file in it, at most `limit` bytes. Raises FileNotFoundError."""
        ...

    def open(self, name: str, *, size_bytes: int | None = None, tag: str | None = None) -> RandomAccess:
        """A file in it; `size_bytes`, `tag`: of its listing, for stores. Raises FileNotFoundError, PermissionError."""
        ...

    def modified_ms(self, name: str) -> int | None:
        """When a file in it was changed last (epoch ms). Raises FileNotFoundError."""
        ...

    def listed(self) -> "Folder":
        """The folder for a look at all that is below it: a store lists that at once."""
        ...


def join(uri: str, name: str) -> str:
    """A name inside a directory."""
    return f"{uri.rstrip('/')}/{name}"


def parent(uri: str) -> str:
    """The directory that holds `uri`."""
    return uri.rstrip("/").rsplit("/", 1)[0] or "/"


def name_of(uri: str) -> str:
    """The name of `uri` in its directory."""
    return uri.rstrip("/").rpartition("/")[2]
