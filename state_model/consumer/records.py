"""Records of consumer groups from values and back: types 3 to 8 and 16.

`value_of` and `record_of` are inverse to each other for what Kafka writes, but for the order of lists: Kafka writes
topics and partitions in the order of its hash tables, `record_of` in ascending order, as Kafka does with topic names.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias, cast

from state_model.consumer.group_spec import by_topic
from state_model.consumer.group_values import GroupMetadata, MemberMetadata, PartitionMetadata, ResolvedExpression
from state_model.consumer.reconciliation import MemberAssignment, Partition, Partitions
from state_model.group_records import GroupRecord
from state_model.group_schemas import RECORD_TYPES
from state_model.group_targets import TargetMetadata
from state_model.schema import Tree

METADATA: Final = 3
PARTITION_METADATA: Final = 4
MEMBER: Final = 5
TARGET: Final = 6
MEMBER_TARGET: Final = 7
ASSIGNMENT: Final = 8
REGULAR_EXPRESSION: Final = 16
CONSUMER_TYPES: Final = (METADATA, PARTITION_METADATA, MEMBER, TARGET, MEMBER_TARGET, ASSIGNMENT, REGULAR_EXPRESSION)

RecordValue: TypeAlias = (
    GroupMetadata
    | PartitionMetadata
    | MemberMetadata
    | TargetMetadata
    | Partitions
    | MemberAssignment
    | ResolvedExpression
)
_Tree: TypeAlias = Mapping[str, Any]


def value_of(record: GroupRecord) -> RecordValue | None:
    """The value of a record of a consumer type; None for a tombstone and for an unknown value version."""
    return None if record.value is None else _CONVERTERS[record.record_type].read(cast(_Tree, record.value))


def name_of(record: GroupRecord) -> str:
    """The member id of types 5, 7 and 8, the regular expression of type 16; empty for the types with one a group."""
    return str(record.key.get("member_id", record.key.get("regular_expression", "")))


def record_of(record_type: int, group_id: str, value: RecordValue | None, name: str | None = None) -> GroupRecord:
    """The record of a value; None: its tombstone. `name`: as `name_of` gives it."""
    key: dict[str, Any] = {"group_id": group_id}
    if name is not None:
        key["regular_expression" if record_type == REGULAR_EXPRESSION else "member_id"] = name
    type_name = RECORD_TYPES[record_type].name
    if value is None:
        return GroupRecord(record_type=record_type, name=type_name, key=key)
    tree = _CONVERTERS[record_type].write(value)
    return GroupRecord(record_type=record_type, name=type_name, key=key, version=0, value=tree)


def _member(tree: _Tree) -> MemberMetadata:
    return MemberMetadata(
        tree["instance_id"],
        tree["rack_id"],
        tree["client_id"],
        tree["client_host"],
        frozenset(tree["subscribed_topic_names"]),
        tree["subscribed_topic_regex"],
        tree["rebalance_timeout_ms"],
        tree["server_assignor"],
        tree["classic_member_metadata"],
    )


def _member_tree(value: MemberMetadata) -> Tree:
    return value._asdict() | {"subscribed_topic_names": tuple(sorted(value.subscribed_topic_names))}


def _assignment(tree: _Tree) -> MemberAssignment:
    epoch = tree["member_epoch"]
    return MemberAssignment(
        tree["state"],
        epoch,
        tree["previous_member_epoch"],
        _epochs(tree["assigned_partitions"], epoch),
        _epochs(tree["partitions_pending_revocation"], epoch),
    )


def _assignment_tree(value: MemberAssignment) -> Tree:
    return {
        "member_epoch": value.member_epoch,
        "previous_member_epoch": value.previous_member_epoch,
        "state": int(value.state),
        "assigned_partitions": _epoch_trees(value.assigned),
        "partitions_pending_revocation": _epoch_trees(value.pending),
    }


def _epochs(trees: tuple[_Tree, ...], member_epoch: int) -> dict[Partition, int]:
    """The assignment epoch of each partition.

    Where there is not one a partition: the member epoch, and 0 for a static member that left, whose epoch is -2
    (Utils.assignmentFromTopicPartitions).
    """
    epochs: dict[Partition, int] = {}
    for tree in trees:
        partitions = [Partition(tree["topic_id"], number) for number in tree["partitions"]]
        tree_epochs = tree["assignment_epochs"]
        if tree_epochs is None or len(tree_epochs) != len(partitions):
            tree_epochs = [max(member_epoch, 0)] * len(partitions)
        epochs.update(zip(partitions, tree_epochs, strict=True))
    return epochs


def _epoch_trees(epochs: Mapping[Partition, int]) -> tuple[Tree, ...]:
    return tuple(
        {
            "topic_id": topic_id,
            "partitions": numbers,
            "assignment_epochs": tuple(epochs[Partition(topic_id, number)] for number in numbers),
        }
        for topic_id, numbers in by_topic(epochs).items()
    )


def _member_target(tree: _Tree) -> Partitions:
    return frozenset(
        Partition(topic["topic_id"], number) for topic in tree["topic_partitions"] for number in topic["partitions"]
    )


def _member_target_tree(value: Partitions) -> Tree:
    assignment = by_topic(value)
    topics: list[Tree] = [{"topic_id": topic_id, "partitions": assignment[topic_id]} for topic_id in assignment]
    return {"topic_partitions": tuple(topics)}


def _expression_tree(value: ResolvedExpression) -> Tree:
    return {"topics": tuple(sorted(value.topics)), "version": value.version, "timestamp": value.timestamp_ms}


class _Converter(NamedTuple):
    read: Callable[[_Tree], RecordValue]
    write: Callable[[Any], Tree]


_CONVERTERS: Final[Mapping[int, _Converter]] = {
    METADATA: _Converter(
        lambda tree: GroupMetadata(tree["epoch"], tree["metadata_hash"]), lambda value: dict(value._asdict())
    ),
    PARTITION_METADATA: _Converter(
        lambda tree: PartitionMetadata(tree["topics"]), lambda value: {"topics": value.topics}
    ),
    MEMBER: _Converter(_member, _member_tree),
    TARGET: _Converter(
        lambda tree: TargetMetadata(tree["assignment_epoch"], tree["assignment_timestamp"]),
        lambda value: {
            "assignment_epoch": value.assignment_epoch,
            "assignment_timestamp": value.assignment_timestamp_ms,
        },
    ),
    MEMBER_TARGET: _Converter(_member_target, _member_target_tree),
    ASSIGNMENT: _Converter(_assignment, _assignment_tree),
    REGULAR_EXPRESSION: _Converter(
        lambda tree: ResolvedExpression(frozenset(tree["topics"]), tree["version"], tree["timestamp"]),
        _expression_tree,
    ),
}
