"""Groups that change their protocol through the whole broker; Kafka's rules are compared in tests/components."""

import asyncio

import pytest
from kio.schema.errors import ErrorCode

from sharelens.broker.coordinators.classic_groups import JoinRequest
from sharelens.broker.coordinators.group_log import GroupLog
from state_model.consumer_protocol import read_assignment, write_assignment
from tests.broker_parts.broker_memory import DISK_FULL
from tests.broker_parts.dispatched_broker import DispatchedBroker
from tests.broker_parts.group_calls import code, log_records
from tests.consumer_subscriptions import subscription_bytes

JOIN, HEARTBEAT, LEAVE, SYNC = (11, 9), (12, 4), (13, 5), (14, 5)
AT_ONCE = {"group_consumer_assignment_interval_ms": 0}


@pytest.fixture
def open_broker(tmp_path):
    brokers = []

    def opened(**settings):
        broker = DispatchedBroker(tmp_path / "log", **AT_ONCE | settings)
        broker.create("in", 4)
        brokers.append(broker)
        return broker

    yield opened
    for broker in brokers:
        broker.close()


class Consumer:
    """A consumer of the classic protocol: `answer` is that of its last JoinGroup, None while it waits."""

    def __init__(self, broker, instance_id=None, rebalance_timeout_ms=60_000):
        self.broker, self.instance_id, self.rebalance_timeout_ms = broker, instance_id, rebalance_timeout_ms
        self.answer, self.member_id, self.owned = None, "", frozenset()

    def join(self):
        protocols = (("range", subscription_bytes(1, ["in"], self.owned)),)
        self.broker.broker.classic_groups.join(
            JoinRequest(
                group_id="g",
                member_id=self.member_id,
                group_instance_id=self.instance_id,
                client_id="c",
                client_host="/127.0.0.1",
                session_timeout_ms=30_000,
                rebalance_timeout_ms=self.rebalance_timeout_ms,
                protocol_type="consumer",
                protocols=protocols,
                requires_known_member=False,
            ),
            self._joined,
        )
        return self.answer

    def _joined(self, answer):
        self.answer, self.member_id = answer, answer.member_id or self.member_id

    def call(self, api, **fields):
        identity = {"group_id": "g", "member_id": self.member_id, "group_instance_id": self.instance_id}

        async def answered():
            return self.broker.call(*api, **identity, generation_id=self.answer.generation_id, **fields)

        return asyncio.run(answered())

    def sync(self, *assignments):
        fields = {"protocol_type": "consumer", "protocol_name": "range", "assignments": list(assignments)}
        answer = self.call(SYNC, **fields)
        if not answer["error_code"].value:
            self.owned = read_assignment(answer["assignment"]).partitions
        return answer["error_code"].value

    def heartbeat(self):
        return self.call(HEARTBEAT)["error_code"].value

    def numbers(self):
        return sorted(number for _, number in self.owned)


def classic_pair(broker, **settings):
    """Two classic members in a stable generation: each has two partitions."""
    pair = [Consumer(broker, **settings), Consumer(broker)]
    for each in pair:
        each.join()
    for _ in range(2):
        broker.timers.advance(3_000)
    leader, follower = sorted(pair, key=lambda each: each.answer.leader != each.member_id)
    assigned = [
        {"member_id": each.member_id, "assignment": write_assignment(1, [("in", 2 * index), ("in", 2 * index + 1)])}
        for index, each in enumerate((leader, follower))
    ]
    assert (leader.sync(*assigned), follower.sync()) == (0, 0)
    return leader, follower


def beat(broker, epoch, member="m", **fields):
    unchanged = {"rebalance_timeout": -1, "subscribed_topic_names": None, "subscribed_topic_regex": None}
    fields = unchanged | {"topic_partitions": None} | fields
    return broker.call(68, 1, group_id="g", member_id=member, member_epoch=epoch, **fields)


def join(broker, member="m", **fields):
    fields = {"rebalance_timeout": 60_000, "subscribed_topic_names": ["in"], "topic_partitions": []} | fields
    return beat(broker, 0, member, **fields)


def listed(broker):
    return [(each["group_state"], each["group_type"]) for each in broker.call(16, 5)["groups"]]


def types(broker, since=0):
    """Type of each record of the group in the log, negative for tombstones."""
    decoded = log_records(broker.broker, "g")
    numbers = [-record.record_type if record.is_tombstone else record.record_type for record in decoded]
    return numbers[since:]


