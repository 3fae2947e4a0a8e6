"""Cases of the rules on current assignments and on the user partitions that records of groups name."""

from typing import Final

from tests.audit.rule_cases.cases import Table
from tests.audit.rule_cases.group_cases import (
    JUST_S,
    LISTS,
    LONG_S,
    MAIL,
    assigned,
    assignment,
    emptied,
    member,
    operated,
    target,
)
from tests.audit.rule_cases.world_cases import second
from tests.audit.world import END_S, World, created, lists, of_group
from tests.logs.group_files import GroupEntry


def with_two_partitions(*entries: GroupEntry, at_s: float = 0) -> World:
    """The topic has another partition since a time, both are initialized, and the member's target is both."""
    listed = of_group(MAIL, LISTS, lists([0, 1]))
    world = World().with_state(created(MAIL, 1, at_s=at_s)).with_metadata(second(), at_s=at_s)
    return world.with_groups(listed, member("m"), target("m", 0, 1), assignment(2), *entries)


ASSIGNMENTS: Final[Table[World]] = {
    "assigned_beyond_target": (
        {
            "another partition": lambda: operated(assigned("m", 2, 1)),
            "one more": lambda: operated(assigned("m", 2, 0, 1)),
            "far behind the last": lambda: operated(assigned("m", 2, 700)),
            "an empty target": lambda: operated(target("m"), assigned("m", 2, 0)),
        },
        {
            "the target": lambda: operated(assigned("m", 2, 0)),
            "another epoch than the target's": lambda: World().of_metadata(None).with_groups(
                member("m"), target("m", 0), assignment(2), assigned("m", 1, 1)),
            "compaction took the target": lambda: World().of_metadata(None).with_groups(
                member("m"), assignment(2), assigned("m", 2, 1)),
        },
    ),
    "target_not_assigned": (
        {
            "none": lambda: operated(assigned("m", 2)),
            "one of two": lambda: with_two_partitions(target("m", 0, 1), assigned("m", 2, 0)),
            "another one": lambda: with_two_partitions(target("m", 0), assigned("m", 2, 1)),
        },
        {
            "both": lambda: with_two_partitions(target("m", 0, 1), assigned("m", 2, 0, 1)),
            "of a topic that the member left": lambda: operated(member("m", ("mail",)), assigned("m", 2)),
            "of a topic that is gone": lambda: World().without_state(MAIL).with_groups(
                member("m"), target("m", 0), assignment(2), emptied(), assigned("m", 2)),
        },
    ),
    "partition_not_in_topic": (
        {
            "in a target": lambda: operated(target("m", 700)),
            "in a current assignment": lambda: operated(assigned("m", 2, 700)),
            "in a list": lambda: World().with_groups(of_group(MAIL, LISTS, lists([0, 700]), at_s=END_S)),
            "created 61 s later": lambda: operated(target("m", 1)).with_metadata(second(), at_s=LONG_S),
        },
        {
            "created 59 s later": lambda: with_two_partitions(assigned("m", 2, 0, 1), at_s=JUST_S),
            "59 s before the metadata log ends": lambda: operated(assigned("m", 2, 0)).with_groups(
                of_group(MAIL, LISTS, lists([0, 700]), at_s=END_S + 2)),
            "no metadata log": lambda: World().of_metadata(None).with_groups(
                of_group(MAIL, LISTS, lists([0, 700]), at_s=END_S)),
        },
    ),
}  # fmt: skip
