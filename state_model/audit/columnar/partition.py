"""The audit of one state partition."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from state_model.audit.columnar.partitions import LogFacts, PartitionsAudit
from state_model.columnar.keys import Ints


class PartitionAudit(PartitionsAudit):
    """Takes the records of one state partition; its only log is 0, and NONE stands for the log itself.

    Args:
        number: the state partition.
        first_offset, log_start_offset, has_newest: what is known of its log, as in LogFacts.
        limit_of_group, between_ms: as in PartitionsAudit.
        replays: whether it replays the records, too, and compares the states; else `compare` does that once.
        state: the state (AUDIT_STATE, one row) of an audit that took the records before; None: there are none.
    """

    def __init__(
        self,
        number: int,
        *,
        first_offset: int,
        log_start_offset: int,
        has_newest: bool,
        limit_of_group: Callable[[str], int | None] = lambda group: None,
        between_ms: tuple[int | None, int | None] = (None, None),
        replays: bool = True,
        state: pa.Table | None = None,
    ) -> None:
        log = LogFacts(
            state_partition=number,
            first_offset=first_offset,
            log_start_offset=log_start_offset,
            has_newest=has_newest,
        )
        super().__init__([log], limit_of_group=limit_of_group, between_ms=between_ms, replays=replays, states=state)
        self.number = number

    @classmethod
    def of_log(
        cls, log: LogFacts, *, limit_of_group: Callable[[str], int | None], state: pa.Table | None = None
    ) -> "PartitionAudit":
        """The audit of a log whose states `compare` compares with the replay's."""
        return cls(
            log.state_partition,
            first_offset=log.first_offset,
            log_start_offset=log.log_start_offset,
            has_newest=log.has_newest,
            limit_of_group=limit_of_group,
            replays=False,
            state=state,
        )

    @property
    def last_offset(self) -> int:
        """Log offset of the last record; before the first one the offset in front of the log."""
        return int(self.last_offsets[0])

    @property
    def last_ms(self) -> int:
        """Log time of the last record; before the first one NO_TIME_MS."""
        return int(self.last_times[0])

    def take(self, log_records: pa.RecordBatch, times: Ints, records: pa.Table, problems: pa.Table) -> None:
        """The next log records (LOG_RECORD, none uncommitted) with their log times, and what decoding made of them."""
        self.take_logs(log_records, np.zeros(log_records.num_rows, np.int64), times, records, problems)
