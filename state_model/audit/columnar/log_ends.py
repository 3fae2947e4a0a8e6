"""Rules 17 and 50: what only the ends of the logs show."""

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from state_model.audit.columnar.auditor import Auditor
from state_model.audit.columnar.kernels import layout
from state_model.audit.columnar.violations import NO_VIOLATIONS, violation_rows
from state_model.audit.delivery import PENDING_MS
from state_model.audit.rule import Field
from state_model.columnar.keys import Ints

ARCHIVED_LESS_ARCHIVING: Final = 1


def archiving_too_long(auditor: Auditor, last_times: Ints) -> pa.Table:
    """Rule 50; `last_times`: log time of the last record, by log."""
    matrix, live = auditor.matrix, auditor.live()
    since_ms = matrix[live, layout.ARCHIVING_MS]
    last_ms = last_times[auditor.log_of[live]]
    tables = [NO_VIOLATIONS]
    for number in live[(since_ms >= 0) & (last_ms - since_ms > PENDING_MS)].tolist():
        archiving = auditor.first_archiving(number)
        if archiving is not None:
            at, value = archiving
            tables.append(
                violation_rows(
                    rule=500,
                    share_partition=number,
                    log_offset=int(matrix[number, layout.LAST_AT]),
                    log_time_ms=int(last_times[auditor.log_of[number]]),
                    field=int(Field.OFFSET_STATE),
                    at=at,
                    expected=value + ARCHIVED_LESS_ARCHIVING,
                    seen=value,
                    snapshot_log_offset=int(matrix[number, layout.SNAPSHOT_AT]),
                )
            )
    return pa.concat_tables(tables)


def pruned_snapshots(auditor: Auditor, log_starts: Ints, is_tested: npt.NDArray[np.bool_]) -> pa.Table:
    """Rule 17: share partitions whose newest snapshot lies below the log start, or was never there.

    `log_starts`, `is_tested`: by log its start offset, and whether its newest records are there.
    """
    matrix, log_of, live = auditor.matrix, auditor.log_of, auditor.live()
    pruned = live[matrix[live, layout.SNAPSHOT_AT] < log_starts[log_of[live]]]
    orphans = np.flatnonzero((matrix[:, layout.STANDING] == layout.ORPHAN) & ~auditor.has_losses[log_of])
    pruned = np.concatenate([pruned, orphans])
    pruned = pruned[is_tested[log_of[pruned]]]
    return violation_rows(
        rule=170,
        share_partition=pruned,
        log_offset=matrix[pruned, layout.LAST_AT],
        log_time_ms=auditor.last_ms[pruned],
        field=int(Field.LOG_OFFSET),
        expected=log_starts[log_of[pruned]],
        seen=matrix[pruned, layout.SNAPSHOT_AT],
        snapshot_log_offset=matrix[pruned, layout.SNAPSHOT_AT],
    )
