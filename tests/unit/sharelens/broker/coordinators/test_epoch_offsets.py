"""Who commits and fetches offsets of groups whose members have epochs: for consumer and streams groups alike."""

import pytest
from kio.schema.errors import ErrorCode

from sharelens.broker.coordinators.classic_groups import MemberCall
from sharelens.broker.coordinators.epoch_offsets import commit_error, fetch_error, transactional_error
from sharelens.broker.ports import TopicPartition
from state_model.consumer.heartbeat import Heartbeat as ConsumerHeartbeat
from state_model.group_heartbeat import LEAVING
from state_model.group_schemas import GroupKind
from state_model.streams.heartbeat import Heartbeat as StreamsHeartbeat
from state_model.streams.values import Subtopology, Topology
from tests.broker_parts.broker_groups import Coordinator
from tests.broker_parts.broker_memory import ManualTimers, MemoryCluster

OLD, OLDER, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("audit", 0)


def consumers(coordinator, members):
    for member in members:
        coordinator.timers.advance(1_000)
        coordinator.consumers.heartbeat(
            ConsumerHeartbeat(
                "g",
                member,
                0,
                rebalance_timeout_ms=1_000,
                subscribed_topic_names=frozenset({"orders"}),
                owned=frozenset(),
            ),
            version=1,
        )
    if len(members) > 1:
        coordinator.consumers.heartbeat(ConsumerHeartbeat("g", "m", 2, owned=frozenset()), version=1)
    return coordinator.consumers


def streams(coordinator, members):
    topology = Topology(0, (Subtopology("0", ("orders",), (), (), (), (), ()),))
    for member in members:
        coordinator.timers.advance(1_000)
        coordinator.streams.heartbeat(
            StreamsHeartbeat(
                "g",
                member,
                0,
                rebalance_timeout_ms=1_000,
                topology=topology,
                active_tasks=frozenset(),
                standby_tasks=frozenset(),
                warmup_tasks=frozenset(),
                process_id=member,
            )
        )
    if len(members) > 1:
        none = frozenset()
        beat = StreamsHeartbeat("g", "m", 2, active_tasks=none, standby_tasks=none, warmup_tasks=none)
        coordinator.streams.heartbeat(beat)
    return coordinator.streams


@pytest.fixture(params=[consumers, streams], ids=["consumer", "streams"])
def make_groups(request):
    timers = ManualTimers()
    cluster = MemoryCluster(timers)
    cluster.create("orders", 2)
    cluster.create("audit", 1)
    coordinator = Coordinator(cluster, timers)
    return lambda *members: request.param(coordinator, members)


def call(member_id, epoch):
    return MemberCall(group_id="g", member_id=member_id, generation_id=epoch)


@pytest.mark.parametrize(
    ("member_id", "epoch", "places", "version", "expected"),
    [
        ("m", 3, [OLD, OTHER], 9, "none"),
        ("m", 2, [OLD], 9, "none"),
        ("m", 2, [], 9, "none"),
        ("m", 2, [OLD, OLDER], 9, "stale_member_epoch"),
        ("m", 2, [OTHER], 9, "stale_member_epoch"),
        ("m", 1, [OLD], 9, "stale_member_epoch"),
        ("m", 4, [OLD], 9, "stale_member_epoch"),
        ("m", 3, [OLD], 8, "unsupported_version"),
        ("x", 3, [OLD], 8, "unknown_member_id"),
        ("", -1, [OLD], 9, "unknown_member_id"),
    ],
)
def test_an_older_epoch_commits_what_the_member_has_had_since_then(
    make_groups, member_id, epoch, places, version, expected
):
    groups = make_groups("m", "n")
    assert commit_error(groups, call(member_id, epoch), places, version=version).name == expected
    transactional = {"stale_member_epoch": "illegal_generation", "unsupported_version": "none"}
    if member_id:
        expected = transactional.get(expected, expected)
        assert transactional_error(groups, call(member_id, epoch), places).name == expected


def test_transactions_without_a_member_are_not_checked(make_groups):
    groups = make_groups("m")
    assert transactional_error(groups, call("", -1), [OLD]) is ErrorCode.none
    assert transactional_error(groups, call("", 0), [OLD]) is ErrorCode.unknown_member_id


def test_offsets_of_a_group_without_members_are_anyones(make_groups):
    groups = make_groups("m")
    if groups.kind is GroupKind.CONSUMER:
        groups.heartbeat(ConsumerHeartbeat("g", "m", LEAVING), version=1)
    else:
        groups.heartbeat(StreamsHeartbeat("g", "m", LEAVING))
    assert commit_error(groups, call("m", -1), [OLD], version=2) is ErrorCode.none
    assert transactional_error(groups, call("m", -1), [OLD]) is ErrorCode.none
    assert commit_error(groups, call("m", 2), [OLD], version=9) is ErrorCode.unknown_member_id


@pytest.mark.parametrize(
    ("member_id", "epoch", "expected"),
    [
        (None, -1, "none"),
        ("m", 2, "none"),
        ("m", 1, "stale_member_epoch"),
        ("m", 3, "stale_member_epoch"),
        ("x", 2, "unknown_member_id"),
        ("", -1, "unknown_member_id"),
        (None, 0, "unknown_server_error"),
    ],
)
def test_members_fetch_offsets_in_their_epoch_alone(make_groups, member_id, epoch, expected):
    assert fetch_error(make_groups("m"), "g", member_id, epoch).name == expected
