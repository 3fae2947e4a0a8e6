"""Recorded logs of streams and consumer groups that mutations change: records decoded, changed, encoded and audited."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final, NamedTuple

import pyarrow as pa

from sharelens.evidence.group_decoding import decode_groups
from sharelens.evidence.reading import read_whole
from sharelens.kafka_log.layout import scan_log_directory
from sharelens.kafka_log.union import unite
from state_model.audit.columnar.group_audit import audit_groups
from state_model.audit.columnar.model_group_audit import transactional_group_records
from state_model.audit.columnar.proofs import Proofs
from state_model.audit.columnar.topic_metadata import TopicMetadata
from state_model.audit.periods import END, Period
from state_model.audit.table import RULES
from state_model.columnar.completeness import Completeness
from state_model.group_records import GroupRecord, decode_record, encode_record
from state_model.group_schemas import RECORD_TYPES, TABLE_TYPES
from state_model.topics import OFFSETS_TOPIC
from tests.datasets import dataset

SEVERITIES: Final = {rule.id: rule.severity for rule in RULES if rule.severity in ("error", "warning")}
CODES: Final = {rule.id: rule.code for rule in RULES}
MINUTE_MS: Final = 60_000
Tree = Mapping[str, Any]


class Entry(NamedTuple):
    """A record of a group; `value` None: a tombstone. `producer_id`: of a transaction.

    `member_id`: of types whose key has a regular expression in its place, that one.
    """

    record_type: int
    member_id: str | None
    value: Tree | None
    time_ms: int
    producer_id: int = -1

    def encoded(self, group_id: str) -> tuple[bytes, bytes | None]:
        """Key and value as Kafka writes them."""
        kind = RECORD_TYPES[self.record_type]
        names = (group_id, *([] if self.member_id is None else [self.member_id]))
        key = {field.name: name for field, name in zip(kind.key.fields, names, strict=True)}
        version = None if self.value is None else 0
        return encode_record(
            GroupRecord(record_type=self.record_type, name=kind.name, key=key, version=version, value=self.value)
        )


@dataclass(frozen=True)
class Topic:
    """A topic of the metadata log: when it was created and deleted, and when it got its partitions.

    `topic_id`: None: one that is made of its name.
    """

    from_ms: int
    partitions_ms: tuple[int, ...]
    to_ms: int = END
    topic_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class GroupLog:
    """The log of one streams or consumer group.

    `gaps`: places before which offsets are missing, as compaction leaves them. `settings`: of the group, by name.
    """

    group_id: str
    entries: tuple[Entry, ...]
    partition: int = 0
    count: int | None = None
    topics: Mapping[str, Topic] | None = None
    gaps: frozenset[int] = field(default_factory=frozenset)
    settings: Mapping[str, int] = field(default_factory=dict)

    def change(self, place: int, **fields: Any) -> "GroupLog":
        """With other fields in the value of a record."""
        value = self.entries[place].value
        assert value is not None
        assert fields.keys() <= value.keys()
        return self.put(place, self.entries[place]._replace(value={**value, **fields}))

    def put(self, place: int, *entries: Entry) -> "GroupLog":
        """With other records in place of one."""
        return self.of((*self.entries[:place], *entries, *self.entries[place + 1 :]))

    def insert(self, place: int, *entries: Entry) -> "GroupLog":
        """With more records before one."""
        return self.of((*self.entries[:place], *entries, *self.entries[place:]))

    def drop(self, *places: int) -> "GroupLog":
        """Without some records."""
        return self.of(entry for place, entry in enumerate(self.entries) if place not in places)

    def repeat(self, place: int) -> "GroupLog":
        """With a record twice."""
        return self.insert(place, self.entries[place])

    def swap(self, place: int) -> "GroupLog":
        """With a record behind the next one."""
        first, second = self.entries[place : place + 2]
        return self.of((*self.entries[:place], second, first, *self.entries[place + 2 :]))

    def cut(self, size: int) -> "GroupLog":
        """The first records."""
        return self.of(self.entries[:size])

    def later(self, place: int, by_ms: int) -> "GroupLog":
        """With all records from one on later."""
        moved = (entry._replace(time_ms=entry.time_ms + by_ms) for entry in self.entries[place:])
        return self.of((*self.entries[:place], *moved))

    def twice(self) -> "GroupLog":
        """The log, and the group again."""
        return self.of((*self.entries, *self.entries))

    def compacted(self, *places: int) -> "GroupLog":
        """Without some records, whose offsets are missing."""
        kept_places = [place for place in range(len(self.entries)) if place not in places]
        gaps = frozenset(row for row, place in enumerate(kept_places) if place and place - 1 in places)
        return replace(self.drop(*places), gaps=gaps)

    def of(self, entries: Any) -> "GroupLog":
        """With these records."""
        return replace(self, entries=tuple(entries))

    def with_setting(self, name: str, value: int) -> "GroupLog":
        """With a setting of the group."""
        return replace(self, settings={**self.settings, name: value})

    def findings(self) -> list[str]:
        """Codes of the rules, error or warning, that the audit names, sorted."""
        return sorted({row["rule"] for row in self.audited()})

    def audited(self) -> list[dict[str, Any]]:
        """The findings, errors and warnings."""
        rows = self._rows()
        proofs, completeness = Proofs(), Completeness()
        completeness.take(rows.column("offset"))
        transactional_group_records(rows, proofs)
        decoded = decode_groups(rows)
        audit_groups(
            decoded.records,
            decoded.odd_records,
            frozenset({self.partition}),
            proofs,
            count=self.count,
            complete_from={self.partition: completeness.complete_from},
            metadata=None if self.topics is None else self._metadata(self.topics),
            bounds_of=lambda _: lambda name, *_: (self.settings[name],) * 2 if name in self.settings else None,
        )
        listed: list[dict[str, Any]] = proofs.findings(SEVERITIES).to_pylist()
        return listed

    def _rows(self) -> pa.Table:
        rows, offset = [], -1
        for place, entry in enumerate(self.entries):
            offset += 1 + (place in self.gaps)
            key, value = entry.encoded(self.group_id)
            rows.append({
                "topic": OFFSETS_TOPIC, "topic_id": "t", "partition": self.partition, "offset": offset,
                "timestamp_ms": entry.time_ms, "key": key, "value": value, "producer_id": entry.producer_id,
                "is_control": False, "below_log_start": False, "uncommitted": False,
            })  # fmt: skip
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        return pa.table(columns | {"value": pa.array(columns["value"], pa.binary())})

    def _metadata(self, topics: Mapping[str, Topic]) -> TopicMetadata:
        times = [entry.time_ms for entry in self.entries]
        metadata = TopicMetadata(min(times) - 10 * MINUTE_MS, max(times) + 10 * MINUTE_MS)
        for name, topic in topics.items():
            topic_id = topic.topic_id or f"id-{name}"
            metadata.topics[topic_id] = Period(topic.from_ms, topic.to_ms)
            metadata.topic_ids[name][topic_id] = 0
            for partition, begin_ms in enumerate(topic.partitions_ms):
                metadata.epochs[topic_id, partition].append((begin_ms, 0))
        return metadata


@cache
def recorded(scenario: str, group_id: str) -> GroupLog:
    """The records of a streams or consumer group of a recorded log."""
    entries: list[Entry] = []
    number = 0
    for partition in unite([scan_log_directory(str(dataset(scenario) / "logs"))]):
        if partition.topic != OFFSETS_TOPIC:
            continue
        for chunk in read_whole(partition, include_uncommitted=False):
            for row in chunk.records.select(["timestamp_ms", "key", "value", "is_control"]).to_pylist():
                record = None if row["is_control"] else decode_record(row["key"], row["value"])
                if not isinstance(record, GroupRecord) or record.record_type not in TABLE_TYPES:
                    continue
                if record.group_id == group_id:
                    number = partition.partition
                    name = record.member_id or record.regular_expression
                    entries.append(Entry(record.record_type, name, record.value, row["timestamp_ms"]))
    return GroupLog(group_id=group_id, entries=tuple(entries), partition=number)


def tasks(*groups: tuple[str, Sequence[int]], epoch: int | None = None) -> tuple[Tree, ...]:
    """A list of tasks; with an assignment epoch for each, if there is one."""
    return tuple(
        {"subtopology_id": name, "partitions": tuple(partitions)}
        | ({"assignment_epochs": None} if epoch is None else {"assignment_epochs": (epoch,) * len(partitions)})
        for name, partitions in groups
    )


def targets(*groups: tuple[str, Sequence[int]]) -> tuple[Tree, ...]:
    """A list of tasks of a target."""
    return tuple({"subtopology_id": name, "partitions": tuple(partitions)} for name, partitions in groups)


Make = Callable[[], GroupLog]
