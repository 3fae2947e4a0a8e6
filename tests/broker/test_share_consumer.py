"""confluent-kafka's share consumer against a broker: acknowledgements, locks, members that come and go, restarts."""

import time

import pytest
from confluent_kafka import AcknowledgeType, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.broker import running
from tests.broker.share_clients import (
    LOCK_MS,
    LONG_LOCK,
    SHARE_SETTINGS,
    TIMEOUT_S,
    commit,
    configure_group,
    new_share_group,
    place,
    poll,
    share_consumer,
    wait_for,
    work,
)
from tests.broker.test_clients import new_topic, produce

pytestmark = pytest.mark.broker

ACCEPT, RELEASE, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    running_broker = running.start(tmp_path_factory.mktemp("share") / "log", **SHARE_SETTINGS)
    yield running_broker
    assert running_broker.stop() == 0, running_broker.problems.read_text()[-2000:]


def filled(broker, count=10, partitions=1, **config):
    """A topic with `count` records in each partition."""
    topic = new_topic(broker, partitions, **config)
    for partition in range(partitions):
        assert produce(broker, topic, [str(n) for n in range(count)], partition=partition) == list(range(count))
    return topic


def nothing_left(consumer, seconds=1.2):
    """What comes in a while: nothing, when all is done."""
    deadline_s = time.monotonic() + seconds
    while time.monotonic() < deadline_s:
        assert [place(message) for message in poll(consumer)] == []


def counts(messages):
    """How often each place was delivered by the client's count, in the order of delivery."""
    return [(*place(message), message.delivery_count()) for message in messages]


def test_accepted_records_do_not_come_again(broker):
    topic, group = filled(broker, 10, 3), new_share_group(broker)
    with share_consumer(broker, group, topic) as consumer:
        messages = work(consumer, lambda message: ACCEPT, lambda messages: len(messages) >= 30)
        assert sorted(counts(messages)) == [(partition, offset, 1) for partition in range(3) for offset in range(10)]
        assert {message.value() for message in messages} == {str(n).encode() for n in range(10)}
        nothing_left(consumer)
    with share_consumer(broker, group, topic) as other:
        nothing_left(other, 2.5)


def test_released_records_come_again_until_the_limit_and_rejected_ones_never(broker):
    topic, group = filled(broker, 12), new_share_group(broker, share_delivery_count_limit=3)
    decisions = {3: RELEASE, 7: REJECT}
    with share_consumer(broker, group, topic) as consumer:
        messages = work(
            consumer, lambda message: decisions.get(message.offset(), ACCEPT), lambda messages: len(messages) >= 14
        )
        assert [count for count in counts(messages) if count[1] == 3] == [(0, 3, 1), (0, 3, 2), (0, 3, 3)]
        assert sorted(place(message) for message in messages) == sorted([*((0, n) for n in range(12)), (0, 3), (0, 3)])
        nothing_left(consumer)


def test_implicit_acknowledgement_accepts_with_the_next_poll(broker):
    topic, group = filled(broker), new_share_group(broker)
    with share_consumer(broker, group, topic, share_acknowledgement_mode="implicit") as consumer:
        assert len(wait_for(consumer)) == 10
        produce(broker, topic, ["more"])
        assert [place(message) for message in wait_for(consumer)] == [(0, 10)]
        commit(consumer)
        nothing_left(consumer)


def test_a_lock_that_is_over_gives_the_record_to_another_member_and_refuses_the_late_one(broker):
    topic, group = filled(broker, 5), new_share_group(broker, share_record_lock_duration_ms=LOCK_MS)
    with share_consumer(broker, group, topic) as slow:
        stored = wait_for(slow)
        assert len(stored) == 5
        configure_group(broker, group, **LONG_LOCK)  # for the second delivery
        with share_consumer(broker, group, topic) as quick:
            again = wait_for(quick)
            assert counts(again) == [(0, offset, 2) for offset in range(5)]
            for message in stored:
                slow.acknowledge(message, ACCEPT)
            (error,) = slow.commit_sync(float(TIMEOUT_S)).values()
            assert isinstance(error, KafkaException)
            assert error.args[0].code() == KafkaError.INVALID_RECORD_STATE
            for message in again:
                quick.acknowledge(message, ACCEPT)
            commit(quick)
            nothing_left(slow)


def test_a_lock_that_is_over_without_another_member_brings_the_record_back(broker):
    topic, group = (
        filled(broker, 4),
        new_share_group(broker, share_record_lock_duration_ms=LOCK_MS, share_delivery_count_limit=2),
    )
    with share_consumer(broker, group, topic) as forgetful:
        wait_for(forgetful)
        time.sleep(LOCK_MS / 1000 + 0.5)  # the lock's time, which is what is tested
    with share_consumer(broker, group, topic) as consumer:
        messages = work(consumer, lambda message: RELEASE, lambda messages: len(messages) >= 4)
        assert counts(messages) == [(0, offset, 2) for offset in range(4)]
        nothing_left(consumer)


def test_a_member_that_leaves_gives_back_what_it_holds_at_once(broker):
    topic = filled(broker, 6)
    group = new_share_group(broker, share_record_lock_duration_ms=60_000)
    with share_consumer(broker, group, topic) as leaving:
        assert len(wait_for(leaving)) == 6
    with share_consumer(broker, group, topic) as consumer:
        messages = work(consumer, lambda message: ACCEPT, lambda messages: len(messages) >= 6, 10)
        assert counts(messages) == [(0, offset, 2) for offset in range(6)]


