"""What the files of a folder hold, for searches: their bytes, and the values of Parquet files uncompressed."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq


def contents_below(folder: Path) -> Iterator[bytes]:
    """The content of every file at any depth."""
    for path in folder.rglob("*"):
        if path.is_file():
            yield path.read_bytes()
            if path.suffix == ".parquet":
                yield repr(pq.ParquetFile(path).read().to_pylist()).encode()
