"""Columns as the integers that kernels read, and the names that these stand for."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from state_model.columnar.keys import Ints
from state_model.columnar.values import UNKNOWN_STATE

BELOW_ALL, ABOVE_ALL = -(1 << 62), 1 << 62
"""Offsets and times below, and above, all others."""
RECORD_TYPES = ("snapshot", "update", "tombstone")
"""Record types by the kernel's number; any other one is soft_state.OTHER."""
COMPLETENESS_NAMES = ("complete", "provisional", "incomplete", "uncommitted")
REASON_NAMES = (
    None,
    "orphan",
    "uncommitted",
    "gap",
    "quarantined",
    "truncated",
    "vanished",
    "pruned",
    "remote",
    "superseded",
    UNKNOWN_STATE,
)
END_REASONS = (None, "changed", "split_or_joined", "start_offset_passed", "reset", "deleted")


def ints(table: pa.Table, name: str, unknown: int = -1) -> Ints:
    """A column as int64; null becomes `unknown`."""
    return np.ascontiguousarray(pc.fill_null(table.column(name), unknown).to_numpy().astype(np.int64))


def kinds_of(records: pa.Table) -> Ints:
    """The kernel's number of each record's type."""
    return codes(records.column("record_type"), RECORD_TYPES)


def codes(column: pa.ChunkedArray, names: Sequence[str | None]) -> Ints:
    """Position of each value in `names` as int64, behind its end for others; null stands for the position of None."""
    known_names = pa.array(names, pa.string())
    if not pa.types.is_dictionary(column.type):
        return np.ascontiguousarray(_places(column, known_names))
    # Each distinct text is looked up once. Chunks may number their texts apart, so their dictionaries become one first.
    unified = column.unify_dictionaries().combine_chunks()
    places = _places(unified.dictionary, known_names)
    result: Ints = places[unified.indices.to_numpy()]
    return result


def _places(values: pa.Array | pa.ChunkedArray, known_names: pa.Array) -> Ints:
    places: Ints = (
        pc.fill_null(pc.index_in(values, value_set=known_names), len(known_names)).to_numpy().astype(np.int64)
    )
    return places
