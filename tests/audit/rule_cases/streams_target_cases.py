"""Mutations of streams groups by rule: target assignments."""

from typing import Final

from tests.audit.model_group_log import GroupLog, targets
from tests.audit.rule_cases.cases import Table
from tests.audit.streams_changes import HALF_MINUTE_MS, at_ms, basic, configured, ended, with_topics

ALL: Final = tuple(range(5))
TARGETS: Final[Table[GroupLog]] = {
    "streams_task_with_two_targets": (
        {
            "at first": lambda: basic().cut(11).change(9, active_tasks=targets(("0", [0, 1, 3]), ("1", [0, 2, 4]))),
            "later": lambda: basic().cut(19).change(16, active_tasks=targets(("0", [4]), ("1", [1, 3, 4]))),
            "a record lost": lambda: basic().cut(19).drop(15),
        },
        {
            "between the records": lambda: basic().cut(16),
            "a standby task elsewhere": lambda: basic().cut(47),
            "at the end": lambda: basic().cut(19),
        },
    ),
    "streams_task_without_target": (
        {
            "a partition more": lambda: with_topics(count=6),
            "a task less": lambda: with_topics(basic().change(235, active_tasks=targets(("0", ALL), ("1", ALL[:4])))),
            "fewer partitions": lambda: with_topics(basic(), 4),
        },
        {
            "all": with_topics,
            "without topics": basic,
            "a partition more at that time": lambda: with_topics(
                basic().cut(220), 5, more_ms=at_ms(216) - HALF_MINUTE_MS),
        },
    ),
    "streams_too_many_standby_tasks": (
        {
            "two for one": lambda: basic().cut(47).change(44, standby_tasks=targets(("1", [3, 4]))),
            "without state": lambda: basic().cut(47).change(45, standby_tasks=targets(("0", [0]))),
            "none configured": lambda: configured(("num.standby.replicas", "0"), place=41),
        },
        {
            "one each": lambda: basic().cut(47),
            "fewer": lambda: basic().cut(91),
            "more replicas": lambda: configured(("num.standby.replicas", "2"), place=41),
        },
    ),
    "streams_target_twice_in_process": (
        {
            "of a member": lambda: basic().cut(47).change(43, standby_tasks=targets(("1", [1]))),
            "active in a sibling": lambda: basic().cut(47).change(43, standby_tasks=targets(("1", [0, 4]))),
            "standby in a sibling": lambda: basic().cut(47).change(43, standby_tasks=targets(("1", [3, 4]))),
        },
        {
            "in another process": lambda: basic().cut(47),
            "all in one": basic,
            "active alone": lambda: basic().cut(19),
        },
    ),
    "streams_member_without_target": (
        {
            "a new one": lambda: basic().cut(33).drop(30),
            "the first one": lambda: basic().cut(11).drop(9),
            "of a member that left": lambda: basic().cut(76).drop(69),
        },
        {
            "between the records": lambda: basic().cut(24),
            "all": lambda: basic().cut(33),
            "compacted": lambda: basic().cut(11).compacted(9),
        },
    ),
    "streams_target_while_not_ready": (
        {
            "at first": lambda: basic().cut(11).change(7, validated_topology_epoch=-1),
            "later": lambda: basic().cut(19).change(14, validated_topology_epoch=-1),
            "at the end": lambda: basic().change(233, validated_topology_epoch=-1),
        },
        {
            "before the first target": lambda: basic().cut(7),
            "ready": lambda: basic().cut(11),
            "without members": lambda: basic().change(231, validated_topology_epoch=-1),
        },
    ),
    "streams_topology_not_ready": (
        {
            "at first": lambda: basic().cut(11).change(7, validated_topology_epoch=-1),
            "empty": lambda: basic().cut(11).change(7, validated_topology_epoch=-1).drop(8, 9),
            "at the end": lambda: basic().change(233, validated_topology_epoch=-1),
        },
        {
            "before the first target": lambda: basic().cut(7),
            "without members": lambda: basic().change(231, validated_topology_epoch=-1),
            "ready": ended,
        },
    ),
}  # fmt: skip
