"""Records of streams groups from values and back: types 17 and 19 to 23 (consumer-offsets-records §4).

`value_of` and `record_of` are inverse to each other for what Kafka writes. Task lists become sets, so their order and
repeated tasks are gone; `record_of` writes them sorted, as Kafka does. Tags that no schema names are gone, too.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

from state_model.group_forms import TARGET_FORM, Form, RecordForms
from state_model.group_targets import TargetMetadata
from state_model.streams.values import (
    NO_TASKS,
    CopartitionGroup,
    Endpoint,
    GroupMetadata,
    MemberAssignment,
    MemberMetadata,
    Pairs,
    Subtopology,
    TaskId,
    Tasks,
    TasksByType,
    TopicInfo,
    Topology,
)

METADATA: Final = 17
MEMBER: Final = 19
TARGET: Final = 20
MEMBER_TARGET: Final = 21
ASSIGNMENT: Final = 22
TOPOLOGY: Final = 23
STREAMS_TYPES: Final = (METADATA, MEMBER, TARGET, MEMBER_TARGET, ASSIGNMENT, TOPOLOGY)

RecordValue: TypeAlias = GroupMetadata | MemberMetadata | TargetMetadata | TasksByType | MemberAssignment | Topology
_Tree: TypeAlias = Mapping[str, Any]
_Entry: TypeAlias = tuple[str, tuple[int, ...]]
"""A subtopology id and partitions."""
MAX_CACHED_TASK_LISTS: Final = 1024


def _metadata(tree: _Tree) -> GroupMetadata:
    configs = tree["last_assignment_configs"]
    return GroupMetadata(
        tree["epoch"],
        tree["metadata_hash"],
        tree["validated_topology_epoch"],
        None if configs is None else _pairs(configs),
        tree["stored_description_topology_epoch"],
        tree["failed_description_topology_epoch"],
    )


def _metadata_tree(value: GroupMetadata) -> _Tree:
    configs = value.last_assignment_configs
    return value._asdict() | {"last_assignment_configs": None if configs is None else _pair_trees(configs)}


def _member(tree: _Tree) -> MemberMetadata:
    endpoint = tree["user_endpoint"]
    return MemberMetadata(
        tree["instance_id"],
        tree["rack_id"],
        tree["client_id"],
        tree["client_host"],
        tree["rebalance_timeout_ms"],
        tree["topology_epoch"],
        tree["process_id"],
        None if endpoint is None else Endpoint(endpoint["host"], endpoint["port"]),
        _pairs(tree["client_tags"]),
    )


def _member_tree(value: MemberMetadata) -> _Tree:
    endpoint = value.user_endpoint
    return value._asdict() | {
        "user_endpoint": None if endpoint is None else endpoint._asdict(),
        "client_tags": _pair_trees(value.client_tags),
    }


def _member_target(tree: _Tree) -> TasksByType:
    return _tasks_by_type(tree, "")


def _member_target_tree(value: TasksByType) -> _Tree:
    return {
        "active_tasks": _task_trees(value.active),
        "standby_tasks": _task_trees(value.standby),
        "warmup_tasks": _task_trees(value.warmup),
    }


def _assignment(tree: _Tree) -> MemberAssignment:
    epoch = tree["member_epoch"]
    epochs = _epochs(tree["active_tasks"], epoch)
    pending_epochs = _epochs(tree["active_tasks_pending_revocation"], epoch)
    return MemberAssignment(
        tree["state"],
        epoch,
        tree["previous_member_epoch"],
        _tasks_by_type(tree, ""),
        epochs | pending_epochs if pending_epochs else epochs,
        _tasks_by_type(tree, "_pending_revocation"),
    )


def _assignment_tree(value: MemberAssignment) -> _Tree:
    tree: dict[str, Any] = {
        "member_epoch": value.member_epoch,
        "previous_member_epoch": value.previous_member_epoch,
        "state": int(value.state),
    }
    for suffix, tasks in (("", value.assigned), ("_pending_revocation", value.pending)):
        tree[f"active_tasks{suffix}"] = _task_trees(tasks.active, value.active_assignment_epochs, value.member_epoch)
        tree[f"standby_tasks{suffix}"] = _task_trees(tasks.standby)
        tree[f"warmup_tasks{suffix}"] = _task_trees(tasks.warmup)
    return tree


def _topology(tree: _Tree) -> Topology:
    return Topology(tree["epoch"], tuple(_subtopology(entry) for entry in tree["subtopologies"]))


def _topology_tree(value: Topology) -> _Tree:
    return {
        "epoch": value.epoch,
        "subtopologies": tuple(
            subtopology._asdict()
            | {
                "state_changelog_topics": _topic_trees(subtopology.state_changelog_topics),
                "repartition_source_topics": _topic_trees(subtopology.repartition_source_topics),
                "copartition_groups": tuple(group._asdict() for group in subtopology.copartition_groups),
            }
            for subtopology in value.subtopologies
        ),
    }


def _subtopology(tree: _Tree) -> Subtopology:
    return Subtopology(
        tree["subtopology_id"],
        tree["source_topics"],
        tree["source_topic_regex"],
        _topics(tree["state_changelog_topics"]),
        tree["repartition_sink_topics"],
        _topics(tree["repartition_source_topics"]),
        tuple(
            CopartitionGroup(group["source_topics"], group["source_topic_regex"], group["repartition_source_topics"])
            for group in tree["copartition_groups"]
        ),
    )


def _topics(trees: tuple[_Tree, ...]) -> tuple[TopicInfo, ...]:
    return tuple(
        TopicInfo(tree["name"], tree["partitions"], tree["replication_factor"], _pairs(tree["topic_configs"]))
        for tree in trees
    )


def _topic_trees(topics: tuple[TopicInfo, ...]) -> tuple[_Tree, ...]:
    return tuple(
        {
            "name": topic.name,
            "partitions": topic.partitions,
            "replication_factor": topic.replication_factor,
            "topic_configs": _pair_trees(topic.configs),
        }
        for topic in topics
    )


def _pairs(trees: tuple[_Tree, ...]) -> Pairs:
    return tuple((tree["key"], tree["value"]) for tree in trees)


def _pair_trees(pairs: Pairs) -> tuple[_Tree, ...]:
    return tuple({"key": key, "value": value} for key, value in pairs)


def _tasks_by_type(tree: _Tree, suffix: str) -> TasksByType:
    return TasksByType(
        _tasks(tree["active_tasks" + suffix]),
        _tasks(tree["standby_tasks" + suffix]),
        _tasks(tree["warmup_tasks" + suffix]),
    )


def _tasks(trees: tuple[_Tree, ...]) -> Tasks:
    if not trees:
        return NO_TASKS
    return _task_set(tuple([(tree["subtopology_id"], tree["partitions"]) for tree in trees]))


@lru_cache(MAX_CACHED_TASK_LISTS)
def _task_set(entries: tuple[_Entry, ...]) -> Tasks:
    """Tasks of a list. Cached: most records of a member repeat the list of the record before."""
    return frozenset().union(*map(_task_ids, entries))


@lru_cache(MAX_CACHED_TASK_LISTS)
def _task_ids(entry: _Entry) -> tuple[TaskId, ...]:
    return tuple(TaskId(entry[0], partition) for partition in entry[1])


def _epochs(trees: tuple[_Tree, ...], member_epoch: int) -> dict[TaskId, int]:
    """The assignment epoch of each task; the member epoch where there is not one a partition, as Kafka reads it."""
    epochs: dict[TaskId, int] = {}
    for tree in trees:
        tasks = _task_ids((tree["subtopology_id"], tree["partitions"]))
        tree_epochs = tree["assignment_epochs"]
        if tree_epochs is None or len(tree_epochs) != len(tasks):
            epochs |= dict.fromkeys(tasks, member_epoch)
        else:
            epochs.update(zip(tasks, tree_epochs, strict=True))
    return epochs


def _task_trees(
    tasks: Tasks, epochs: Mapping[TaskId, int] | None = None, member_epoch: int = 0
) -> tuple[dict[str, Any], ...]:
    """Tasks sorted, by subtopology; with their assignment epochs if there are any."""
    partitions: dict[str, list[int]] = {}
    for subtopology_id, partition in sorted(tasks):
        partitions.setdefault(subtopology_id, []).append(partition)
    if epochs is None:
        return tuple(
            {"subtopology_id": name, "partitions": tuple(task_partitions)}
            for name, task_partitions in partitions.items()
        )
    return tuple(
        {
            "subtopology_id": name,
            "partitions": tuple(task_partitions),
            "assignment_epochs": tuple(
                epochs.get(TaskId(name, partition), member_epoch) for partition in task_partitions
            ),
        }
        for name, task_partitions in partitions.items()
    )


FORMS: Final[RecordForms[RecordValue]] = RecordForms(
    {
        METADATA: Form(_metadata, _metadata_tree),
        MEMBER: Form(_member, _member_tree),
        TARGET: TARGET_FORM,
        MEMBER_TARGET: Form(_member_target, _member_target_tree),
        ASSIGNMENT: Form(_assignment, _assignment_tree),
        TOPOLOGY: Form(_topology, _topology_tree),
    }
)
value_of, tree_value, record_of = FORMS.value_of, FORMS.tree_value, FORMS.record_of
