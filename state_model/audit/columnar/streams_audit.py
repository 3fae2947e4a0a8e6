"""The rules on streams groups, record by record on rows of `__consumer_offsets`: group records are few."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from state_model.audit.columnar.proofs import LogRecord, Place, Proofs
from state_model.audit.columnar.topic_metadata import TopicMetadata
from state_model.audit.group_steps import GroupDifference
from state_model.audit.rule import Difference, Field
from state_model.audit.streams.bounds import BoundsOf, no_bounds
from state_model.audit.streams.history import History, StreamsRecord
from state_model.audit.streams.order import misplaced
from state_model.audit.streams.shape import Check
from state_model.audit.streams.table import CHECKS
from state_model.audit.streams.topics import CHECKS as OF_TOPICS
from state_model.audit.streams.topics import TopicCheck, TopicLife, TopicLives
from state_model.streams.records import STREAMS_TYPES
from state_model.topics import OFFSETS_TOPIC

MISPLACED, TRANSACTIONAL = 1360, 1361
NEVER: Final = 1 << 62
"""The log offset of what never comes."""
GROUP_RECORD_COLUMNS: Final = (
    "group_id",
    "member_id",
    "record_type",
    "is_tombstone",
    "value_json",
    "partition",
    "log_offset",
    "timestamp_ms",
)
"""The columns of `__consumer_offsets` rows that rules on groups read."""


def audit_streams_groups(
    records: pa.Table,
    unreadable_from: Mapping[str, int],
    complete_from: Mapping[int, int],
    count: int | None,
    topics: TopicLives | None,
    proofs: Proofs,
    bounds_of: BoundsOf | None = None,
) -> None:
    """Tests the rules on streams groups on GROUP_RECORD rows in log order.

    Args:
        unreadable_from: by group, the log offset of its first record that can't be decoded.
        complete_from: by partition, the log offset from which on no record is missing; without it, some may be.
        count: number of partitions of __consumer_offsets; None: unknown.
        topics: those of the metadata log; None: there is none.
        bounds_of: configuration by group; None: unknown.
    """
    kinds = pa.array(STREAMS_TYPES, records.schema.field("record_type").type)
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in (
        records.filter(pc.is_in(records.column("record_type"), value_set=kinds))
        .select(GROUP_RECORD_COLUMNS)
        .to_pylist()
    ):
        groups[row["group_id"]].append(row)
    checks = {**CHECKS, **({} if topics is None else _with_topics(topics))}
    for group_id, rows in groups.items():
        partition = rows[0]["partition"]
        end = unreadable_from.get(group_id, NEVER)
        readable_rows = [row for row in rows if row["partition"] == partition and row["log_offset"] < end]
        bounds = no_bounds if bounds_of is None else bounds_of(group_id)
        _audit(group_id, readable_rows, History(complete_from.get(partition, NEVER), bounds), checks, proofs)
        if count is not None:
            _test_places(group_id, rows, count, proofs)


def topic_lives(metadata: TopicMetadata) -> TopicLives:
    """The topics of a metadata log by name."""
    partitions: dict[str, list[int]] = defaultdict(list)
    for (topic_id, _), epochs in metadata.epochs.items():
        partitions[topic_id].append(min(begin_ms for begin_ms, _ in epochs))
    by_name = {
        name: tuple(TopicLife(metadata.topics[topic_id], tuple(partitions[topic_id])) for topic_id in topic_ids)
        for name, topic_ids in metadata.topic_ids.items()
    }
    return TopicLives(metadata.from_ms, metadata.until_ms, by_name)


def _with_topics(topics: TopicLives) -> dict[int, Check]:
    return {rule: partial(_check_topics, check, topics) for rule, check in OF_TOPICS.items()}


def _check_topics(
    check: TopicCheck, topics: TopicLives, history: History, record: StreamsRecord
) -> GroupDifference | None:
    return check(history, record, topics)


def _audit(
    group_id: str,
    rows: Sequence[Mapping[str, Any]],
    history: History,
    checks: Mapping[int, Check],
    proofs: Proofs,
) -> None:
    for row in rows:
        if row["value_json"] is None and not row["is_tombstone"]:
            return  # a later version's value: what follows can't be compared with it
        value = None if row["is_tombstone"] else json.loads(row["value_json"])
        record = StreamsRecord(row["record_type"], row["member_id"], value, row["log_offset"], row["timestamp_ms"])
        for rule, check in checks.items():
            violation = check(history, record)
            if violation is not None:
                earlier = LogRecord(OFFSETS_TOPIC, row["partition"], violation.earlier)
                proofs.add(rule, Place(group_id), violation.difference, _at(row), row["timestamp_ms"], [earlier])
        history.apply(record)


def transactional_streams_records(rows: pa.Table, proofs: Proofs) -> None:
    """Tests that no record of a streams group among LOG_RECORD rows belongs to a producer."""
    of_producers = rows.filter(pc.and_(pc.greater(rows.column("producer_id"), -1), pc.is_valid(rows.column("key"))))
    for row in of_producers.select(["partition", "offset", "timestamp_ms", "producer_id", "key"]).to_pylist():
        if int.from_bytes(row["key"][:2], "big") not in STREAMS_TYPES:
            continue
        record = LogRecord(OFFSETS_TOPIC, row["partition"], row["offset"])
        difference = Difference(Field.PRODUCER_ID, -1, row["producer_id"])
        proofs.add(TRANSACTIONAL, Place(_group_of(row["key"])), difference, record, row["timestamp_ms"])


def _group_of(key: bytes) -> str:
    """The group in the key of a record of a streams group: behind its type and its length."""
    length = int.from_bytes(key[2:4], "big")
    return key[4 : 4 + length].decode("utf-8", "replace")


def _test_places(group_id: str, rows: Sequence[Mapping[str, Any]], count: int, proofs: Proofs) -> None:
    for row in rows:
        difference = misplaced(group_id, row["partition"], count)
        if difference is not None:
            proofs.add(MISPLACED, Place(group_id), difference, _at(row), row["timestamp_ms"])


def _at(row: Mapping[str, Any]) -> LogRecord:
    return LogRecord(OFFSETS_TOPIC, row["partition"], row["log_offset"])
