"""Rules that need the share coordinator's configuration: 12, 13, 14 and 57, on the records of one state partition."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from state_model.audit.columnar.proofs import LogRecord, Place, Proofs
from state_model.audit.rule import Difference
from state_model.audit.sequencing import early_write_snapshot, more_updates_than_configured, update_over_limit
from state_model.audit.snapshots import cold_snapshot_too_early
from state_model.columnar.keys import PLACE_KEY, number_keys
from state_model.topics import STATE_TOPIC

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
    """Takes the records of a state partition in log order, as long as none is missing.

    What was written before the configuration was known is not tested, nor what depends on it.
    `is_from_zero`: the log is there from offset 0 on, so that the coordinator's counter is known.
    """

    def __init__(self, config: CoordinatorConfig, proofs: Proofs, *, is_from_zero: bool) -> None:
        self._config = config
        self._proofs = proofs
        is_constant = config.least_updates == config.most_updates
        self._limit = config.most_updates if is_from_zero and is_constant else None
        self._keys = pa.schema([pa.field("group_id", pa.string()), pa.field("topic_id", pa.string()),
            pa.field("partition", pa.int32())]).empty_table()  # fmt: skip
        self._counts: list[_Counts] = []

    def take(self, records: pa.Table) -> None:
        """The next records (SHARE_RECORD)."""
        if records.num_rows == 0:
            return
        (_, numbers), self._keys = number_keys(self._keys, records)
        self._counts += [_Counts() for _ in range(self._keys.num_rows - len(self._counts))]
        has_batches = pc.fill_null(pc.greater(pc.list_value_length(records.column("state_batches")), 0), False)
        columns = [_ints(records, name) for name in READ]
        kinds = records.column("record_type").to_pylist()
        is_known = (records.column("log_time_ms").to_numpy() >= self._config.from_ms).tolist()
        rows = zip(numbers.tolist(), kinds, is_known, has_batches.to_pylist(), *columns, strict=True)
        for row, (number, kind, known, is_full, *values) in enumerate(rows):
            counts = self._counts[number]
            if known:
                for rule, difference in self._tested(counts, kind, is_full, values):
                    self._add(rule, difference, records, row, counts)
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

    def _add(self, rule: int, difference: Difference, records: pa.Table, row: int, counts: _Counts) -> None:
        values: dict[str, Any] = records.select([*PLACE_KEY, "log_offset", "log_time_ms"]).slice(row, 1).to_pylist()[0]
        number = values["state_partition"]
        place = Place(values["group_id"], values["topic_id"], values["partition"], number)
        record = LogRecord(STATE_TOPIC, number, values["log_offset"])
        snapshot = LogRecord(STATE_TOPIC, number, counts.snapshot_at)
        self._proofs.add(rule, place, difference, record, values["log_time_ms"], [snapshot])


def _ints(records: pa.Table, name: str) -> list[int]:
    values: list[int] = pc.fill_null(records.column(name), NONE).to_numpy().astype(np.int64).tolist()
    return values
