"""Log directories in object stores: listed in pages of a thousand objects, read by ranges, never written to.

A segment is read up to the size of its listing, in blocks that the next reads of the process share, so that looks at
headers, at ends and at indexes of one segment are few requests. Large reads pass the blocks by.
"""

import errno
import io
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import IO, Any, Final, Generic, Self, TypeVar

import numpy as np
import pyarrow as pa

from sharelens.kafka_log import text_files
from sharelens.kafka_log.errors import LogDirectoryError
from sharelens.kafka_log.files import Bytes, Entry, join, name_of, parent
from sharelens.object_stores.addresses import AddressError, ObjectAddress, parse
from sharelens.object_stores.failures import failure_text
from sharelens.object_stores.options import FAMILIES, object_store, options_of
from state_model.threads import map_in_threads

BLOCK_BYTES: Final = 1 << 20
BLOCKS: Final = 64
"""The blocks that a process keeps."""
BLOCKS_A_READ: Final = 4
MOST_OBJECTS: Final = 1_000_000
"""Below one log directory: a listing of more is most likely one of another folder."""
SMALL_FILES: Final = frozenset(
    {
        text_files.META_PROPERTIES,
        text_files.PARTITION_METADATA,
        text_files.LEADER_EPOCH_CHECKPOINT,
        text_files.LOG_START_CHECKPOINT,
        text_files.HIGH_WATERMARK_CHECKPOINT,
    }
)
REQUESTS_AT_ONCE: Final = 16
MOST_TEXTS: Final = 20_000
"""The contents of small files that a process keeps, by ETag."""


Key = TypeVar("Key")
Value = TypeVar("Value")


class _NewestValues(Generic[Key, Value]):
    """The values of the newest `max_keys` keys that were used, for all threads of a process."""

    def __init__(self, max_keys: int) -> None:
        self._max_keys = max_keys
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._exclusive = threading.Lock()

    def get(self, key: Key, read: Callable[[], Value]) -> Value:
        """The value of a key, which is read when it is not there."""
        with self._exclusive:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = read()
        with self._exclusive:
            self._values[key] = value
            while len(self._values) > self._max_keys:
                self._values.popitem(last=False)
        return value


_blocks: _NewestValues[tuple[str, str, int], memoryview] = _NewestValues(BLOCKS)
_texts: _NewestValues[tuple[str, str], str] = _NewestValues(MOST_TEXTS)


class ObjectFile:
    """An object that is read by ranges."""

    def __init__(self, address: ObjectAddress, size_bytes: int, tag: str) -> None:
        self._address = address
        self._size = size_bytes
        self._tag = tag

    def size(self) -> int:
        """The size of the listing."""
        return self._size

    def read_at(self, position: int, length: int) -> Bytes:
        """Writable bytes; short only at the end of the object."""
        end = min(position + max(0, length), self._size)
        if position >= end:
            return np.empty(0, dtype=np.uint8)
        first, last = position // BLOCK_BYTES, (end - 1) // BLOCK_BYTES
        if last - first >= BLOCKS_A_READ:
            return np.frombuffer(self._range(position, end), dtype=np.uint8).copy()
        base = first * BLOCK_BYTES
        parts = [np.frombuffer(self._block(number), dtype=np.uint8) for number in range(first, last + 1)]
        joined = np.concatenate(parts)
        return joined[position - base : end - base].copy() if len(parts) == 1 else joined[position - base : end - base]

    def read_all(self) -> bytes:
        """All bytes, in one request."""
        return bytes(self._range(0, self._size))

    def _block(self, number: int) -> memoryview:
        begin = number * BLOCK_BYTES
        key = (self._address.root, f"{self._tag} {self._size}", number)
        return _blocks.get(key, lambda: self._range(begin, min(begin + BLOCK_BYTES, self._size)))

    def _range(self, begin: int, end: int) -> memoryview:
        import obstore

        with explained(self._address, "read"):
            content = obstore.get_range(store_of(self._address), self._address.key, start=begin, end=end)
        return memoryview(content)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """There is nothing to close."""


