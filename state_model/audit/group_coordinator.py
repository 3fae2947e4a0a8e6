"""Invariants of `__consumer_offsets`, and between it and the state log: rules 66 to 76."""

from collections.abc import Mapping, Sequence
from typing import Final

from state_model.audit.assignment import assigned_unevenly
from state_model.audit.current_assignment import assigned_beyond_target, target_not_assigned
from state_model.audit.group_steps import (
    ASSIGNMENT,
    GROUP,
    MEMBER,
    MEMBER_TARGET,
    STATE_PARTITIONS,
    TARGET,
    GroupCheck,
    GroupDifference,
    GroupRecord,
    GroupState,
    partitions_of,
)
from state_model.audit.impact import Impact
from state_model.audit.periods import Period, lasting, uncovered
from state_model.audit.rule import CHECK_COPY, REPORT_BUG, Difference, Field, Need, Rule
from state_model.audit.severities import ERROR, WARNING
from state_model.group_schemas import PREVIEW_TYPES
from state_model.java import partition_for_group

STABLE: Final = 0
BEFORE_TOMBSTONE: Final[Mapping[int, tuple[int, ...]]] = {
    TARGET: (MEMBER_TARGET,),
    GROUP: (MEMBER, MEMBER_TARGET, ASSIGNMENT, TARGET, STATE_PARTITIONS),
}
"""Record types of a group that must have tombstones before the tombstone of another."""


def initialized_without_state(initialized: Sequence[Period], live: Sequence[Period], evidence: Period) -> Period | None:
    """When a partition is initialized for its group without a live share partition."""
    return uncovered(initialized, live, evidence)


def state_without_group(live: Sequence[Period], listed: Sequence[Period], evidence: Period) -> Period | None:
    """When a share partition lives that its group does not list."""
    return uncovered(live, listed, evidence)


def state_after_group_deletion(live: Sequence[Period], deleted: Sequence[Period], evidence: Period) -> Period | None:
    """When a share partition of a deleted group lives."""
    return lasting(live, deleted, evidence)


def group_epoch_skips(group: GroupState, record: GroupRecord) -> GroupDifference | None:
    """A group epoch that is not that of the record before it plus 1."""
    epoch, before = record.number("epoch"), group.of(GROUP)
    if record.record_type != GROUP or epoch is None or before is None:
        return None
    last = before.number("epoch")
    if last is None or epoch == last + 1:
        return None
    return GroupDifference(Difference(Field.GROUP_EPOCH, last + 1, epoch), before.log_offset)


def epochs_out_of_order(group: GroupState, record: GroupRecord) -> GroupDifference | None:
    """An assignment epoch above the group epoch, or a member epoch above the assignment epoch."""
    if record.record_type == TARGET:
        field, epoch, above = Field.ASSIGNMENT_EPOCH, record.number("assignmentEpoch"), group.of(GROUP)
        max_epoch = None if above is None else above.number("epoch")
    elif record.record_type == ASSIGNMENT:
        field, epoch, above = Field.MEMBER_EPOCH, record.number("memberEpoch"), group.of(TARGET)
        max_epoch = None if above is None else above.number("assignmentEpoch")
    else:
        return None
    if above is None or max_epoch is None or epoch is None or epoch <= max_epoch:
        return None
    return GroupDifference(Difference(field, max_epoch, epoch), above.log_offset)


def assigned_without_state(group: GroupState, record: GroupRecord) -> GroupDifference | None:
    """A target assignment of a partition that the group does not list as initialized."""
    listed = group.of(STATE_PARTITIONS)
    if record.record_type != MEMBER_TARGET or record.value is None or listed is None or listed.value is None:
        return None
    missing = partitions_of(record.value.get("topicPartitions")) - partitions_of(listed.value.get("initializedTopics"))
    if not missing:
        return None
    return GroupDifference(Difference(Field.LISTED, 1, 0), listed.log_offset, min(missing))


def member_state(group: GroupState, record: GroupRecord) -> GroupDifference | None:
    """A member in another state than STABLE."""
    state = record.number("state")
    if record.record_type != ASSIGNMENT or state is None or state == STABLE:
        return None
    return GroupDifference(Difference(Field.MEMBER_STATE, STABLE, state))


def member_tombstones_out_of_order(group: GroupState, record: GroupRecord) -> GroupDifference | None:
    """A tombstone of a member or a group before those of its other records."""
    if not record.is_tombstone:
        return None
    if record.record_type == MEMBER:
        member_records = (group.of(ASSIGNMENT, record.member_id), group.of(MEMBER_TARGET, record.member_id))
        remaining_records = [other for other in member_records if other is not None]
    else:
        remaining_records = list(group.of_type(*BEFORE_TOMBSTONE.get(record.record_type, ())))
    if not remaining_records:
        return None
    first = min(remaining_records, key=lambda other: other.log_offset)
    return GroupDifference(Difference(Field.GROUP_RECORD_TYPE, first.record_type, first.record_type), first.log_offset)


