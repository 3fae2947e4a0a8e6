"""Mutations by rule on streams groups: recorded logs changed so that they break it, and near ones that do not.

`basic` is a group with two subtopologies of five tasks, repartition and changelog topics; its members come and go, with
standby tasks from record 41 on. `ended` is a group that was deleted.
"""

from dataclasses import replace
from typing import Any, Final

from state_model.java import partition_for_group
from tests.audit_cases import Table
from tests.audit_streams_log import MINUTE_MS, Entry, GroupLog, Topic, recorded, targets, tasks

INTERNAL_AT = 7
"""The record of `basic` when its internal topics were there."""
LEAVING = (68, 69, 70, 71)
"""The records with which a member of `basic` leaves."""
TWO_MINUTES_MS, HALF_MINUTE_MS = 2 * MINUTE_MS, MINUTE_MS // 2
OFFSET_COMMIT = 1


def basic() -> GroupLog:
    """A group that lives."""
    return recorded("streams-basic", "app-wc")


def ended() -> GroupLog:
    """A group from its first member to its deletion."""
    return recorded("streams-admin", "app-exp")


def entry(place: int, **fields: Any) -> Entry:
    """A record of `basic` with other fields in its value."""
    return basic().change(place, **fields).entries[place]


def of_member(place: int, other: int) -> Entry:
    """A record of `basic` as one of the member of another record."""
    return basic().entries[place]._replace(member_id=basic().entries[other].member_id)


def tombstone(place: int) -> Entry:
    """The tombstone of a record of `basic`."""
    return basic().entries[place]._replace(value=None)


def configured(*pairs: tuple[str, str], place: int = 241) -> GroupLog:
    """The group with other configurations of its assignment."""
    return basic().change(place, last_assignment_configs=tuple({"key": key, "value": value} for key, value in pairs))


def placed(partition: int, count: int | None) -> GroupLog:
    """The group in a partition of so many."""
    return GroupLog(group_id="app-wc", entries=basic().entries, partition=partition, count=count)


def of_producer(log: GroupLog, place: int) -> GroupLog:
    """With a record of a transaction."""
    return log.put(place, log.entries[place]._replace(producer_id=7))


def with_topics(log: GroupLog | None = None, count: int = 5, *, more_ms: int | None = None) -> GroupLog:
    """A log with the topics of its topology; `more_ms`: when each internal topic got one partition more."""
    log = log or basic()
    start_ms, created_ms = basic().entries[0].time_ms - 9 * MINUTE_MS, basic().entries[INTERNAL_AT].time_ms - 200
    topology = basic().entries[1].value
    assert topology is not None
    topics: dict[str, Topic] = {}
    for subtopology in topology["subtopologies"]:
        topics |= {name: Topic(start_ms, (start_ms,) * count) for name in subtopology["source_topics"]}
        for topic in (*subtopology["repartition_source_topics"], *subtopology["state_changelog_topics"]):
            times = (created_ms,) * 5 + (() if more_ms is None else (more_ms,))
            topics[topic["name"]] = Topic(created_ms, times)
    return replace(log, topics=topics)


def left_after(lasts_ms: int) -> GroupLog:
    """A member must revoke tasks, and leaves after that time."""
    leaving = (of_member(place, 33)._replace(time_ms=at_ms(33) + lasts_ms) for place in LEAVING[:3])
    return basic().of((*basic().entries[:34], *leaving))


def at_ms(place: int) -> int:
    """The time of a record of `basic`."""
    return basic().entries[place].time_ms


