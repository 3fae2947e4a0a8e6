"""A state log as a script: what a coordinator appends, and damages of single records, bytes or batches in it.

    Script().init().read(3).write(0, (0, 4, 2, 1)).edit(1, leader_epoch=2)

Nothing here knows a rule. `entries` are the bytes of the log.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import pyarrow as pa

from sharelens.evidence.decoding import decode_rows
from sharelens.kafka_log.schemas import LOG_RECORD
from state_model import coordinator
from state_model.audit.columnar.findings import findings
from state_model.audit.columnar.partition import PartitionAudit
from state_model.audit.rule import Need
from state_model.audit.table import RULES, is_tested
from state_model.coordinator import WriteRequest
from state_model.machine import PartitionState, apply
from state_model.rule_sets import KAFKA_4_4
from state_model.share_records import SharePartitionKey, ShareRecord, StateBatch, decode_record, encode_record
from state_model.uuids import ZERO_UUID
from tests.audit.histories import START_MS, TOPIC_ID, Entry
from tests.audit.reference import step_function

FIRST, SECOND = (SharePartitionKey(group_id=group, topic_id=TOPIC_ID, partition=0) for group in ("g", "h"))
Batch = tuple[int, int, int, int]
"""First offset, last offset, delivery state, delivery count."""
NO_LIMIT = 1 << 30
LOG_ROW: Mapping[str, Any] = {
    "topic": "__share_group_state",
    "topic_id": ZERO_UUID,
    "partition": 0,
    "timestamp_type": "CreateTime",
    "headers": [],
    "leader_epoch": 0,
    "producer_id": -1,
    "producer_epoch": -1,
    "attributes": 0,
    "is_control": False,
    "below_log_start": False,
    "uncommitted": False,
}
"""A row of a log as coordinators write it, without what differs by record."""


class Script:
    """A log in the making. Each method returns the script; a row is the place of a record in it.

    `is_about`: whose records the next methods append. `appends`: whether the coordinator appends what it applies.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.version = "4.4"
        self.first_offset = self.log_start_offset = 0
        self.delivery_count_limit: int | None = None
        self.odd_rows: dict[int, dict[str, Any]] = {}
        self.key = FIRST
        self._state = PartitionState(update_limit=NO_LIMIT, rules=KAFKA_4_4)
        self._now_ms = START_MS
        self._appends = True

    # What the coordinator does.

    def init(self, state_epoch: int = 1, start: int = -1) -> "Script":
        """Initialize: a creation or a reset."""
        done = coordinator.initialize(
            self._state, self.key, state_epoch=state_epoch, start_offset=start, now_ms=self._now_ms
        )
        return self._append(done.records)

    def read(self, leader_epoch: int) -> "Script":
        """Read: a new leader."""
        return self._append(
            coordinator.read(self._state, self.key, leader_epoch=leader_epoch, now_ms=self._now_ms).records
        )

    def write(self, start: int, *batches: Batch, count: int | None = None) -> "Script":
        """Write of the leader; `count`: the delivery complete count, None: that of the state after it."""
        current = self._state.share_partitions[self.key]
        sent = tuple(StateBatch(*batch) for batch in batches)
        if count is None:
            before, sent_function = (step_function.of_batches(of) for of in (current.state_batches, sent))
            count = step_function.terminal_offsets(
                step_function.cut_below(step_function.maximum(before, sent_function), start)
            )
        request = WriteRequest(current.state_epoch, current.leader_epoch_max, start, sent, count)
        return self._append(coordinator.write(self._state, self.key, request, now_ms=self._now_ms).records)

    def snapshot_next(self) -> "Script":
        """The next Read or Write becomes a snapshot: the counter of updates has reached the limit."""
        current = self._state.share_partitions[self.key]._replace(update_count=NO_LIMIT)
        self._state = self._state._replace(share_partitions=self._state.share_partitions.set(self.key, current))
        return self

    def cold(self) -> "Script":
        """The job that writes the snapshots of share partitions at rest again, five minutes later."""
        self.wait(coordinator.COLD_SNAPSHOT_INTERVAL_MS)
        return self._append(coordinator.snapshot_cold(self._state, now_ms=self._now_ms))

    def delete(self) -> "Script":
        """The deletion of the share partition."""
        return self._append(coordinator.delete(self._state, self.key).records)

    def about(self, key: SharePartitionKey) -> "Script":
        """The next requests are about another share partition."""
        self.key = key
        return self

    def wait(self, ms: int) -> "Script":
        """Time passes."""
        self._now_ms += ms
        return self

    def forget(self) -> "Script":
        """A fault: the coordinator applies the next record and never appends it."""
        self._appends = False
        return self

    def _append(self, records: coordinator.Records) -> "Script":
        for record in records:
            self._state = apply(self._state, len(self.entries), self._now_ms, record)
            if self._appends:
                self.put(record.value, record.key)
            self._appends = True
        return self.wait(1000)

    # Damages.

    def put(self, value: Any, key: SharePartitionKey | None = None) -> "Script":
        """A record that the coordinator knows nothing of."""
        encoded = encode_record(ShareRecord(key=key or self.key, value=value))
        self.entries.append(Entry(self.first_offset + len(self.entries), self._now_ms, *encoded))
        return self

    def edit(self, row: int, **changes: Any) -> "Script":
        """Other fields of a value."""
        record = self.record(row)
        value: Any = record.value
        key, encoded = encode_record(record._replace(value=value._replace(**changes)))
        self.entries[row] = self.entries[row]._replace(key=key, value=encoded)
        return self

    def batches(self, row: int, *batches: Batch) -> "Script":
        """Other state batches of a value."""
        return self.edit(row, state_batches=tuple(StateBatch(*batch) for batch in batches))

    def bytes(self, row: int, change: Callable[[Entry], Entry]) -> "Script":
        """Other bytes of a record."""
        self.entries[row] = change(self.entries[row])
        return self

    def drop(self, *rows: int, leaves_hole: bool = False) -> "Script":
        """Records lost, with their offsets or without."""
        self.entries = [entry for row, entry in enumerate(self.entries) if row not in rows]
        return self if leaves_hole else self.renumber()

    def twice(self, row: int, times: int = 2) -> "Script":
        """A record appended so many times."""
        self.entries[row : row + 1] = [self.entries[row]] * times
        return self.renumber()

    def move(self, row: int, to: int) -> "Script":
        """A record in another place."""
        self.entries.insert(to, self.entries.pop(row))
        return self.renumber()

    def offsets(self, changes: Mapping[int, int]) -> "Script":
        """Other log offsets of records."""
        for row, offset in changes.items():
            self.entries[row] = self.entries[row]._replace(log_offset=offset)
        return self

    def renumber(self) -> "Script":
        """Log offsets without holes."""
        self.entries = [entry._replace(log_offset=self.first_offset + row) for row, entry in enumerate(self.entries)]
        return self

    def begins(self, first_offset: int, log_start_offset: int | None = None) -> "Script":
        """The log begins at an offset: records before it are gone. `log_start_offset`: where its readers begin."""
        self.first_offset = first_offset
        self.log_start_offset = first_offset if log_start_offset is None else log_start_offset
        self.entries = [entry for entry in self.entries if entry.log_offset >= first_offset]
        return self

    def starts(self, log_start_offset: int) -> "Script":
        """The log start offset; records below it are still there."""
        self.log_start_offset = log_start_offset
        return self

    def in_batch(self, row: int, **changes: Any) -> "Script":
        """Other fields of a record's batch."""
        self.odd_rows[row] = changes
        return self

    def of_version(self, version: str) -> "Script":
        """The brokers' version, as the audit knows it."""
        self.version = version
        return self

    def limited(self, limit: int) -> "Script":
        """The delivery count limit of every group is known."""
        self.delivery_count_limit = limit
        return self

    def record(self, row: int) -> ShareRecord:
        """The record of a row."""
        record = decode_record(self.entries[row].key, self.entries[row].value)
        assert isinstance(record, ShareRecord)
        return record


