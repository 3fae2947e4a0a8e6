"""Cases of the rule that compares state epochs with the group epochs at which initializations began."""

from typing import Final

from tests.audit.rule_cases.cases import Table
from tests.audit.rule_cases.group_cases import EPOCH, JUST_S, LISTS, LONG_S, MAIL, emptied
from tests.audit.world import END_S, World, created, epoch, lists, of_group
from tests.logs.group_files import GroupEntry


def initialization(*, at_s: float = 0) -> tuple[GroupEntry, GroupEntry]:
    """The group lists its partition as initializing, and then as initialized."""
    begin = of_group(MAIL, LISTS, lists(initializing=[0]), at_s=at_s)
    return begin, of_group(MAIL, LISTS, lists([0]), at_s=at_s)


def initialized(state_epoch: int, *entries: GroupEntry, at_s: float = 0) -> World:
    """The share partition created with a state epoch; `entries`: the records of its group behind epoch 2."""
    world = World().without_group(MAIL, LISTS).with_groups(*entries)
    for record in world.state[0]:
        if (record["record_type"], record["group_id"]) == ("snapshot", MAIL):
            record.update(created(MAIL, at_s=at_s, state_epoch=state_epoch))
    return world


def rising(last: int) -> tuple[GroupEntry, ...]:
    """Group epochs from 3 on, behind an empty list of partitions."""
    return emptied(), *(of_group(MAIL, EPOCH, epoch(number)) for number in range(3, last + 1))


def reset(*, after_s: float | None) -> World:
    """A reset at a larger group epoch 100 s later; `after_s`: until the state is initialized again; None: never."""
    world = initialized(2, *initialization(), of_group(MAIL, EPOCH, epoch(3), at_s=99), *initialization(at_s=100))
    if after_s is None:
        return world
    again = created(MAIL, at_s=100 + after_s, epoch=1, state_epoch=3)
    for record in world.state[0]:
        if (record["record_type"], record["group_id"]) == ("update", MAIL):
            record["snapshot_epoch"] = 1
    return world.with_state(again)


INITIALIZATIONS: Final[Table[World]] = {
    "state_epoch_below_group": (
        {
            "of a new group": lambda: initialized(1, *initialization()),
            "0": lambda: initialized(0, *initialization()),
            "of a later partition": lambda: initialized(4, *rising(5), *initialization()),
            "a reset that was lost": lambda: reset(after_s=None),
            "a reset 61 s later": lambda: reset(after_s=LONG_S),
        },
        {
            "the group's": lambda: initialized(5, *rising(5), *initialization()),
            "that of a retry": lambda: initialized(
                4, *rising(3), initialization()[0], of_group(MAIL, EPOCH, epoch(4)), *initialization()),
            "a reset 59 s later": lambda: reset(after_s=JUST_S),
            "59 s before the end of the logs": lambda: initialized(
                2, *initialization(), of_group(MAIL, EPOCH, epoch(3), at_s=99), *initialization(at_s=END_S - JUST_S)),
            "compaction took the list before": lambda: initialized(
                2, *rising(5)[1:], *initialization()),
        },
    ),
}  # fmt: skip
