"""Cases of the rules on `__consumer_offsets`, and between it and the state log."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from state_model.java import partition_for_group
from tests.audit.rule_cases.cases import Table
from tests.audit.world import END_S, GROUPS, World, created, deleted, epoch, lists, of_group
from tests.logs.group_files import GroupEntry
from tests.logs.state_logs import ORDERS_ID

MAIL = GROUPS[2]
JUST_S, LONG_S = 59, 61
EPOCH, ASSIGNMENT_EPOCH, TARGET, ASSIGNMENT, LISTS, MEMBER = 11, 12, 13, 14, 15, 10


def emptied(*, at_s: float = 0) -> GroupEntry:
    """The group lists no partition any more."""
    return of_group(MAIL, LISTS, lists(), at_s=at_s)


def ended(*, at_s: float) -> tuple[GroupEntry, GroupEntry]:
    """The group deleted."""
    return of_group(MAIL, LISTS, None, at_s=at_s), of_group(MAIL, EPOCH, None, at_s=at_s)


def deleting() -> dict[str, Any]:
    """Lists with a topic that is being deleted."""
    return {**lists(), "deleting_topics": ({"topic_id": ORDERS_ID, "topic_name": "orders"},)}


def late_creation(at_s: float) -> World:
    """The share partition created later than listed."""
    return World().without_state(MAIL).with_state(created(MAIL, at_s=at_s))


def gone(at_s: float, *groups: GroupEntry) -> World:
    """The share partition deleted at a time."""
    world = World().with_groups(*groups)
    world.state[0] = [record for record in world.state[0] if record["record_type"] == "snapshot"]
    return world.ending(deleted(MAIL, at_s=at_s), created(GROUPS[0], at_s=END_S, epoch=1))


def of_epoch(state_epoch: int, *groups: GroupEntry) -> World:
    """The share partition initialized again with a state epoch."""
    again = created(MAIL, at_s=60, epoch=1, state_epoch=state_epoch)
    world = World().with_state(again).with_groups(*groups)
    for record in world.state[0]:
        if (record["record_type"], record["group_id"]) == ("update", MAIL):
            record["snapshot_epoch"] = 1
    return world


def other_groups(*names: str) -> World:
    """The group coordinator's log of these groups."""
    return World().of_groups(
        entry for name in names for entry in (of_group(name, EPOCH, epoch(2)), of_group(name, LISTS, lists([0])))
    )


def recreated(state_epoch: int, group_epoch: int, *, at_s: float = 300, deleted_s: float | None = None) -> World:
    """The group deleted, and another of its name with this epoch; its old state has a state epoch."""
    groups = [*ended(at_s=at_s), of_group(MAIL, EPOCH, epoch(group_epoch), at_s=at_s), emptied(at_s=at_s)]
    world = of_epoch(
        state_epoch, of_group(MAIL, EPOCH, epoch(3), at_s=60), of_group(MAIL, EPOCH, epoch(4), at_s=60), *groups
    )
    if deleted_s is not None:
        world.state[0] = [record for record in world.state[0] if record["record_type"] == "snapshot"]
        world.ending(deleted(MAIL, at_s=deleted_s), created(GROUPS[0], at_s=END_S, epoch=1))
    return world


