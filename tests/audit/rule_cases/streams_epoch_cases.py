"""Mutations of streams groups by rule: epochs."""

from typing import Final

from tests.audit.model_group_log import GroupLog
from tests.audit.rule_cases.cases import Table
from tests.audit.streams_changes import at_ms, basic, ended, entry, with_settings

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
            "sooner than configured": lambda: with_settings(
                basic().change(18, assignment_timestamp=at_ms(10) + 500), assignment_interval_ms=1000),
        },
        {
            "that of the last one": lambda: basic().change(18, assignment_timestamp=at_ms(10)),
            "later than the record": lambda: basic().change(236, assignment_timestamp=at_ms(236) + 9),
            "first": lambda: basic().change(10, assignment_timestamp=1),
            "the configured interval": lambda: with_settings(assignment_interval_ms=1000),
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
