"""Recorded scenarios played again by real clients: our broker writes what the real one wrote.

Each group has one client at a time. It gives the answers that the recorded client gave to the same delivery of the
same record: ACCEPT, RELEASE and REJECT at once, LATE after a while, mostly when the lock is over. Which records come
together differs from run to run, as it does between two runs of the real broker: compared is what was written of each
record in the end and on the way, given the same answers, and the dead letters.
"""

import collections
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import (
    AcknowledgeType,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic

from state_model import group_records, share_records
from state_model.share_records import ShareSnapshot, ShareUpdate
from tests.broker import running
from tests.broker.recordings.recorded import Recorded, histories, shape
from tests.broker.share_clients import TIMEOUT_S, commit, configure_group, poll, share_consumer
from tests.broker.test_clients import consume

pytestmark = pytest.mark.broker

NOT_OURS = ("listener", "controller", "log.dirs", "node.id", "process.roles", "num.io", "num.network", "log.cleaner")
URL_SAFE = str.maketrans("+/", "-_")
QUIET_S = 3.5
"""Two locks long: nothing that is still to come keeps away for so long."""
COUNT = 40
"""Records in each partition, as in a scenario's first round."""


def start(folder, recorded, *options):
    """A broker with the recorded broker's configuration."""
    settings = {
        name.replace(".", "_"): value
        for name, value in recorded.broker_config.items()
        if not any(part in name for part in NOT_OURS)
    }
    return running.start(folder / "log", *options, **settings)


def create(broker, topic, partitions, **config):
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    new = NewTopic(topic, partitions, 1, config={name.replace("_", "."): value for name, value in config.items()})
    admin.create_topics([new])[topic].result(TIMEOUT_S)


def fill(broker, recorded, topic, *, only=None, but=None):
    """The first records of the recorded topic, in all of its partitions, in one, or in the others."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 50})
    for partition, rows in sorted(recorded.user_records(topic).items()):
        if partition == but or only not in (None, partition):
            continue
        for row in rows[:COUNT]:
            producer.produce(topic, row["value"], row["key"], partition=partition)
    assert producer.flush(TIMEOUT_S) == 0


def play(broker, recorded, group, topic):
    """The answers that a client of a group gave to each record, in order, when nothing more comes."""
    values = collections.defaultdict(list)
    quiet_from_s = time.monotonic() + TIMEOUT_S
    with share_consumer(broker, group, topic) as consumer:
        while time.monotonic() < quiet_from_s:
            messages = poll(consumer)
            late = []
            for message in messages:
                place = (group, topic, message.partition())
                answer = recorded.answer(place, message.offset(), message.delivery_count())
                values[place, message.offset()].append(answer)
                if answer == "LATE":
                    late.append(message)
                else:
                    consumer.acknowledge(message, AcknowledgeType[answer])
            if messages:
                answer_late(consumer, late, recorded.late_ms.get(group, 0) / 1000)
                quiet_from_s = time.monotonic() + QUIET_S
    return {at: tuple(answers) for at, answers in values.items()}


def answer_late(consumer, messages, late_s):
    """Send what was acknowledged, and the rest as late as the recorded client: refused when its locks are over."""
    commit(consumer)
    if messages:
        time.sleep(late_s)  # as the recorded client did
        for message in messages:
            consumer.acknowledge(message)
        for error in consumer.commit_sync(float(TIMEOUT_S)).values():
            assert error is None or error.args[0].code() == KafkaError.INVALID_RECORD_STATE


def read_topic(broker, topic):
    """All messages of a topic."""
    probe = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "probe"})
    try:
        for partition in sorted(probe.list_topics(topic, TIMEOUT_S).topics[topic].partitions):
            low, high = probe.get_watermark_offsets(TopicPartition(topic, partition), TIMEOUT_S)
            yield from consume(broker, topic, high - low, partition=partition) if high > low else ()
    finally:
        probe.close()


def state_records(broker):
    """Share partition and value of each record of the state log."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    names = {}
    described = admin.describe_topics(TopicCollection(list(admin.list_topics(timeout=TIMEOUT_S).topics)))
    for name, future in described.items():
        names[str(future.result(TIMEOUT_S).topic_id).translate(URL_SAFE)] = name
    for message in read_topic(broker, "__share_group_state"):
        record = share_records.decode_record(message.key(), message.value())
        yield (record.key.group_id, names[record.key.topic_id], record.key.partition), record.value


def our_histories(states):
    return histories(
        (
            place,
            [
                (each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
                for each in value.state_batches
            ],
        )
        for place, value in states
        if isinstance(value, ShareUpdate)
    )


def group_shapes(broker):
    """The shapes of each group's records."""
    actual = collections.defaultdict(set)
    for message in read_topic(broker, "__consumer_offsets"):
        printed = group_records.to_formatter_json(group_records.decode_record(message.key(), message.value()))
        actual[printed["key"]["data"]["groupId"]].add(shape(printed["key"], printed["value"]))
    return actual


def assert_alike(broker, recorded, played):
    """What was written of the groups' records is what the real broker wrote for the same answers."""
    states = list(state_records(broker))
    written = our_histories(states)
    for group, values in played.items():
        assert len(values) == COUNT * len({place for place, _ in values})
        outcomes = recorded.outcomes(group)
        for at, answers in values.items():
            assert written.get(at, ()) in outcomes[answers], (at, answers, written.get(at), outcomes[answers])
    assert_begun_alike(states, recorded)


def assert_groups_alike(broker, recorded, groups):
    """The groups have records of the same types, with the same fields."""
    shapes = group_shapes(broker)
    for group in groups:
        assert shapes[group] == recorded.kinds(group)


def assert_begun_alike(states, recorded):
    """Each share partition begins with the same snapshot, and updates alone follow."""
    begun, kinds = {}, collections.defaultdict(list)
    for place, value in states:
        kinds[place].append(type(value))
        begun.setdefault(place, value)
    first = {}
    for place, _, value in recorded.state_records():
        first.setdefault(place, value)
    for place, value in begun.items():
        assert set(kinds[place][1:]) <= {ShareUpdate}
        assert isinstance(value, ShareSnapshot)
        ours = (value.snapshot_epoch, value.state_epoch, value.leader_epoch, value.start_offset, value.state_batches)
        theirs = first[place]
        assert ours == (*(theirs[n] for n in ("snapshotEpoch", "stateEpoch", "leaderEpoch", "startOffset")), ())
        assert (value.delivery_complete_count == -1) is ("deliveryCompleteCount" not in theirs)


def play_all(broker, recorded, groups):
    """Play groups, given with their topics, at the same time; their answers by group."""
    with ThreadPoolExecutor(len(groups)) as pool:
        runs = {group: pool.submit(play, broker, recorded, group, topic) for group, topic in groups.items()}
        return {group: run.result() for group, run in runs.items()}


def test_timeouts(tmp_path):
    recorded, groups = Recorded("timeouts"), {"g-poison": "jobs", "g-slow": "slow"}
    broker = start(tmp_path, recorded)
    try:
        for topic, partitions in (("jobs", 3), ("slow", 2)):
            create(broker, topic, partitions)
            fill(broker, recorded, topic)
        for group in groups:
            configure_group(broker, group, **recorded.group_configs[group])
        assert_alike(broker, recorded, play_all(broker, recorded, groups))
        assert_groups_alike(broker, recorded, groups)
        assert broker.stop() == 0
    finally:
        broker.kill()


def letters(broker, topic):
    """Partition and content of each dead letter in a topic."""

    def text(value):
        return None if value is None else value.decode()

    return [
        (
            message.partition(),
            (
                text(message.key()),
                text(message.value()),
                tuple((name, text(value)) for name, value in message.headers()),
            ),
        )
        for message in read_topic(broker, topic)
    ]


def test_dead_letters(tmp_path):
    recorded = Recorded("dlq")
    broker = start(tmp_path, recorded, "--feature", "share.version=2")
    try:
        create(broker, "tasks", 3)
        create(broker, "dlq.tasks", 2, errors_deadletterqueue_group_enable="true")
        create(broker, "dlq.meta", 1, errors_deadletterqueue_group_enable="true")
        create(broker, "dlq.disabled", 1)
        fill(broker, recorded, "tasks")
        for group, config in recorded.group_configs.items():
            configure_group(broker, group, **config)
        played = play_all(broker, recorded, dict.fromkeys(recorded.group_configs, "tasks"))
        assert_alike(broker, recorded, played)
        assert_groups_alike(broker, recorded, played)
        histories_now = our_histories(list(state_records(broker)))
        for topic, group in {"dlq.tasks": "gd-copy", "dlq.meta": "gd-meta", "dlq.auto": "gd-auto"}.items():
            ours, theirs = letters(broker, topic), set(recorded.dead_letters(topic))
            given_up = [at for at, history in histories_now.items() if at[0][0] == group and history[-1][0] == 4]
            assert len(ours) == len(set(ours)) == len(given_up) > 12
            assert set(ours) <= theirs
        assert list(read_topic(broker, "dlq.disabled")) == []
        assert broker.stop() == 0
    finally:
        broker.kill()


def test_without_share_version_2_nothing_is_sent_to_dead_letters(tmp_path):
    recorded = Recorded("dlq")
    broker = start(tmp_path, recorded)
    try:
        create(broker, "tasks", 3)
        fill(broker, recorded, "tasks")
        with pytest.raises(KafkaException, match="deadletterqueue"):
            configure_group(broker, "gd-copy", **recorded.group_configs["gd-copy"])
        configure_group(broker, "gd-none", **recorded.group_configs["gd-none"])
        assert_alike(broker, recorded, play_all(broker, recorded, {"gd-none": "tasks"}))
        topics = AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=TIMEOUT_S).topics
        assert not [topic for topic in topics if topic.startswith("dlq.")]
        assert broker.stop() == 0
    finally:
        broker.kill()
