"""Buckets in memory in the place of object stores, for tests of what reads log directories; requests are counted."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import obstore
import pytest
from obstore.store import MemoryStore

from sharelens.kafka_log import object_files
from sharelens.object_stores.addresses import ObjectAddress

REQUESTS = ("get", "get_range", "head", "list", "list_with_delimiter")


@dataclass(frozen=True, slots=True)
class MemoryBuckets:
    """Buckets by name. `requests`: how often each kind of request was sent; `read_bytes`: those of ranges."""

    stores: dict[str, MemoryStore] = field(default_factory=dict)
    requests: Counter[str] = field(default_factory=Counter)
    read_bytes: Counter[str] = field(default_factory=Counter)

    def bucket(self, name: str) -> MemoryStore:
        """A bucket, made when it is first named."""
        return self.stores.setdefault(name, MemoryStore())

    def put_folder(self, folder: Path, uri: str) -> None:
        """Puts the files below a folder under a URI."""
        bucket, _, prefix = uri.partition("://")[2].partition("/")
        for path in folder.rglob("*"):
            if path.is_file():
                obstore.put(self.bucket(bucket), f"{prefix}/{path.relative_to(folder)}", path.read_bytes())

    def remove(self, uri: str) -> None:
        """Removes an object."""
        bucket, _, key = uri.partition("://")[2].partition("/")
        obstore.delete(self.bucket(bucket), key)


def in_memory(monkeypatch: pytest.MonkeyPatch) -> MemoryBuckets:
    """Buckets in memory that log directories of this process are read from."""
    buckets = MemoryBuckets()

    def store_of(address: ObjectAddress) -> MemoryStore:
        return buckets.bucket(address.bucket)

    monkeypatch.setattr(object_files, "store_of", store_of)
    for name in REQUESTS:
        monkeypatch.setattr(obstore, name, _counted(name, getattr(obstore, name), buckets))
    return buckets


def _counted(name: str, request: Any, buckets: MemoryBuckets) -> Any:
    def counted(*args: Any, **options: Any) -> Any:
        buckets.requests[name] += 1
        if name == "get_range":
            buckets.read_bytes[args[1]] += options["end"] - options["start"]
        return request(*args, **options)

    return counted
