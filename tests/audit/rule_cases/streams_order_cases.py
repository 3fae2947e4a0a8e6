"""Mutations of streams groups by rule: order, place, time and kind of records."""

from typing import Final

from state_model.java import partition_for_group
from tests.audit.model_group_log import GroupLog, recorded
from tests.audit.rule_cases.cases import Table
from tests.audit.streams_changes import (
    HALF_MINUTE_MS,
    TWO_MINUTES_MS,
    basic,
    ended,
    entry,
    left_after,
    of_member,
    of_producer,
    placed,
    tombstone,
    with_settings,
)

CONFIGURED_MS: Final = {
    "assignment_interval_ms": 1_000,
    "heartbeat_interval_ms": 5_000,
    "initial_rebalance_delay_ms": 3_000,
}
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
            "30 s, which is longer than configured": lambda: with_settings(
                basic().later(72, HALF_MINUTE_MS), **CONFIGURED_MS),
        },
        {
            "30 s": lambda: basic().later(72, HALF_MINUTE_MS),
            "without members": lambda: basic().later(232, TWO_MINUTES_MS),
            "no change": lambda: basic().later(41, TWO_MINUTES_MS),
            "15 s, as configured": lambda: with_settings(basic().later(72, 15_000), **CONFIGURED_MS),
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