LIVES: Final[Table[World]] = {
    "state_epoch_beyond_group": (
        {str(number): lambda number=number: of_epoch(number) for number in (3, 9, 50)},
        {
            "the group's": lambda: of_epoch(2),
            "the group's 59 s later": lambda: of_epoch(3, of_group(MAIL, EPOCH, epoch(3), at_s=60 + JUST_S)),
            "below the group's": lambda: of_epoch(2, of_group(MAIL, EPOCH, epoch(3))),
        },
    ),
    "left_state_fences_group": (
        {
            "state epoch 2": lambda: recreated(2, 1),
            "state epoch 4": lambda: recreated(4, 3),
            "deleted 61 s later": lambda: recreated(2, 1, deleted_s=300 + LONG_S),
        },
        {
            "deleted 59 s later": lambda: recreated(2, 1, deleted_s=300 + JUST_S),
            "deleted at once": lambda: recreated(2, 1, deleted_s=300),
            "59 s before the end of the logs": lambda: recreated(2, 1, at_s=END_S - JUST_S),
        },
    ),
    "initialized_without_state": (
        {
            "never created": lambda: World().without_state(MAIL),
            "created 61 s later": lambda: late_creation(LONG_S),
            "deleted": lambda: gone(300),
            "deleted, and unlisted 61 s later": lambda: gone(300, emptied(at_s=300 + LONG_S)),
        },
        {
            "created 59 s later": lambda: late_creation(JUST_S),
            "deleted, and unlisted 59 s later": lambda: gone(300, emptied(at_s=300 + JUST_S)),
            "deleted 59 s before the end of the logs": lambda: gone(END_S - JUST_S),
        },
    ),
    "no_common_group": (
        {
            "three others": lambda: other_groups("stock", "fraud", "billing"),
            "four others": lambda: other_groups("stock", "fraud", "billing", "search2"),
            "the same names in upper case": lambda: other_groups(*map(str.upper, GROUPS)),
        },
        {
            "all in common": World,
            "one more": lambda: other_groups(*GROUPS).with_groups(of_group("stock", EPOCH, epoch(1))),
            "three more, without state yet": lambda: other_groups(*GROUPS).with_groups(
                *(of_group(name, LISTS, lists(initializing=[0])) for name in ("stock", "fraud", "billing"))),
        },
    ),
    "state_without_group": (
        {
            "the list empty": lambda: World().without_group(MAIL, LISTS).with_groups(emptied()),
            "no list": lambda: World().without_group(MAIL, LISTS),
            "no list from the middle on": lambda: World().with_groups(emptied(at_s=300)),
            "no such group": lambda: World().without_group(MAIL),
        },
        {
            "listed as initializing": lambda: World().without_group(MAIL, LISTS).with_groups(
                of_group(MAIL, LISTS, lists(initializing=[0]))),
            "listed as deleting": lambda: World().with_groups(of_group(MAIL, LISTS, deleting(), at_s=300)),
            "unlisted for 59 s": lambda: World().with_groups(
                emptied(at_s=300), of_group(MAIL, LISTS, lists([0]), at_s=300 + JUST_S)),
            "unlisted 59 s before the end of the logs": lambda: World().with_groups(emptied(at_s=END_S - JUST_S)),
        },
    ),
    "state_after_group_deletion": (
        {
            "to the end": lambda: World().with_groups(*ended(at_s=300)),
            "for 61 s": lambda: gone(300 + LONG_S, *ended(at_s=300)),
            "up to a new group": lambda: World().with_groups(
                *ended(at_s=300), of_group(MAIL, EPOCH, epoch(2), at_s=300 + LONG_S),
                of_group(MAIL, LISTS, lists([0]), at_s=300 + LONG_S)),
        },
        {
            "for 59 s": lambda: gone(300 + JUST_S, *ended(at_s=300)),
            "deleted before its group": lambda: gone(300, *ended(at_s=300)),
            "59 s before the end of the logs": lambda: World().with_groups(*ended(at_s=END_S - JUST_S)),
        },
    ),
}  # fmt: skip


def places(*partitions: int) -> tuple[dict[str, Any], ...]:
    """Partitions of the user topic."""
    return ({"topic_id": ORDERS_ID, "partitions": partitions},) if partitions else ()


def member(name: str, topics: Sequence[str] = ("orders",)) -> GroupEntry:
    """A member's subscription."""
    value = {
        "rack_id": None, "client_id": "c", "client_host": "/127.0.0.1", "subscribed_topic_names": tuple(topics),
    }  # fmt: skip
    return of_group(MAIL, MEMBER, value, member=name)


def target(name: str, *partitions: int) -> GroupEntry:
    """A member's target assignment."""
    return of_group(MAIL, TARGET, {"topic_partitions": places(*partitions)}, member=name)


def assigned(name: str, number: int, *partitions: int, state: int = 0) -> GroupEntry:
    """A member's current assignment."""
    value = {
        "member_epoch": number, "previous_member_epoch": number - 1, "state": state,
        "assigned_partitions": places(*partitions),
    }  # fmt: skip
    return of_group(MAIL, ASSIGNMENT, value, member=name)


def assignment(number: int) -> GroupEntry:
    """The epoch of a target assignment."""
    return of_group(MAIL, ASSIGNMENT_EPOCH, {"assignment_epoch": number, "assignment_timestamp": 0})


def ending(record_type: int, name: str | None = None) -> GroupEntry:
    """A tombstone."""
    return of_group(MAIL, record_type, None, member=name)


def epochs(*numbers: int) -> World:
    """More group epochs; the group has 2."""
    return World().with_groups(*(of_group(MAIL, EPOCH, epoch(number)) for number in numbers))


