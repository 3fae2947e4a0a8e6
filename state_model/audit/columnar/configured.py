"""Rules that need the share coordinator's configuration: 12, 13, 14 and 57, on the records of state partitions."""

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from state_model.audit.columnar.auditor import RECORD_TYPES
from state_model.audit.columnar.kernels.layout import SNAPSHOT, TOMBSTONE, UPDATE
from state_model.audit.columnar.partitions import PartitionsAudit
from state_model.audit.columnar.violations import violation_rows
from state_model.audit.coordinator_config import CoordinatorConfig
from state_model.audit.rule import Difference
from state_model.audit.sequencing import early_write_snapshot, more_updates_than_configured, update_over_limit
from state_model.audit.snapshots import cold_snapshot_too_early
from state_model.columnar.kernels import kernel
from state_model.columnar.keys import Ints
from state_model.share_records import NOT_DETERMINED

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
LARGEST: Final = (1 << 63) - 1
UPDATES, COUNTER, IS_FIRST, WRITE_MS, SNAPSHOT_AT = range(5)
"""The numbers of a share partition: updates since the newest snapshot, the coordinator's counter; NONE: not known."""
STATE_COLUMNS: Final = 5
NO_COUNTERS: Final = np.empty((0, STATE_COLUMNS), np.int64)
UNCOUNTED: Final = np.array([NONE, NONE, 1, 0, NONE], np.int64)
Flags = npt.NDArray[np.bool_]
HIT: Final = ("row", "rule", "field", "expected", "seen", "at", "snapshot_log_offset")
"""Numbers of a violation: the row of its record, and columns of VIOLATION."""


@kernel
def trace(
    kinds: np.ndarray, numbers: np.ndarray, is_known: np.ndarray, offsets: np.ndarray, write_ms: np.ndarray,
    limits: np.ndarray, counts: np.ndarray, before: np.ndarray,
) -> None:  # fmt: skip
    """Counts the records; `before` gets the counts of each record's share partition before it.

    A snapshot sets the counter back only at the limit; `limits`: of each record (NONE: it is not known).
    """
    # Records come in log order, so a row of `counts` is the share partition before this record. NONE stays NONE: what
    # is not known can't be counted up, only a snapshot or a creation makes it known.
    for row in range(len(kinds)):
        partition_counts, limit = counts[numbers[row]], limits[row]
        before[row] = partition_counts
        if partition_counts[IS_FIRST] and is_known[row] and limit != NONE:
            partition_counts[COUNTER] = 0
        partition_counts[IS_FIRST] = kinds[row] == TOMBSTONE
        if kinds[row] == UPDATE:
            partition_counts[UPDATES] += partition_counts[UPDATES] != NONE
            partition_counts[COUNTER] += partition_counts[COUNTER] != NONE
        elif kinds[row] == SNAPSHOT:
            partition_counts[UPDATES] = 0 if is_known[row] else NONE
            partition_counts[SNAPSHOT_AT], partition_counts[WRITE_MS] = offsets[row], write_ms[row]
            if limit != NONE and partition_counts[COUNTER] >= limit:
                partition_counts[COUNTER] = 0
        else:
            partition_counts[UPDATES], partition_counts[COUNTER], partition_counts[SNAPSHOT_AT] = NONE, NONE, NONE