def misplaced_group(group_id: str, log_partition: int, count: int) -> Difference | None:
    """A record of a group in another partition than its id hashes to; `count`: number of partitions."""
    expected = partition_for_group(group_id, count)
    return Difference(Field.GROUP_PARTITION, expected, log_partition) if expected != log_partition else None


def group_in_many_partitions(log_partition_count: int) -> Difference | None:
    """A group whose records lie in more than one partition."""
    return Difference(Field.GROUP_PARTITIONS, 1, log_partition_count) if log_partition_count > 1 else None


def preview_record_type(record_type: int) -> Difference | None:
    """A record type that no release has."""
    if record_type not in PREVIEW_TYPES:
        return None
    return Difference(Field.GROUP_RECORD_TYPE, record_type, record_type)


CHECKS: Final[Mapping[int, GroupCheck]] = {
    700: group_epoch_skips,
    710: epochs_out_of_order,
    720: assigned_without_state,
    721: assigned_unevenly,
    722: assigned_beyond_target,
    723: target_not_assigned,
    730: member_state,
    740: member_tombstones_out_of_order,
}
"""Rules on single records of a group, by rule id."""


RULES = (
    Rule(
        number=66,
        code="initialized_without_state",
        title="Every initialized partition has a live share partition",
        severity=ERROR,
        impact=Impact.STUCK,
        why="The group coordinator marks a partition as initialized once its state is written. A mismatch counts when "
        "it outlasts 60 s in both logs and the topic still exists.",
        remedy="Compare with deletions of the topic around that time.",
        source="consumer-offsets-records, GroupMetadataManager",
        needs=(Need.GROUP_COORDINATOR,),
    ),
    Rule(
        number=66,
        part=1,
        code="no_common_group",
        title="The state log and the group coordinator's log have groups in common",
        severity=ERROR,
        impact=Impact.NONE,
        why="Both logs are about the share groups of one cluster. Where each has groups that the other lacks, "
        "one is of another cluster. Rules 20 and 66 to 68 are left out then.",
        remedy="Copy all logs from one cluster.",
        source="consumer-offsets-records §6",
        needs=(Need.GROUP_COORDINATOR,),
    ),
    Rule(
        number=67,
        code="state_without_group",
        title="Every live share partition is listed by its group",
        severity=WARNING,
        impact=Impact.NONE,
        why="A failed initialization or an interrupted deletion leaves state behind. A mismatch counts when it "
        "outlasts 60 s in both logs.",
        remedy="Nothing to do unless the group is created again: its writes are fenced then.",
        source="consumer-offsets-records, GroupMetadataManager",
        needs=(Need.GROUP_COORDINATOR,),
    ),
    Rule(
        number=68,
        code="state_after_group_deletion",
        title="A deleted group has no live share partition",
        severity=WARNING,
        impact=Impact.NONE,
        why="A deletion covers the partitions that the group lists. State that is left for 60 s counts.",
        remedy="Nothing to do unless the group is created again.",
        source="consumer-offsets-records, GroupMetadataManager delete flow",
        needs=(Need.GROUP_COORDINATOR,),
    ),
    Rule(
        number=69,
        code="unknown_topic_partition",
        title="The topic partition of a live share partition exists",
        severity=ERROR,
        impact=Impact.NONE,
        why="A coordinator creates state of partitions that the metadata has. Deleted ones are left out: tombstones "
        "follow, and a failover may forget them.",
        remedy=REPORT_BUG,
        source="consumer-offsets-records, ShareCoordinatorShard checks",
        needs=(Need.METADATA,),
    ),
    Rule(
        number=69,
        part=1,
        code="log_of_other_cluster",
        title="All logs are of one cluster",
        severity=ERROR,
        impact=Impact.NONE,
        why="Directories name their cluster in meta.properties. The metadata log knows internal topics by their ids, "
        "which other clusters don't have. Logs of another cluster are left out.",
        remedy="Copy all logs from one cluster.",
        source="metadata-log §4",
        needs=(Need.METADATA,),
    ),
    Rule(
        number=70,
        code="group_epoch_skips",
        title="The group epoch rises by 1",
        severity=ERROR,
        impact=Impact.NONE,
        why="Each change of the group counts once. The record before it is there, as compaction "
        "removes the older one first.",
        remedy=REPORT_BUG,
        source="consumer-offsets-records, GroupMetadataManager",
        needs=(Need.GROUP_COORDINATOR,),
    ),
    Rule(
        number=71,
        code="epochs_out_of_order",
        title="Assignment epoch and member epochs are at most the group epoch",
        severity=ERROR,
        relation="<=",
        impact=Impact.NONE,
        why="They follow the group epoch.",
        remedy=REPORT_BUG,
        source="consumer-offsets-records, GroupMetadataManager",
        needs=(Need.GROUP_COORDINATOR,),
    ),
    Rule(
        number=72,
        code="assigned_without_state",
        title="Only initialized partitions are assigned",
        severity=WARNING,
        impact=Impact.STUCK,
        why="SimpleAssignor takes the partitions that are initialized when it computes an assignment.",
        remedy="Nothing to do with a custom assignor, or where the topic was deleted at that moment.",
        source="consumer-offsets-records, SimpleAssignor",
        needs=(Need.GROUP_COORDINATOR,),
    ),
    Rule(
        number=72,
        part=1,
        code="assigned_unevenly",
        title="A partition is assigned to no more members than needed",
        severity=WARNING,
        relation="<=",
        impact=Impact.NONE,
        why="SimpleAssignor shares a partition among ceil(members / partitions) members at most, of the initialized "
        "partitions of their topics. Tested at the end of an assignment of the newest group epoch.",
        remedy="Nothing to do with a custom assignor, or where a topic was deleted at that moment.",
        source="rpcs §3, SimpleAssignor",
        needs=(Need.GROUP_COORDINATOR,),
    ),
    Rule(
        number=72,
        part=2,
        code="assigned_beyond_target",
        title="A member's current assignment lies within its target assignment",
        severity=ERROR,
        impact=Impact.NONE,
        why="A member gets its target as it is, without topics that are gone or that it doesn't subscribe to. Tested "
        "at the epoch of the target assignment.",
        remedy=REPORT_BUG,
        source="consumer-offsets-records §7, ShareGroupAssignmentBuilder",
        needs=(Need.GROUP_COORDINATOR,),
    ),
    Rule(
        number=72,
        part=3,
        code="target_not_assigned",
        title="A member's current assignment is its whole target assignment",
        severity=WARNING,
        impact=Impact.STUCK,
        why="Members of share groups get all of their target at once. Partitions count whose topic the group lists and "
        "the member subscribes to. Tested at the epoch of the target assignment.",
        remedy="Nothing to do where the topic was deleted at that moment; else restart the member, which joins again.",
        source="consumer-offsets-records §7, ShareGroupAssignmentBuilder",
        needs=(Need.GROUP_COORDINATOR,),
    ),
    Rule(
        number=72,
        part=4,
        code="partition_not_in_topic",
        title="A group has and assigns only partitions that their topics have",
        severity=ERROR,
        impact=Impact.NONE,
        why="Assignments and the list of initialized partitions are made from the metadata. Topics count that the "
        "metadata log knows; a partition may be created up to 60 s later, as clocks differ.",
        remedy=REPORT_BUG,
        source="consumer-offsets-records §6-7, SimpleAssignor, GroupMetadataManager",
        needs=(Need.GROUP_COORDINATOR, Need.METADATA),
    ),
    Rule(
        number=73,
        code="member_state",
        title="The state of a share group's member is STABLE",
        severity=ERROR,
        impact=Impact.NONE,
        why="Share groups have no other.",
        remedy=REPORT_BUG,
        source="consumer-offsets-records, GroupMetadataManager",
        needs=(Need.GROUP_COORDINATOR,),
    ),
    Rule(
        number=74,
        code="member_tombstones_out_of_order",
        title="Tombstones of a member and of a group come in order",
        severity=ERROR,
        relation="no",
        impact=Impact.STUCK,
        why="A broker fails to replay another order. Compaction removes a tombstone no earlier than the record that "
        "it ends.",
        remedy=REPORT_BUG,
        source="consumer-offsets-records, GroupMetadataManager.replay",
        needs=(Need.GROUP_COORDINATOR,),
    ),
    Rule(
        number=75,
        code="misplaced_group",
        title="A group's records lie in the partition to which its id hashes",
        severity=ERROR,
        impact=Impact.STUCK,
        why="Brokers look for a group there alone.",
        remedy="Check that all copies are of one cluster.",
        source="consumer-offsets-records, GroupCoordinatorService",
        needs=(Need.GROUP_COORDINATOR,),
    ),
    Rule(
        number=75,
        part=1,
        code="group_in_many_partitions",
        title="All records of a group lie in one partition",
        severity=ERROR,
        impact=Impact.STUCK,
        why="The group's id alone says in which partition its records lie, and brokers look for the group there alone. "
        "Records in two partitions prove it, whatever their number. Share, streams and consumer groups are tested.",
        remedy="Check that all copies are of one cluster and that __consumer_offsets never got more partitions.",
        source="consumer-offsets-records, GroupCoordinatorService",
        needs=(Need.GROUP_COORDINATOR,),
    ),
    Rule(
        number=76,
        code="preview_record_type",
        title="No record has type 9 or 18",
        severity=WARNING,
        relation="no",
        impact=Impact.NONE,
        why="Only preview builds up to 4.1 wrote them.",
        remedy="Find out which broker wrote them.",
        source="consumer-offsets-records, shipped record types",
        needs=(Need.GROUP_COORDINATOR,),
    ),
    Rule(
        number=76,
        part=1,
        code="undecodable_group_record",
        title="Every record of a consumer, share or streams group can be decoded",
        severity=ERROR,
        impact=Impact.STUCK,
        why="The group coordinator alone writes them. A broker fails to load a group whose record is cut short.",
        remedy=CHECK_COPY,
        source="consumer-offsets-records §1, GroupCoordinatorRecordSerde",
        needs=(Need.GROUP_COORDINATOR,),
    ),
)
