"""Data files of a table as an Arrow dataset that leaves out the files whose statistics exclude a match."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as pafs

from lake.parquet import coded_schema
from lake.tables import TIME


def dataset_of(
    root: Path, schema: pa.Schema, files: Sequence[Mapping[str, Any]], coded: Sequence[str] = ()
) -> ds.Dataset:
    """The files (`lake.snapshot.Snapshot`) of the table at `root`; the text columns `coded` as dictionaries."""
    # Arrow's native file system: another one is a Python object that Arrow's threads may still hold when the
    # interpreter ends, and the process would be aborted. Lakes are local or mounted paths.
    system = pafs.SubTreeFileSystem(str(root.resolve()), pafs.LocalFileSystem())
    form = ds.ParquetFileFormat(
        read_options=ds.ParquetReadOptions(dictionary_columns=list(coded)) if coded else None,
        default_fragment_scan_options=ds.ParquetFragmentScanOptions(pre_buffer=True),
    )
    fragments = [
        form.make_fragment(str(file["path"]), filesystem=system, partition_expression=_told(file, schema))
        for file in files
    ]
    return ds.FileSystemDataset(fragments, coded_schema(schema, coded), form, system)


def _told(file: Mapping[str, Any], schema: pa.Schema) -> pc.Expression:
    """What holds for every row of a file."""
    found = pc.scalar(True)
    for field in schema:
        value = file.get(f"partition.{field.name}")
        if value is not None:
            found = found & (_column(field.name) == pa.scalar(value).cast(field.type))
        elif field.type != TIME:  # which lies beside the milliseconds that it is made of
            found = _with_bounds(found, field, file)
    return found


def _with_bounds(found: pc.Expression, field: pa.Field, file: Mapping[str, Any]) -> pc.Expression:
    low, high, nulls = (file.get(f"{what}.{field.name}") for what in ("min", "max", "null_count"))
    column = _column(field.name)
    if nulls is not None and nulls == file["num_records"]:
        return found & column.is_null()
    if low is None or high is None:
        return found
    for bound in (column >= pa.scalar(low, field.type), column <= pa.scalar(high, field.type)):
        found = found & (bound if nulls == 0 else bound | column.is_null())  # the form that Arrow knows
    return found


@lru_cache(maxsize=1024)
def _column(name: str) -> pc.Expression:
    return pc.field(name)
