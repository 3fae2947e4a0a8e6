"""The rules on streams and consumer groups, record by record on rows of `__consumer_offsets`: their records are few."""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from state_model.audit.columnar.proofs import LogRecord, Place, Proofs
from state_model.audit.columnar.topic_metadata import TopicMetadata
from state_model.audit.consumer import table as consumer
from state_model.audit.consumer.history import History as ConsumerHistory
from state_model.audit.group_steps import GroupDifference
from state_model.audit.model_groups.bounds import Bounds, BoundsOf, no_bounds
from state_model.audit.model_groups.history import ModelRecord
from state_model.audit.model_groups.order import misplaced
from state_model.audit.model_groups.shape import AnyHistory, Check
from state_model.audit.model_groups.topic_lives import TopicLife, TopicLives
from state_model.audit.rule import Difference, Field
from state_model.audit.streams import table as streams
from state_model.audit.streams.history import History as StreamsHistory
from state_model.consumer.records import CONSUMER_TYPES
from state_model.streams.records import STREAMS_TYPES
from state_model.topics import OFFSETS_TOPIC

NEVER: Final = 1 << 62
"""The log offset of what never comes."""
GROUP_RECORD_COLUMNS: Final = (
    "group_id",
    "member_id",
    "regular_expression",
    "record_type",
    "is_tombstone",
    "value_json",
    "partition",
    "log_offset",
    "timestamp_ms",
)
"""The columns of `__consumer_offsets` rows that rules on groups read."""


TopicCheck = Callable[[Any, ModelRecord, TopicLives], GroupDifference | None]


class _Kind(NamedTuple):
    """The record types and the rules of a kind of groups. `misplaced`, `transactional`: ids of two rules."""

    types: Sequence[int]
    history: Callable[[int, Bounds], AnyHistory]
    checks: Mapping[int, Check[Any]]
    checks_of_topics: Mapping[int, TopicCheck]
    misplaced: int
    transactional: int


KINDS: Final = (
    _Kind(STREAMS_TYPES, StreamsHistory, streams.CHECKS, streams.CHECKS_OF_TOPICS, 1360, 1361),
    _Kind(CONSUMER_TYPES, ConsumerHistory, consumer.CHECKS, consumer.CHECKS_OF_TOPICS, 2290, 2291),
)


def audit_model_groups(
    records: pa.Table,
    unreadable_from: Mapping[str, int],
    complete_from: Mapping[int, int],
    count: int | None,
    topics: TopicLives | None,
    proofs: Proofs,
    bounds_of: BoundsOf | None = None,
) -> None:
    """Tests the rules on streams and consumer groups on GROUP_RECORD rows in log order.

    Args:
        unreadable_from: by group, the log offset of its first record that can't be decoded.
        complete_from: by partition, the log offset from which on no record is missing; without it, some may be.
        count: number of partitions of __consumer_offsets; None: unknown.
        topics: those of the metadata log; None: there is none.
        bounds_of: configuration by group; None: unknown.
    """
    for kind in KINDS:
        checks = {**kind.checks, **({} if topics is None else _with_topics(kind, topics))}
        for group_id, rows in _by_group(records, kind.types).items():
            partition = rows[0]["partition"]
            end = unreadable_from.get(group_id, NEVER)
            readable_rows = [row for row in rows if row["partition"] == partition and row["log_offset"] < end]
            bounds = no_bounds if bounds_of is None else bounds_of(group_id)
            history = kind.history(complete_from.get(partition, NEVER), bounds)
            _audit(group_id, readable_rows, history, checks, proofs)
            if count is not None:
                _test_places(kind.misplaced, group_id, rows, count, proofs)


def _by_group(records: pa.Table, types: Sequence[int]) -> dict[str, list[dict[str, Any]]]:
    is_of_kind = pc.is_in(
        records.column("record_type"),
        value_set=pa.array(types, pa.int32()).cast(records.schema.field("record_type").type),
    )
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in records.filter(is_of_kind).select(GROUP_RECORD_COLUMNS).to_pylist():
        groups[row["group_id"]].append(row)
    return groups


def topic_lives(metadata: TopicMetadata) -> TopicLives:
    """The topics of a metadata log by name."""
    partitions: dict[str, list[int]] = defaultdict(list)
    for (topic_id, _), epochs in metadata.epochs.items():
        partitions[topic_id].append(min(begin_ms for begin_ms, _ in epochs))
    by_name = {
        name: tuple(
            TopicLife(metadata.topics[topic_id], tuple(partitions[topic_id]), topic_id) for topic_id in topic_ids
        )
        for name, topic_ids in metadata.topic_ids.items()
    }
    names = {topic_id: name for name, topic_ids in metadata.topic_ids.items() for topic_id in topic_ids}
    return TopicLives(metadata.from_ms, metadata.until_ms, by_name, names)


def _with_topics(kind: _Kind, topics: TopicLives) -> dict[int, Check[Any]]:
    return {rule: _with(check, topics) for rule, check in kind.checks_of_topics.items()}


def _with(check: TopicCheck, topics: TopicLives) -> Check[Any]:
    return lambda history, record: check(history, record, topics)


def _audit(
    group_id: str,
    rows: Sequence[Mapping[str, Any]],
    history: AnyHistory,
    checks: Mapping[int, Check[Any]],
    proofs: Proofs,
) -> None:
    for row in rows:
        if row["value_json"] is None and not row["is_tombstone"]:
            return  # a later version's value: what follows can't be compared with it
        value = None if row["is_tombstone"] else json.loads(row["value_json"])
        name = row["regular_expression"] if row["member_id"] is None else row["member_id"]
        record = ModelRecord(row["record_type"], name, value, row["log_offset"], row["timestamp_ms"])
        for rule, check in checks.items():
            violation = check(history, record)
            if violation is not None:
                earlier = LogRecord(OFFSETS_TOPIC, row["partition"], violation.earlier)
                proofs.add(rule, Place(group_id), violation.difference, _at(row), row["timestamp_ms"], [earlier])
        history.apply(record)


def transactional_group_records(rows: pa.Table, proofs: Proofs) -> None:
    """Tests that no record of a streams or consumer group among LOG_RECORD rows belongs to a producer."""
    rules = {record_type: kind.transactional for kind in KINDS for record_type in kind.types}
    of_producers = rows.filter(pc.and_(pc.greater(rows.column("producer_id"), -1), pc.is_valid(rows.column("key"))))
    for row in of_producers.select(["partition", "offset", "timestamp_ms", "producer_id", "key"]).to_pylist():
        rule = rules.get(int.from_bytes(row["key"][:2], "big"))
        if rule is None:
            continue
        record = LogRecord(OFFSETS_TOPIC, row["partition"], row["offset"])
        difference = Difference(Field.PRODUCER_ID, -1, row["producer_id"])
        proofs.add(rule, Place(_group_of(row["key"])), difference, record, row["timestamp_ms"])


def _group_of(key: bytes) -> str:
    """The group in the key of a record of a group: behind its type and its length."""
    length = int.from_bytes(key[2:4], "big")
    return key[4 : 4 + length].decode("utf-8", "replace")


def _test_places(rule: int, group_id: str, rows: Sequence[Mapping[str, Any]], count: int, proofs: Proofs) -> None:
    for row in rows:
        difference = misplaced(group_id, row["partition"], count)
        if difference is not None:
            proofs.add(rule, Place(group_id), difference, _at(row), row["timestamp_ms"])


def _at(row: Mapping[str, Any]) -> LogRecord:
    return LogRecord(OFFSETS_TOPIC, row["partition"], row["log_offset"])
