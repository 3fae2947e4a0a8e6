"""Damages of a state log, planted into legal histories, and what the audit finds of them.

Operators change the bytes of records, the order of records, or the coordinator's memory; none of them knows a rule. The
judge (audit_judge) says which damaged logs are illegal. `python -m tests.audit_mutations` writes the table of
detection, docs/reference/audit-detection.md.
"""

import functools
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from evidence.decoding import decode_rows
from kafka_log.layout import scan_log_directory
from kafka_log.schemas import LOG_RECORD
from sharelens.questions.state_log import StateLog, state_logs
from state_model.audit.columnar.explained import with_causes
from state_model.audit.columnar.findings import findings
from state_model.audit.columnar.partition import PartitionAudit
from state_model.audit.table import RULES, is_tested
from state_model.schema import UnknownTag
from state_model.share_records import (
    ShareRecord,
    ShareSnapshot,
    ShareUpdate,
    StateBatch,
    Tombstone,
    decode_record,
    encode_record,
)
from tests.audit_between_detection import section as pairs_of_logs
from tests.audit_between_mutations import section as between_logs
from tests.audit_case_tables import section as rule_by_rule
from tests.audit_cause_cases import section as causes
from tests.audit_histories import LIMIT, Entry, History
from tests.audit_judge import LARGEST_LIMIT, illegal_offsets
from tests.audit_script import LOG_ROW
from tests.audit_state_topic_damages import without_stretch
from tests.audit_streams_detection import section as of_streams
from tests.datasets import dataset

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "audit-detection.md"
VERSION = "4.4"
SEEDS = range(10)
RECORDED = ("v44", "dlq")
OPERATIONS = 120
HEAD = """# Detection by the audit

Written by `python -m tests.audit_mutations`. Each damage is planted into legal histories of a share coordinator of
Kafka 4.4: simulated ones and state partitions of recorded brokers. A judge, which asks the coordinator's write side for
each record, says which of the damaged logs are illegal. A log counts as detected if the audit names an expected rule at
a record that the judge calls illegal. A legal log must have no error: some damages leave a log that a coordinator could
have written, and no audit can see them. *By counter*: logs that are illegal by the coordinator's update counter alone,
which can't be tested without the limit (rule 13). *One cause*: detected logs whose errors the audit traces back to one
of them (`cause_inferred`). The rules are the most frequent ones of severity error or warning.

| damage | illegal logs | detected | one cause | by counter | legal logs | rules | not seen, because |
|---|---|---|---|---|---|---|---|"""
Log = Sequence[Entry]
Damage = Callable[[Log, random.Random], Log]


@dataclass(frozen=True, kw_only=True)
class Operator:
    """A damage. `rules`: codes of which one is expected; `invisible`: why the audit can't see some illegal logs."""

    name: str
    damage: Damage
    rules: frozenset[str] = frozenset()
    invisible: str = ""


@dataclass(kw_only=True)
class Detection:
    """What became of the damaged logs of an operator; `mistakes`: lines about misses and false alarms.

    `by_counter`: logs that are illegal by the coordinator's update counter alone, whose limit the log does not have.
    """

    legal: int = 0
    by_counter: int = 0
    illegal: int = 0
    detected: int = 0
    one_cause: int = 0
    rules: Counter[str] = field(default_factory=Counter)
    mistakes: list[str] = field(default_factory=list)


def log_records(entries: Log) -> pa.RecordBatch:
    """LOG_RECORD rows of a log, as the reader gives them."""
    rows = [
        {**LOG_ROW, "offset": entry.log_offset, "base_offset": entry.log_offset, "timestamp_ms": entry.timestamp_ms,
         "key": entry.key, "value": entry.value}
        for entry in entries
    ]  # fmt: skip
    return pa.RecordBatch.from_pylist(rows, schema=LOG_RECORD)


