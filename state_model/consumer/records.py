"""Records of consumer groups from values and back: types 3 to 8 and 16.

`value_of` and `record_of` are inverse to each other for what Kafka writes, but for the order of lists: Kafka writes
topics and partitions in the order of its hash tables, `record_of` in ascending order, as Kafka does with topic names.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from state_model.consumer.group_spec import by_topic
from state_model.consumer.group_values import GroupMetadata, MemberMetadata, PartitionMetadata, ResolvedExpression
from state_model.consumer.reconciliation import MemberAssignment, Partition, Partitions
from state_model.group_forms import TARGET_FORM, Form, RecordForms
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


FORMS: Final[RecordForms[RecordValue]] = RecordForms(
    {
        METADATA: Form(
            lambda tree: GroupMetadata(tree["epoch"], tree["metadata_hash"]), lambda value: dict(value._asdict())
        ),
        PARTITION_METADATA: Form(
            lambda tree: PartitionMetadata(tree["topics"]), lambda value: {"topics": value.topics}
        ),
        MEMBER: Form(_member, _member_tree),
        TARGET: TARGET_FORM,
        MEMBER_TARGET: Form(_member_target, _member_target_tree),
        ASSIGNMENT: Form(_assignment, _assignment_tree),
        REGULAR_EXPRESSION: Form(
            lambda tree: ResolvedExpression(frozenset(tree["topics"]), tree["version"], tree["timestamp"]),
            _expression_tree,
        ),
    }
)
value_of, record_of = FORMS.value_of, FORMS.record_of