def operated(*entries: GroupEntry) -> World:
    """A member with its assignment at epoch 2, and more."""
    member_entries = (member("m"), target("m", 0), assignment(2), assigned("m", 2, 0))
    return World().with_groups(*member_entries, *entries)


def shared(*targets: Sequence[int], listed: Sequence[int] = (0,), topics: Sequence[Sequence[str]] = ()) -> World:
    """The end of an assignment: the targets of members m0, m1, ... that subscribe to the topic."""
    topics = topics or [("orders",)] * len(targets)
    members = [member(f"m{number}", topics[number]) for number in range(len(targets))]
    target_entries = [target(f"m{number}", *partitions) for number, partitions in enumerate(targets)]
    records = [created(MAIL, number) for number in listed if number]
    world = World().with_state(*records).of_metadata(None)
    return world.with_groups(of_group(MAIL, LISTS, lists(listed)), *members, *target_entries, assignment(2))


def spread(*moved: str, count: int = 50, names: Sequence[str] = ()) -> World:
    """Groups in the partitions of their hashes, those moved in the next one."""
    world = World()
    world.groups = {}
    for name in [*GROUPS, "late", "stock", "fraud", *names]:
        place = (partition_for_group(name, count) + (name in moved)) % count
        entries = [of_group(name, EPOCH, epoch(2))]
        if name in GROUPS:
            entries.append(of_group(name, LISTS, lists([0])))
        world.groups.setdefault(place, []).extend(entries)
    return world


def parted(record_type: int, value: Mapping[str, Any] | None, world: World | None = None) -> World:
    """A record of a group in another partition than its others; the world given has another number of groups."""
    world = world or spread()
    place = next(place for place, entries in world.groups.items() if entries[0].group_id == MAIL)
    world.groups.setdefault((place + 1) % 50, []).append(of_group(MAIL, record_type, value, at_s=END_S))
    return world


def few(*names: str) -> World:
    """Too few groups to say how many partitions there are; each is in a partition of its own."""
    world = World()
    world.groups = {place: [of_group(name, EPOCH, epoch(2))] for place, name in enumerate(names, 3)}
    return world


def odd_key(record_type: int, value: bytes | None = b"\0\0") -> World:
    """A record of another type at the end."""
    return World().group_bytes(len(GROUPS) * 2, lambda key, old: (record_type.to_bytes(2, "big") + key[2:], value))


def cut(row: int, change: Callable[[bytes], bytes]) -> World:
    """A value of a group's record cut short."""
    return World().group_bytes(row, lambda key, value: (key, change(value or b"")))


