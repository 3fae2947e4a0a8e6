"""Rules ST-1 to ST-9: epochs of a streams group and of its members."""

from collections.abc import Mapping
from typing import Final

from state_model.audit.group_steps import GroupDifference
from state_model.audit.impact import Impact
from state_model.audit.rule import Field
from state_model.audit.severities import WARNING
from state_model.audit.streams.bounds import ASSIGNMENT_INTERVAL
from state_model.audit.streams.history import History, StreamsRecord
from state_model.audit.streams.shape import NEEDS_WHOLE_GROUP, Check, differs, streams_rule
from state_model.streams.records import ASSIGNMENT, METADATA, TARGET
from state_model.streams.values import MemberState

FIRST_EPOCH: Final = 2
DESCRIPTION_EPOCHS: Final = ("storedDescriptionTopologyEpoch", "failedDescriptionTopologyEpoch")
"""What 4.4 writes again without a new epoch."""


def first_epoch(history: History, record: StreamsRecord) -> GroupDifference | None:
    """The first group epoch of a group, if it is not 2."""
    life = history.life
    if not record.is_a(METADATA) or life.metadata is not None or not life.is_whole:
        return None
    epoch = record.number("epoch")
    return None if epoch == FIRST_EPOCH else differs(Field.GROUP_EPOCH, FIRST_EPOCH, epoch)


def epoch_skips(history: History, record: StreamsRecord) -> GroupDifference | None:
    """A group epoch that is not the one before plus 1."""
    before = history.life.metadata
    if not record.is_a(METADATA) or before is None:
        return None
    epoch, expected = record.number("epoch"), before.number("epoch") + 1
    is_rewrite = epoch == expected - 1 and _descriptions(record) != _descriptions(before)
    return None if epoch == expected or is_rewrite else differs(Field.GROUP_EPOCH, expected, epoch, before)


def _descriptions(record: StreamsRecord) -> list[object]:
    return [(record.value or {}).get(name) for name in DESCRIPTION_EPOCHS]


def assignment_epoch_order(history: History, record: StreamsRecord) -> GroupDifference | None:
    """An assignment epoch that does not rise."""
    last = history.life.assignment_epoch
    if not record.is_a(TARGET) or last is None:
        return None
    epoch = record.number("assignmentEpoch")
    return None if epoch > last else differs(Field.ASSIGNMENT_EPOCH, last, epoch, history.life.target)


def assignment_epoch_stale(history: History, record: StreamsRecord) -> GroupDifference | None:
    """An assignment epoch that is not the group epoch."""
    metadata = history.life.metadata
    if not record.is_a(TARGET) or metadata is None:
        return None
    epoch, expected = record.number("assignmentEpoch"), metadata.number("epoch")
    return None if epoch == expected else differs(Field.ASSIGNMENT_EPOCH, expected, epoch, metadata)


def assignment_time(history: History, record: StreamsRecord) -> GroupDifference | None:
    """A target assignment without a time, or with one before that of the last, or sooner than the interval after it."""
    if not record.is_a(TARGET):
        return None
    last, timestamp_ms = history.life.target, record.number("assignmentTimestamp")
    least = 1 if last is None else max(1, last.number("assignmentTimestamp"))
    interval = None if least == 1 else history.bounds(ASSIGNMENT_INTERVAL, least, record.timestamp_ms)
    least += 0 if interval is None else interval[0]
    return None if timestamp_ms >= least else differs(Field.ASSIGNMENT_TIMESTAMP_MS, least, timestamp_ms, last)


def member_epoch_ahead(history: History, record: StreamsRecord) -> GroupDifference | None:
    """A member epoch above the assignment epoch."""
    assignment_epoch = history.life.assignment_epoch
    if not record.is_a(ASSIGNMENT) or assignment_epoch is None:
        return None
    epoch = record.number("memberEpoch")
    return (
        None if epoch <= assignment_epoch else differs(Field.MEMBER_EPOCH, assignment_epoch, epoch, history.life.target)
    )