def test_members_share_partitions_out_as_they_come_and_go(broker):
    topic, group = new_topic(broker, 4), new_share_group(broker)
    delivered = {"a": [], "b": [], "c": []}
    produced = 0

    def a_round(members, enough=40):
        """Everything produced now is delivered, once, to the members together."""
        nonlocal produced
        for partition in range(4):
            produce(broker, topic, ["x"] * (enough // 4), partition=partition)
        produced += enough
        deadline_s = time.monotonic() + TIMEOUT_S
        while sum(map(len, delivered.values())) < produced:
            assert time.monotonic() < deadline_s, {name: len(places) for name, places in delivered.items()}
            for name, member in members.items():
                messages = poll(member, 0.1)
                for message in messages:
                    member.acknowledge(message)
                if messages:
                    commit(member)
                delivered[name] += [place(message) for message in messages]

    with share_consumer(broker, group, topic) as a:
        a_round({"a": a})
        with share_consumer(broker, group, topic) as b:
            with share_consumer(broker, group, topic) as c:
                deadline_s = time.monotonic() + TIMEOUT_S
                while not all(delivered.values()):
                    assert time.monotonic() < deadline_s, "a member was left without"
                    a_round({"a": a, "b": b, "c": c})
            a_round({"a": a, "b": b})
        a_round({"a": a})
        places = [each for member_places in delivered.values() for each in member_places]
        assert len(places) == len(set(places)) == produced


def test_two_groups_and_two_topics_do_not_disturb_each_other(broker):
    topics = filled(broker, 5), filled(broker, 7)
    for _ in range(2):
        with share_consumer(broker, new_share_group(broker), *topics) as consumer:
            messages = work(consumer, lambda message: ACCEPT, lambda messages: len(messages) >= 12)
        assert sorted((message.topic(), message.offset()) for message in messages) == sorted(
            [*((topics[0], n) for n in range(5)), *((topics[1], n) for n in range(7))]
        )


def test_a_group_begins_with_the_latest_record_where_nothing_else_is_set(broker):
    topic = filled(broker, 5)
    group = f"latest-{topic}"
    with share_consumer(broker, group, topic) as consumer:
        nothing_left(consumer, 3)
        produce(broker, topic, ["new"])
        assert counts(wait_for(consumer)) == [(0, 5, 1)]


def test_a_group_that_reads_committed_records_sees_no_aborted_one(broker):
    topic = new_topic(broker)
    group = new_share_group(broker, share_isolation_level="read_committed")
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": f"tx-{topic}"})
    producer.init_transactions(TIMEOUT_S)
    for end in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        for _ in range(3):
            producer.produce(topic, b"x", partition=0)
        producer.flush(TIMEOUT_S)
        end(TIMEOUT_S)
    with share_consumer(broker, group, topic) as consumer:
        messages = work(consumer, lambda message: ACCEPT, lambda messages: len(messages) >= 6)
        assert [message.offset() for message in messages] == [0, 1, 2, 8, 9, 10]
        nothing_left(consumer)


def test_deleted_records_are_skipped(broker):
    topic, group = filled(broker, 10), new_share_group(broker)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    (future,) = admin.delete_records([TopicPartition(topic, 0, 6)]).values()
    future.result(TIMEOUT_S)
    with share_consumer(broker, group, topic) as consumer:
        messages = work(consumer, lambda message: ACCEPT, lambda messages: len(messages) >= 4)
        assert counts(messages) == [(0, offset, 1) for offset in range(6, 10)]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_come_in_every_codec(broker, codec):
    topic, group = new_topic(broker), new_share_group(broker)
    values = [f"value {number} {'x' * 50}" for number in range(300)]
    produce(broker, topic, values, **{"compression.type": codec, "linger.ms": 20})
    with share_consumer(broker, group, topic) as consumer:
        messages = work(consumer, lambda message: ACCEPT, lambda messages: len(messages) >= 300)
    assert [message.value().decode() for message in messages] == values


def test_a_limit_that_is_lowered_applies_to_the_next_release(broker):
    topic, group = filled(broker, 1), new_share_group(broker, share_delivery_count_limit=5)
    with share_consumer(broker, group, topic) as consumer:
        messages = work(consumer, lambda message: RELEASE, lambda messages: len(messages) >= 3)
        assert counts(messages) == [(0, 0, 1), (0, 0, 2), (0, 0, 3)]
        configure_group(broker, group, share_delivery_count_limit=2)
        # It is available already, and a limit is looked at when a record is given back.
        assert counts(work(consumer, lambda message: RELEASE, lambda messages: len(messages) >= 1)) == [(0, 0, 4)]
        nothing_left(consumer)


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_group_goes_on_after_a_restart_and_after_a_crash(start_broker, end):
    first = start_broker(**SHARE_SETTINGS)
    topic, group = filled(first, 10, 2), new_share_group(first)
    with share_consumer(first, group, topic) as consumer:
        decisions = {2: RELEASE, 3: REJECT}
        done = work(
            consumer, lambda message: decisions.get(message.offset(), ACCEPT), lambda messages: len(messages) >= 20
        )
        assert len(done) == 20
        getattr(first, end)()
        second = start_broker(listen=first.bootstrap, **SHARE_SETTINGS)
        again = work(consumer, lambda message: ACCEPT, lambda messages: len(messages) >= 2)
        # What was released is delivered again; nothing that was accepted or rejected is.
        assert sorted({place(message) for message in again}) == [(0, 2), (1, 2)]
        produce(second, topic, ["new"], partition=1)
        assert [place(message) for message in work(consumer, lambda message: ACCEPT, bool)] == [(1, 10)]
