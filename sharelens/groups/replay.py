"""Share groups replayed from the records of the group coordinator (types 10 to 15), record by record.

Consumer and streams groups are replayed by `sharelens.groups.model_replay`, from the changes that `changes` gives here.

The rules are those of Kafka's GroupMetadataManager.replay (consumer-offsets-records, section 5). Tombstones of unknown
groups and members change nothing, because compaction may have removed what they end.
"""

import json
from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.group_decoding import UNKNOWN_TOPIC
from sharelens.evidence.schemas import GROUP_RECORD_ORDER
from sharelens.groups.schemas import DEAD, DELETING, EMPTY, INITIALIZED, INITIALIZING, STABLE
from sharelens.groups.whole_logs import IS_LOG_WHOLE

MEMBER, GROUP, TARGET, MEMBER_TARGET, ASSIGNMENT, STATE_PARTITIONS = range(10, 16)
SHARE_TYPES = range(MEMBER, STATE_PARTITIONS + 1)
SLICE_ROWS = 1 << 12
"""Records that are Python objects at a time."""
PART_BYTES = 32 << 20
"""JSON of the groups that are replayed before their rows are done."""
Partitions = tuple[tuple[str, tuple[int, ...]], ...]
"""(topic id, partitions), both ascending: Kafka writes them in any order."""
READ = (
    "group_id",
    "member_id",
    "record_type",
    "is_tombstone",
    "value_json",
    "partition",
    "log_offset",
    "timestamp_ms",
    "uncommitted",
)


def in_log_order(records: pa.Table) -> pa.Table:
    """GROUP_RECORD rows in (partition, log offset) order; the table itself if they come in it."""
    partitions, offsets = (records.column(name).to_numpy() for name, _ in GROUP_RECORD_ORDER)
    is_next = (partitions[1:] == partitions[:-1]) & (offsets[1:] >= offsets[:-1])
    return records if (is_next | (partitions[1:] > partitions[:-1])).all() else records.sort_by(GROUP_RECORD_ORDER)


class GroupChange(NamedTuple):
    """A record of a group.

    Attributes:
        member_id: the member id of the key, or its regular expression (type 16).
        value_json: None for a tombstone, and for a value that could not be decoded.
    """

    group_id: str
    member_id: str | None
    record_type: int
    is_tombstone: bool
    value_json: str | None
    log_partition: int
    log_offset: int
    timestamp_ms: int
    log_time_ms: int
    uncommitted: bool

    @property
    def key(self) -> tuple[int, str | None]:
        """The key of the record within its group."""
        return self.record_type, self.member_id

    @property
    def value(self) -> Mapping[str, Any] | None:
        """The value, read from its JSON each time; None as `value_json`."""
        return None if self.value_json is None else cast(Mapping[str, Any], json.loads(self.value_json))

    @property
    def is_undecoded(self) -> bool:
        """Whether the record has a value of an unknown version."""
        return self.value_json is None and not self.is_tombstone


def changes(records: pa.Table, types: Collection[int] = SHARE_TYPES) -> Iterator[GroupChange]:
    """The records of these types among GROUP_RECORD rows, in the order of the rows."""
    return each_change(with_log_times(records, types))


def with_log_times(records: pa.Table, types: Collection[int]) -> pa.Table:
    """The columns READ of the records of these types, IS_LOG_WHOLE where it is there, and their `log_time_ms`.

    `member_id` is the regular expression where the key has one: what tells keys of a type apart stands in one column.
    Log time is the running maximum of the timestamps of a group's records in a partition, so that it never goes back.
    """
    names = [*READ, IS_LOG_WHOLE.name] if IS_LOG_WHOLE.name in records.column_names else list(READ)
    chosen = records.filter(is_of_types(records, types))
    key_names = pc.coalesce(chosen.column("member_id"), chosen.column("regular_expression"))
    rows = chosen.select(names).set_column(names.index("member_id"), "member_id", key_names)
    groups = rows.column("group_id").combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    places = groups << 32 | rows.column("partition").to_numpy()
    order = np.argsort(places, kind="stable")
    timestamps_ms = rows.column("timestamp_ms").to_numpy()
    log_times_ms = np.empty(len(order), np.int64)
    begins = np.flatnonzero(np.diff(places[order], prepend=-1))
    for of_place in np.split(order, begins[1:]):
        log_times_ms[of_place] = np.maximum.accumulate(timestamps_ms[of_place])
    return rows.append_column("log_time_ms", pa.array(log_times_ms))