def settled_epoch(history: History, record: StreamsRecord) -> GroupDifference | None:
    """A member epoch below the assignment epoch without tasks to revoke."""
    expected = history.life.assignment_epoch
    if not record.is_a(ASSIGNMENT) or expected is None:
        return None
    epoch = record.number("memberEpoch")
    if record.number("state") not in (MemberState.STABLE, MemberState.UNRELEASED_TASKS) or epoch == expected:
        return None
    return differs(Field.MEMBER_EPOCH, expected, epoch, history.life.target)


def previous_epoch(history: History, record: StreamsRecord) -> GroupDifference | None:
    """A previous member epoch above the member epoch, or not that of the member's record before."""
    if not record.is_a(ASSIGNMENT):
        return None
    previous, epoch = record.number("previousMemberEpoch"), record.number("memberEpoch")
    last = history.life.assignments.get(record.member_id or "")
    if last is not None:
        expected = last.epoch
    else:
        expected = 0 if history.life.is_whole else previous
    if previous != expected:
        return differs(Field.PREVIOUS_MEMBER_EPOCH, expected, previous, None if last is None else last.record)
    return None if previous <= epoch else differs(Field.PREVIOUS_MEMBER_EPOCH, epoch, previous)


def epoch_falls(history: History, record: StreamsRecord) -> GroupDifference | None:
    """A member epoch below that of the member's record before."""
    last = history.life.assignments.get(record.member_id or "")
    if not record.is_a(ASSIGNMENT) or last is None:
        return None
    epoch = record.number("memberEpoch")
    return None if epoch >= last.epoch else differs(Field.MEMBER_EPOCH, last.epoch, epoch, last.record)


RULES: Final = (
    streams_rule(
        1,
        "streams_first_group_epoch",
        "The first group epoch of a streams group is 2",
        f"A new group is at epoch 1 in memory, and its first member raises it. {NEEDS_WHOLE_GROUP}",
        severity=WARNING,
        remedy="Find out which writer made the group.",
        is_of_whole_logs=True,
    ),
    streams_rule(
        2,
        "streams_group_epoch_skips",
        "The group epoch of a streams group rises by 1",
        "Each change of the group counts once. From 4.4 on a record may repeat it with other description epochs.",
    ),
    streams_rule(
        3,
        "streams_assignment_epoch_order",
        "The assignment epoch of a streams group rises",
        "A target assignment is computed for a newer group epoch alone.",
        relation=">",
    ),
    streams_rule(
        4,
        "streams_assignment_epoch_stale",
        "A new target assignment has the group epoch",
        "It is computed in the operation that raised the epoch, or for the newest epoch later.",
    ),
    streams_rule(
        5,
        "streams_assignment_time",
        "A target assignment has a time, not before that of the last one",
        "The coordinator writes its clock. Where the assignment interval is known (streams.assignment.interval.ms, "
        "--settings or __cluster_metadata), so much lies between them at least.",
        severity=WARNING,
        relation=">=",
        remedy="Check the clocks of the brokers, and the time from which on the files of settings count.",
    ),
    streams_rule(
        6,
        "streams_member_epoch_ahead",
        "The member epoch of a streams group is at most the assignment epoch",
        "Members follow the target assignment; before the first one they are at epoch 1.",
        relation="<=",
    ),
    streams_rule(
        7,
        "streams_member_epoch_behind",
        "A member without tasks to revoke is at the assignment epoch",
        "Reconciliation takes it there, unless it must revoke tasks first (state 2).",
        impact=Impact.STUCK,
    ),
    streams_rule(
        8,
        "streams_previous_member_epoch",
        "The previous member epoch is the member epoch of the record before",
        "It is 0 for a new member. The coordinator accepts a heartbeat with it when an answer was lost.",
    ),
    streams_rule(
        9,
        "streams_member_epoch_falls",
        "The epoch of a member of a streams group does not fall",
        "A member that joins again keeps its epoch.",
        relation=">=",
    ),
)
CHECKS: Final[Mapping[int, Check]] = {
    1010: first_epoch,
    1020: epoch_skips,
    1030: assignment_epoch_order,
    1040: assignment_epoch_stale,
    1050: assignment_time,
    1060: member_epoch_ahead,
    1070: settled_epoch,
    1080: previous_epoch,
    1090: epoch_falls,
}