@dataclass(frozen=True, slots=True)
class ObjectFolder:
    """A folder of a bucket."""

    uri: str
    address: ObjectAddress

    def at(self, name: str) -> "ObjectFolder":
        """A folder in this one."""
        return ObjectFolder(join(self.uri, name), self.address.below(name))

    def entries(self) -> list[Entry]:
        """The objects and folders of the folder, sorted."""
        return entries_of(self.address)

    def is_empty(self) -> bool:
        """Whether the folder has no entry."""
        return not self.entries()

    def read_text(self, name: str, *, limit: int = 16 << 20) -> str:
        """A small text file."""
        return _text(self.address.below(name), self.entry(name), limit)

    def open(self, name: str, *, size_bytes: int | None = None, tag: str | None = None) -> ObjectFile:
        """An object read by ranges; the store is not asked for its size where a listing said it."""
        if size_bytes is None or tag is None:
            entry = self.entry(name)
            size_bytes, tag = entry.size_bytes, entry.tag
        return ObjectFile(self.address.below(name), size_bytes, tag or "")

    def modified_ms(self, name: str) -> int | None:
        """When an object was put, by the clock of the store."""
        return self.entry(name).modified_ms

    def listed(self) -> "ListedFolder":
        """All that is below the folder, listed at once, with its small files."""
        return ListedFolder(self.uri, self.address, _Listing(self.address, _list_all(self.address)))

    def entry(self, name: str) -> Entry:
        """The size, time and ETag of an object in it. Raises FileNotFoundError."""
        return entry_of(self.address.below(name))


@dataclass(frozen=True, slots=True)
class ListedFolder(ObjectFolder):
    """A folder of a bucket as it was listed, with all that is below it."""

    listing: "_Listing"

    def at(self, name: str) -> "ListedFolder":
        """A folder in this one, of the same listing."""
        return ListedFolder(join(self.uri, name), self.address.below(name), self.listing)

    def entries(self) -> list[Entry]:
        """The objects and folders of the folder, sorted, as they were listed."""
        entries = self.listing.folders.get(self.address.root)
        if entries is None:
            return entries_of(self.address)  # which raises, unless it came meanwhile
        return sorted(entries.values(), key=lambda entry: entry.name)

    def entry(self, name: str) -> Entry:
        """The size, time and ETag of an object as it was listed. Raises FileNotFoundError."""
        listed_entry = self.listing.objects.get(self.address.below(name).root)
        if listed_entry is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), join(self.uri, name))
        return listed_entry


class _Listing:
    """All objects below a folder of a bucket, by URI; small files are read side by side."""

    def __init__(self, root: ObjectAddress, objects: Iterable[tuple[str, Entry]]) -> None:
        addresses = {root.below(path): entry for path, entry in objects}
        self.objects = {address.root: entry for address, entry in addresses.items()}
        folders: dict[str, dict[str, Entry]] = {}
        for address, entry in self.objects.items():
            folder = parent(address)
            folders.setdefault(folder, {}).setdefault(entry.name, entry)
            while folder != root.root:
                name = name_of(folder)
                folder = parent(folder)
                folders.setdefault(folder, {})[name] = _folder(name)
        self.folders: Mapping[str, Mapping[str, Entry]] = folders
        small = [(address, entry) for address, entry in addresses.items() if entry.name in SMALL_FILES]
        if len(small) > 1:
            map_in_threads(_read_if_there, small, REQUESTS_AT_ONCE)


def address_of(uri: str) -> ObjectAddress:
    """The object or folder that a URI names. Raises LogDirectoryError for one that names none."""
    try:
        return parse(uri)
    except AddressError as error:
        raise LogDirectoryError(str(error)) from None


def entries_of(address: ObjectAddress) -> list[Entry]:
    """The objects and folders of a folder, sorted. Raises FileNotFoundError, NotADirectoryError."""
    import obstore

    with explained(address, "list"):
        listed = obstore.list_with_delimiter(store_of(address), f"{address.key}/" if address.key else None)
    folders = [_folder(str(path).rstrip("/")) for path in listed["common_prefixes"]]
    objects = [_entry(listed_object) for listed_object in listed["objects"] if listed_object["path"] != address.key]
    if not folders and not objects:
        if _head(address) is not None:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), address.root)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), address.root)
    return sorted([*folders, *objects], key=lambda entry: entry.name)


