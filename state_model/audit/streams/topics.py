"""Rules ST-16 (all tasks) and ST-33: a streams group and the topics of the metadata log."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from state_model.audit.group_steps import GroupDifference
from state_model.audit.impact import Impact
from state_model.audit.model_groups.history import ModelRecord
from state_model.audit.model_groups.shape import NEEDS_WHOLE_GROUP, differs
from state_model.audit.model_groups.topic_lives import TopicLives
from state_model.audit.periods import TOLERANCE_MS
from state_model.audit.rule import Field, Need
from state_model.audit.severities import WARNING
from state_model.audit.streams.history import History
from state_model.audit.streams.shape import streams_rule
from state_model.streams.records import METADATA, TARGET
from state_model.streams.values import TaskId

TopicCheck: TypeAlias = Callable[[History, ModelRecord, TopicLives], GroupDifference | None]


def _inputs(subtopology: Mapping[str, Any]) -> list[str]:
    return [*subtopology["sourceTopics"], *(topic["name"] for topic in subtopology["repartitionSourceTopics"])]


def _required(history: History) -> set[str]:
    """The topics that the metadata hash is about."""
    subtopologies = (history.life.subtopologies() or {}).values()
    changelogs = {topic["name"] for entry in subtopologies for topic in entry["stateChangelogTopics"]}
    return changelogs.union(*map(_inputs, subtopologies))


def hash_without_change(history: History, record: ModelRecord, topics: TopicLives) -> GroupDifference | None:
    """A metadata hash that changed without its topics, or that is 0 with topics, or other than 0 without any."""
    now_ms, before, lives = record.timestamp_ms, history.life.metadata, topics.of(_required(history))
    is_known = topics.from_ms <= now_ms - TOLERANCE_MS and now_ms + TOLERANCE_MS <= topics.until_ms
    if not record.is_a(METADATA) or history.life.topology is None or not is_known:
        return None
    current_hash = record.number("metadataHash")
    from_ms, to_ms = now_ms - TOLERANCE_MS, now_ms + TOLERANCE_MS
    is_there = any(life.period.from_ms <= to_ms and from_ms <= life.period.to_ms for life in lives)
    is_sure = any(life.period.from_ms < from_ms and to_ms < life.period.to_ms for life in lives)
    if (current_hash == 0 and is_sure) or (current_hash != 0 and not is_there):
        return differs(Field.METADATA_HASH, int(current_hash == 0), current_hash, history.life.topology)
    if before is None or before.number("metadataHash") == current_hash:
        return None
    since_ms = before.timestamp_ms - TOLERANCE_MS
    if since_ms < topics.from_ms or any(life.changes_in(since_ms, to_ms) for life in lives):
        return None
    return differs(Field.METADATA_HASH, before.number("metadataHash"), current_hash, before)


def task_without_target(history: History, record: ModelRecord, topics: TopicLives) -> GroupDifference | None:
    """A target assignment that lacks tasks, or has some that the topics do not have."""
    life, now_ms = history.life, record.timestamp_ms
    if not record.is_a(TARGET) or not life.is_whole or not life.members or life.metadata is None:
        return None
    subtopologies = life.subtopologies()
    if life.metadata.number("validatedTopologyEpoch") < 0 or subtopologies is None:
        return None
    from_ms, to_ms = now_ms - TOLERANCE_MS, now_ms + TOLERANCE_MS
    is_known = topics.from_ms <= from_ms and to_ms <= topics.until_ms
    if not is_known or any(topic.changes_in(from_ms, to_ms) for topic in topics.of(_required(history))):
        return None
    expected = {
        TaskId(name, partition)
        for name, entry in subtopologies.items()
        for partition in range(max((topics.partitions(topic, now_ms) for topic in _inputs(entry)), default=0))
    }
    assigned = frozenset[TaskId]().union(*(target.tasks.active for target in life.targets.values()))
    if assigned == expected:
        return None
    return differs(Field.TASKS, len(expected), len(assigned & expected), life.metadata, assigned ^ expected)


RULES: Final = (
    streams_rule(
        16,
        "streams_task_without_target",
        "A target assignment has each task of the topics, and no other",
        "A subtopology has as many tasks as the largest of its topics has partitions. Tested while the topics did not "
        f"change for {TOLERANCE_MS // 1000} s. {NEEDS_WHOLE_GROUP}",
        part=1,
        impact=Impact.STUCK,
        needs=(Need.METADATA,),
        is_of_whole_logs=True,
    ),
    streams_rule(
        33,
        "streams_metadata_hash",
        "The metadata hash changes with the topics of the topology, and is 0 without any",
        f"It is computed from these topics. Changes count within {TOLERANCE_MS // 1000} s.",
        severity=WARNING,
        remedy="Nothing to do where replicas moved to other racks, which the hash covers, too.",
        needs=(Need.METADATA,),
    ),
)
CHECKS: Final[Mapping[int, TopicCheck]] = {1161: task_without_target, 1330: hash_without_change}
"""Rules that need topics, by rule id."""