def audited(entries: Log, *, version: str | None = VERSION) -> list[dict[str, Any]]:
    """The findings (errors and warnings) of a log from offset 0 on."""
    rows = log_records(entries)
    audit = PartitionAudit(0, first_offset=0, log_start_offset=0, has_newest=True)
    times = rows.column("timestamp_ms").to_numpy()
    decoded = decode_rows(pa.Table.from_batches([rows]), times)
    audit.take(rows, times, decoded.records, decoded.problems)
    audit.close()
    severities = {rule.id: rule.severity_for(version) for rule in RULES if is_tested(rule, version, frozenset())}
    listed = findings([audit], {number: severity for number, severity in severities.items() if severity})
    return [row for row in with_causes(listed).to_pylist() if row["severity"] != "info"]


def rows_of(entries: Log, kind: type, chance: random.Random, suits: Callable[[Any], bool] = bool) -> int:
    """A row whose value is of a kind and suits; IndexError if there is none."""
    rows = [
        row
        for row, entry in enumerate(entries)
        if isinstance(value := decoded(entry).value, kind) and (kind is Tombstone or suits(value))
    ]
    return chance.choice(rows)


def decoded(entry: Entry) -> ShareRecord:
    """The record of an entry of a legal history."""
    record = decode_record(entry.key, entry.value)
    assert isinstance(record, ShareRecord)
    return record


def renumbered(entries: Log) -> Log:
    """The log with offsets from 0 on."""
    return [entry._replace(log_offset=offset) for offset, entry in enumerate(entries)]


def with_value(entries: Log, row: int, **changes: Any) -> Log:
    """The log with other fields of one value."""
    record = decoded(entries[row])
    key, value = encode_record(record._replace(value=record.value._replace(**changes)))  # type: ignore[union-attr]
    return [*entries[:row], entries[row]._replace(key=key, value=value), *entries[row + 1 :]]


def changed(kind: type, change: Callable[[Any], dict[str, Any]], suits: Callable[[Any], bool] = bool) -> Damage:
    """The damage that changes fields of one value of a kind."""

    def damage(entries: Log, chance: random.Random) -> Log:
        row = rows_of(entries, kind, chance, suits)
        return with_value(entries, row, **change(decoded(entries[row]).value))

    return damage


def first_batch(**changes: Callable[[StateBatch], int]) -> Callable[[Any], dict[str, Any]]:
    """The change of fields of the first state batch."""

    def change(value: Any) -> dict[str, Any]:
        first, *rest = value.state_batches
        return {"state_batches": (first._replace(**{name: new(first) for name, new in changes.items()}), *rest)}

    return change


def has_batches(value: Any) -> bool:
    return bool(value.state_batches)


def is_cold(value: ShareSnapshot) -> bool:
    return value.create_timestamp_ms != value.write_timestamp_ms


def is_full_cold(value: ShareSnapshot) -> bool:
    return is_cold(value) and has_batches(value)


def is_write(value: ShareSnapshot) -> bool:
    return not is_cold(value) and has_batches(value)


def dropped(kind: type, suits: Callable[[Any], bool] = bool, *, leaves_hole: bool = False) -> Damage:
    """The damage that takes one record of a kind out of the log."""

    def damage(entries: Log, chance: random.Random) -> Log:
        row = rows_of(entries, kind, chance, suits)
        rest = [*entries[:row], *entries[row + 1 :]]
        return rest if leaves_hole else renumbered(rest)

    return damage


def repeated(kind: type) -> Damage:
    """The damage that appends one record twice."""

    def damage(entries: Log, chance: random.Random) -> Log:
        row = rows_of(entries, kind, chance)
        return renumbered([*entries[: row + 1], *entries[row:]])

    return damage


def swapped(entries: Log, chance: random.Random) -> Log:
    """Two neighbouring records of a share partition in the other order."""
    row = chance.randrange(len(entries) - 1)
    follower = next(other for other in range(row + 1, len(entries)) if entries[other].key[2:] == entries[row].key[2:])
    rows = list(entries)
    rows[row], rows[follower] = rows[follower], rows[row]
    return renumbered(rows)


def bytes_of(kind: type, change: Callable[[Entry], Entry]) -> Damage:
    """The damage that changes the bytes of one record of a kind."""

    def damage(entries: Log, chance: random.Random) -> Log:
        row = rows_of(entries, kind, chance)
        return [*entries[:row], change(entries[row]), *entries[row + 1 :]]

    return damage


