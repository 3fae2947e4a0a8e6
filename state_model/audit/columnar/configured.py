"""Rules that need the share coordinator's configuration: 12, 13, 14 and 57, on the records of one state partition."""

from collections.abc import Iterator
from dataclasses import astuple, dataclass
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from state_model.audit.columnar.partition import PartitionAudit
from state_model.audit.columnar.violations import violation_rows
from state_model.audit.rule import Difference
from state_model.audit.sequencing import early_write_snapshot, more_updates_than_configured, update_over_limit
from state_model.audit.snapshots import cold_snapshot_too_early
from state_model.columnar.keys import Ints, number_keys

MORE_UPDATES, OVER_LIMIT, EARLY_SNAPSHOT, EARLY_COLD = 121, 130, 140, 570
READ: Final = (
    "log_offset",
    "leader_epoch",
    "start_offset",
    "delivery_complete_count",
    "create_timestamp_ms",
    "write_timestamp_ms",
)
NONE: Final = -1
STATE_COLUMNS: Final = 5
HIT: Final = ("row", "rule", "field", "expected", "seen", "at", "snapshot_log_offset")
"""Numbers of a violation: the row of its record, and columns of VIOLATION."""


class CoordinatorConfig(NamedTuple):
    """The smallest and the largest value that each setting of the share coordinator had from a time on.

    `least_updates`, `most_updates`: share.coordinator.snapshot.update.records.per.snapshot. `interval_ms`: the smallest
    share.coordinator.cold.partition.snapshot.interval.ms.
    """

    least_updates: int
    most_updates: int
    interval_ms: int
    from_ms: int


@dataclass(slots=True)
class _Counts:
    """A share partition: updates since the newest snapshot, the coordinator's counter; -1: not known."""

    updates: int = NONE
    counter: int = NONE
    is_first: bool = True
    write_ms: int = 0
    snapshot_at: int = NONE


class ConfiguredAudit:
    """Takes the records of a state partition in log order, up to the first one that is missing.

    What was written before the configuration was known is not tested, nor what depends on it.
    `is_from_zero`: the log is there from offset 0 on, so that the coordinator's counter is known. `state`: the numbers
    (`state`) of an audit that took the records before.
    """

    def __init__(self, config: CoordinatorConfig, *, is_from_zero: bool, state: Ints | None = None) -> None:
        self._config = config
        is_constant = config.least_updates == config.most_updates
        self._limit = config.most_updates if is_from_zero and is_constant else None
        rows = [] if state is None else state.reshape(-1, STATE_COLUMNS).tolist()
        self._counts = [_Counts(updates, counter, bool(is_first), *rest) for updates, counter, is_first, *rest in rows]

    def state(self) -> Ints:
        """STATE_COLUMNS numbers of each share partition, by its number in the audit."""
        return np.array([astuple(counts) for counts in self._counts], np.int64).ravel()

    def take(self, records: pa.Table, audit: PartitionAudit) -> None:
        """The next records (SHARE_RECORD), which `audit` has taken; adds the violations to its tally."""
        first_loss = min(audit.first_losses.values(), default=None)
        if first_loss is not None:
            records = records.filter(pc.field("log_offset") < first_loss)
        self._counts += [_Counts() for _ in range(audit.auditor.keys.num_rows - len(self._counts))]
        if records.num_rows == 0:
            return
        (_, numbers), _ = number_keys(audit.auditor.keys, records)
        hits = np.array(list(self._hits(records, numbers.tolist())), np.int64).reshape(-1, len(HIT))
        rows = hits[:, 0]
        audit.tally.add(
            violation_rows(
                share_partition=numbers[rows],
                log_offset=records.column("log_offset").to_numpy()[rows],
                log_time_ms=records.column("log_time_ms").to_numpy()[rows],
                **{name: hits[:, number] for number, name in enumerate(HIT) if number},
            )
        )

    def _hits(self, records: pa.Table, numbers: list[int]) -> Iterator[tuple[int, ...]]:
        """HIT of each violation."""
        has_batches = pc.fill_null(pc.greater(pc.list_value_length(records.column("state_batches")), 0), False)
        columns = [_ints(records, name) for name in READ]
        kinds = records.column("record_type").to_pylist()
        is_known = (records.column("log_time_ms").to_numpy() >= self._config.from_ms).tolist()
        rows = zip(numbers, kinds, is_known, has_batches.to_pylist(), *columns, strict=True)
        for row, (number, kind, known, is_full, *values) in enumerate(rows):
            counts = self._counts[number]
            if known:
                for rule, difference in self._tested(counts, kind, is_full, values):
                    numbers_of = (int(difference.field), difference.expected, difference.seen, difference.at)
                    yield row, rule, *numbers_of, counts.snapshot_at
            self._apply(counts, kind, values, known)

    def _tested(
        self, counts: _Counts, kind: str, has_batches: bool, values: list[int]
    ) -> Iterator[tuple[int, Difference]]:
        _, leader_epoch, start, count, create_ms, write_ms = values
        differences: list[tuple[int, Difference | None]] = []
        if kind == "update":
            if counts.updates != NONE:
                more = more_updates_than_configured(counts.updates + 1, self._config.most_updates)
                differences.append((MORE_UPDATES, more))
            if self._limit is not None and counts.counter != NONE:
                differences.append((OVER_LIMIT, update_over_limit(counts.counter, self._limit)))
        elif kind == "snapshot" and counts.snapshot_at != NONE and create_ms != write_ms:
            early = cold_snapshot_too_early(counts.write_ms, write_ms, self._config.interval_ms)
            differences.append((EARLY_COLD, early))
        elif kind == "snapshot" and counts.updates != NONE and (has_batches or leader_epoch > 0 or start < 0 <= count):
            early = early_write_snapshot(counts.updates, self._config.least_updates)
            differences.append((EARLY_SNAPSHOT, early))
        for rule, difference in differences:
            if difference is not None:
                yield rule, difference

    def _apply(self, counts: _Counts, kind: str, values: list[int], is_known: bool) -> None:
        """A snapshot sets the counter back only at the limit."""
        if counts.is_first and is_known and self._limit is not None:
            counts.counter = 0
        counts.is_first = kind == "tombstone"
        if kind == "update":
            counts.updates += counts.updates != NONE
            counts.counter += counts.counter != NONE
        elif kind == "snapshot":
            counts.updates, counts.snapshot_at, counts.write_ms = 0 if is_known else NONE, values[0], values[-1]
            if self._limit is not None and counts.counter >= self._limit:
                counts.counter = 0
        else:
            counts.updates, counts.counter, counts.snapshot_at = NONE, NONE, NONE


def _ints(records: pa.Table, name: str) -> list[int]:
    values: list[int] = pc.fill_null(records.column(name), NONE).to_numpy().astype(np.int64).tolist()
    return values
