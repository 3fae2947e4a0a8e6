"""Inputs of the DataFrame API that would give wrong rows without an error; each is refused in one line.

    what                                       where it is seen
    another frame than Spark's                 by the driver, before a job (`spark_frame`)
    a null in a key or an offset               by the first task that reads the row (`without_nulls`, Spark's own code)
    a topic id that is no id, a repeated row   by the first task that has the rows of a key (`once_each`, columnar)

Nulls are refused before any join, because a join leaves out rows with a null key.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from state_model.errors import UsageError
from state_model.uuids import ZERO_UUID, is_uuid_text

Ints = npt.NDArray[np.int64]
_KEYS = frozenset({"group_id", "partition", "state_partition", "dlq_partition"})
_ID = "topic_id"
_OFFSET = "offset"
_LARGEST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a function of `sharelens.frames`; as text the beginning of an error message."""

    function: str
    name: str

    def __str__(self) -> str:
        return f"frames.{self.function}: {self.name}"


def spark_frame(rows: object, argument: Argument) -> DataFrame:
    """An argument that is a DataFrame of Spark. Raises UsageError for one of pandas, an Arrow table, None."""
    if isinstance(rows, DataFrame):
        return rows
    if rows is None:
        raise UsageError(f"{argument} is None: pass a DataFrame of Spark")
    kind = type(rows)
    remedy = f"pass spark.createDataFrame({argument.name})"
    raise UsageError(
        f"{argument} is a {kind.__module__.split('.')[0]} {kind.__name__}, no DataFrame of Spark: {remedy}"
    )


def is_key(field: pa.Field) -> bool:
    """Whether a column is part of what names a row, or an offset, and is never null in the table of its schema."""
    return not field.nullable and (field.name in _KEYS or field.name.endswith((_ID, _OFFSET)))


def without_nulls(name: str, argument: Argument) -> Column:
    """A column of an argument; a task that reads a null in it fails with the message. Spark evaluates it, no Python."""
    text = f"{argument} has a row whose {name} is null: leave such rows out, or fill in their {name}"
    return F.coalesce(F.col(name), F.raise_error(F.lit(text))).alias(name)


def refuse_other_ids(rows: pa.Table | pa.RecordBatch, argument: Argument, key: Sequence[str]) -> None:
    """Raises UsageError where a column of `key` that holds ids of topics has a text that is no id of Kafka."""
    for name in key:
        if not name.endswith(_ID):
            continue
        for text in pc.unique(rows.column(name)).to_pylist():
            refuse_other_id(text, argument, name)


def refuse_other_id(text: str, argument: Argument, name: str) -> None:
    """Raises UsageError where a text is no id of a topic; `name`: the column or entry that holds it."""
    if not is_uuid_text(text):
        remedy = f"pass the 22 characters that Kafka prints, such as {ZERO_UUID} for an unknown id"
        raise UsageError(f"{argument}: {name} {text!r} is no id of a topic: {remedy}")


def once_each(
    batches: Iterator[pa.RecordBatch], argument: Argument, key: Sequence[str], ascending: str | None = None
) -> Iterator[pa.RecordBatch]:
    """The batches of one group of rows, as they come.

    Args:
        key: what names a row. The last column ascends over the batches; the others are those of the group.
        ascending: the column with the values of the last one, where it has another name.

    Raises:
        UsageError: a row comes twice, or an id of a topic is none.
    """
    previous = None
    for batch in batches:
        if batch.num_rows:
            refuse_other_ids(batch.slice(0, 1), argument, key)
            offsets = batch.column(ascending or key[-1]).to_numpy()
            # Rows are sorted by the offset, so a repeated one stands next to its equal, maybe in the batch before.
            repeated = np.flatnonzero(offsets[1:] == offsets[:-1])
            if offsets[0] == previous or len(repeated):
                offset = offsets[0] if offsets[0] == previous else offsets[repeated[0]]
                raise _repeated([*_values(batch, 0, key[:-1]), int(offset)], argument, key)
            previous = offsets[-1]
        yield batch


def refuse_duplicates(rows: pa.Table, argument: Argument, key: Sequence[str]) -> None:
    """Raises UsageError where two rows, in any order, have equal values in all columns of `key` (integers and text)."""
    row = duplicate_row(rows, key)
    if row is not None:
        raise _repeated(_values(rows, row, key), argument, key)


def duplicate_row(rows: pa.Table, key: Sequence[str]) -> int | None:
    """The number of a row whose key an earlier row has, too; None: each row has its own key. O(n log n)."""
    if rows.num_rows < 2:
        return None
    codes, count = np.zeros(rows.num_rows, np.int64), 1
    for name in key:
        values, different = _numbered(rows.column(name))
        # Mixed radix: both numbers in one. Where they don't fit an int64, dense numbers do: there are fewer than 2^31.
        if count * different > _LARGEST:
            (codes, count), (values, different) = _dense(codes), _dense(values)
        codes, count = codes * different + values, count * different
    in_order = np.sort(codes)
    equal = np.flatnonzero(in_order[1:] == in_order[:-1])
    return int(np.flatnonzero(codes == in_order[equal[0]])[1]) if len(equal) else None


def _numbered(values: pa.ChunkedArray) -> tuple[Ints, int]:
    """A number from 0 for each value, equal ones the same, and a bound above all of them."""
    if pa.types.is_integer(values.type):
        numbers = pc.fill_null(values.cast(pa.int64()), -1).to_numpy()
        lowest = int(numbers.min(initial=0))
        width = int(numbers.max(initial=0)) - lowest + 1
        return (numbers - lowest, width) if width <= _LARGEST else _dense(numbers)
    codes = pc.fill_null(values, "").combine_chunks().dictionary_encode()
    return codes.indices.to_numpy().astype(np.int64), max(1, len(codes.dictionary))


def _dense(numbers: Ints) -> tuple[Ints, int]:
    different, inverse = np.unique(numbers, return_inverse=True)
    return inverse.astype(np.int64), max(1, len(different))


def _values(rows: pa.Table | pa.RecordBatch, row: int, key: Sequence[str]) -> list[object]:
    return [rows.column(name)[row].as_py() for name in key]


def _repeated(values: Sequence[object], argument: Argument, key: Sequence[str]) -> UsageError:
    place = ", ".join(f"{name} {value}" for name, value in zip(key, values, strict=True))
    return UsageError(repeated_text(argument, key, place))


def repeated_text(argument: Argument, key: Sequence[str], place: str = "") -> str:
    """The message about a row that comes twice, with the remedy; `place`: which row, as far as it is known."""
    names = ", ".join(f'"{name}"' for name in key)
    remedy = f"read each log once, or drop duplicates: {argument.name}.dropDuplicates([{names}])"
    return f"{argument} has a row twice{place and f' ({place})'}: {remedy}"