def each_change(rows: pa.Table) -> Iterator[GroupChange]:
    """The rows of `with_log_times`, one by one."""
    for batch in rows.select([*READ[:-1], "log_time_ms", READ[-1]]).to_batches(SLICE_ROWS):
        yield from map(GroupChange, *(column.to_pylist() for column in batch.columns))


def is_of_share_group(records: pa.Table) -> pa.ChunkedArray:
    """Whether each GROUP_RECORD row is of one of the types 10 to 15."""
    return is_of_types(records, SHARE_TYPES)


def is_of_types(records: pa.Table, types: Collection[int]) -> pa.ChunkedArray:
    """Whether each GROUP_RECORD row is of one of the types."""
    numbers = pa.array(types, records.schema.field("record_type").type)
    return pc.is_in(records.column("record_type"), value_set=numbers)


def up_to(records: pa.Table, as_of_ms: int | None) -> pa.Table:
    """The GROUP_RECORD rows with a timestamp up to a moment; None: all."""
    return records if as_of_ms is None else records.filter(pc.field("timestamp_ms") <= as_of_ms)


def is_undecoded(records: pa.Table) -> pa.ChunkedArray:
    """Whether each GROUP_RECORD row has a value of an unknown version."""
    return pc.and_(pc.is_null(records.column("value_json")), pc.invert(records.column("is_tombstone")))


def decoded(records: pa.Table) -> pa.Table:
    """The GROUP_RECORD rows without those whose value has an unknown version."""
    return records.filter(pc.invert(is_undecoded(records)))