class ConfiguredAudit:
    """Takes the records of state partitions that `audit` takes, of each up to the first one that is missing.

    What was written before the configuration was known is not tested, nor what depends on it. The coordinator's counter
    is known in logs that are there from offset 0 on. `counters`: those of the share partitions that `audit` has by now,
    after the records before (`by_log`).
    """

    def __init__(self, config: CoordinatorConfig, audit: PartitionsAudit, counters: Ints = NO_COUNTERS) -> None:
        self._config = config
        self._audit = audit
        is_constant = config.least_updates == config.most_updates
        self._limits = np.where(audit.auditor.is_from_zero & is_constant, config.most_updates, NONE)
        self._counts = counters.reshape(-1, STATE_COLUMNS)

    def by_log(self) -> list[Ints]:
        """STATE_COLUMNS numbers of each share partition, by log, in the order of its state (AUDIT_STATE)."""
        order, sizes = self._audit.auditor.by_log()
        return np.split(self._counts[order].ravel(), STATE_COLUMNS * np.cumsum(sizes)[:-1])

    def take(self, records: pa.Table) -> None:
        """The next records (SHARE_RECORD, by log), which the audit has taken; adds the violations to its tally."""
        audit = self._audit
        new = np.tile(UNCOUNTED, (audit.auditor.keys.num_rows - len(self._counts), 1))
        self._counts = np.concatenate([self._counts, new])
        if audit.first_losses:
            first = audit.first_losses_of_logs()[audit.logs_of(records)]
            records = records.filter(pa.array(records.column("log_offset").to_numpy() < first))
        if records.num_rows == 0:
            return
        logs = audit.logs_of(records)
        numbers = audit.auditor.numbers_of(records, logs)
        hits = np.array(list(self._hits(records, numbers, self._limits[logs])), np.int64).reshape(-1, len(HIT))
        rows = hits[:, 0]
        audit.tally.add(
            violation_rows(
                share_partition=numbers[rows],
                log_offset=records.column("log_offset").to_numpy()[rows],
                log_time_ms=records.column("log_time_ms").to_numpy()[rows],
                **{name: hits[:, number] for number, name in enumerate(HIT) if number},
            )
        )

    def _hits(self, records: pa.Table, numbers: Ints, limits: Ints) -> Iterator[tuple[int, ...]]:
        """HIT of each violation; `limits`: of updates between snapshots, by record."""
        kinds = pc.fill_null(pc.index_in(records.column("record_type"), value_set=RECORD_TYPES), TOMBSTONE)
        kinds = kinds.combine_chunks().to_numpy().astype(np.int64)
        is_known = records.column("log_time_ms").to_numpy() >= self._config.from_ms
        values = np.stack([_ints(records, name) for name in READ], axis=1)
        offsets, write_ms = (np.ascontiguousarray(values[:, column]) for column in (0, -1))
        before = np.empty((len(kinds), STATE_COLUMNS), np.int64)
        trace(kinds, numbers, is_known, offsets, write_ms, limits, self._counts, before)
        has_batches = pc.fill_null(pc.greater(pc.list_value_length(records.column("state_batches")), 0), False)
        for row in np.flatnonzero(is_known & self._may_violate(kinds, values, before, limits)).tolist():
            counts = before[row].tolist()
            tested = self._tested(
                counts, int(kinds[row]), has_batches[row].as_py(), values[row].tolist(), int(limits[row])
            )
            for rule, violated in tested:
                yield (
                    row,
                    rule,
                    int(violated.field),
                    min(violated.expected, LARGEST),
                    violated.actual,
                    violated.at,
                    counts[SNAPSHOT_AT],
                )

    def _may_violate(self, kinds: Ints, values: Ints, before: Ints, limits: Ints) -> Flags:
        """Mask of the records that may violate a rule: a superset of those that do."""
        updates, counter, write_ms = (before[:, column] for column in (UPDATES, COUNTER, WRITE_MS))
        is_over = (counter >= limits) & (limits != NONE)
        many = (kinds == UPDATE) & ((updates >= self._config.most_updates) | is_over)
        earliest = np.minimum(write_ms, LARGEST - self._config.interval_ms) + self._config.interval_ms
        early = (updates < self._config.least_updates) | (values[:, -1] < earliest)
        flags: Flags = many | ((kinds == SNAPSHOT) & early)
        return flags

    def _tested(
        self, before: list[int], kind: int, has_batches: bool, values: list[int], limit: int
    ) -> Iterator[tuple[int, Difference]]:
        _, leader_epoch, start, count, create_ms, write_ms = values
        is_write = has_batches or leader_epoch > 0 or not _is_of_init(start, count)
        differences: list[tuple[int, Difference | None]] = []
        if kind == UPDATE:
            if before[UPDATES] != NONE:
                excess = more_updates_than_configured(before[UPDATES] + 1, self._config.most_updates)
                differences.append((MORE_UPDATES, excess))
            if limit != NONE and before[COUNTER] != NONE:
                differences.append((OVER_LIMIT, update_over_limit(before[COUNTER], limit)))
        elif kind == SNAPSHOT and before[SNAPSHOT_AT] != NONE and create_ms != write_ms:
            early = cold_snapshot_too_early(before[WRITE_MS], write_ms, self._config.interval_ms)
            differences.append((EARLY_COLD, early))
        elif kind == SNAPSHOT and before[UPDATES] != NONE and is_write:
            early = early_write_snapshot(before[UPDATES], self._config.least_updates)
            differences.append((EARLY_SNAPSHOT, early))
        for rule, difference in differences:
            if difference is not None:
                yield rule, difference


def _is_of_init(start: int, count: int) -> bool:
    """Whether Initialize writes a delivery complete count; NONE: brokers up to 4.1 have none (steps.has_init_count)."""
    return count == NONE or (count == 0 and start != NOT_DETERMINED)


def _ints(records: pa.Table, name: str) -> Ints:
    values: Ints = pc.fill_null(records.column(name), NONE).to_numpy().astype(np.int64)
    return values
