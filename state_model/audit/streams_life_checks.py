"""The checks of the rules on the life of streams groups and members: what begins, what ends, in which order."""

from state_model.audit.streams_steps import Outcome, StreamsPast, StreamsRecord, unless
from state_model.java import partition_for_group
from state_model.streams.records import ASSIGNMENT, MEMBER, MEMBER_TARGET, METADATA, TARGET, TOPOLOGY
from state_model.streams.values import MemberMetadata, Topology


def single_topology(past: StreamsPast, record: StreamsRecord) -> Outcome:
    """ST-25."""
    if record.value_as(Topology) is None:
        return None
    is_first = past.topology_records == 0 and past.previous is not None and past.previous.record_type == MEMBER
    return unless(is_first, "one topology, behind the first member", "another place")


def member_topology_epoch(past: StreamsPast, record: StreamsRecord) -> Outcome:
    """ST-26."""
    member = record.value_as(MemberMetadata)
    if member is None or past.topology is None:
        return None
    return unless(member.topology_epoch <= past.topology.epoch, f"at most {past.topology.epoch}", member.topology_epoch)


def member_metadata(past: StreamsPast, record: StreamsRecord) -> Outcome:
    """ST-27."""
    member = record.value_as(MemberMetadata)
    if member is None:
        return None
    holds = bool(member.process_id) and member.rebalance_timeout_ms > 0 and member.instance_id is None
    return unless(holds, "a process, a rebalance timeout, no instance id", "others")


def epoch_after_member(past: StreamsPast, record: StreamsRecord) -> Outcome:
    """ST-28: seen at the record behind the member's."""
    if past.previous is None or past.previous.is_tombstone or record.is_tombstone:
        return None
    behind_member = past.previous.record_type == MEMBER or past.since_epoch[-2:] == [MEMBER, TOPOLOGY]
    if not behind_member:
        return None
    return unless(record.record_type in (METADATA, TOPOLOGY), "a group epoch", f"a record of type {record.record_type}")


def leave_order(past: StreamsPast, record: StreamsRecord) -> Outcome:
    """ST-29."""
    if past.previous is not None and past.previous.is_tombstone and past.previous.record_type == MEMBER:
        is_epoch = record.record_type == METADATA and not record.is_tombstone
        return unless(is_epoch, "a group epoch", f"a record of type {record.record_type}")
    if record.record_type != MEMBER or not record.is_tombstone:
        return None
    return unless(past.since_epoch[-2:] == [ASSIGNMENT, MEMBER_TARGET], "tombstones of types 22 and 21", "others")


def member_life(past: StreamsPast, record: StreamsRecord) -> Outcome:
    """ST-30."""
    if record.record_type in (MEMBER_TARGET, ASSIGNMENT) and not record.is_tombstone:
        return unless(record.member_id in past.members(), "a member", f"{record.member_id} is none")
    if record.record_type in (METADATA, TARGET) and record.is_tombstone:
        return unless(not past.members(), "no member", len(past.members()))
    return None


def deletion_order(past: StreamsPast, record: StreamsRecord) -> Outcome:
    """ST-31."""
    if record.record_type != METADATA or not record.is_tombstone:
        return None
    before = past.previous
    holds = before is not None and before.record_type == TARGET and before.is_tombstone and not past.members()
    return unless(holds, "no member, and the tombstone of type 20 before", "another order")


def misplaced_group(group_id: str, log_partition: int, count: int) -> Outcome:
    """ST-36; `count`: number of partitions of __consumer_offsets."""
    expected = partition_for_group(group_id, count)
    return unless(expected == log_partition, f"partition {expected}", f"partition {log_partition}")
