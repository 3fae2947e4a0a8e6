"""Rule 29: offsets that the start offset passes without an outcome, against the records of the user topic.

The kernels say which offsets a write passes (PASSED). Most causes are legal: the topic's log start moved, or there is
no record. So only the topic's own log, read late enough, makes them a violation.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from state_model.audit.columnar.kernels import layout
from state_model.audit.columnar.proofs import LogRecord, Place, Proofs
from state_model.audit.group_steps import TopicPartition
from state_model.audit.offsets import start_offset_passes_record
from state_model.audit.periods import TOLERANCE_MS
from state_model.columnar.keys import Ints, numbered_partitions
from state_model.columnar.schemas import SHARE_RECORD
from state_model.topics import STATE_TOPIC

PASSES_RECORD: Final = 291
LOG_START_MS: Final = TOLERANCE_MS + 60_000
"""How long behind a record a topic has to be known: a broker writes its log start offsets down every 60 s."""
PASSED: Final = pa.schema(
    [
        *(
            SHARE_RECORD.field(name)
            for name in ("group_id", "topic_id", "partition", "state_partition", "log_offset", "log_time_ms")
        ),
        pa.field("start_offset", pa.int64()),
        pa.field("first_offset", pa.int64()),
        pa.field("last_offset", pa.int64()),
        pa.field("snapshot_log_offset", pa.int64()),
        pa.field("previous_log_offset", pa.int64()),
    ]
)
"""A range of offsets without an outcome that the start offset of a record passes; those of a record ascend.

`snapshot_log_offset`, `previous_log_offset`: of the state before the record.
"""
NO_PASSED: Final = PASSED.empty_table()
NO_RECORD: Final = -1
UNKNOWN: Final = -(1 << 62)
"""Until when a user partition is known that is not there."""


def passed_rows(records: pa.Table, ranges: npt.NDArray[np.int64]) -> pa.Table:
    """PASSED rows of SHARE_RECORD rows; `ranges`: rows of numbers (layout.PASSED_*)."""
    if not len(ranges):
        return NO_PASSED
    rows = records.select([*PASSED.names[:6], "start_offset"]).take(pa.array(ranges[:, layout.PASSED_ROW]))
    columns = dict(zip(rows.column_names, rows.columns, strict=True))
    columns["first_offset"] = pa.array(ranges[:, layout.PASSED_FIRST])
    columns["last_offset"] = pa.array(ranges[:, layout.PASSED_LAST])
    columns["snapshot_log_offset"] = pa.array(ranges[:, layout.PASSED_SNAPSHOT])
    columns["previous_log_offset"] = pa.array(ranges[:, layout.PASSED_PREVIOUS])
    return pa.table(columns).select(PASSED.names).cast(PASSED)


class PassedOffsets:
    """Takes the ranges that start offsets of one state partition pass, in log order.

    Args:
        known_until_ms: until when a user partition is known; None: it is not there.
        records_in: of ranges (first and last offsets) the first offset at which the log of a user partition holds a
            record, above its log start offset; NO_RECORD: none that is certain.
        topic_of: the name of the topic of a user partition.
    """

    def __init__(
        self,
        proofs: Proofs,
        *,
        known_until_ms: Callable[[TopicPartition], int | None],
        records_in: Callable[[TopicPartition, Ints, Ints], Ints],
        topic_of: Callable[[TopicPartition], str],
    ) -> None:
        self._proofs = proofs
        self._known_until_ms = known_until_ms
        self._records_in = records_in
        self._topic_of = topic_of
        self._last_violation = -1

    def take(self, passed: pa.Table) -> None:
        """The next ranges (PASSED); a record violates the rule once, whatever it passes."""
        if not passed.num_rows:
            return
        codes, places = numbered_partitions(passed)
        ends_ms = np.array([UNKNOWN if end is None else end for end in map(self._known_until_ms, places)], np.int64)
        times, firsts, lasts = (
            passed.column(name).to_numpy() for name in ("log_time_ms", "first_offset", "last_offset")
        )
        is_known = ends_ms[codes] >= times + LOG_START_MS
        records = np.full(passed.num_rows, NO_RECORD)
        for code in np.unique(codes[is_known]).tolist():
            rows = np.flatnonzero(is_known & (codes == code))
            records[rows] = self._records_in(places[code], firsts[rows], lasts[rows])
        violating = np.flatnonzero(records != NO_RECORD)
        rows_of_them = passed.take(pa.array(violating)).to_pylist()
        for row, record in zip(rows_of_them, records[violating].tolist(), strict=True):
            if row["log_offset"] != self._last_violation:
                self._add(row, record)

    def _add(self, row: Mapping[str, Any], record: int) -> None:
        place, number = (row["topic_id"], row["partition"]), row["state_partition"]
        self._last_violation = row["log_offset"]
        self._proofs.add(
            PASSES_RECORD,
            Place(row["group_id"], *place, number),
            start_offset_passes_record(row["start_offset"], record),
            LogRecord(STATE_TOPIC, number, row["log_offset"]),
            row["log_time_ms"],
            [
                *(LogRecord(STATE_TOPIC, number, row[f"{name}_log_offset"]) for name in ("snapshot", "previous")),
                LogRecord(self._topic_of(place), place[1], record),
            ],
        )