RECORDS: Final[Table[World]] = {
    "group_epoch_skips": (
        {
            "by 2": lambda: epochs(4),
            "none": lambda: epochs(3, 3),
            "back": lambda: epochs(3, 2),
            "by 2 later": lambda: epochs(3, 4, 6),
        },
        {
            "by 1": lambda: epochs(3),
            "by 1 twice": lambda: epochs(3, 4),
            "1 behind a deletion": lambda: gone(0).with_groups(*ended(at_s=1), of_group(MAIL, EPOCH, epoch(1), at_s=1)),
            "compaction took those before": lambda: World().without_group(MAIL, EPOCH).with_groups(
                of_group(MAIL, EPOCH, epoch(7)), of_group(MAIL, EPOCH, epoch(8))),
        },
    ),
    "epochs_out_of_order": (
        {
            "assignment epoch + 1": lambda: World().with_groups(assignment(3)),
            "assignment epoch + 9": lambda: World().with_groups(assignment(11)),
            "member epoch + 1": lambda: operated(assigned("m", 3, 0)),
            "member epoch of the group": lambda: operated(of_group(MAIL, EPOCH, epoch(3)), assigned("m", 3, 0)),
        },
        {
            "equal ones": operated,
            "assignment epoch - 1": lambda: operated(of_group(MAIL, EPOCH, epoch(3))),
            "member epoch - 1": lambda: operated(
                of_group(MAIL, EPOCH, epoch(3)), assignment(3), assigned("m", 2)),
            "compaction took the assignment epoch": lambda: World().with_groups(member("m"), assigned("m", 9, 0)),
        },
    ),
    "assigned_without_state": (
        {
            "not listed": lambda: operated(target("m", 1)),
            "one of two": lambda: operated(target("m", 0, 1)),
            "initializing": lambda: operated(
                of_group(MAIL, LISTS, lists([0], initializing=[1])), target("m", 1)),
        },
        {
            "initialized": lambda: operated(target("m", 0)),
            "none": lambda: operated(target("m")),
            "compaction took the list": lambda: World().of_metadata(None).without_group(MAIL, LISTS).with_groups(
                member("m"), target("m", 5), of_group(MAIL, LISTS, lists([0]))),
        },
    ),
    "assigned_unevenly": (
        {
            "two members, one of two partitions": lambda: shared((0,), (0,), listed=(0, 1)),
            "three members, one of two partitions": lambda: shared((0,), (0,), (0,), listed=(0, 1)),
            "a partition twice": lambda: shared((0, 1), (1,), listed=(0, 1)),
            "of different topics": lambda: shared(
                (0,), (0,), listed=(0, 1), topics=[("orders",), ("orders", "mail")]),
        },
        {
            "one each": lambda: shared((0,), (1,), listed=(0, 1)),
            "two members share a partition": lambda: shared((0,), (0,), (1,), listed=(0, 1)),
            "one partition": lambda: shared((0,), (0,)),
            "a member without one": lambda: shared((0, 1), (), listed=(0, 1)),
        },
    ),
    "member_state": (
        {str(state): lambda state=state: operated(assigned("m", 2, 0, state=state)) for state in (1, 2, 127)},
        {
            "0": operated,
            "0, twice": lambda: operated(assigned("m", 2, 0)),
            "0, without partitions": lambda: operated(target("m"), assigned("m", 2)),
        },
    ),
    "member_tombstones_out_of_order": (
        {
            "the member before its assignment": lambda: operated(ending(TARGET, "m"), ending(MEMBER, "m")),
            "the member before its target": lambda: operated(ending(ASSIGNMENT, "m"), ending(MEMBER, "m")),
            "the assignment epoch before a target": lambda: operated(ending(ASSIGNMENT_EPOCH)),
            "the group before its member": lambda: gone(0).with_groups(member("m"), ending(EPOCH)),
        },
        {
            "the member last": lambda: operated(*leave_entries("m")),
            "the group last": lambda: gone(0).with_groups(
                member("m"), target("m", 0), *leave_entries("m"), ending(LISTS), ending(EPOCH)),
            "compaction took the assignment": lambda: World().with_groups(member("m"), ending(MEMBER, "m")),
        },
    ),
    "misplaced_group": (
        {
            "one of 7": lambda: spread("stock"),
            "another of 7": lambda: spread("mail"),
            "one of 5 partitions": lambda: spread("fraud", count=5),
        },
        {
            "none": spread,
            "none of 5 partitions": lambda: spread(count=5),
            "names of four-byte letters": lambda: spread(names=["😀", "🂡🂢"]),
        },
    ),
    "group_in_many_partitions": (
        {
            "an epoch": lambda: parted(EPOCH, epoch(3)),
            "a tombstone": lambda: parted(LISTS, None),
            "an epoch, of an unknown number": lambda: parted(EPOCH, epoch(3), few(MAIL)),
            "a list, of an unknown number": lambda: parted(LISTS, lists([0]), few(GROUPS[0], MAIL)),
        },
        {
            "none": spread,
            "of an unknown number": lambda: few(MAIL),
            "two groups of an unknown number": lambda: few(GROUPS[0], MAIL),
        },
    ),
    "preview_record_type": (
        {
            "9": lambda: odd_key(9),
            "18": lambda: odd_key(18),
            "tombstone of 9": lambda: odd_key(9, None),
        },
        {
            "8": lambda: odd_key(3, None),
            "17": lambda: odd_key(17, None),
            "a type that is not known": lambda: odd_key(99),
        },
    ),
    "undecodable_group_record": (
        {
            "an epoch cut short": lambda: cut(0, lambda value: value[:5]),
            "a list cut short": lambda: cut(1, lambda value: value[:-20]),
            "an empty value": lambda: cut(2, lambda value: b""),
        },
        {
            "whole": World,
            "a value of a later version": lambda: cut(len(GROUPS) * 2, lambda value: b"\0\7" + value[2:]),
            "an unknown tagged field": lambda: cut(0, lambda value: value[:-1] + b"\1\x0a\1x"),
        },
    ),
}  # fmt: skip


def leave_entries(name: str) -> tuple[GroupEntry, ...]:
    """A member that left."""
    return ending(ASSIGNMENT, name), ending(TARGET, name), ending(MEMBER, name), of_group(MAIL, EPOCH, epoch(3))
