"""Rule 46: the audit's states against those of the replay, which is another implementation of the same merge."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from state_model.audit.columnar.auditor import Auditor
from state_model.audit.columnar.kernels import layout
from state_model.audit.columnar.kernels.step_kernels import MAX_OFFSET, NO_STATE
from state_model.audit.columnar.violations import NO_VIOLATIONS, violation_rows
from state_model.audit.rule import Field
from state_model.columnar.keys import SHARE_PARTITION_KEY, Ints

RULE = 460
SCALARS = {
    "snapshot_epoch": (layout.SNAPSHOT_EPOCH, Field.SNAPSHOT_EPOCH),
    "state_epoch": (layout.STATE_EPOCH, Field.STATE_EPOCH),
    "leader_epoch": (layout.LEADER_EPOCH, Field.LEADER_EPOCH),
    "start_offset": (layout.START, Field.START_OFFSET),
    "delivery_complete_count": (layout.DCC, Field.DELIVERY_COMPLETE_COUNT),
    "create_timestamp_ms": (layout.CREATE, Field.CREATE_TIMESTAMP_MS),
    "write_timestamp_ms": (layout.WRITE, Field.WRITE_TIMESTAMP_MS),
    "snapshot_log_offset": (layout.SNAPSHOT_AT, Field.LOG_OFFSET),
}
COMPARED = ["state_partition", *SHARE_PARTITION_KEY, *SCALARS, "state_batches"]
"""The columns of SHARE_PARTITION_STATE that are compared."""


def disagreements(
    auditor: Auditor, states: pa.Table, logs: Ints, compared: npt.NDArray[np.bool_] | None = None
) -> pa.Table:
    """VIOLATION rows, one for each known share partition whose state by the replay (SHARE_PARTITION_STATE) differs.

    `logs`: the log of each state. `compared`: by log whether its states are compared; None: all are.
    """
    live = auditor.live()
    if compared is not None:
        live = live[compared[auditor.log_of[live]]]
    numbers = auditor.numbers_of(states, logs)
    row_of = np.full(auditor.keys.num_rows + 1, -1, np.int64)
    row_of[numbers] = np.arange(states.num_rows)  # the last entry takes the states without records
    row_of = row_of[live]
    tables = [NO_VIOLATIONS]
    missing = live[row_of < 0]
    live, row_of = live[row_of >= 0], row_of[row_of >= 0]
    if len(missing):
        tables.append(_rows(auditor, missing, Field.LOG_OFFSET, auditor.matrix[missing, layout.SNAPSHOT_AT], -1))
    for name, (column, field) in SCALARS.items():
        ours = auditor.matrix[live, column]
        theirs = pc.fill_null(states.column(name), -1).to_numpy().astype(np.int64)[row_of]
        different = np.flatnonzero(ours != theirs)
        if len(different):
            tables.append(_rows(auditor, live[different], field, ours[different], theirs[different]))
    tables.append(_different_content(auditor, live, states.take(pa.array(row_of))))
    return pa.concat_tables(tables)


def _different_content(auditor: Auditor, live: Ints, states: pa.Table) -> pa.Table:
    ours, theirs = _spans(auditor, live), _spans_of(states)
    if len(ours[0]) == len(theirs[0]) and all(
        (left_spans == right_spans).all() for left_spans, right_spans in zip(ours, theirs, strict=True)
    ):
        return NO_VIOLATIONS
    rows = []
    for place, number in enumerate(live.tolist()):
        left_spans, right_spans = (np.stack(spans[1:])[:, spans[0] == place] for spans in (ours, theirs))
        if left_spans.shape == right_spans.shape and (left_spans == right_spans).all():
            continue
        common_length = min(left_spans.shape[1], right_spans.shape[1])
        unequal = np.flatnonzero((left_spans[:, :common_length] != right_spans[:, :common_length]).any(axis=0))
        first = int(unequal[0]) if len(unequal) else common_length
        at = min(int(part[0, first]) for part in (left_spans, right_spans) if first < part.shape[1])
        values = [int(part[2, first]) if first < part.shape[1] else NO_STATE for part in (left_spans, right_spans)]
        rows.append(_rows(auditor, np.array([number]), Field.OFFSET_STATE, values[0], values[1], at))
    return pa.concat_tables([NO_VIOLATIONS, *rows])


def _spans(auditor: Auditor, live: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """(place in `live`, first offset, last offset, value) of every span of the known states, by place and offset."""
    begin, size = auditor.matrix[live, layout.BEGIN], auditor.matrix[live, layout.SIZE]
    place = np.repeat(np.arange(len(live)), size)
    index = np.arange(int(size.sum())) - np.repeat(np.cumsum(size) - size, size) + np.repeat(begin, size)
    at, values = auditor.pool
    first, value = at[index], values[index]
    is_last = np.diff(place, append=-1) != 0
    last = np.where(is_last, MAX_OFFSET, np.append(first[1:], 0) - 1)
    has_state = value != NO_STATE
    return place[has_state], first[has_state], last[has_state], value[has_state]


def _spans_of(states: pa.Table) -> tuple[Ints, Ints, Ints, Ints]:
    """(row in `states`, first offset, last offset, value) of every span of the replay's states, by row."""
    batches = states.column("state_batches").combine_chunks()
    flat = pc.list_flatten(batches)
    place = pc.list_parent_indices(batches).to_numpy().astype(np.int64)
    first, last, state, count = (
        flat.field(name).to_numpy().astype(np.int64)
        for name in ("first_offset", "last_offset", "delivery_state", "delivery_count")
    )
    return place, first, last, count * 256 + state


def _rows(
    auditor: Auditor, numbers: Ints, field: Field, expected: Ints | int, actual: Ints | int, at: int = -1
) -> pa.Table:
    return violation_rows(
        rule=RULE, share_partition=numbers, log_offset=auditor.matrix[numbers, layout.LAST_AT],
        log_time_ms=auditor.last_ms[numbers], field=int(field), at=at, expected=expected, seen=actual,
        snapshot_log_offset=auditor.matrix[numbers, layout.SNAPSHOT_AT],
    )  # fmt: skip