ALL: Final = tuple(range(5))
EPOCHS: Final[Table[GroupLog]] = {
    "streams_first_group_epoch": (
        {str(number): lambda number=number: basic().cut(4).change(2, epoch=number) for number in (1, 3, 40)},
        {
            "the first records": lambda: basic().cut(4),
            "a group made again": lambda: ended().twice(),
            "compacted": lambda: basic().compacted(2),
        },
    ),
    "streams_group_epoch_skips": (
        {
            "a record lost": lambda: basic().drop(5),
            "a record twice": lambda: basic().repeat(71),
            "the epoch before": lambda: basic().change(241, epoch=25),
        },
        {
            "the last record lost": lambda: basic().drop(241),
            "a group made again": lambda: ended().twice(),
            "another description epoch": lambda: basic().insert(242, entry(241, stored_description_topology_epoch=0)),
            "a record compacted": lambda: basic().compacted(2, 5),
        },
    ),
    "streams_assignment_epoch_order": (
        {
            "twice": lambda: basic().repeat(18),
            "the epoch before": lambda: basic().change(18, assignment_epoch=4),
            "the first one": lambda: basic().change(10, assignment_epoch=1),
        },
        {
            "up to it": lambda: basic().cut(19),
            "a group made again": lambda: ended().twice(),
            "rises by 4": lambda: basic().cut(236),
        },
    ),
    "streams_assignment_epoch_stale": (
        {
            "one before": lambda: basic().change(32, assignment_epoch=5),
            "one after": lambda: basic().change(236, assignment_epoch=26),
            "before the group epoch": lambda: basic().swap(46).swap(46).put(40, basic().entries[46]),
        },
        {
            "in the operation": lambda: basic().cut(19),
            "later": lambda: basic().cut(33),
            "without a group epoch, which is compacted": lambda: basic().cut(19).compacted(2, 5),
        },
    ),
    "streams_assignment_time": (
        {
            "none": lambda: basic().change(236, assignment_timestamp=0),
            "before the last one": lambda: basic().change(236, assignment_timestamp=at_ms(10)),
            "below zero": lambda: basic().change(10, assignment_timestamp=-5),
        },
        {
            "that of the last one": lambda: basic().change(18, assignment_timestamp=at_ms(10)),
            "later than the record": lambda: basic().change(236, assignment_timestamp=at_ms(236) + 9),
            "first": lambda: basic().change(10, assignment_timestamp=1),
        },
    ),
    "streams_member_epoch_ahead": (
        {
            "of a stable member": lambda: basic().change(12, member_epoch=5),
            "before the first target": lambda: basic().change(3, member_epoch=2),
            "of one that revokes": lambda: basic().change(24, member_epoch=6),
        },
        {
            "one that revokes in between": lambda: basic().cut(34),
            "at epoch 1": lambda: basic().cut(4),
            "without a target, which is compacted": lambda: basic().compacted(10),
        },
    ),
    "streams_member_epoch_behind": (
        {
            "stable": lambda: basic().change(28, member_epoch=4),
            "waiting": lambda: basic().change(152, member_epoch=15),
            "the group epoch": lambda: basic().change(22, member_epoch=6),
        },
        {
            "one that revokes": lambda: basic().cut(25),
            "waits for the target": lambda: basic().cut(23),
            "at epoch 1": lambda: basic().cut(7),
        },
    ),
    "streams_previous_member_epoch": (
        {
            "a record lost": lambda: basic().drop(22, 23, 24),
            "of a new member": lambda: basic().change(3, previous_member_epoch=1),
            "above the member epoch": lambda: basic().change(12, previous_member_epoch=5),
        },
        {
            "its own epoch": lambda: basic().cut(24),
            "a group made again": lambda: ended().twice(),
            "compacted": lambda: basic().compacted(3),
        },
    ),
    "streams_member_epoch_falls": (
        {
            "stable": lambda: basic().change(47, member_epoch=5),
            "one that revokes": lambda: basic().change(24, member_epoch=3),
            "to zero": lambda: basic().change(60, member_epoch=0),
        },
        {
            "stays": lambda: basic().cut(25),
            "another member with a lower one": lambda: basic().cut(34),
            "a group made again": lambda: ended().twice(),
        },
    ),
}  # fmt: skip
ASSIGNMENTS: Final[Table[GroupLog]] = {
    "streams_member_state": (
        {str(state): lambda state=state: basic().change(12, state=state) for state in (0, 4, 127)},
        {
            "stable": lambda: basic().cut(13),
            "must revoke": lambda: basic().cut(25),
            "waits": lambda: basic().cut(24),
        },
    ),
    "streams_tasks_to_revoke": (
        {
            "stable": lambda: basic().change(12, active_tasks_pending_revocation=tasks(("9", [0]), epoch=4)),
            "none": lambda: basic().change(24, active_tasks_pending_revocation=()),
            "waits": lambda: basic().change(59, standby_tasks_pending_revocation=tasks(("1", [4]))),
        },
        {
            "active": lambda: basic().cut(25),
            "standby": lambda: basic().cut(78),
            "revoked": lambda: basic().cut(29),
        },
    ),
    "streams_assigned_and_revoked": (
        {
            "active": lambda: basic().change(24, active_tasks=tasks(("0", [0, 2, 4]), ("1", [1]), epoch=4)),
            "standby": lambda: basic().change(
                77, standby_tasks=basic().entries[77].value["standby_tasks_pending_revocation"]),
            "all": lambda: basic().change(
                24, active_tasks_pending_revocation=basic().entries[24].value["active_tasks"]),
        },
        {
            "apart": lambda: basic().cut(25),
            "standby apart": lambda: basic().cut(78),
            "given back": lambda: basic().cut(36),
        },
    ),
    "streams_other_than_target": (
        {
            "one less": lambda: basic().change(12, active_tasks=tasks(("0", [1, 3]), ("1", [0, 2]), epoch=4)),
            "one more": lambda: basic().change(22, standby_tasks=tasks(("1", [4]))),
            "a standby task less": lambda: basic().change(49, standby_tasks=()),
            "without a target": lambda: basic().drop(9),
        },
        {
            "waits for others": lambda: basic().cut(24),
            "revokes": lambda: basic().cut(25),
            "a target that is compacted": lambda: basic().cut(13).compacted(9),
        },
    ),
    "streams_task_with_two_owners": (
        {
            "too early": lambda: basic().cut(24).change(23, active_tasks=tasks(("0", [4]), epoch=5)),
            "revoked by another": lambda: basic().cut(27).change(26, active_tasks=tasks(("0", [1, 3, 4]), epoch=5)),
            "both": lambda: basic().cut(13).change(12, active_tasks=basic().entries[11].value["active_tasks"]),
        },
        {
            "freed": lambda: basic().cut(29),
            "of a member that left": lambda: basic().cut(90),
            "standby elsewhere": lambda: basic().cut(48),
        },
    ),
    "streams_task_twice_in_process": (
        {
            "standby of the same member": lambda: basic().change(47, standby_tasks=tasks(("1", [1]))),
            "standby of a sibling": lambda: basic().change(48, standby_tasks=tasks(("1", [1, 3]))),
            "standby twice": lambda: basic().change(48, standby_tasks=tasks(("1", [3, 4]))),
        },
        {
            "two processes": lambda: basic().cut(48),
            "of a process that is gone": lambda: basic().cut(100),
            "without a process": lambda: basic().cut(51),
        },
    ),
    "streams_warmup_tasks": (
        {
            "target": lambda: basic().change(8, warmup_tasks=targets(("1", [4]))),
            "assigned": lambda: basic().change(22, warmup_tasks=tasks(("1", [0]))),
            "to be revoked": lambda: basic().change(24, warmup_tasks_pending_revocation=tasks(("1", [0]))),
        },
        {
            "none": lambda: basic().cut(11),
            "standby": lambda: basic().cut(51),
            "no tasks": lambda: basic().cut(4),
        },
    ),
    "streams_task_epochs": (
        {
            "above the member epoch": lambda: basic().change(
                12, active_tasks=tasks(("0", [1, 3]), ("1", [0, 2, 4]), epoch=5)),
            "none": lambda: basic().change(
                12, active_tasks=tasks(("0", [1, 3]), ("1", [0, 2, 4]))),
            "another": lambda: basic().change(26, active_tasks=tasks(("0", [1, 3]), ("1", [0, 2]), epoch=5)),
        },
        {
            "kept": lambda: basic().cut(28),
            "of a task that comes back": lambda: basic().cut(90),
            "below the member epoch": lambda: basic().change(28, active_tasks=tasks(("0", [4]), ("1", [3, 4]), epoch=1))
            .cut(29),
        },
    ),
    "streams_tasks_unsorted": (
        {
            "partitions": lambda: basic().change(8, active_tasks=targets(("0", [2, 0, 4]), ("1", [1, 3]))),
            "subtopologies": lambda: basic().change(8, active_tasks=targets(("1", [1, 3]), ("0", [0, 2, 4]))),
            "without partitions": lambda: basic().change(8, standby_tasks=targets(("1", []))),
        },
        {
            "one task": lambda: basic().cut(66),
            "many tasks": basic,
            "none": lambda: basic().cut(4),
        },
    ),
    "streams_unknown_subtopology": (
        {
            "target": lambda: basic().change(8, standby_tasks=targets(("2", [0]))),
            "assigned": lambda: basic().change(23, active_tasks=tasks(("2", [0]), epoch=5)),
            "to be revoked": lambda: basic().change(24, active_tasks_pending_revocation=tasks(("01", [0]), epoch=4)),
        },
        {
            "one of two": lambda: basic().cut(37),
            "both": lambda: basic().cut(29),
            "a topology that is compacted": lambda: basic().cut(13).compacted(1),
        },
    ),
}  # fmt: skip
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
CONFIGURATIONS: Final[Table[GroupLog]] = {
    "streams_validated_topology": (
        {str(epoch): lambda epoch=epoch: basic().change(241, validated_topology_epoch=epoch) for epoch in (1, 2, -2)},
        {
            "not validated": lambda: basic().change(241, validated_topology_epoch=-1),
            "that of the topology": basic,
            "of a topology that is compacted": lambda: basic().compacted(1),
        },
    ),
    "streams_member_with_newer_topology": (
        {str(place): lambda place=place: basic().change(place, topology_epoch=1) for place in (0, 13, 232)},
        {
            "that of the group": basic,
            "of a topology that is compacted": lambda: basic().change(0, topology_epoch=0).compacted(1),
            "of a deleted group": ended,
        },
    ),
    "streams_member_with_older_topology": (
        {str(place): lambda place=place: basic().change(place, topology_epoch=-1) for place in (0, 13, 232)},
        {
            "that of the group": lambda: basic().cut(15),
            "of a topology that is compacted": lambda: basic().cut(15).compacted(1),
            "of a deleted group": ended,
        },
    ),
    "streams_odd_member": (
        {
            "no process": lambda: basic().change(232, process_id=""),
            "no timeout": lambda: basic().change(0, rebalance_timeout_ms=0),
            "a static member": lambda: basic().change(13, instance_id="one"),
        },
        {
            "another process": lambda: basic().change(232, process_id="p"),
            "a rack": lambda: basic().change(232, rack_id="r"),
            "tags": lambda: basic().change(232, client_tags=({"key": "zone", "value": "a"},)),
        },
    ),
    "streams_assignment_configurations": (
        {
            "none": configured,
            "no number": lambda: configured(("num.standby.replicas", "many")),
            "one more": lambda: configured(("num.standby.replicas", "0"), ("num.warmup.replicas", "1")),
        },
        {str(count): lambda count=count: configured(("num.standby.replicas", str(count))) for count in (0, 1, 2)},
    ),
    "streams_standby_replicas_limit": (
        {str(count): lambda count=count: configured(("num.standby.replicas", str(count))) for count in (3, 4, 100)},
        {str(count): lambda count=count: configured(("num.standby.replicas", str(count))) for count in (0, 1, 2)},
    ),
    "streams_metadata_hash": (
        {
            "without a change": lambda: with_topics(basic().change(241, metadata_hash=5)),
            "none": lambda: with_topics(basic().change(241, metadata_hash=0)),
            "of no topics": lambda: replace(basic().cut(3), topics={}),
        },
        {
            "as recorded": with_topics,
            "with a change": lambda: with_topics(
                basic().change(241, metadata_hash=5), more_ms=at_ms(241) - HALF_MINUTE_MS),
            "without topics": lambda: basic().change(241, metadata_hash=5),
        },
    ),
}  # fmt: skip
ORDER: Final[Table[GroupLog]] = {
    "streams_topology_elsewhere": (
        {
            "none": lambda: basic().drop(1),
            "twice": lambda: basic().insert(4, basic().entries[1]),
            "behind the epoch": lambda: basic().swap(1),
        },
        {
            "second": lambda: basic().cut(2),
            "a group made again": lambda: ended().twice(),
            "compacted": lambda: basic().compacted(1),
        },
    ),
    "streams_member_without_epoch": (
        {
            "a member joins": lambda: basic().drop(5),
            "the first one": lambda: basic().drop(2),
            "a member changes": lambda: basic().insert(8, entry(4, client_id="other")),
        },
        {
            "at the end": lambda: basic().cut(14),
            "with a topology": lambda: basic().cut(3),
            "compacted": lambda: basic().compacted(2),
        },
    ),
    "streams_member_end": (
        {
            "without the target": lambda: basic().drop(69),
            "without the assignment": lambda: basic().drop(68),
            "in another order": lambda: basic().swap(69),
            "without an epoch": lambda: basic().cut(232).drop(231).insert(231, entry(232)),
        },
        {
            "at the end": lambda: basic().cut(71),
            "all left": lambda: basic().cut(232),
            "compacted": lambda: basic().cut(72).compacted(51, 55, 58, 59, 66, 68, 69),
        },
    ),
    "streams_outside_membership": (
        {
            "an assignment of nobody": lambda: basic().insert(242, entry(237)),
            "a target of nobody": lambda: basic().insert(10, of_member(8, 13)),
            "the target assignment ends": lambda: basic().insert(200, tombstone(18)),
        },
        {
            "a member that left": lambda: basic().cut(90),
            "the group ends": ended,
            "a member that is compacted": lambda: basic().cut(13).compacted(4),
        },
    ),
    "streams_group_end": (
        {
            "with members": lambda: basic().insert(200, tombstone(18), tombstone(14), tombstone(1)),
            "without the target": lambda: ended().drop(10),
            "without the topology": lambda: ended().drop(12).insert(12, *ended().entries),
            "in another order": lambda: ended().swap(10),
        },
        {
            "ended": ended,
            "made again": lambda: ended().twice(),
            "empty": lambda: ended().cut(10),
        },
    ),
    "streams_slow_revocation": (
        {
            "revoked late": lambda: left_after(306_000),
            "another record": lambda: basic().cut(27).later(25, 306_000),
            "stays in its state": lambda: basic().later(34, 400_000),
        },
        {
            "in time": lambda: left_after(300_000),
            "a timer 4 s late": lambda: left_after(304_000),
            "stable": lambda: basic().cut(13).later(12, 400_000),
        },
    ),
    "streams_overdue_target": (
        {
            "at first": lambda: basic().later(8, 49_000),
            "a member left": lambda: basic().later(72, 49_000),
            "a member joined": lambda: basic().later(29, TWO_MINUTES_MS),
        },
        {
            "30 s": lambda: basic().later(72, HALF_MINUTE_MS),
            "without members": lambda: basic().later(232, TWO_MINUTES_MS),
            "no change": lambda: basic().later(41, TWO_MINUTES_MS),
        },
    ),
    "streams_misplaced_group": (
        {
            str(count): lambda count=count: placed((partition_for_group("app-wc", count) + 1) % count, count)
            for count in (3, 50, 51)
        },
        {
            "3": lambda: placed(partition_for_group("app-wc", 3), 3),
            "50": lambda: placed(partition_for_group("app-wc", 50), 50),
            "of an unknown number": lambda: placed(0, None),
        },
    ),
    "streams_transactional_record": (
        {str(place): lambda place=place: of_producer(basic(), place) for place in (2, 11, 68)},
        {
            "without": basic,
            "of a deleted group": ended,
            "of a migrated group": lambda: recorded("streams-admin", "app-mig"),
        },
    ),
}  # fmt: skip
STREAMS: Final = (EPOCHS, ASSIGNMENTS, TARGETS, CONFIGURATIONS, ORDER)