def log_rows(script: Script) -> list[dict[str, Any]]:
    """LOG_RECORD rows of the log."""
    return [
        {**LOG_ROW, "offset": entry.log_offset, "base_offset": entry.log_offset, "timestamp_ms": entry.timestamp_ms,
         "key": entry.key, "value": entry.value, **script.odd_rows.get(row, {})}
        for row, entry in enumerate(script.entries)
    ]  # fmt: skip


def partition_audit(script: Script, number: int = 0) -> PartitionAudit:
    """The audit of the log, as one state partition."""
    audit = PartitionAudit(
        number,
        first_offset=script.first_offset,
        log_start_offset=script.log_start_offset,
        has_newest=True,
        limit_of_group=lambda group: script.delivery_count_limit,
    )
    log_records = pa.RecordBatch.from_pylist(log_rows(script), schema=LOG_RECORD)
    times = log_records.column("timestamp_ms").to_numpy()
    decoded = decode_rows(pa.Table.from_batches([log_records]), times)
    audit.take(log_records, times, decoded.records, decoded.problems)
    audit.close()
    return audit


def listed(audits: list[PartitionAudit], version: str, available: Collection[Need] = ()) -> list[dict[str, Any]]:
    """The findings of severity error and warning."""
    severities = {
        rule.id: severity
        for rule in RULES
        if is_tested(rule, version, frozenset(available))
        and (severity := rule.severity_for(version)) not in (None, "info")
    }
    rows: list[dict[str, Any]] = findings(audits, severities).to_pylist()  # type: ignore[arg-type]
    return rows


def audited(script: Script) -> list[dict[str, Any]]:
    """The findings of the log."""
    available = [] if script.delivery_count_limit is None else [Need.DELIVERY_COUNT_LIMIT]
    return listed([partition_audit(script)], script.version, available)
