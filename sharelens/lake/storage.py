"""Storage: the interface of a folder of files that a lake lies in, on a local disk or in an object store.

`sharelens.lake.locations.resolve` makes one of a path or URI. All paths of its methods are relative to the folder,
with `/`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import pyarrow as pa
import pyarrow.fs as pafs

from sharelens.lake.errors import LakeError


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A file of a folder. `name`: without its folder; `modified_ms`: epoch milliseconds by the storage's clock."""

    name: str
    size_bytes: int
    modified_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage(ABC):
    """A folder of files. `root`: its absolute path or its URI, as delta-rs opens it.

    A Storage is a value: pickled, it is its address alone. Options, credentials among them, stay in the environment of
    a process (`sharelens.object_stores.options`).
    """

    root: str

    is_local: ClassVar[bool]
    """Whether it is a folder of this machine's file system: files can be torn, links and locks exist."""

    @property
    @abstractmethod
    def address(self) -> str:
        """The absolute path without links, or the URI."""

    @abstractmethod
    def folder(self, *names: str) -> "Storage":
        """A folder below this one."""

    @abstractmethod
    def delta_options(self) -> dict[str, str] | None:
        """The storage options for delta-rs; None for none."""

    @abstractmethod
    def file_system(self) -> pafs.FileSystem:
        """The file system whose paths are relative to this folder.

        Arrow's native one: a Python object may be held by Arrow's threads when the interpreter ends, and the process
        would be aborted.
        """

    @abstractmethod
    def make(self) -> None:
        """Makes the folder, for its owner alone, with those that lead to it; a store has no folders to make."""

    @abstractmethod
    def exists(self) -> bool:
        """Whether the folder exists; in a store: whether there is anything below it."""

    @abstractmethod
    def names(self) -> list[str]:
        """The names of the files and folders in it; [] for a folder that does not exist.

        Raises:
            NotADirectoryError: the address is one of a file.
        """

    @abstractmethod
    def files(self, folder: str) -> list[Entry]:
        """The files of a folder, not of those below it; [] for a folder that does not exist."""

    @abstractmethod
    def stat(self, path: str) -> Entry | None:
        """A file's size and time; None when there is no such file."""

    @abstractmethod
    def create(self, path: str) -> pa.NativeFile:
        """A new file to write to, for its owner alone, with the folders that lead to it.

        In a store it becomes visible when it is closed.
        """

    @abstractmethod
    def read(self, path: str) -> bytes:
        """The content of a small file.

        Raises:
            FileNotFoundError: there is no such file.
        """

    @abstractmethod
    def remove(self, path: str) -> None:
        """Removes a file; one that does not exist is no error."""

    @abstractmethod
    def remove_folder(self, folder: str) -> None:
        """Removes a folder with all that is below it; one that does not exist is no error."""

    @abstractmethod
    def rename(self, path: str, new_path: str) -> None:
        """Renames a file; a store copies it first."""

    @abstractmethod
    def take(self, source: "Storage", path: str) -> None:
        """Puts the file of that path in a folder of the same storage here too, without a second upload of its bytes.

        A second name for it on a disk that knows links, else a copy; a file of that path here is replaced.
        """

    @abstractmethod
    def sync(self, paths: Iterable[str]) -> None:
        """Flushes files and folders to the disk; returns when the disk has them. A store has what it has accepted."""

    @abstractmethod
    def explained(self, error: BaseException, path: str = "") -> LakeError | None:
        """The one-line error for a failed read or write of `path`, where its cause is known; None for any other."""


class TableFolders(Protocol):
    """The folders of a lake's tables: the lake in the driver, a view of it in a task."""

    def table_storage(self, table: str) -> Storage:
        """The folder of table `layer.name`."""