def commit(broker, member, generation, version=9):
    places = [{"name": "in", "partitions": [{"partition_index": 0, "committed_offset": 5}]}]
    fields = {"group_id": "g", "member_id": member, "generation_id_or_member_epoch": generation, "topics": places}
    return broker.call(8, version, **fields)["topics"][0]["partitions"][0]["error_code"].value


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_group_goes_to_the_consumer_protocol_and_back_with_its_partitions(open_broker, is_restarted):
    broker = open_broker()
    first, second = classic_pair(broker)
    since = len(types(broker))
    answer = join(broker)
    assert (code(answer), answer["member_epoch"]) == (0, first.answer.generation_id + 1)
    upgrade = [-2, 5, 5, 3, 7, 7, 6, 8, 8]
    assert types(broker, since)[: len(upgrade)] == upgrade
    if is_restarted:
        broker.restart()
    assert listed(broker) == [("Reconciling", "consumer")]
    for each in (first, second):
        assert each.heartbeat() == 27
        for _ in range(2):
            assert each.join().error_code is ErrorCode.none
            assert each.sync() == 0
        assert each.heartbeat() == 0
    epoch = beat(broker, answer["member_epoch"], topic_partitions=[])["member_epoch"]
    assert listed(broker) == [("Stable", "consumer")]
    assert sum(len(each.owned) for each in (first, second)) == 3
    assert [commit(broker, first.member_id, epoch, version) for version in (8, 9)] == [0, 0]
    assert commit(broker, first.member_id, epoch + 1) == 22
    assert commit(broker, "m", epoch + 1) == 113
    since = len(types(broker))
    assert code(beat(broker, -1)) == 0
    assert types(broker, since) == [-8] * 3 + [-7] * 3 + [-6] + [-5] * 3 + [-4, -3, 2]
    if is_restarted:
        broker.restart()
        assert listed(broker) == [("Stable", "classic")]
        assert commit(broker, first.member_id, epoch) == 0
    else:
        assert listed(broker) == [("PreparingRebalance", "classic")]
        assert first.heartbeat() == 27
        first.join()
        second.join()
        assert {each.answer.generation_id for each in (first, second)} == {epoch + 1}


def test_joins_and_syncs_that_wait_are_sent_to_the_consumer_group(open_broker):
    broker = open_broker()
    first, second = classic_pair(broker)
    first.answer = None
    first.owned = frozenset({("in", 0)})
    assert first.join() is None, "it leads, and waits for the other one"
    assert code(join(broker)) == 0
    assert first.answer.error_code is ErrorCode.rebalance_in_progress
    assert first.join().error_code is ErrorCode.none
    assert broker.broker.classic_groups.get("g") is None
    assert second.heartbeat() == 27


def test_a_classic_member_that_is_told_to_join_and_does_not_is_fenced(open_broker):
    broker = open_broker()
    first, second = classic_pair(broker, rebalance_timeout_ms=40_000)
    slow, other = (first, second) if first.rebalance_timeout_ms == 40_000 else (second, first)
    assert code(join(broker)) == 0
    assert slow.heartbeat() == 27
    for _ in range(3):
        broker.timers.advance(12_000)
        assert slow.heartbeat() == 27
        other.heartbeat()
        beat(broker, 2)
    broker.timers.advance(5_000)
    assert slow.heartbeat() == 25
    assert other.heartbeat() == 27


def test_a_classic_member_that_does_not_sync_is_fenced_and_one_that_is_silent_too(open_broker):
    broker = open_broker(group_consumer_session_timeout_ms="60000")
    assert code(join(broker)) == 0
    silent, unsynced = Consumer(broker), Consumer(broker, rebalance_timeout_ms=10_000)
    for each in (silent, unsynced):
        assert each.join().error_code is ErrorCode.none
    silent.sync()
    broker.timers.advance(11_000)
    assert unsynced.heartbeat() == 25
    assert silent.heartbeat() in (0, 27)
    broker.timers.advance(31_000)
    assert silent.heartbeat() == 25
    assert listed(broker)[0][1] == "consumer"


def test_a_static_consumer_that_a_classic_member_replaces_leaves_a_stable_classic_group(open_broker):
    broker = open_broker()
    answer = join(broker, instance_id="i")
    replacing = Consumer(broker, instance_id="i")
    assert replacing.join().error_code is ErrorCode.none
    assert replacing.answer.generation_id == answer["member_epoch"]
    assert listed(broker) == [("Stable", "classic")]


@pytest.mark.parametrize(
    ("policy", "upgrades", "downgrades", "may_join"),
    [
        ("bidirectional", True, True, True),
        ("upgrade", True, False, True),
        ("downgrade", False, True, True),
        ("disabled", False, False, False),
    ],
)
def test_the_policy_says_which_groups_change(open_broker, policy, upgrades, downgrades, may_join):
    broker = open_broker(group_consumer_migration_policy=policy)
    classic_pair(broker)
    assert code(join(broker)) == (0 if upgrades else 69)
    assert listed(broker)[0][1] == ("consumer" if upgrades else "classic")
    for member in ("m", *(broker.broker.classic_groups.get("g") or broker.broker.consumer_groups.get("g")).members):
        broker.call(*LEAVE, group_id="g", members=[{"member_id": member, "group_instance_id": None}])
    broker.timers.advance(60_000)
    assert code(join(broker)) == 0
    classic = Consumer(broker)
    assert classic.join().error_code.value == (0 if may_join else 23)
    beat(broker, -1)
    assert listed(broker)[0][1] == ("classic" if downgrades and may_join else "consumer")


def test_a_change_that_can_not_be_recorded_leaves_the_group_as_it_is(open_broker, monkeypatch):
    broker = open_broker()
    first, _ = classic_pair(broker)
    with monkeypatch.context() as patch:
        patch.setattr(GroupLog, "append", fail)
        assert code(join(broker)) == 15
    assert listed(broker) == [("Stable", "classic")]
    assert first.heartbeat() == 0
    assert code(join(broker)) == 0
    with monkeypatch.context() as patch:
        patch.setattr(GroupLog, "append", fail)
        assert code(beat(broker, -1)) == 15
    assert listed(broker)[0][1] == "consumer"


def fail(*_):
    raise DISK_FULL


def test_a_classic_member_that_is_refused_gets_no_id(open_broker):
    broker = open_broker(group_consumer_max_size=1)
    join(broker)
    refused = Consumer(broker).join()
    assert (refused.error_code, refused.member_id) == (ErrorCode.group_max_size_reached, "")
