"""The audit of `__consumer_offsets`: rules on single records of share groups, and each group's history for others."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from state_model.audit.columnar.model_group_audit import GROUP_RECORD_COLUMNS, audit_model_groups, topic_lives
from state_model.audit.columnar.places import count_of
from state_model.audit.columnar.proofs import LogRecord, Place, Proofs
from state_model.audit.columnar.topic_metadata import TopicMetadata
from state_model.audit.current_assignment import named_partitions
from state_model.audit.group_coordinator import (
    CHECKS,
    group_in_many_partitions,
    misplaced_group,
    preview_record_type,
)
from state_model.audit.group_steps import (
    GROUP,
    SHARE_TYPES,
    STATE_PARTITIONS,
    GroupRecord,
    GroupState,
    TopicPartition,
    partitions_of,
)
from state_model.audit.model_groups.bounds import BoundsOf
from state_model.audit.periods import BEGINNING, END, Period
from state_model.audit.rule import DECODE_REASONS, Difference, Field
from state_model.java import magnitude, string_hash
from state_model.topics import OFFSETS_TOPIC

NOT_IN_TOPIC, MISPLACED, IN_MANY_PARTITIONS, PREVIEW, UNDECODABLE = 724, 750, 751, 760, 761
FIRST_EPOCH: Final = 2
"""The epoch of a share group with its first member since Kafka 4.3; before it was 1."""
EpochPeriod = tuple[int, Period]
"""A group epoch and its period."""


@dataclass(slots=True)
class GroupTimes:
    """A share group over time by its records: initialized, listed and deleted partitions, and epochs, with periods.

    `listed_from_ms`: from when on its lists of partitions are known; BEGINNING without a list: then none is hidden.
    `epochs`: the group epoch over time; a group without one has at most epoch 1. `initialized_with`: of initialized
    partitions the group epoch at which the initialization began, from its end on. `is_readable`: false where a record
    of it can't be decoded or lies elsewhere, so that nothing follows from what is missing.
    """

    initialized: dict[TopicPartition, list[Period]] = field(default_factory=lambda: defaultdict(list))
    listed: dict[TopicPartition, list[Period]] = field(default_factory=lambda: defaultdict(list))
    deleting: dict[str, list[Period]] = field(default_factory=lambda: defaultdict(list))
    deleted: list[Period] = field(default_factory=list)
    epochs: list[EpochPeriod] = field(default_factory=list)
    initialized_with: dict[TopicPartition, list[EpochPeriod]] = field(default_factory=lambda: defaultdict(list))
    listed_from_ms: int = BEGINNING
    log_partition: int = -1
    is_readable: bool = True

    @property
    def known_epochs(self) -> list[EpochPeriod]:
        """The group epochs; of a group that never had any, the largest one with which partitions are initialized."""
        return self.epochs if self.epochs or self.deleted else [(1, Period(BEGINNING, END))]


class Groups(NamedTuple):
    """The groups of __consumer_offsets, its number of partitions (None: unknown), and until when each is known.

    `first_ms`: the time of the oldest record.
    """

    times: Mapping[str, GroupTimes]
    partition_count: int | None
    partitions: frozenset[int]
    until_ms: Mapping[int, int]
    first_ms: int = BEGINNING


def audit_groups(
    records: pa.Table,
    odd_records: pa.Table,
    partitions: frozenset[int],
    proofs: Proofs,
    *,
    count: int | None = None,
    complete_from: Mapping[int, int] | None = None,
    metadata: TopicMetadata | None = None,
    bounds_of: BoundsOf | None = None,
) -> Groups:
    """Tests rules 70 to 76 and those on streams and consumer groups on GROUP_RECORD and ODD_GROUP_RECORD rows.

    Args:
        partitions: the partitions of __consumer_offsets that the evidence has.
        count: their number in the cluster; None: it is inferred from the places of groups.
        complete_from: by partition, the log offset from which on no record is missing; without it, some may be.
        metadata: the topics of the cluster; None: unknown.
        bounds_of: configuration of streams and consumer groups by group; None: unknown.
    """
    if "uncommitted" in records.column_names:
        records = records.filter(pc.invert(records.column("uncommitted")))
    records = records.sort_by([("partition", "ascending"), ("log_offset", "ascending")])
    count = _count_of_groups(records) if count is None else count
    times = {}
    for group_id, rows in _by_group(records).items():
        times[group_id] = _audit_group(group_id, rows, proofs, metadata)
        if count is not None:
            _test_places(group_id, rows, count, proofs)
    _test_partitions(records, proofs)
    _test_odd_records(odd_records, proofs)
    topics = None if metadata is None else topic_lives(metadata)
    audit_model_groups(records, _unreadable_from(odd_records), complete_from or {}, count, topics, proofs, bounds_of)
    for group_id in odd_records.column("group_id").drop_null().unique().to_pylist():
        times.setdefault(group_id, GroupTimes()).is_readable = False
    newest_ms = dict.fromkeys(partitions, BEGINNING)
    newest = records.group_by("partition").aggregate([("timestamp_ms", "max")])
    newest_ms |= zip(newest.column("partition").to_pylist(), newest.column("timestamp_ms_max").to_pylist(), strict=True)
    oldest = pc.min(records.column("timestamp_ms")).as_py()
    return Groups(times, count, partitions, newest_ms, BEGINNING if oldest is None else oldest)


def _by_group(records: pa.Table) -> dict[str, list[dict[str, Any]]]:
    share_types = pa.array(SHARE_TYPES, records.schema.field("record_type").type)
    of_groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in (
        records.filter(pc.is_in(records.column("record_type"), value_set=share_types))
        .select(GROUP_RECORD_COLUMNS)
        .to_pylist()
    ):
        of_groups[row["group_id"]].append(row)
    return of_groups


def _unreadable_from(odd_records: pa.Table) -> dict[str, int]:
    first = odd_records.group_by("group_id").aggregate([("log_offset", "min")])
    return dict(zip(first.column("group_id").to_pylist(), first.column("log_offset_min").to_pylist(), strict=True))


def _count_of_groups(records: pa.Table) -> int | None:
    """The number of partitions of __consumer_offsets that puts the groups where they lie; None: undecided."""
    places = records.select(["group_id", "partition"]).group_by(["group_id", "partition"]).aggregate([])
    hashes = [magnitude(string_hash(group_id)) for group_id in places.column("group_id").to_pylist()]
    return count_of(np.array(hashes, np.int64), places.column("partition").to_numpy().astype(np.int64))


def _audit_group(
    group_id: str, rows: Sequence[Mapping[str, Any]], proofs: Proofs, metadata: TopicMetadata | None
) -> GroupTimes:
    state, times = GroupState(), _Times()
    log_partition = rows[0]["partition"]
    for row in rows:
        if row["partition"] != log_partition:
            times.group_times.is_readable = False  # rule 75 names it; its records have no order with the others
            break
        record = _record(row)
        for rule, check in CHECKS.items():
            violation = check(state, record)
            if violation is None:
                continue
            topic_id, partition = violation.topic_partition or (None, None)
            proofs.add(
                rule,
                Place(group_id, topic_id, partition),
                violation.difference,
                _at(row),
                row["timestamp_ms"],
                [LogRecord(OFFSETS_TOPIC, log_partition, violation.earlier)],
            )
        if metadata is not None:
            _test_named_partitions(group_id, row, record, metadata, proofs)
        state.apply(record)
        times.take(record, row["timestamp_ms"])
    times.group_times.log_partition = log_partition
    return times.group_times


def _test_named_partitions(
    group_id: str, row: Mapping[str, Any], record: GroupRecord, metadata: TopicMetadata, proofs: Proofs
) -> None:
    time_ms = row["timestamp_ms"]
    unknown = [place for place in named_partitions(record) if metadata.lacks(place, time_ms)]
    if unknown:
        proofs.add(NOT_IN_TOPIC, Place(group_id, *min(unknown)), Difference(Field.KNOWN, 1, 0), _at(row), time_ms)


def _record(row: Mapping[str, Any]) -> GroupRecord:
    value = None if row["value_json"] is None else json.loads(row["value_json"])
    return GroupRecord(row["record_type"], row["member_id"], row["is_tombstone"], value, row["log_offset"])


def _at(row: Mapping[str, Any]) -> LogRecord:
    return LogRecord(OFFSETS_TOPIC, row["partition"], row["log_offset"])


class _Times:
    """Builds GroupTimes from a group's records; log time is the largest timestamp up to now."""

    def __init__(self) -> None:
        self.group_times = GroupTimes()
        self._now_ms = BEGINNING
        self._has_list = False
        self._open: dict[tuple[str, Any], tuple[list[Period], Period]] = {}
        self._initializing: dict[TopicPartition, int | None] = {}

    def take(self, record: GroupRecord, timestamp_ms: int) -> None:
        """The next record."""
        if record.value is None and not record.is_tombstone:
            self.group_times.is_readable = False
            return
        self._now_ms = max(self._now_ms, timestamp_ms)
        if not record.is_tombstone:
            self._end("deleted", None)
        if record.record_type == STATE_PARTITIONS:
            self._list(record)
        elif record.record_type == GROUP:
            self._end_epoch(self.group_times.epochs)
            if record.is_tombstone:
                self._list(record)
                self._begin("deleted", None, self.group_times.deleted, record.log_offset)
            else:
                epoch = record.number("epoch")
                if epoch is not None:
                    self.group_times.epochs.append((epoch, Period(self._now_ms, END, record.log_offset)))

    def _list(self, record: GroupRecord) -> None:
        value = record.value or {}
        initialized = partitions_of(value.get("initializedTopics"))
        initializing = partitions_of(value.get("initializingTopics"))
        self._initialize(initialized, initializing, record.log_offset)
        if not self._has_list:
            self._has_list, self.group_times.listed_from_ms = True, self._now_ms
        listed = initialized | initializing
        deleting = frozenset(topic["topicId"] for topic in value.get("deletingTopics") or ())
        self._replace("initialized", self.group_times.initialized, initialized, record.log_offset)
        self._replace("listed", self.group_times.listed, listed, record.log_offset)
        self._replace("deleting", self.group_times.deleting, deleting, record.log_offset)

    def _initialize(
        self, initialized: frozenset[TopicPartition], initializing: frozenset[TopicPartition], log_offset: int
    ) -> None:
        """Initializations that begin and that end with a list of partitions.

        A list before shows that one begins. Without it, compaction may have taken the beginning, but not of a group
        that has just got its first member.
        """
        epochs = self.group_times.epochs
        epoch = epochs[-1][0] if epochs and epochs[-1][1].to_ms == END else None
        is_beginning = self._has_list or (epoch is not None and epoch <= FIRST_EPOCH)
        for place, periods in self.group_times.initialized_with.items():
            if place not in initialized:
                self._end_epoch(periods)
        for place in self._initializing.keys() - initializing:
            begun_with = self._initializing.pop(place)
            if place in initialized and begun_with is not None:
                periods = self.group_times.initialized_with[place]
                self._end_epoch(periods)
                periods.append((begun_with, Period(self._now_ms, END, log_offset)))
        for place in initializing - self._initializing.keys():
            self._initializing[place] = epoch if is_beginning else None

    def _end_epoch(self, periods: list[EpochPeriod]) -> None:
        """Ends the newest period, if it goes on."""
        if periods and periods[-1][1].to_ms == END:
            epoch, period = periods[-1]
            periods[-1] = (epoch, period._replace(to_ms=self._now_ms))

    def _replace(self, kind: str, periods: dict[Any, list[Period]], now: frozenset[Any], log_offset: int) -> None:
        for about in [about for of, about in self._open if of == kind and about not in now]:
            self._end(kind, about)
        for about in now:
            if (kind, about) not in self._open:
                self._begin(kind, about, periods[about], log_offset)

    def _begin(self, kind: str, about: Any, periods: list[Period], log_offset: int) -> None:
        if (kind, about) not in self._open:
            periods.append(Period(self._now_ms, END, log_offset))
            self._open[kind, about] = (periods, periods[-1])

    def _end(self, kind: str, about: Any) -> None:
        opened = self._open.pop((kind, about), None)
        if opened is not None:
            periods, period = opened
            periods[periods.index(period)] = period._replace(to_ms=self._now_ms)


