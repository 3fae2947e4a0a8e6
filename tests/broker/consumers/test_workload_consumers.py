"""The profile of consumer groups with real clients: on the light broker, on a dying one, and on a real Kafka."""

import json
from collections import Counter

import pytest

from bench.brokers import kafka_broker
from sharelens.questions.groups.describe import View, describe
from sharelens.source.request import Source
from sharelens.tables.opening import open_evidence
from sharelens.workloads.admin import WorkloadError
from sharelens.workloads.check import check
from sharelens.workloads.consumers import ConsumerWorkload
from sharelens.workloads.journal import Journal, read_journal
from sharelens.workloads.load import Amount
from sharelens.workloads.profiles import CONSUMER
from sharelens.workloads.run import WorkloadOptions
from tests.broker.workload_runs import Supervised, audit_errors
from tests.broker_parts.dispatched_broker import DispatchedBroker
from tests.broker_parts.group_calls import log_records
from tests.consumer_group_laws import assert_lawful

pytestmark = pytest.mark.components

SETTINGS = {
    "group.consumer.min.session.timeout.ms": 8_000,
    "group.consumer.min.heartbeat.interval.ms": 200,
    "group.consumer.assignment.interval.ms": 0,
    "offsets.topic.num.partitions": 4,
}
LIGHT_SETTINGS = {name.replace(".", "_"): value for name, value in SETTINGS.items()}
CRASHES = [
    (f"append=__consumer_offsets,action={action},after={after}",)
    for action, after in (("crash_after", 10), ("torn", 20), ("crash_before", 20))
]
TOPIC = "t"
ALL = {TOPIC: 4}
EVENLY = {"place-1": {TOPIC: 2}, "place-2": {TOPIC: 2}}


def run(bootstrap, folder, duration_s=6):
    """What a run's journal has, after its check."""
    path = folder / "journal.jsonl"
    amount = Amount(duration_s=duration_s, rate=100)
    journal = Journal(path)
    try:
        ConsumerWorkload(
            WorkloadOptions(bootstrap=bootstrap, profile=CONSUMER, amount=amount, topic=TOPIC, group="g"), journal
        ).run()
    finally:
        journal.close()
    checked = check(read_journal(path))
    assert checked.findings == ()
    assert checked.counts["committed"] > 400
    assert checked.counts["reads"] >= checked.counts["committed"]
    return [json.loads(line) for line in path.read_text().splitlines()]


def assert_the_members_came_and_went(entries):
    events = Counter(entry["event"] for entry in entries)
    assert {name: events[name] for name in ("joined", "left", "killed", "removed")} == {
        "joined": 10, "left": 9, "killed": 1, "removed": 2
    }  # fmt: skip
    settled = [entry for entry in entries if entry["event"] == "settled"]
    assert [sorted(entry["members"]) for entry in settled] == [
        ["classic-1", "classic-2", "member-1"],
        ["classic-2", "member-1"],
        ["member-1"],
        ["member-1", "member-2"],
        ["member-1", "member-2", "member-3"],
        ["member-1", "member-2"],
        ["member-1"],
        ["member-1", "member-2"],
        ["member-1"],
        *[["place-1", "place-2"]] * 3,
        ["pattern-1", "place-1", "place-2"],
        ["pattern-1"],
        [],
    ]
    paused = next(number for number, entry in enumerate(entries) if entry["event"] == "paused")
    assert "member-2" in {entry["member"] for entry in entries[paused:] if entry["event"] == "lost"}
    static = settled[9:12]
    assert [entry["members"] for entry in static] == [EVENLY] * 3
    assert len({entry["group_epoch"] for entry in static}) == 1, "a bounce of static members is no rebalance"
    assert settled[13]["members"] == {"pattern-1": {TOPIC: 4, f"{TOPIC}-more": 4}}
    epochs = [entry["group_epoch"] for entry in settled]
    assert epochs == sorted(epochs)


def assert_the_log_tells_what_the_broker_described(log_dir, entries):
    """At each moment at which the group had settled: state, epoch, and partitions by topic of each client."""
    source = Source(log_dirs=(str(log_dir),), needs_state_log=False)
    with open_evidence(source) as evidence:
        for entry in entries:
            if entry["event"] == "settled":
                at_ms = entry["clock_ms"]
                (state,) = describe(evidence, "g", at_ms, View.STATE).table.to_pylist()
                expected = "STABLE" if entry["members"] else "EMPTY"
                assert (state["state"], state["group_epoch"]) == (expected, entry["group_epoch"])
                members = describe(evidence, "g", at_ms, View.MEMBERS).table.to_pylist()
                assert {row["client_id"]: partition_counts(row) for row in members} == entry["members"]


def partition_counts(row):
    return {each["topic"]: len(each["partitions"]) for each in row["assigned_partitions"]}


def assert_the_log_is_lawful(log_dir, entries):
    """The records of the group, and what the audit finds in the log."""
    broker = DispatchedBroker(log_dir, offsets_topic_num_partitions=4)
    last = [entry["group_epoch"] for entry in entries if entry["event"] == "settled"][-1]
    assert assert_lawful(log_records(broker.broker, "g")) == last
    broker.broker.close()
    assert audit_errors(log_dir, "4.3") == []


def test_members_come_go_are_killed_and_bounced(start_broker, tmp_path):
    broker = start_broker(**LIGHT_SETTINGS)
    entries = run(broker.bootstrap, tmp_path)
    assert_the_members_came_and_went(entries)
    assert broker.stop() == 0
    assert_the_log_is_lawful(broker.log_dir, entries)
    assert_the_log_tells_what_the_broker_described(broker.log_dir, entries)


@pytest.mark.soak
def test_a_broker_that_dies_again_and_again_keeps_epochs_owners_and_commits(tmp_path):
    log_dir = tmp_path / "log"
    with Supervised(log_dir, CRASHES, **LIGHT_SETTINGS) as supervised:
        entries = run(supervised.broker.bootstrap, tmp_path, duration_s=20)
        assert_the_members_came_and_went(entries)
        assert supervised.deaths == len(CRASHES)
        supervised.stop()
    assert_the_log_is_lawful(log_dir, entries)
    assert_the_log_tells_what_the_broker_described(log_dir, entries)


@pytest.mark.soak
def test_a_real_kafka_does_the_same(tmp_path):
    with kafka_broker(tmp_path / "kafka", SETTINGS) as kafka:
        entries = run(kafka.bootstrap, tmp_path)
        assert_the_members_came_and_went(entries)
    assert_the_log_tells_what_the_broker_described(tmp_path / "kafka" / "log", entries)


def test_a_broker_without_the_protocol_is_said_at_once(start_broker, tmp_path):
    broker = start_broker("--feature", "group.version=0", **LIGHT_SETTINGS)
    with pytest.raises(WorkloadError, match="member-1 can't go on: .*version"):
        run(broker.bootstrap, tmp_path)
