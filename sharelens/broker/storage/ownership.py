"""Ownership of a log directory: this broker writes only into its own or an empty directory.

A directory of a Kafka broker is evidence and is never opened for writing; no option overrides
that. Kafka's own `.lock` is honoured both ways: java.nio's FileLock is a POSIX record lock on Linux, as is ours.
"""

import fcntl
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sharelens.broker.errors import DirectoryError, StorageError
from sharelens.broker.storage.catalog import new_id
from sharelens.broker.storage.files import replace_file
from sharelens.kafka_formats import properties
from sharelens.kafka_log.text_files import META_PROPERTIES

MARK_FILE: Final = "sharelens.broker.json"
LOCK_FILE: Final = ".lock"
FORMAT_VERSION: Final = 1
_HARMLESS: Final = {LOCK_FILE, "lost+found"}
_PARTITION: Final = re.compile(r".+-\d+|.+-(delete|stray|future)")


@dataclass(frozen=True, slots=True)
class Claim:
    """A log directory that is ours and locked until `release`, or until the process ends."""

    directory: Path
    _descriptor: int

    def release(self) -> None:
        """Release the lock."""
        os.close(self._descriptor)


def claim(directory: Path) -> Claim:
    """Create or reopen the directory, lock and mark it.

    Raises DirectoryError, before anything was opened for writing: it has files of another writer, another
    broker has the lock, or it can't be used.
    """
    with _directory_errors(directory):
        if not directory.exists():
            directory.mkdir(mode=0o700, parents=True)
        is_marked = _check(directory)
        descriptor = _lock(directory)
        try:
            if not is_marked:
                replace_file(directory / MARK_FILE, json.dumps({"format": FORMAT_VERSION}) + "\n", durable=True)
        except BaseException:
            os.close(descriptor)
            raise
    return Claim(directory, descriptor)


@contextmanager
def _directory_errors(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DirectoryError(f"log directory {directory} can't be used: {error.strerror or error}") from error
    except StorageError as error:
        raise DirectoryError(f"log directory {directory} can't be used: {error}") from error


def _check(directory: Path) -> bool:
    """Whether it has our mark; DirectoryError unless it has, or is empty."""
    if not directory.is_dir():
        raise DirectoryError(f"{directory} is no directory: name another log directory")
    mark = directory / MARK_FILE
    if mark.exists():
        _check_mark(mark)
        return True
    names = sorted(path.name for path in directory.iterdir() if path.name not in _HARMLESS)
    kafka = [name for name in names if name == META_PROPERTIES or name.endswith("-checkpoint")]
    kafka += [name for name in names if _PARTITION.fullmatch(name) and (directory / name).is_dir()]
    kafka += [name for name in names if name.endswith(".log")]
    if kafka:
        raise DirectoryError(
            f"{directory} holds another broker's log ({kafka[0]}): it is evidence and stays as it is, "
            "name an empty or missing directory"
        )
    if names:
        raise DirectoryError(
            f"{directory} holds other files ({names[0][:80]}): name an empty or missing directory for the log"
        )
    return False


def _check_mark(mark: Path) -> None:
    try:
        document = json.loads(mark.read_bytes())
        version = document["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise DirectoryError(f"{mark} is not this broker's mark: name another log directory") from error
    if version != FORMAT_VERSION:
        raise DirectoryError(f"{mark} has format {version}, this broker writes {FORMAT_VERSION}: start a newer one")


def _lock(directory: Path) -> int:
    descriptor = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise DirectoryError(
            f"{directory} is in use: another broker holds {LOCK_FILE}, stop it or name another log directory"
        ) from error
    return descriptor


def ensure_meta(directory: Path, *, cluster_id: str, node_id: int, make_id: Callable[[], str] | None = None) -> str:
    """Write meta.properties (version 1, as Kafka 4 does) or compare it; the directory id, random or `make_id`'s.

    Raises DirectoryError when it names another cluster or node, StorageError.
    """
    path = directory / META_PROPERTIES
    with _directory_errors(directory):
        text = path.read_text(encoding="utf-8") if path.exists() else ""
    if text:
        values = _meta_values(text, path)
        expected = {"version": "1", "cluster.id": cluster_id, "node.id": str(node_id)}
        for name, value in expected.items():
            if values.get(name) != value:
                actual = values.get(name)
                raise DirectoryError(f"{path} has {name}={actual}, this broker is {value}: set {name} to that")
        return values.get("directory.id", "")
    directory_id = (make_id or new_id)()
    lines = [f"cluster.id={cluster_id}", f"directory.id={directory_id}", f"node.id={node_id}", "version=1", ""]
    replace_file(path, "\n".join(lines), durable=True)
    return directory_id


def _meta_values(text: str, path: Path) -> dict[str, str]:
    try:
        return properties.parse(text, str(path))
    except properties.PropertiesError as error:
        raise DirectoryError(f"{error}: write the key as Kafka does, or name another log directory") from error