def forgotten(entries: Log, chance: random.Random) -> Log:
    """The coordinator applies a record to its memory and never appends it."""
    seed = chance.randrange(1000)
    count = len(History(seed).run(OPERATIONS).entries)
    return History(seed, forgets=frozenset({chance.randrange(count)})).run(OPERATIONS).entries


def second_creation_dropped(entries: Log, chance: random.Random) -> Log:
    """The log without the creation that follows a deletion."""
    deleted = [entry.key[2:] for entry in entries if isinstance(decoded(entry).value, Tombstone)]
    rows = [
        row
        for row, entry in enumerate(entries)
        if isinstance(value := decoded(entry).value, ShareSnapshot)
        and value.snapshot_epoch == 0
        and entry.key[2:] in deleted
        and any(earlier.key[2:] == entry.key[2:] for earlier in entries[:row])
    ]
    row = chance.choice(rows)
    return renumbered([*entries[:row], *entries[row + 1 :]])


def without_snapshots(entries: Log, chance: random.Random) -> Log:
    """The log of a coordinator that counts updates and never writes a snapshot."""
    history = History(chance.randrange(1000), limit=1 << 30)
    for _ in range(510):
        history.now_ms += 5
        history.write(history.keys[0])
    return history.entries


def offsets_exchanged(entries: Log, chance: random.Random) -> Log:
    """The log with the offsets of two neighbours exchanged."""
    row = chance.randrange(len(entries) - 1)
    rows = list(entries)
    rows[row], rows[row + 1] = (
        rows[row]._replace(log_offset=rows[row + 1].log_offset),
        rows[row + 1]._replace(log_offset=rows[row].log_offset),
    )
    return rows