def entry_of(address: ObjectAddress) -> Entry:
    """The size, time and ETag of an object. Raises FileNotFoundError."""
    listed_entry = _head(address)
    if listed_entry is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), address.root)
    return listed_entry


def _head(address: ObjectAddress) -> Entry | None:
    import obstore

    if not address.key:
        return None
    try:
        with explained(address, "read"):
            return _entry(obstore.head(store_of(address), address.key))
    except FileNotFoundError:
        return None


@contextmanager
def streamed(address: ObjectAddress) -> Iterator[IO[bytes]]:
    """An object from its beginning to its end, in one request. Raises FileNotFoundError."""
    import obstore

    with explained(address, "read"):
        answer = obstore.get(store_of(address), address.key)
    with pa.PythonFile(_Stream(answer.stream(min_chunk_size=BLOCK_BYTES), address), mode="r") as stream:
        yield stream


class _Stream(io.RawIOBase):
    """The chunks of an answer as a file."""

    def __init__(self, chunks: Iterable[Any], address: ObjectAddress) -> None:
        super().__init__()
        self._chunks = iter(chunks)
        self._address = address
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        """At most `size` bytes; none at the end."""
        if not self._rest:
            with explained(self._address, "read"):
                self._rest = memoryview(next(self._chunks, b""))
        chunk = self._rest if size < 0 else self._rest[:size]
        self._rest = self._rest[len(chunk) :]
        return bytes(chunk)


def store_of(address: ObjectAddress) -> Any:
    """The obstore store of a bucket."""
    return object_store(address.scheme, address.bucket, options_of(FAMILIES[address.scheme]))


@contextmanager
def explained(address: ObjectAddress, action: str) -> Iterator[None]:
    """Turns errors of the store into one line without secrets; an object that is not there stays FileNotFoundError.

    A store that refuses or does not answer is no damage of a log: nothing is recorded as lost.
    """
    from obstore.exceptions import BaseError

    try:
        yield
    except FileNotFoundError as error:
        if any(code in str(error) for code in ("NoSuchBucket", "ContainerNotFound")):
            raise LogDirectoryError(_line(error, address, action)) from None
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), address.root) from None
    except (BaseError, OSError, ValueError) as error:
        raise LogDirectoryError(_line(error, address, action)) from None


def _line(error: BaseException, address: ObjectAddress, action: str) -> str:
    return failure_text(error, address.root, FAMILIES[address.scheme], action, rights="list and read")


def _list_all(address: ObjectAddress) -> list[tuple[str, Entry]]:
    """(path below the folder, entry) of all objects below a folder."""
    import obstore

    prefix = f"{address.key}/" if address.key else ""
    objects: list[tuple[str, Entry]] = []
    with explained(address, "list"):
        for page in obstore.list(store_of(address), prefix or None):
            objects += [
                (listed_object["path"][len(prefix) :], _entry(listed_object))
                for listed_object in page
                if listed_object["path"] != address.key
            ]
            if len(objects) > MOST_OBJECTS:
                break
    if len(objects) > MOST_OBJECTS:
        raise LogDirectoryError(f"{address.root}: more than {MOST_OBJECTS} objects; name one log directory below it")
    return objects


def _read_if_there(small: tuple[ObjectAddress, Entry]) -> None:
    try:
        _text(*small, 16 << 20)
    except FileNotFoundError:  # it vanished after the listing: whoever reads it is refused
        return


def _text(address: ObjectAddress, entry: Entry, limit: int) -> str:
    if entry.size_bytes == 0:
        return ""
    tag = f"{entry.tag} {entry.size_bytes}"

    def read() -> str:
        content = ObjectFile(address, min(entry.size_bytes, limit), tag).read_all()
        return content.decode("utf-8", errors="replace")

    return _texts.get((address.root, tag), read)


def _folder(path: str) -> Entry:
    return Entry(name=name_of(path), is_directory=True, size_bytes=0)


def _entry(listed_object: Any) -> Entry:
    modified: datetime = listed_object["last_modified"]
    return Entry(
        name=name_of(str(listed_object["path"])),
        is_directory=False,
        size_bytes=int(listed_object["size"]),
        modified_ms=int(modified.timestamp() * 1000),
        tag=str(listed_object.get("e_tag") or listed_object.get("version") or ""),
    )
