"""The rules ST-1 to ST-37 on streams groups (streams-group §11), and the audit of the records of a group."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from state_model.audit import streams_checks as checks
from state_model.audit import streams_life_checks as life
from state_model.audit.severities import ERROR, WARNING
from state_model.audit.streams_steps import (
    StreamsCheck,
    StreamsDifference,
    StreamsNeed,
    StreamsPast,
    StreamsRecord,
)

WHOLE: Final = (StreamsNeed.WHOLE_LOG,)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsRule:
    """An invariant of the records of a streams group. `check` None: the log alone cannot decide it (`needs`)."""

    number: int
    title: str
    severity: str
    why: str
    needs: tuple[StreamsNeed, ...] = WHOLE
    check: StreamsCheck | None = None

    @property
    def code(self) -> str:
        """The name of the rule: ST-7."""
        return f"ST-{self.number}"


class StreamsFinding(NamedTuple):
    """A record that breaks a rule."""

    rule: StreamsRule
    record: StreamsRecord
    difference: StreamsDifference


def check_group(records: Iterable[StreamsRecord]) -> Iterator[StreamsFinding]:
    """The findings about the records of one group, which come in log order and from the beginning of its log."""
    past = StreamsPast()
    for record in records:
        for rule in RULES:
            difference = None if rule.check is None else rule.check(past, record)
            if difference is not None:
                yield StreamsFinding(rule, record, difference)
        past.apply(record)


def _rule(
    number: int,
    severity: str,
    title: str,
    why: str,
    check: StreamsCheck | None = None,
    needs: tuple[StreamsNeed, ...] = WHOLE,
) -> StreamsRule:
    return StreamsRule(number=number, severity=severity, title=title, why=why, needs=needs, check=check)


RULES: Final[Sequence[StreamsRule]] = (
    _rule(1, WARNING, "The first group epoch is 2", "A new group begins at 1 in memory.", checks.first_group_epoch),
    _rule(2, ERROR, "Group epochs follow each other", "An operation adds 1 at most.", checks.group_epoch_skips),
    _rule(
        3,
        ERROR,
        "Assignment epochs grow, up to the group epoch",
        "A target is computed for a group epoch once.",
        checks.assignment_epoch_order,
    ),
    _rule(
        4,
        ERROR,
        "A target has the group epoch",
        "No target is computed for an older epoch.",
        checks.assignment_epoch_behind,
    ),
    _rule(
        5,
        WARNING,
        "Times of targets do not go back",
        "Steps of the broker's clock; the assignment interval is a setting.",
        checks.assignment_timestamp,
    ),
    _rule(
        6,
        ERROR,
        "A member epoch is not above the assignment epoch",
        "A member reconciles towards the newest target.",
        checks.member_epoch_ahead,
    ),
    _rule(
        7,
        ERROR,
        "A member without tasks to revoke has the assignment epoch",
        "Reconciliation ends in the epoch of the target.",
        checks.member_epoch_settled,
    ),
    _rule(
        8,
        ERROR,
        "The previous member epoch is that of the member's record before",
        "Each reconciliation notes the epoch that it began with; 0 at first.",
        checks.previous_member_epoch,
    ),
    _rule(9, ERROR, "A member epoch never goes back", "A rejoin keeps the epoch.", checks.member_epoch_order),
    _rule(10, ERROR, "A member state is 1, 2 or 3", "Another number is of an unknown writer.", checks.member_state),
    _rule(
        11, ERROR, "Tasks are pending exactly in state 2", "State 2 is the wait for revocation.", checks.pending_state
    ),
    _rule(
        12,
        ERROR,
        "A task is assigned or pending",
        "Kept and revoked tasks are disjoint.",
        checks.assigned_and_pending,
    ),
    _rule(
        13,
        ERROR,
        "Assigned tasks are of the target, in state 1 all of them",
        "A member gets nothing but its target.",
        checks.assigned_of_target,
    ),
    _rule(
        14,
        ERROR,
        "An active task has one owner",
        "Two owners process the same records and write the same state.",
        checks.active_owners,
    ),
    _rule(
        15,
        ERROR,
        "A process has a task once",
        "Copies of a task in one process share a state directory.",
        checks.tasks_of_process,
    ),
    _rule(
        16,
        ERROR,
        "An active task is in one target",
        "The assignor places each active task once.",
        checks.targets_of_active,
    ),
    _rule(
        17,
        ERROR,
        "Targets have as many standby tasks as configured at most",
        "num.standby.replicas of the group; none without a changelog.",
        checks.standby_targets,
    ),
    _rule(
        18,
        ERROR,
        "No process has a task twice in the targets, and every member has a target",
        "The assignor places copies in different processes.",
        checks.targets_of_process,
    ),
    _rule(19, ERROR, "There are no warm-up tasks", "Kafka 4.3 has none.", checks.warmup_tasks, needs=()),
    _rule(
        20,
        ERROR,
        "Assignment epochs of active tasks stay while the task is kept",
        "Offsets of a task are accepted from its assignment epoch on.",
        checks.assignment_epochs,
    ),
    _rule(21, WARNING, "Task lists are sorted", "Kafka's writer sorts them.", checks.sorted_lists, needs=()),
    _rule(
        22,
        ERROR,
        "The validated topology epoch is -1 or that of the topology",
        "Validation is of the group's own topology.",
        checks.validated_epoch,
    ),
    _rule(
        23,
        ERROR,
        "Targets are empty while the topology is not validated",
        "The number of tasks is unknown then.",
        checks.targets_while_not_ready,
    ),
    _rule(
        24,
        ERROR,
        "Tasks are of subtopologies of the topology",
        "Another subtopology has no topics.",
        checks.known_subtopologies,
    ),
    _rule(
        25,
        ERROR,
        "A group has one topology, behind its first member",
        "Topologies cannot be updated in 4.3.",
        life.single_topology,
    ),
    _rule(
        26,
        ERROR,
        "A member's topology is not newer than the group's",
        "A newer one is refused.",
        life.member_topology_epoch,
    ),
    _rule(
        27,
        WARNING,
        "A member has a process, a rebalance timeout and no instance id",
        "Kafka Streams sends both; static members are refused.",
        life.member_metadata,
        needs=(),
    ),
    _rule(
        28,
        ERROR,
        "A member's metadata is followed by a group epoch",
        "A new or changed member starts a rebalance.",
        life.epoch_after_member,
    ),
    _rule(
        29,
        ERROR,
        "A member leaves by tombstones of its assignment, target and metadata, then a group epoch",
        "All leave together; a broken order fails to load.",
        life.leave_order,
    ),
    _rule(
        30,
        ERROR,
        "Targets and assignments are of members",
        "A record of an unknown member fails to load.",
        life.member_life,
    ),
    _rule(
        31,
        ERROR,
        "A group is deleted without members, behind the tombstone of its target",
        "Only empty groups can be deleted.",
        life.deletion_order,
    ),
    _rule(
        32,
        WARNING,
        "The assignment configuration is num.standby.replicas alone, 0 to 2",
        "The maximum is a setting of the brokers.",
        checks.assignment_configs,
        needs=(),
    ),
    _rule(
        33,
        WARNING,
        "The metadata hash changes with the topics alone",
        "It can be computed from ids, partition counts and racks.",
        needs=(StreamsNeed.TOPICS,),
    ),
    _rule(
        34,
        WARNING,
        "Revocation takes no longer than the rebalance timeout",
        "The coordinator fences the member then.",
        checks.revocation_time,
    ),
    _rule(
        35,
        WARNING,
        "A group with members has a target soon",
        "A heartbeat computes it once the assignment interval is over.",
        needs=(StreamsNeed.SETTINGS, StreamsNeed.HEARTBEATS),
    ),
    _rule(
        36,
        ERROR,
        "A group's records are in the partition of its name",
        "`misplaced_group` compares with abs(hash(group)) mod partitions.",
        needs=(),
    ),
    _rule(
        37,
        WARNING,
        "The topics fit the topology while the group has members",
        "Missing topics or other partition counts: the members have no tasks. What lasts 60 s counts.",
        checks.not_validated,
    ),
)
"""All rules, by number."""
