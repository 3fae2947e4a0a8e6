"""What is compared of groups that change their protocol: records, timers, classic groups."""

from collections.abc import Iterable

from sharelens.broker.coordinators.classic_records import StoredMember, read_group
from state_model.consumer.classic_group import ClassicGroup, ClassicMember, Downgrade
from state_model.consumer.migration import CLASSIC_GROUP
from state_model.consumer.records import value_of
from state_model.consumer_protocol import read_assignment, read_version
from state_model.group_forms import name_of
from state_model.group_records import GroupRecord
from tests.components.kafka_group_coordinator import Kafka

TIMERS = ("session-timeout", "rebalance-timeout", "join", "sync")
"""The timers of a member of a consumer group."""


def is_consumer_timer(key: str) -> bool:
    """Whether a timer is one of a consumer group."""
    return key.startswith(tuple(f"{timer}-g-" for timer in TIMERS))


def is_classic_timer(key: str) -> bool:
    """Whether a timer is one of a classic group."""
    return key in ("join-g", "sync-g") or key.startswith("heartbeat-g-")


def in_runs(records: Iterable[GroupRecord]) -> list[tuple[int, bool, str, object]]:
    """Type, whether it is a tombstone, name and value of each record; neighbours of one type by their names."""
    runs: list[list[tuple[int, bool, str, object]]] = []
    for record in records:
        value = None if record.record_type == CLASSIC_GROUP else value_of(record)
        entry = (record.record_type, record.is_tombstone, name_of(record), value)
        if runs and runs[-1][0][:2] == entry[:2]:
            runs[-1].append(entry)
        else:
            runs.append([entry])
    return [entry for run in runs for entry in sorted(run, key=lambda entry: entry[2])]


def stored_values(member: ClassicMember, group: ClassicGroup) -> tuple[object, ...]:
    """What a record of type 2 has of a member, its assignment decoded."""
    metadata = member.metadata(group.protocol_name or "")
    assert metadata is not None
    return comparable_member(
        StoredMember(
            member_id=member.member_id, group_instance_id=member.instance_id, client_id=member.client_id,
            client_host=member.client_host, rebalance_timeout_ms=member.rebalance_timeout_ms,
            session_timeout_ms=member.session_timeout_ms, subscription=metadata, assignment=member.assignment,
        )
    )  # fmt: skip


def comparable_member(member: StoredMember) -> tuple[object, ...]:
    """A stored member, its assignment decoded: topics and partitions have the order of hash tables."""
    return (
        member.group_instance_id, member.client_id, member.client_host, member.rebalance_timeout_ms,
        member.session_timeout_ms, member.subscription, read_version(member.assignment),
        read_assignment(member.assignment),
    )  # fmt: skip


def compare_downgrade(downgrade: Downgrade, record: GroupRecord, kafka: Kafka) -> None:
    """Compare a classic group that was a consumer group with its record and with Kafka's group."""
    stored = read_group(record)
    assert stored is not None
    group = downgrade.group
    assert (stored.protocol_type, stored.generation) == (group.protocol_type, group.generation)
    assert (stored.protocol_name, stored.state_since_ms) == (group.protocol_name, group.state_since_ms)
    assert stored.leader in {each.member_id for each in group.members}
    by_id = {each.member_id: each for each in stored.members}
    assert {each.member_id: stored_values(each, group) for each in group.members} == {
        name: comparable_member(each) for name, each in by_id.items()
    }
    state = kafka.group().currentState().name()
    assert state == ("PREPARING_REBALANCE" if downgrade.rebalances else "STABLE")
    heartbeats = {key: delay for key, delay in kafka.timers.calls if key.startswith("heartbeat-")}
    assert heartbeats == {f"heartbeat-g-{each.member_id}": each.session_timeout_ms for each in group.members}
