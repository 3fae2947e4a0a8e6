"""Rules ST-1 to ST-9: epochs of a streams group and of its members."""

from collections.abc import Mapping
from typing import Final

from state_model.audit.group_steps import GroupDifference
from state_model.audit.impact import Impact
from state_model.audit.model_groups import epochs
from state_model.audit.model_groups.history import ModelRecord
from state_model.audit.model_groups.shape import NEEDS_WHOLE_GROUP, differs
from state_model.audit.rule import Field
from state_model.audit.severities import WARNING
from state_model.audit.streams.history import History
from state_model.audit.streams.shape import Check, streams_rule
from state_model.streams.records import METADATA

FIRST_EPOCH: Final = 2
DESCRIPTION_EPOCHS: Final = ("storedDescriptionTopologyEpoch", "failedDescriptionTopologyEpoch")
"""What 4.4 writes again without a new epoch."""


def first_epoch(history: History, record: ModelRecord) -> GroupDifference | None:
    """The first group epoch of a group, if it is not 2."""
    life = history.life
    if not record.is_a(METADATA) or life.metadata is not None or not life.is_whole:
        return None
    epoch = record.number("epoch")
    return None if epoch == FIRST_EPOCH else differs(Field.GROUP_EPOCH, FIRST_EPOCH, epoch)


def epoch_skips(history: History, record: ModelRecord) -> GroupDifference | None:
    """A group epoch that is not the one before plus 1; 4.4 writes it again with other description epochs."""
    difference, before = epochs.epoch_skips(history, record), history.life.metadata
    if difference is None or before is None or record.number("epoch") != before.number("epoch"):
        return difference
    return None if _descriptions(record) != _descriptions(before) else difference


def _descriptions(record: ModelRecord) -> list[object]:
    return [(record.value or {}).get(name) for name in DESCRIPTION_EPOCHS]


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
    1030: epochs.assignment_epoch_order,
    1040: epochs.assignment_epoch_stale,
    1050: epochs.assignment_time,
    1060: epochs.member_epoch_ahead,
    1070: epochs.settled_epoch,
    1080: epochs.previous_epoch,
    1090: epochs.epoch_falls,
}
