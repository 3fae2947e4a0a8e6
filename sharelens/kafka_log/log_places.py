"""Places of logs as they are named: parsed once, into values that know how they are read.

An archive lies on this machine or in an object store; a log directory is named by its URI.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import pyarrow as pa

from sharelens.kafka_log.files import join
from sharelens.kafka_log.object_files import address_of, entries_of, entry_of, streamed
from sharelens.object_stores.addresses import ObjectAddress, scheme_of
from sharelens.object_stores.options import FAMILIES

SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.zst")
PARTITION = re.compile(r".+-\d{1,10}(\.[0-9a-f]+-(delete|stray))?")
SEGMENT = re.compile(r"\d{20}\.log")
MARK = "meta.properties"
MOST_FOLDERS_DEEP = 3
"""Of log directories below a folder of a store that is named."""
COMPRESSIONS = {".gz": "gzip", ".tgz": "gzip", ".zst": "zstd"}


@dataclass(frozen=True, slots=True)
class LocalArchive:
    """An archive of this machine; `name`: its absolute path."""

    name: str

    def version(self) -> str:
        """Its size and modification time. Raises FileNotFoundError."""
        state = os.stat(self.name)
        return f"{state.st_size}\0{state.st_mtime_ns}"

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """The bytes of the tar stream. Raises FileNotFoundError, PermissionError."""
        with open(self.name, "rb"):  # for Python's own errors
            yield _decompressed(self.name, self.name)


@dataclass(frozen=True, slots=True)
class StoredArchive:
    """An archive in an object store."""

    address: ObjectAddress

    @property
    def name(self) -> str:
        """Its canonical URI."""
        return self.address.root

    def version(self) -> str:
        """Its size and ETag. Raises FileNotFoundError."""
        entry = entry_of(self.address)
        return f"{entry.size_bytes}\0{entry.tag}"

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """The bytes of the tar stream. Raises FileNotFoundError."""
        with streamed(self.address) as packed:
            yield _decompressed(packed, self.name)


Archive = LocalArchive | StoredArchive


def places_at(uri: str) -> Iterator[Archive | str]:
    """The archives and log directories (as URIs) that a path or URI names, which is parsed here and not again.

    A folder of a store stands for all directories and archives below it; anything else for itself.

    Raises:
        LogDirectoryError: a URI of a store that names nothing in it, or a store that refuses or does not answer.
    """
    scheme = scheme_of(uri)
    if scheme in FAMILIES:
        address = address_of(uri)
        below = [StoredArchive(address)] if is_archive_name(uri) else list(_below(uri, address, MOST_FOLDERS_DEEP))
        yield from below or [uri]  # whoever reads it says what it is not
    elif scheme is None and is_archive_name(uri) and not os.path.isdir(uri):
        yield LocalArchive(str(Path(uri).expanduser().resolve()))
    else:
        yield uri


def archive_named(name: str) -> Archive:
    """The archive of a canonical name: an absolute path, or the URI of an object."""
    return LocalArchive(name) if scheme_of(name) is None else StoredArchive(address_of(name))


def is_archive_name(name: str) -> bool:
    """Whether a file of this name is an archive."""
    return name.lower().endswith(SUFFIXES)


def _below(uri: str, folder: ObjectAddress, depth: int) -> Iterator[Archive | str]:
    """The log directories in a folder of a store, and the archives in it; `uri`: of the folder as it was named."""
    try:
        entries = entries_of(folder)
    except (FileNotFoundError, NotADirectoryError):
        return
    partitions = [entry.name for entry in entries if entry.is_directory and PARTITION.fullmatch(entry.name)]
    if any(entry.name == MARK for entry in entries) or any(
        SEGMENT.fullmatch(entry.name) for name in partitions for entry in entries_of(folder.below(name))
    ):
        yield uri
        return
    for entry in entries if depth else ():
        if entry.is_directory:
            yield from _below(join(uri, entry.name), folder.below(entry.name), depth - 1)
        elif is_archive_name(entry.name):
            yield StoredArchive(folder.below(entry.name))


def _decompressed(source: Any, name: str) -> IO[bytes]:
    compression = COMPRESSIONS.get(Path(name).suffix.lower())
    return cast(IO[bytes], pa.input_stream(source, compression=compression))
