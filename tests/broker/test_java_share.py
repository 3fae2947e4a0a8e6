"""Kafka's Java share consumer and its tools for share groups, unmodified, in one JVM."""

import time

import pytest

from tests.broker import running
from tests.broker.java import java_machine
from tests.broker.kafka_tools import CONSOLE_SHARE_CONSUMER, SHARE_GROUPS
from tests.broker.share_clients import LOCK_MS, LONG_LOCK, SHARE_SETTINGS, TIMEOUT_S, configure_group, new_share_group
from tests.broker.test_clients import new_topic, produce

pytestmark = pytest.mark.components


@pytest.fixture(scope="module")
def java():
    return java_machine()


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    running_broker = running.start(tmp_path_factory.mktemp("java") / "log", **SHARE_SETTINGS)
    yield running_broker
    assert running_broker.stop() == 0, running_broker.problems.read_text()[-2000:]


@pytest.fixture
def groups(java, broker):
    """kafka-share-groups: the lines that it prints, one blank between columns."""

    def run(*arguments, code=0):
        done = java.tool(SHARE_GROUPS, "--bootstrap-server", broker.bootstrap, *arguments, code=code)
        return [" ".join(line.split()) for line in done.lines]

    return run


def filled(broker, count=10, partitions=1):
    topic = new_topic(broker, partitions)
    for partition in range(partitions):
        produce(broker, topic, [str(n) for n in range(count)], partition=partition, **{"linger.ms": 1000})
    return topic


def wait_for(consumer):
    """The records of the first poll that has any."""
    deadline_s = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline_s:
        records = consumer.poll()
        if records:
            return records
    raise AssertionError("nothing came")


def accept(consumer, count):
    """Accept so many records; all that came."""
    accepted_records = []
    while len(accepted_records) < count:
        records = wait_for(consumer)
        consumer.acknowledge(records)
        assert set(consumer.commit().values()) == {None}
        accepted_records += records
    return accepted_records


def counts(records):
    return [(*each.place, each.delivery_count) for each in records]


def test_each_kind_of_acknowledgement_does_what_it_says(java, broker):
    topic, group = filled(broker), new_share_group(broker, share_delivery_count_limit=2)
    with java.share_consumer(broker.bootstrap, group, topic) as consumer:
        records = wait_for(consumer)
        assert counts(records) == [(0, offset, 1) for offset in range(10)]
        assert [record.value for record in records] == [str(n) for n in range(10)]
        consumer.acknowledge(records[:4])
        consumer.acknowledge(records[4:6], "RELEASE")
        consumer.acknowledge(records[6:], "REJECT")
        assert consumer.commit() == {(topic, 0): None}
        again = wait_for(consumer)
        assert counts(again) == [(0, 4, 2), (0, 5, 2)]
        consumer.acknowledge(again, "RELEASE")
        assert consumer.commit() == {(topic, 0): None}
        assert consumer.poll() == []


def test_the_last_delivery_before_the_limit_is_made_alone(java, broker):
    topic, group = filled(broker, 2), new_share_group(broker, share_delivery_count_limit=3)
    with java.share_consumer(broker.bootstrap, group, topic) as consumer:
        for expected in ([(0, 0, 1), (0, 1, 1)], [(0, 0, 2), (0, 1, 2)], [(0, 0, 3)], [(0, 1, 3)]):
            records = wait_for(consumer)
            assert counts(records) == expected
            consumer.acknowledge(records, "RELEASE")
            assert consumer.commit() == {(topic, 0): None}
        assert consumer.poll() == []


def test_records_are_acknowledged_one_by_one_with_a_commit_each(java, broker):
    topic, group = filled(broker, 5), new_share_group(broker)
    with java.share_consumer(broker.bootstrap, group, topic) as consumer:
        for record in wait_for(consumer):
            consumer.acknowledge([record], "REJECT" if record.offset == 2 else "ACCEPT")
            assert consumer.commit() == {(topic, 0): None}
        assert consumer.poll() == []


def test_a_renewed_lock_holds_on(java, broker):
    topic, group = filled(broker, 2), new_share_group(broker, share_record_lock_duration_ms=LOCK_MS)
    with java.share_consumer(broker.bootstrap, group, topic) as consumer:
        records = wait_for(consumer)
        began_s = time.monotonic()
        while time.monotonic() - began_s < 2 * LOCK_MS / 1000:
            consumer.acknowledge(records, "RENEW")
            assert consumer.commit() == {(topic, 0): None}
            records = wait_for(consumer)
            assert counts(records) == [(0, 0, 1), (0, 1, 1)]
        consumer.acknowledge(records)
        assert consumer.commit() == {(topic, 0): None}
        assert consumer.poll() == []


