"""Records of consumer groups in bronze that are no rows of silver.group_record: older versions did not decode them."""

from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from state_model.group_schemas import RECORD_TYPES, GroupKind
from state_model.topics import OFFSETS_TOPIC

DECODED_FROM_RUN: Final = "consumer_groups"
"""The application of transactions of silver.group_record: the run from which on records of consumer groups are rows."""
FIRST_RUN: Final = 1
CONSUMER_TYPES: Final = tuple(number for number, of in RECORD_TYPES.items() if of.group_kind is GroupKind.CONSUMER)
_Scan = Callable[[str, list[str], pc.Expression], pa.Table]


def decoded_from(before: int, run: int, earlier: int | None, *, is_rebuilt: bool) -> int:
    """The run from which on records of consumer groups are rows, after the decoding of a run.

    `before`: the newest run that was decoded before, 0: none; `earlier`: what this function gave for it, None: a
    version without this function decoded it; `is_rebuilt`: all records of earlier runs are decoded again.
    """
    if before == 0 or is_rebuilt:
        return FIRST_RUN
    return run if earlier is None else earlier


def undecoded_consumer_records(scan: _Scan, first_run: int | None) -> int:
    """How many records of consumer groups runs before `first_run` (None: all runs) took and did not decode.

    `scan`: rows of a table of the lake that meet a condition.
    """
    if first_run == FIRST_RUN:
        return 0
    begins = pa.array([number.to_bytes(2, "big") for number in CONSUMER_TYPES])
    condition = (pc.field("topic") == OFFSETS_TOPIC) & pc.binary_slice(pc.field("key"), 0, 2).isin(begins)
    if first_run is not None:
        condition &= pc.field("run_id") < first_run
    rows: pa.Table = scan("bronze.log_record", ["partition"], condition & ~pc.field("is_control"))
    return int(rows.num_rows)


def without_consumer_groups(records: pa.Table) -> pa.Table:
    """The GROUP_RECORD rows of other groups: of some records alone nothing about a group follows."""
    is_consumer = pc.is_in(records.column("record_type"), value_set=pa.array(CONSUMER_TYPES, pa.int16()))
    return records.filter(pc.invert(is_consumer))
