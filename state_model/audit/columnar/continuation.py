"""The state of the audit of each state partition as a row (AUDIT_STATE), with which a later audit goes on.

It is the audit's own: matrices of `layout` as lists of numbers, which only the version of FORMAT understands.
"""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from state_model.audit.columnar.kernels import layout
from state_model.audit.columnar.kernels.step_kernels import MAX_OFFSET
from state_model.audit.columnar.violations import COUNTED, VIOLATION
from state_model.columnar.keys import Ints
from state_model.columnar.schemas import column

FORMAT: Final = 2
"""The version of the numbers in a state."""
FORMATS: Final = frozenset({1, FORMAT})
"""Those that an audit goes on with; format 1 has no LARGEST_START. A state of another version is of no use."""
KEYS: Final = pa.schema([("group_id", pa.string()), ("topic_id", pa.string()), ("partition", pa.int32())])
COUNTS: Final = ("count", "first_at", "last_at", "first_ms", "last_ms")
AUDITED: Final = pa.schema([*KEYS, *(pa.field(name, pa.int64()) for name in COUNTS)])
"""A share partition with its records: how many, the log offset and the log time of the first and the last one."""
LOST: Final = pa.schema(
    [pa.field("first_offset", pa.int64()), pa.field("last_offset", pa.int64()), pa.field("reason", pa.string()), *KEYS]
)
HOLE: Final = ("missing", "behind", "behind_ms")
"""Numbers of a hole in the log: the first offset that is missing, that of the record behind it, and its log time."""


def _list_of(schema: pa.Schema) -> pa.ListType:
    return pa.list_(pa.struct(list(schema)))


NUMBERS: Final = pa.list_(pa.int64())
AUDIT_STATE: Final = pa.schema(
    [
        column("state_partition", pa.int32(), "partition of __share_group_state", nullable=False),
        column("format", pa.int32(), "version of the numbers; the audit of another one starts over", nullable=False),
        column("is_from_zero", pa.bool_(), "audited from log offset 0 on", nullable=False),
        column("log_start_offset", pa.int64(), "log start offset at the time of the audit", nullable=False),
        column("last_log_offset", pa.int64(), "log offset of the last audited record", nullable=False),
        column("log_time_ms", pa.int64(), "log time of the last audited record", nullable=False),
        column(
            "share_partitions", _list_of(AUDITED),
            "the share partitions, with number, log offsets and log times of their records", nullable=False,
        ),
        column("states", NUMBERS, "the state of each share partition, as the audit numbers it", nullable=False),
        column("breakpoint_offsets", NUMBERS, "record offsets at which a delivery state begins", nullable=False),
        column("breakpoint_values", NUMBERS, "the delivery states from there on, as numbers", nullable=False),
        column("log", NUMBERS, "the audit's position in the log, as numbers", nullable=False),
        column("losses", _list_of(LOST), "losses behind the last record of their share partitions", nullable=False),
        column("holes", NUMBERS, "offsets that the log lacks, three numbers each", nullable=False),
        column("first_losses", NUMBERS, "the first loss of each share partition that has any", nullable=False),
        column("at_log_start", _list_of(VIOLATION), "violations of the first record of the log", nullable=False),
        column("violations", _list_of(COUNTED), "violations so far, by rule and share partition", nullable=False),
    ]
)  # fmt: skip


def lists_of(rows: pa.Table, schema: pa.Schema, sizes: Ints) -> pa.Array:
    """A list column of structs over consecutive rows; `sizes`: number of rows in each list."""
    rows = rows.combine_chunks()
    parts = [_as(field.type, _array(rows.column(field.name))) for field in schema]
    items = pa.StructArray.from_arrays(parts, fields=list(schema))
    return pa.ListArray.from_arrays(_ends(sizes), items, type=_list_of(schema))


def lists_of_numbers(numbers: Ints, sizes: Ints) -> pa.Array:
    """A list column over consecutive numbers; `sizes`: how many each list has."""
    return pa.ListArray.from_arrays(_ends(sizes), pa.array(numbers, pa.int64()), type=NUMBERS)


def _ends(sizes: Ints) -> pa.Array:
    return pa.array(np.concatenate([[0], np.cumsum(sizes)]), pa.int32())


def _array(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def lengths_of(state: pa.Table, name: str) -> Ints:
    """The length of the list of each row."""
    lengths: Ints = pc.list_value_length(state.column(name)).to_numpy().astype(np.int64)
    return lengths


def rows_of(state: pa.Table, name: str, schema: pa.Schema) -> pa.Table:
    """The lists of structs of all rows as one table."""
    items = pc.list_flatten(state.column(name).combine_chunks())
    items = items.combine_chunks() if isinstance(items, pa.ChunkedArray) else items
    return pa.Table.from_arrays([_as(field.type, items.field(field.name)) for field in schema], schema=schema)


def _as(kind: pa.DataType, column: pa.Array) -> pa.Array:
    return column if column.type == kind else column.cast(kind)


def states_of(state: pa.Table) -> Ints:
    """The state of each share partition, STATE_COLUMNS numbers; what an earlier format lacks is not known."""
    widths = lengths_of(state, "states") // np.maximum(lengths_of(state, "share_partitions"), 1)
    if np.isin(widths, (0, layout.STATE_COLUMNS)).all():
        return matrix_of(state, "states", layout.STATE_COLUMNS)
    parts = []
    for row, width in enumerate(widths.tolist()):
        numbers = matrix_of(state.slice(row, 1), "states", width or layout.STATE_COLUMNS)
        missing = np.full((len(numbers), layout.STATE_COLUMNS - numbers.shape[1]), MAX_OFFSET)
        parts.append(np.concatenate([numbers, missing], axis=1))
    return np.concatenate(parts)


def matrix_of(state: pa.Table, name: str, columns: int) -> Ints:
    """The lists of numbers of all rows as one matrix of its own."""
    items = pc.list_flatten(state.column(name).combine_chunks())
    items = items.combine_chunks() if isinstance(items, pa.ChunkedArray) else items
    return np.array(items.to_numpy(zero_copy_only=False), np.int64).reshape(-1, columns)