def test_renewing_is_refused_where_the_group_forbids_it(java, broker):
    topic, group = filled(broker, 2), new_share_group(broker, share_renew_acknowledge_enable="false")
    with java.share_consumer(broker.bootstrap, group, topic) as consumer:
        consumer.acknowledge(wait_for(consumer), "RENEW")
        assert consumer.commit() == {(topic, 0): "InvalidRequestException"}


def test_the_acquire_modes(java, broker):
    topic = filled(broker, 20)
    limited, unlimited_group = new_share_group(broker), new_share_group(broker)
    limit = {"share_acquire_mode": "record_limit", "max_poll_records": 7}
    with java.share_consumer(broker.bootstrap, limited, topic, **limit) as consumer:
        sizes = []
        while sum(sizes) < 20:
            records = wait_for(consumer)
            sizes.append(len(records))
            consumer.acknowledge(records)
        assert sizes == [7, 7, 6]
    with java.share_consumer(broker.bootstrap, unlimited_group, topic, max_poll_records=7) as consumer:
        assert len(wait_for(consumer)) == 20


def test_acknowledgements_ride_on_the_next_fetch_and_are_called_back(java, broker):
    topic, group = filled(broker, 3), new_share_group(broker)
    output = []

    class Callback:
        def onComplete(self, offsets, problem):  # noqa: N802 - the Java interface's name
            output.append((sorted(offset for of in offsets.values() for offset in of), problem))

        class Java:
            implements = ["org.apache.kafka.clients.consumer.AcknowledgementCommitCallback"]

    with java.share_consumer(broker.bootstrap, group, topic) as consumer:
        consumer.java.setAcknowledgementCommitCallback(Callback())
        consumer.acknowledge(wait_for(consumer))
        deadline_s = time.monotonic() + TIMEOUT_S
        while not output and time.monotonic() < deadline_s:
            consumer.poll()
    assert output == [([0, 1, 2], None)]


def test_implicit_acknowledgement(java, broker):
    topic, group = filled(broker, 3), new_share_group(broker)
    with java.share_consumer(broker.bootstrap, group, topic, share_acknowledgement_mode="implicit") as consumer:
        assert len(wait_for(consumer)) == 3
        assert consumer.commit() == {(topic, 0): None}
        assert consumer.poll() == []


def test_a_late_acknowledgement_is_refused_and_the_record_is_delivered_again(java, broker):
    topic, group = filled(broker, 2), new_share_group(broker, share_record_lock_duration_ms=LOCK_MS)
    with (
        java.share_consumer(broker.bootstrap, group, topic) as late,
        java.share_consumer(broker.bootstrap, group) as other,
    ):
        records = wait_for(late)
        assert counts(records) == [(0, 0, 1), (0, 1, 1)]
        # The lock's time, which is what is tested, and that of a lock for a fetch which the client had sent meanwhile.
        time.sleep(2 * LOCK_MS / 1000 + 1)
        configure_group(broker, group, **LONG_LOCK)  # for the next delivery
        other.subscribe(topic)
        again = wait_for(other)
        assert [record.place for record in again] == [record.place for record in records]
        assert {record.delivery_count for record in again} in ({2}, {3})  # 3: after such a fetch
        late.acknowledge(records)
        assert late.commit() == {(topic, 0): "InvalidRecordStateException"}
        other.acknowledge(again)
        assert other.commit() == {(topic, 0): None}


def test_members_come_and_go(java, broker):
    topic, group = new_topic(broker, 4), new_share_group(broker)
    places_by_member = {"a": [], "b": []}
    produced = 0

    def all_delivered():
        return sum(map(len, places_by_member.values())) == produced

    def serve(name, member):
        records = member.poll(100)
        places_by_member[name] += [record.place for record in records]
        member.acknowledge(records)

    deadline_s = time.monotonic() + TIMEOUT_S
    with java.share_consumer(broker.bootstrap, group, topic) as a:
        with java.share_consumer(broker.bootstrap, group, topic) as b:
            while not all(places_by_member.values()) or not all_delivered():
                assert time.monotonic() < deadline_s, places_by_member
                for partition in () if all(places_by_member.values()) else range(4):
                    produced += len(produce(broker, topic, ["x"], partition=partition))
                serve("a", a)
                serve("b", b)
        for partition in range(4):
            produced += len(produce(broker, topic, ["x"] * 3, partition=partition))
        while not all_delivered():
            assert time.monotonic() < deadline_s, places_by_member
            serve("a", a)
    places = places_by_member["a"] + places_by_member["b"]
    assert len(places) == len(set(places)) == produced


def test_the_console_share_consumer_accepts_releases_and_rejects(java, broker):
    topic, group = filled(broker, 3), new_share_group(broker)

    def read(*how):
        place = ("--bootstrap-server", broker.bootstrap, "--group", group, "--topic", topic)
        limits = ("--max-messages", "3", "--timeout-ms", "8000")
        return java.tool(CONSOLE_SHARE_CONSUMER, *place, *limits, *how).lines

    assert read("--release") == ["0", "1", "2"]
    assert read("--formatter-property", "print.delivery=true") == ["Delivery:2\t0", "Delivery:2\t1", "Delivery:2\t2"]
    produce(broker, topic, ["3", "4", "5"])
    assert read("--reject") == ["3", "4", "5"]


