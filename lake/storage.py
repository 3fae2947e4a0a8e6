"""Data files: a URI with storage options as a pyarrow file system. The one module that knows kinds of storage.

Paths and file:// URIs today; an object store gets its place in `file_system`, `create` and `sync`.
"""

import os
import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from lake.errors import LakeError

SYNC_THREADS = 8
SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
"""The beginning of a URI, also of one that lost a slash on its way (`s3:/bucket`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """A folder of data files. `root`: its absolute local path; `options`: as delta-rs takes them."""

    root: str
    options: tuple[tuple[str, str], ...] = ()

    @property
    def path(self) -> Path:
        """The folder on the local disk."""
        return Path(self.root)

    def folder(self, *names: str) -> "Storage":
        """A folder below this one."""
        return Storage(root=os.path.join(self.root, *names), options=self.options)

    def file_system(self) -> pafs.FileSystem:
        """The file system whose paths are relative to this folder.

        Arrow's native one: a Python object may be held by Arrow's threads when the interpreter ends, and the process
        would be aborted.
        """
        return pafs.SubTreeFileSystem(os.path.realpath(self.root), pafs.LocalFileSystem())

    def create(self, path: str) -> pa.NativeFile:
        """A new file to write to, for its owner alone, with the folders that lead to it."""
        target = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        return self.file_system().open_output_stream(path)

    def sync(self, paths: Iterable[str]) -> None:
        """Flushes files and folders below this one to the disk; returns when the disk has them."""
        names = [os.path.join(self.root, path) for path in paths]
        if len(names) < SYNC_THREADS:
            for name in names:
                _fsync(name)
            return
        with ThreadPoolExecutor(SYNC_THREADS) as pool:
            list(pool.map(_fsync, names))


def resolve(uri: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> Storage:
    """The storage that a path or URI names.

    Raises:
        LakeError: a scheme without a storage.
    """
    text = os.fspath(uri)
    scheme = SCHEME.match(text)
    if scheme is not None and scheme[1].lower() == "file":
        text = unquote(urlsplit(text).path)
    elif scheme is not None:
        raise LakeError(f"{text}: no storage for {scheme[1]}:// URIs; give a path or a file:// URI")
    return Storage(root=os.path.abspath(text), options=tuple(sorted((options or {}).items())))


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


def _fsync(name: str) -> None:
    handle = os.open(name, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
