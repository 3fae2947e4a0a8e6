"""A folder of the local disk as Storage."""

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.fs as pafs

from sharelens.lake.errors import LakeError
from sharelens.lake.storage import Entry, Storage
from state_model.threads import map_in_threads

SYNC_THREADS, FILES_A_THREAD = 8, 8
"""How many threads sync files at most, and how many files a thread is worth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalStorage(Storage):
    """A folder of the local disk. `root`: its absolute path."""

    is_local: ClassVar[bool] = True

    @property
    def path(self) -> Path:
        """The folder."""
        return Path(self.root)

    @property
    def address(self) -> str:
        return os.path.realpath(self.root)

    def folder(self, *names: str) -> "LocalStorage":
        return LocalStorage(root=os.path.join(self.root, *names))

    def delta_options(self) -> None:
        return None

    def file_system(self) -> pafs.FileSystem:
        return pafs.SubTreeFileSystem(os.path.realpath(self.root), pafs.LocalFileSystem())

    def make(self) -> None:
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def exists(self) -> bool:
        return os.path.isdir(self.root)

    def names(self) -> list[str]:
        try:
            return os.listdir(self.root)
        except FileNotFoundError:
            return []

    def files(self, folder: str) -> list[Entry]:
        try:
            with os.scandir(os.path.join(self.root, folder)) as entries:
                return [_entry(entry.name, entry.stat()) for entry in entries if entry.is_file()]
        except (FileNotFoundError, NotADirectoryError):
            return []

    def stat(self, path: str) -> Entry | None:
        try:
            return _entry(os.path.basename(path), os.stat(os.path.join(self.root, path)))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def create(self, path: str) -> pa.NativeFile:
        target = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        return self.file_system().open_output_stream(path)

    def read(self, path: str) -> bytes:
        return (self.path / path).read_bytes()

    def remove(self, path: str) -> None:
        (self.path / path).unlink(missing_ok=True)

    def remove_folder(self, folder: str) -> None:
        shutil.rmtree(self.path / folder, ignore_errors=True)

    def rename(self, path: str, new_path: str) -> None:
        (self.path / path).rename(self.path / new_path)

    def take(self, source: Storage, path: str) -> None:
        existing, target = os.path.join(source.root, path), self.path / path
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        try:
            os.link(existing, target)
        except OSError:
            shutil.copyfile(existing, target)
        self.sync([path])

    def sync(self, paths: Iterable[str]) -> None:
        names = [os.path.join(self.root, path) for path in paths]
        map_in_threads(_fsync, names, min(SYNC_THREADS, len(names) // FILES_A_THREAD))

    def explained(self, error: BaseException, path: str = "") -> LakeError | None:
        return disk_full(os.path.join(self.root, path)) if is_disk_full(error) else None


def is_disk_full(error: BaseException) -> bool:
    """Whether an error of Arrow or delta-rs means a full disk."""
    return "No space left on device" in str(error)


def disk_full(path: str | os.PathLike[str]) -> LakeError:
    """The error for a full disk; it names the disk and the remedy."""
    folder = Path(path)
    while not folder.exists():
        folder = folder.parent
    mount = folder.resolve()
    while not mount.is_mount():
        mount = mount.parent
    return LakeError(f"no space left on the disk at {mount} (writing {path}); free some space, then run again")


def _entry(name: str, status: os.stat_result) -> Entry:
    return Entry(name=name, size_bytes=status.st_size, modified_ms=status.st_mtime_ns // 1_000_000)


def _fsync(name: str) -> None:
    handle = os.open(name, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
