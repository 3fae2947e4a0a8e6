"""A folder of an object store as Storage: small objects through obstore, data files through Arrow."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, TypeVar

import pyarrow as pa
import pyarrow.fs as pafs

from sharelens.lake.errors import LakeError
from sharelens.lake.storage import Entry, Storage
from sharelens.object_stores.addresses import AddressError, parse
from sharelens.object_stores.failures import cause_of, failure_text
from sharelens.object_stores.options import FAMILIES, Options, arrow_file_system, object_store, options_of

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectStorage(Storage):
    """A folder of a bucket. `root`: its URI; `prefix`: its path in the bucket, without slashes around it."""

    scheme: str
    bucket: str
    prefix: str

    is_local: ClassVar[bool] = False

    @property
    def address(self) -> str:
        return self.root

    def folder(self, *names: str) -> "ObjectStorage":
        return ObjectStorage(
            root="/".join([self.root, *names]), scheme=self.scheme, bucket=self.bucket, prefix=self.key(*names)
        )

    def key(self, *names: str) -> str:
        """The path of an object in the bucket."""
        return "/".join(name for name in (self.prefix, *names) if name)

    @property
    def _options(self) -> Options:
        return options_of(FAMILIES[self.scheme])

    @property
    def store(self) -> Any:
        """The obstore store of the bucket."""
        return object_store(self.scheme, self.bucket, self._options)

    def delta_options(self) -> dict[str, str]:
        return dict(self._options)

    def file_system(self) -> pafs.FileSystem:
        base = f"{self.bucket}/{self.prefix}" if self.prefix else self.bucket
        return pafs.SubTreeFileSystem(base, arrow_file_system(self.scheme, self._options))

    def make(self) -> None:
        """A store has no folders."""

    def exists(self) -> bool:
        return bool(self.names())

    def names(self) -> list[str]:
        objects, folders = self._listed("")
        return [*folders, *(entry.name for entry in objects)]

    def files(self, folder: str) -> list[Entry]:
        return self._listed(folder)[0]

    def _listed(self, folder: str) -> tuple[list[Entry], list[str]]:
        """The objects of a folder, and the names of its folders."""
        import obstore

        prefix = self.key(folder)
        with self.one_line("list"):
            listed = obstore.list_with_delimiter(self.store, f"{prefix}/" if prefix else None)
        folders = [path.rstrip("/").rpartition("/")[2] for path in listed["common_prefixes"]]
        return [_entry(listed_object) for listed_object in listed["objects"]], folders

    def stat(self, path: str) -> Entry | None:
        import obstore

        return self._unless_missing("read", lambda: _entry(obstore.head(self.store, self.key(path))))

    def create(self, path: str) -> pa.NativeFile:
        return self.file_system().open_output_stream(path)

    def read(self, path: str) -> bytes:
        content = self.read_tagged(path)
        if content is None:
            raise FileNotFoundError(f"{self.root}/{path}")
        return content[0]

    def read_tagged(self, path: str) -> tuple[bytes, str] | None:
        """The content of an object with its ETag; None when there is no such object."""
        import obstore

        def get() -> tuple[bytes, str]:
            answer = obstore.get(self.store, self.key(path))
            return bytes(answer.bytes()), str(answer.meta["e_tag"])

        return self._unless_missing("read", get)

    def replace(self, path: str, content: bytes, tag: str | None) -> str | None:
        """Writes an object if its ETag is still `tag` (None: if there is no such object), and returns the new ETag.

        None when another writer was first. A write may take place and be refused all the same: its answer was lost, and
        the client repeated it. So an object with this content counts as written; the caller makes the content unique.
        """
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        condition: Any = "create" if tag is None else {"e_tag": tag}
        with self.one_line("write"):
            try:
                return str(obstore.put(self.store, self.key(path), content, mode=condition)["e_tag"])
            except (AlreadyExistsError, PreconditionError, FileNotFoundError):
                newest = self.read_tagged(path)
        return newest[1] if newest is not None and newest[0] == content else None

    def remove(self, path: str) -> None:
        import obstore

        self._unless_missing("remove", lambda: obstore.delete(self.store, self.key(path)))

    def remove_folder(self, folder: str) -> None:
        import obstore

        with self.one_line("remove"):
            for page in obstore.list(self.store, f"{self.key(folder)}/"):
                obstore.delete(self.store, [listed_object["path"] for listed_object in page])

    def copy_folder(self, folder: str, to: str) -> None:
        """Copies all that is below a folder to another one, within the store."""
        import obstore

        base = self.key(folder)
        with self.one_line("write"):
            for page in obstore.list(self.store, f"{base}/"):
                for listed_object in page:
                    obstore.copy(
                        self.store, listed_object["path"], self.key(to) + listed_object["path"].removeprefix(base)
                    )

    def rename(self, path: str, new_path: str) -> None:
        import obstore

        with self.one_line("write"):
            obstore.copy(self.store, self.key(path), self.key(new_path))
            obstore.delete(self.store, self.key(path))

    def take(self, source: Storage, path: str) -> None:
        import obstore

        assert isinstance(source, ObjectStorage)
        with self.one_line("write"):
            obstore.copy(self.store, source.key(path), self.key(path))

    def sync(self, paths: Iterable[str]) -> None:
        """Does nothing: an object store makes each accepted object durable."""

    def explained(self, error: BaseException, path: str = "") -> LakeError | None:
        return None if cause_of(error) is None else LakeError(failure_text(error, self.root, FAMILIES[self.scheme]))

    @contextmanager
    def one_line(self, action: str) -> Iterator[None]:
        """Turns errors of the store into one line without secrets."""
        from obstore.exceptions import BaseError

        try:
            yield
        except (BaseError, OSError, ValueError) as error:
            raise LakeError(failure_text(error, self.root, FAMILIES[self.scheme], action)) from None

    def _unless_missing(self, action: str, request: Callable[[], Answer]) -> Answer | None:
        with self.one_line(action):
            try:
                return request()
            except FileNotFoundError as error:
                if "NoSuchBucket" in str(error):
                    raise
                return None


def object_storage(uri: str) -> ObjectStorage:
    """The folder that a URI names.

    Raises:
        LakeError: a scheme without a store, no bucket, or user, query or fragment in it.
    """
    try:
        address = parse(uri)
    except AddressError as error:
        raise LakeError(str(error)) from None
    return ObjectStorage(root=address.root, scheme=address.scheme, bucket=address.bucket, prefix=address.key)


def _entry(listed_object: Any) -> Entry:
    modified: datetime = listed_object["last_modified"]
    return Entry(
        name=str(listed_object["path"]).rpartition("/")[2],
        size_bytes=int(listed_object["size"]),
        modified_ms=int(modified.timestamp() * 1000),
    )
