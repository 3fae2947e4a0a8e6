"""Canonical CSV, JSON and Parquet: the same rows give the same bytes, however they come in pieces."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sharelens.output import json_text, plain

GROUP_ROWS = 1 << 14
"""Rows of a Parquet row group; the last one may have fewer."""
TEXT_ROWS = 1 << 12
ACTS_IN_A_SPREADSHEET = ("=", "+", "-", "@", "\t", "\r", "\n", "'")
NOT_OF_JSON = ("binary", "float", "double", "decimal", "date", "time", "duration")
"""What the names of types have in them whose values JSON does not have."""
FORMATS = ("csv", "json", "parquet")


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The schema without metadata, all columns nullable, text as text: what is written whoever made the rows."""
    return pa.schema([pa.field(field.name, _plain_type(field.type)) for field in schema])


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _plain_type(kind.value_type)))
    if pa.types.is_struct(kind):
        fields = [kind.field(index) for index in range(kind.num_fields)]
        return pa.struct([pa.field(field.name, _plain_type(field.type)) for field in fields])
    return kind


def conformed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with exactly the columns and types of `schema`."""
    columns = [rows.column(field.name).cast(field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def create(path: Path) -> IO[bytes]:
    """A new file for its owner alone, never one that is there."""
    return os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600), "wb")


def write_file(path: Path, content: bytes) -> None:
    """A whole new file, on the disk when this returns."""
    with create(path) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


class TableFiles:
    """The three files of one table; rows in the order in which they are written. Complete after the `with` block."""

    def __init__(self, folder: Path, name: str, schema: pa.Schema) -> None:
        self.schema = plain_schema(schema)
        self.record_count = 0
        self._no_json = [field.name for field in self.schema if any(word in str(field.type) for word in NOT_OF_JSON)]
        self._files = {form: create(folder / f"{name}.{form}") for form in FORMATS}
        self._parquet = pq.ParquetWriter(self._files["parquet"], self.schema, **_parquet_settings())
        self._pending: list[pa.Table] = []
        self._text("csv", ",".join(_quoted(column) for column in self.schema.names) + "\n")

    def write(self, rows: pa.Table) -> None:
        """Appends rows; columns beyond the schema are left out."""
        if rows.num_rows == 0:
            return
        rows = conformed(rows, self.schema)
        self._write_text(rows)
        self._pending.append(rows)
        pending = pa.concat_tables(self._pending)
        while pending.num_rows >= GROUP_ROWS:
            self._group(pending.slice(0, GROUP_ROWS))
            pending = pending.slice(GROUP_ROWS)
        self._pending = [pending]

    def write_all(self, rows: pa.Table) -> None:
        """Appends any number of rows, a bounded number at a time."""
        for row_batch in batches_of(rows):
            self.write(row_batch)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            pending = pa.concat_tables([self.schema.empty_table(), *self._pending])
            if pending.num_rows:
                self._group(pending)
            self._text("json", "\n]\n" if self.record_count else "[]\n")
        self._parquet.close()
        for file in self._files.values():
            if not file.closed:
                file.flush()
                os.fsync(file.fileno())
                file.close()

    def _group(self, rows: pa.Table) -> None:
        """One row group; its values stand together, so that pages end in the same places whatever came in pieces."""
        self._parquet.write_table(rows.combine_chunks(), row_group_size=GROUP_ROWS)

    def _write_text(self, rows: pa.Table) -> None:
        for batch in rows.to_batches(max_chunksize=TEXT_ROWS):
            cells, parts = [], []
            for field, column in zip(self.schema, batch.columns, strict=True):
                cell, value = _cells_and_json(column, is_plain=field.name not in self._no_json)
                cells.append(cell)
                parts.append(pc.binary_join_element_wise(f"{json_text(field.name)}: ", value, ""))
            begin = ",\n " if self.record_count else "[\n "
            lines = pc.binary_join_element_wise(*parts, ", ").to_pylist()
            self._text("json", begin + ",\n ".join(f"{{{line}}}" for line in lines))
            self._text("csv", "\n".join([*pc.binary_join_element_wise(*cells, ",").to_pylist(), ""]))
            self.record_count += batch.num_rows

    def _text(self, form: str, text: str) -> None:
        self._files[form].write(text.encode("utf-8", "surrogatepass"))


def _parquet_settings() -> dict[str, Any]:
    """Fixed settings; nothing of the moment is in a Parquet file but the name of the library that wrote it."""
    return {
        "version": "2.6",
        "data_page_version": "1.0",
        "compression": "zstd",
        "compression_level": 3,
        "use_dictionary": True,
        "write_statistics": True,
        "store_schema": False,
    }


def _cells_and_json(column: pa.Array, *, is_plain: bool) -> tuple[pa.Array, pa.Array]:
    """Each value as a cell of CSV and as JSON; numbers without coming to Python, equal text once."""
    if pa.types.is_integer(column.type) or pa.types.is_boolean(column.type):
        text = column.cast(pa.string())
        return pc.fill_null(text, ""), pc.fill_null(text, "null")
    of_row: pa.Array | None = None
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        coded = column.dictionary_encode(null_encoding="encode")
        column, of_row = coded.dictionary, coded.indices
    values = column.to_pylist() if is_plain else [plain(value) for value in column.to_pylist()]
    forms = (pa.array([write(value) for value in values], pa.string()) for write in (csv_cell, json_text))
    cells, texts = (form if of_row is None else form.take(of_row) for form in forms)
    return cells, texts


def csv_cell(value: object) -> str:
    """A cell of CSV (RFC 4180): null is empty, text stands in quotes, lists and structs as JSON."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case list() | dict():
            return _quoted(json.dumps(value))
        case _:
            return _quoted(guarded(str(value)))


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def guarded(text: str) -> str:
    """Text that a spreadsheet might take for a formula, or that begins with an apostrophe, with an apostrophe before.

    So the text is what follows the first apostrophe, where there is one at the beginning.
    """
    return f"'{text}" if text.startswith(ACTS_IN_A_SPREADSHEET) else text


def sorted_rows(rows: pa.Table) -> pa.Table:
    """The rows in one order whatever order they come in: by every column that has an order, from the left."""
    keys = [(field.name, "ascending") for field in rows.schema if not pa.types.is_nested(field.type)]
    return rows.sort_by(keys) if keys and rows.num_rows > 1 else rows


def batches_of(rows: pa.Table, size: int = GROUP_ROWS) -> Iterator[pa.Table]:
    """The rows in bounded tables."""
    for begin in range(0, rows.num_rows, size):
        yield rows.slice(begin, size)