def cut_off(entries: Log, chance: random.Random) -> Log:
    """The log without its tail."""
    return entries[: chance.randrange(len(entries) // 2, len(entries))]


def pair_of_neighbours(value: Any) -> dict[str, Any]:
    """A batch of two offsets or more in two halves."""
    halves = []
    for batch in value.state_batches:
        if batch.last_offset > batch.first_offset:
            halves += [
                batch._replace(last_offset=batch.first_offset),
                batch._replace(first_offset=batch.first_offset + 1),
            ]
        else:
            halves.append(batch)
    return {"state_batches": tuple(halves)}


def stretched(value: Any) -> dict[str, Any]:
    """The first batch up to the end of the last one."""
    first, *rest = value.state_batches
    return {"state_batches": (first._replace(last_offset=rest[-1].last_offset), *rest)}


SEQUENCE = frozenset(
    {
        "snapshot_epoch_skips",
        "update_of_other_snapshot",
        "life_begins_oddly",
        "life_after_deletion",
        "deleted_twice",
        "update_after_deletion",
        "cold_snapshot_changes_state",
        "write_snapshot_loses_state",
        "init_with_state",
        "new_leader_writes_data",
        "batches_not_joined",
    }
)
OPERATORS = (
    Operator(name="update never appended", damage=dropped(ShareUpdate), rules=SEQUENCE | {"complete_count_too_small",
        "start_offset_goes_back", "complete_count_falls"}),
    Operator(name="snapshot never appended", damage=dropped(ShareSnapshot), rules=SEQUENCE),
    Operator(name="tombstone never appended", damage=dropped(Tombstone), rules=SEQUENCE),
    Operator(name="creation after a deletion never appended", damage=second_creation_dropped, rules=SEQUENCE),
    Operator(name="coordinator never writes a snapshot", damage=without_snapshots,
        rules=frozenset({"too_many_updates"})),
    Operator(name="offsets of two records exchanged", damage=offsets_exchanged,
        rules=frozenset({"log_offset_goes_back"})),
    Operator(name="unknown tagged field", damage=changed(ShareUpdate,
        lambda value: {"unknown_tags": (UnknownTag(tag=9, data=b"new"),)}), rules=frozenset({"unknown_tagged_field"})),
    Operator(name="record lost, its offset missing", damage=dropped(ShareUpdate, leaves_hole=True),
        rules=frozenset({"log_offsets_missing"})),
    Operator(name="update appended twice", damage=repeated(ShareUpdate), invisible="a repeated Read looks like a write "
        "whose batches all lay below the start offset (rule 39, info)"),
    Operator(name="snapshot appended twice", damage=repeated(ShareSnapshot), rules=SEQUENCE),
    Operator(name="tombstone appended twice", damage=repeated(Tombstone), rules=frozenset({"deleted_twice"})),
    Operator(name="two records of a share partition exchanged", damage=swapped, rules=SEQUENCE | {
        "complete_count_falls", "start_offset_goes_back", "new_leader_writes_data", "leader_epoch_goes_back",
        "state_epoch_goes_back"}),
    Operator(name="coordinator forgets to append a record", damage=forgotten, rules=SEQUENCE | {
        "complete_count_too_small", "new_leader_writes_data"}),
    Operator(name="tail of the log lost", damage=cut_off),
    Operator(name="tail of the log lost, and the log goes on",
        damage=lambda entries, chance: renumbered(without_stretch(entries, chance)),
        rules=SEQUENCE | {"state_epoch_goes_back", "start_offset_goes_back", "leader_epoch_goes_back"}),
    Operator(name="snapshot epoch of a snapshot + 1", damage=changed(ShareSnapshot,
        lambda value: {"snapshot_epoch": value.snapshot_epoch + 1}), rules=SEQUENCE),
    Operator(name="snapshot epoch of an update - 1", damage=changed(ShareUpdate,
        lambda value: {"snapshot_epoch": value.snapshot_epoch - 1}), rules=frozenset({"update_of_other_snapshot"})),
    Operator(name="state epoch of a cold snapshot + 1", damage=changed(ShareSnapshot,
        lambda value: {"state_epoch": value.state_epoch + 1}, is_cold),
        rules=frozenset({"state_epoch_moves_without_init"})),
    Operator(name="state epoch of a write snapshot + 1", damage=changed(ShareSnapshot,
        lambda value: {"state_epoch": value.state_epoch + 1}, is_write),
        rules=frozenset({"state_epoch_moves_without_init", "write_snapshot_changes_epochs"})),
    Operator(name="state epoch of a snapshot - 1", damage=changed(ShareSnapshot,
        lambda value: {"state_epoch": value.state_epoch - 1}, has_batches),
        rules=frozenset({"state_epoch_goes_back"})),
    Operator(name="leader epoch of an update - 1", damage=changed(ShareUpdate,
        lambda value: {"leader_epoch": value.leader_epoch - 1}, has_batches),
        rules=frozenset({"leader_epoch_goes_back", "negative_epoch", "new_leader_writes_data"})),
    Operator(name="leader epoch of an update + 1", damage=changed(ShareUpdate,
        lambda value: {"leader_epoch": value.leader_epoch + 1}, has_batches),
        rules=frozenset({"new_leader_writes_data"})),
    Operator(name="start offset of an update - 1", damage=changed(ShareUpdate,
        lambda value: {"start_offset": value.start_offset - 1}, lambda value: value.start_offset > 0),
        rules=frozenset({"start_offset_goes_back"})),
    Operator(name="start offset of an update below -1", damage=changed(ShareUpdate,
        lambda value: {"start_offset": -2}), rules=frozenset({"invalid_start_offset"})),
    Operator(name="update without a start offset", damage=changed(ShareUpdate, lambda value: {"start_offset": -1},
        lambda value: value.start_offset >= 0 and has_batches(value)), invisible="-1 leaves the start offset as it is, "
        "so that the state is the same; brokers accept it, and no leader sends it"),
    Operator(name="start offset of an update beyond its batches", damage=changed(ShareUpdate,
        lambda value: {"start_offset": value.state_batches[0].first_offset + 1}, has_batches),
        rules=frozenset({"batch_below_start"})),
    Operator(name="start offset of a cold snapshot + 1", damage=changed(ShareSnapshot,
        lambda value: {"start_offset": value.start_offset + 1}, is_cold),
        rules=frozenset({"cold_snapshot_changes_state"})),
    Operator(name="delivery complete count of a cold snapshot + 1", damage=changed(ShareSnapshot,
        lambda value: {"delivery_complete_count": value.delivery_complete_count + 1}, is_cold),
        rules=frozenset({"cold_snapshot_changes_state"})),
    Operator(name="delivery complete count negative", damage=changed(ShareUpdate,
        lambda value: {"delivery_complete_count": -5}), rules=frozenset({"negative_complete_count"})),
    Operator(name="delivery complete count of a write smaller", damage=changed(ShareUpdate,
        lambda value: {"delivery_complete_count": value.delivery_complete_count - 1},
        lambda value: value.delivery_complete_count > 0 and has_batches(value)),
        rules=SEQUENCE | {"complete_count_too_small", "complete_count_falls"}),
    Operator(name="state batch ACQUIRED", damage=changed(ShareUpdate, first_batch(delivery_state=lambda _: 1),
        has_batches), rules=frozenset({"acquired_state_written"})),
    Operator(name="state batch in an unknown state", damage=changed(ShareUpdate,
        first_batch(delivery_state=lambda _: 9), has_batches), rules=frozenset({"unknown_delivery_state"})),
    Operator(name="delivery count 0", damage=changed(ShareUpdate, first_batch(delivery_count=lambda _: 0), has_batches),
        rules=frozenset({"never_delivered"})),
    Operator(name="delivery count 26", damage=changed(ShareUpdate, first_batch(delivery_count=lambda _: 26),
        has_batches), rules=frozenset({"count_over_maximum"})),
    Operator(name="delivery state of a write: archived, not acknowledged", damage=changed(ShareUpdate,
        first_batch(delivery_state=lambda _: 4), lambda value: has_batches(value)
        and value.state_batches[0].delivery_state == 2), rules=SEQUENCE),
    Operator(name="state batch back to front", damage=changed(ShareUpdate,
        first_batch(last_offset=lambda batch: batch.first_offset - 1), has_batches),
        rules=frozenset({"invalid_batch"})),
    Operator(name="state batch below offset 0", damage=changed(ShareUpdate,
        first_batch(first_offset=lambda _: -3), has_batches), rules=frozenset({"invalid_batch"})),
    Operator(name="state batches overlap", damage=changed(ShareUpdate,
        stretched, lambda value: len(value.state_batches) > 1),
        rules=frozenset({"batches_out_of_order"})),
    Operator(name="state batches not joined", damage=changed(ShareUpdate, pair_of_neighbours,
        lambda value: any(batch.last_offset > batch.first_offset for batch in value.state_batches)),
        rules=frozenset({"batches_not_joined"})),
    Operator(name="batch of a cold snapshot in two", damage=changed(ShareSnapshot, pair_of_neighbours,
        lambda value: is_full_cold(value) and any(batch.last_offset > batch.first_offset
        for batch in value.state_batches)), invisible="a cold snapshot copies state as it is, and an older broker may "
        "have left it so"),
    Operator(name="cold snapshot without one state batch", damage=changed(ShareSnapshot,
        lambda value: {"state_batches": value.state_batches[1:]}, is_full_cold),
        rules=frozenset({"cold_snapshot_changes_state"})),
    Operator(name="cold snapshot with one more delivery", damage=changed(ShareSnapshot,
        first_batch(delivery_count=lambda batch: batch.delivery_count + 1), is_full_cold),
        rules=frozenset({"cold_snapshot_changes_state"})),
    Operator(name="write snapshot with a smaller delivery count", damage=changed(ShareSnapshot,
        first_batch(delivery_count=lambda batch: batch.delivery_count - 1),
        lambda value: is_write(value) and value.state_batches[0].delivery_count > 1),
        rules=SEQUENCE),
    Operator(name="creation with a leader epoch", damage=changed(ShareSnapshot,
        lambda value: {"leader_epoch": 3}, lambda value: value.snapshot_epoch == 0),
        rules=frozenset({"life_begins_oddly", "life_after_deletion"})),
    Operator(name="create timestamp after write timestamp", damage=changed(ShareSnapshot,
        lambda value: {"create_timestamp_ms": value.write_timestamp_ms + 1}),
        rules=frozenset({"created_after_written"})),
    Operator(name="value cut short", damage=bytes_of(ShareUpdate,
        lambda entry: entry._replace(value=(entry.value or b"")[:9])), rules=frozenset({"undecodable_record"})),
    Operator(name="bytes behind a value", damage=bytes_of(ShareUpdate,
        lambda entry: entry._replace(value=(entry.value or b"") + b"\0\0")), rules=frozenset({"trailing_bytes"})),
    Operator(name="unknown value version", damage=bytes_of(ShareUpdate,
        lambda entry: entry._replace(value=b"\0\7" + (entry.value or b"")[2:])), rules=frozenset({"unknown_format"})),
    Operator(name="unknown record type", damage=bytes_of(ShareUpdate,
        lambda entry: entry._replace(key=b"\0\7" + entry.key[2:])), rules=frozenset({"unknown_format"})),
    Operator(name="update without a value", damage=bytes_of(ShareUpdate,
        lambda entry: entry._replace(value=None)), rules=frozenset({"update_without_value"})),
    Operator(name="key cut short", damage=bytes_of(ShareSnapshot,
        lambda entry: entry._replace(key=entry.key[:7])), rules=frozenset({"undecodable_record"})),
)  # fmt: skip


@functools.cache
def histories() -> tuple[tuple[Log, int], ...]:
    """Legal logs with their snapshot limits: simulated ones, and state partitions of recorded brokers of Kafka 4.4."""
    simulated = [(History(seed).run(OPERATIONS).entries, LIMIT) for seed in SEEDS]
    recorded = [
        recorded_log(log)
        for name in RECORDED
        for log in state_logs([scan_log_directory(str(dataset(name) / "logs"))], include_uncommitted=False)
    ]
    return (*simulated, *((log, LARGEST_LIMIT) for log in recorded if len(log) > 100))


def recorded_log(log: StateLog) -> Log:
    """The entries of a state log."""
    columns = ["offset", "timestamp_ms", "key", "value"]
    return [Entry(*row.values()) for chunk in log.read_raw() for row in chunk.records.select(columns).to_pylist()]


@functools.cache
def detection(operator: Operator) -> Detection:
    """Plants the damage into a history of each seed, and compares the audit with the judge."""
    result = Detection()
    for seed, (history, limit) in enumerate(histories()):
        try:
            log = operator.damage(history, random.Random(seed))
        except (IndexError, StopIteration):
            continue
        illegal = illegal_offsets(log, limit=None)
        rows = audited(log)
        result.rules.update({row["rule"] for row in rows})
        errors = [row["rule"] for row in rows if row["severity"] == "error"]
        if not illegal:
            is_legal = not illegal_offsets(log, limit=limit)
            result.legal += is_legal
            result.by_counter += not is_legal
            result.mistakes += [f"seed {seed}: false alarm {rule}" for rule in errors]
            continue
        result.illegal += 1
        placed = [
            row["rule"]
            for row in rows
            if row["rule"] in operator.rules
            and (row["first_log_offset"] in illegal or row["last_log_offset"] in illegal)
        ]
        if placed:
            result.detected += 1
            explained = [row["rule"] for row in rows if row["severity"] == "error" and row["cause_inferred"]]
            result.one_cause += len(errors) - len(explained) <= 1
        elif not operator.invisible:
            result.mistakes.append(f"seed {seed}: missed; illegal at {illegal[:5]}, the audit says {errors}")
    return result


def page() -> str:
    """The table of detection."""
    lines = [HEAD]
    for operator in OPERATORS:
        result = detection(operator)
        rules = ", ".join(
            f"`{rule}`" for rule in sorted(result.rules, key=lambda rule: (-result.rules[rule], rule))[:4]
        )
        why = operator.invisible if result.detected < result.illegal else "-"
        if not result.illegal:
            why = "a coordinator could have written the log"
        lines.append(
            f"| {operator.name} | {result.illegal} | {result.detected} | {result.one_cause} | {result.by_counter} "
            f"| {result.legal} | {rules or '-'} | {why} |"
        )
    return "\n".join([*lines, "", between_logs(), pairs_of_logs(), causes(), rule_by_rule(), of_streams()])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
