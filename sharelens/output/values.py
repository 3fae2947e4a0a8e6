"""Rows of Arrow tables as values of JSON types."""

from collections.abc import Iterable, Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING

from sharelens.parameters.times import MILLISECOND

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_AT_ONCE = 4096


def rows_of(table: "pa.Table", row_limit: int | None = None) -> Iterator[dict[str, object]]:
    """Rows as dictionaries, a bounded number of them in memory."""
    return rows_in(table.slice(0, row_limit).to_batches(max_chunksize=ROWS_AT_ONCE))


def plain_rows(table: "pa.Table", row_limit: int | None = None) -> Iterator[dict[str, object]]:
    """Rows with values of JSON types."""
    return made_plain(rows_of(table, row_limit), table.schema)


def rows_in(batches: "Iterable[pa.RecordBatch]") -> Iterator[dict[str, object]]:
    """Rows of batches as dictionaries, a bounded number of them in memory."""
    for batch in batches:
        for first in range(0, batch.num_rows, ROWS_AT_ONCE):
            yield from batch.slice(first, ROWS_AT_ONCE).to_pylist()


def made_plain(rows: Iterator[dict[str, object]], schema: "pa.Schema") -> Iterator[dict[str, object]]:
    """Rows with values of JSON types; unchanged where all columns have such types."""
    if all(_is_plain(field.type) for field in schema):
        return rows
    return ({str(name): plain(value) for name, value in row.items()} for row in rows)


def _is_plain(kind: "pa.DataType") -> bool:
    """Whether the Python values of an Arrow type are values of JSON."""
    import pyarrow.types as types

    if types.is_list(kind):
        return _is_plain(kind.value_type)
    if types.is_struct(kind):
        return all(_is_plain(kind.field(index).type) for index in range(kind.num_fields))
    return bool(types.is_integer(kind) or types.is_string(kind) or types.is_boolean(kind) or types.is_null(kind))


def plain(value: object) -> object:
    """A value of a JSON type: times in ISO-8601, bytes in hex, NaN and infinity as null."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if isfinite(value) else None
        case Decimal():
            return int(value) if value == value.to_integral_value() else str(value)
        case bytes():
            return value.hex()
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case timedelta():
            return value / MILLISECOND
        case dict():
            return {str(name): plain(part) for name, part in value.items()}
        case list() | tuple():
            return [plain(part) for part in value]
        case _:
            return str(value)