def _test_places(group_id: str, rows: Sequence[Mapping[str, Any]], count: int, proofs: Proofs) -> None:
    for row in rows:
        difference = misplaced_group(group_id, row["partition"], count)
        if difference is not None:
            proofs.add(MISPLACED, Place(group_id), difference, _at(row), row["timestamp_ms"])


def _test_partitions(records: pa.Table, proofs: Proofs) -> None:
    """Tests that the records of each group, GROUP_RECORD rows by partition and log offset, lie in one partition."""
    first_records = (
        records.group_by(["group_id", "partition"], use_threads=False)
        .aggregate([("timestamp_ms", "first"), ("log_offset", "first")])
        .sort_by([("timestamp_ms_first", "ascending"), ("partition", "ascending")])
    )
    of_groups: dict[str, list[tuple[int, LogRecord]]] = defaultdict(list)
    for group_id, partition, timestamp_ms, log_offset in zip(
        *(
            first_records.column(name).to_pylist()
            for name in ("group_id", "partition", "timestamp_ms_first", "log_offset_first")
        ),
        strict=True,
    ):
        of_groups[group_id].append((timestamp_ms, LogRecord(OFFSETS_TOPIC, partition, log_offset)))
    for group_id, firsts in of_groups.items():
        difference = group_in_many_partitions(len(firsts))
        if difference is not None:
            timestamp_ms, log_record = firsts[1]
            proof = [first for _, first in firsts]
            proofs.add(IN_MANY_PARTITIONS, Place(group_id), difference, log_record, timestamp_ms, proof)


def _test_odd_records(odd_records: pa.Table, proofs: Proofs) -> None:
    for row in odd_records.sort_by([("partition", "ascending"), ("log_offset", "ascending")]).to_pylist():
        for rule, difference in _odd(row):
            proofs.add(rule, Place(row["group_id"]), difference, _at(row), row["timestamp_ms"])


def _odd(row: Mapping[str, Any]) -> Iterator[tuple[int, Difference]]:
    preview = preview_record_type(row["record_type"])
    if preview is not None:
        yield PREVIEW, preview
    elif row["reason"] in DECODE_REASONS:
        yield UNDECODABLE, Difference(Field.DECODING, 0, DECODE_REASONS.index(row["reason"]))