def test_groups_are_listed_and_described_with_members_state_and_offsets(java, broker, groups):
    topic, group = filled(broker, 10, 2), new_share_group(broker)
    with java.share_consumer(broker.bootstrap, group, topic, client_id="worker") as consumer:
        accept(consumer, 20)
        produce(broker, topic, ["x"] * 3, partition=1)
        assert group in groups("--list")
        assert f"{group} Stable" in groups("--list", "--state")
        assert groups("--list", "--state", "dead") == ["GROUP STATE"]
        header, member = groups("--describe", "--group", group, "--members", "--verbose")
        assert header == "GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS MEMBER-EPOCH ASSIGNMENT"
        assert member.split()[2:5] == ["/127.0.0.1", "worker", "2"]
        assert member.endswith(f"{topic}:0,1")
        assert groups("--describe", "--group", group, "--state") == [
            "GROUP COORDINATOR (ID) STATE #MEMBERS",
            f"{group} {broker.bootstrap} (1) Stable 1",
        ]
        assert groups("--describe", "--group", group, "--verbose") == [
            "GROUP TOPIC PARTITION LEADER-EPOCH START-OFFSET LAG",
            f"{group} {topic} 0 0 0 0",
            f"{group} {topic} 1 0 0 3",
        ]
    assert f"{group} Empty" in groups("--list", "--state", "empty")
    assert any(line.startswith(f"{group} {topic} 1") for line in groups("--describe", "--all-groups"))


def test_offsets_are_reset_dry_and_for_real(java, broker, groups):
    topic, group = filled(broker, 10, 2), new_share_group(broker)
    with java.share_consumer(broker.bootstrap, group, topic) as consumer:
        accept(consumer, 20)
    reset = ("--reset-offsets", "--group", group, "--topic", topic)

    def described():
        return groups("--describe", "--group", group)

    def start_and_lag():
        return [tuple(line.split()[-2:]) for line in described()[1:]]

    before = described()
    plan = sorted(["GROUP TOPIC PARTITION NEW-OFFSET", f"{group} {topic} 0 0", f"{group} {topic} 1 0"])
    assert sorted(groups(*reset, "--to-earliest", "--dry-run")) == plan
    assert described() == before
    assert sorted(groups(*reset, "--to-earliest", "--execute")) == plan
    assert start_and_lag() == [("0", "10"), ("0", "10")]
    with java.share_consumer(broker.bootstrap, group, topic) as consumer:
        assert {record.delivery_count for record in accept(consumer, 20)} == {1}
    groups(*reset, "--to-latest", "--execute")
    assert start_and_lag() == [("10", "0"), ("10", "0")]
    one_partition = ("--reset-offsets", "--group", group, "--topic", f"{topic}:1")
    groups(*one_partition, "--to-datetime", "2001-01-01T00:00:00.000", "--execute")
    assert start_and_lag() == [("10", "0"), ("0", "10")]


def test_a_group_with_members_keeps_its_offsets(java, broker, groups):
    topic, group = filled(broker), new_share_group(broker)
    with java.share_consumer(broker.bootstrap, group, topic) as consumer:
        accept(consumer, 10)
        groups("--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute", code=1)
        refusal_lines = groups("--delete-offsets", "--group", group, "--topic", topic, code=None)
        assert refusal_lines[-1] == f"{topic} Error: Group {group} is not empty."
        refusal_lines = groups("--delete", "--group", group, code=None)
        assert refusal_lines[-1].endswith(f"GroupNotEmptyException: Share group '{group}' is not EMPTY.")
        assert groups("--describe", "--group", group)[1:] == [f"{group} {topic} 0 0 0"]


def test_deleted_offsets_and_groups_can_be_created_again(java, broker, groups):
    topic, other, group = filled(broker), filled(broker), new_share_group(broker)
    with java.share_consumer(broker.bootstrap, group, topic, other) as consumer:
        accept(consumer, 20)
    assert groups("--delete-offsets", "--group", group, "--topic", topic)[1:] == [f"{topic} Successful"]
    assert [line.split()[1] for line in groups("--describe", "--group", group)[1:]] == [other]
    deleted = groups("--delete", "--group", group)
    assert deleted == [f"Deletion of requested share groups ('{group}') was successful."]
    assert group not in groups("--list")
    assert groups("--describe", "--group", group, code=None)[-1].endswith(f"Group {group} not found.")
    with java.share_consumer(broker.bootstrap, group, topic) as consumer:
        assert counts(accept(consumer, 10)) == [(0, offset, 1) for offset in range(10)]