def in_parts(rows: pa.Table) -> Iterator[pa.Table]:
    """The rows of neighbouring groups by name, about PART_BYTES of JSON together; by group, each group in its order.

    A group is in one part, so that the parts can be computed apart; rows that are Python objects for a while do not
    grow with the log.
    """
    names = pc.unique(rows.column("group_id")).sort()
    groups = pc.index_in(rows.column("group_id"), names).to_numpy()
    sizes = pc.fill_null(pc.binary_length(rows.column("value_json")), 0).to_numpy()
    parts = (np.cumsum(np.bincount(groups, weights=sizes, minlength=len(names))) // PART_BYTES)[groups]
    for number in np.unique(parts):
        is_of_part = parts == number
        order = np.argsort(groups[is_of_part], kind="stable")
        part = rows.filter(pa.array(is_of_part))
        yield part if (order[1:] > order[:-1]).all() else part.take(pa.array(order))


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member; subscription and epochs are None without a record of them."""

    client_id: str | None = None
    client_host: str | None = None
    rack_id: str | None = None
    subscribed_topics: tuple[str, ...] | None = None
    member_epoch: int | None = None
    previous_member_epoch: int | None = None
    assigned: Partitions = ()


class InitializationKey(NamedTuple):
    """A share partition in a status; `partition` -1: the whole topic."""

    topic_id: str
    partition: int
    status: str


@dataclass(slots=True)
class ShareGroup:
    """A share group after the records applied so far."""

    is_deleted: bool = False
    group_epoch: int | None = None
    metadata_hash: int | None = None
    assignment_epoch: int | None = None
    assignment_timestamp_ms: int | None = None
    members: dict[str, Member] = field(default_factory=dict)
    targets: dict[str, Partitions] = field(default_factory=dict)
    initialization: dict[InitializationKey, str | None] | None = None
    """Topic names by share partition and status; None without a record of it."""

    @property
    def state(self) -> str:
        """Kafka's state of the group (ShareGroup.ShareGroupState)."""
        return DEAD if self.is_deleted else STABLE if self.members else EMPTY

    def apply(self, change: GroupChange) -> None:
        """Applies the next record of the log; one with an unknown value version changes nothing."""
        if change.is_undecoded:
            return
        value = change.value
        if value is not None:
            self.is_deleted = False
        match change.record_type:
            case kind if kind == MEMBER:
                self._subscribe(str(change.member_id), value)
            case kind if kind == GROUP:
                self._set_epoch(value)
            case kind if kind == TARGET:
                self._set_assignment_epoch(value or {})
            case kind if kind == MEMBER_TARGET:
                self._set_target(str(change.member_id), value)
            case kind if kind == ASSIGNMENT:
                self._assign(str(change.member_id), value)
            case kind if kind == STATE_PARTITIONS:
                self.initialization = None if value is None else initialization_of(value)

    def _subscribe(self, member_id: str, value: Mapping[str, Any] | None) -> None:
        if value is None:
            self.members.pop(member_id, None)
            return
        self.members[member_id] = replace(
            self.members.get(member_id, Member()),
            **metadata_values(value),
        )

    def _set_epoch(self, value: Mapping[str, Any] | None) -> None:
        if value is None:
            self.members, self.targets, self.initialization = {}, {}, None
            self._set_assignment_epoch({})
        self.is_deleted = value is None
        self.group_epoch = None if value is None else value.get("epoch")
        self.metadata_hash = None if value is None else value.get("metadataHash")

    def _set_assignment_epoch(self, value: Mapping[str, Any]) -> None:
        self.assignment_epoch = value.get("assignmentEpoch")
        self.assignment_timestamp_ms = value.get("assignmentTimestamp") or None

    def _set_target(self, member_id: str, value: Mapping[str, Any] | None) -> None:
        if value is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = partitions_of(value.get("topicPartitions", ()))

    def _assign(self, member_id: str, value: Mapping[str, Any] | None) -> None:
        if value is None and member_id not in self.members:
            return
        self.members[member_id] = replace(
            self.members.get(member_id, Member()),
            member_epoch=-1 if value is None else value.get("memberEpoch"),
            previous_member_epoch=-1 if value is None else value.get("previousMemberEpoch"),
            assigned=() if value is None else partitions_of(value.get("assignedPartitions", ())),
        )


def metadata_values(value: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of `Member` from a ShareGroupMemberMetadata value; topics ascending."""
    return {
        "client_id": value.get("clientId"),
        "client_host": value.get("clientHost"),
        "rack_id": value.get("rackId"),
        "subscribed_topics": tuple(sorted(value.get("subscribedTopicNames", ()))),
    }


def partitions_of(topics: Any) -> Partitions:
    """The partitions by topic, each once; topics without partitions are left out."""
    by_topic: dict[str, set[int]] = {}
    for topic in topics:
        by_topic.setdefault(topic["topicId"], set()).update(topic["partitions"])
    return tuple((topic_id, tuple(sorted(by_topic[topic_id]))) for topic_id in sorted(by_topic) if by_topic[topic_id])


def initialization_of(value: Mapping[str, Any]) -> dict[InitializationKey, str | None]:
    """Topic names by share partition and status, from a ShareGroupStatePartitionMetadata value."""
    names: dict[InitializationKey, str | None] = {}
    for status, field_name in ((INITIALIZING, "initializingTopics"), (INITIALIZED, "initializedTopics")):
        for topic in value.get(field_name, ()):
            for partition in topic["partitions"]:
                names[InitializationKey(topic["topicId"], partition, status)] = _topic_name(topic)
    for topic in value.get("deletingTopics", ()):
        names[InitializationKey(topic["topicId"], -1, DELETING)] = _topic_name(topic)
    return names


def _topic_name(topic: Mapping[str, Any]) -> str | None:
    name = topic.get("topicName")
    return None if name == UNKNOWN_TOPIC else name


class Keyed(Protocol):
    """A record with its key within its group."""

    @property
    def key(self) -> Hashable: ...

    @property
    def log_offset(self) -> int: ...


class CompactionBound:
    """The log offset from which on compaction has removed no record of a group.

    In a whole log it removed none (`whole_logs`). Else, a round of the log cleaner removes every record that a later
    one below the end of the round replaces. So a replaced record that is still there proves that no round went beyond
    its replacement. (A copy taken while the cleaner exchanges segments can have cleaned segments before others: such a
    copy proves less.)
    """

    def __init__(self, *, is_log_whole: bool = False) -> None:
        self._newest: set[Hashable] = set()
        self._is_log_whole = is_log_whole
        self.log_offset: int | None = None
        """Offset of the first replacement; None: no record is replaced, so any may be missing."""

    def take(self, change: Keyed) -> None:
        """Looks at the next record of the group."""
        if self.log_offset is None and change.key in self._newest:
            self.log_offset = change.log_offset
        self._newest.add(change.key)

    def covers(self, log_offset: int) -> bool:
        """Whether the state after the record at an offset is whole."""
        return self._is_log_whole or (self.log_offset is not None and log_offset >= self.log_offset)
