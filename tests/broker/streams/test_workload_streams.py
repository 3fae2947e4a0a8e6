"""The profile of real Kafka Streams clients: what its journal shows, and what the audit says of the log."""

import json
from collections import Counter

import pytest

from sharelens.questions.groups.describe import View, describe
from sharelens.source.request import Source
from sharelens.spark.java import find_java
from sharelens.tables.opening import open_evidence
from sharelens.workloads.application import Java
from sharelens.workloads.check import check
from sharelens.workloads.journal import Journal, read_journal
from sharelens.workloads.load import Amount
from sharelens.workloads.profiles import STREAMS
from sharelens.workloads.run import WorkloadOptions
from sharelens.workloads.streams import StreamsWorkload
from state_model.errors import SharelensError
from tests.broker.workload_runs import SETTINGS, audit_errors
from tools.kafka_streams import streams_class_path

pytestmark = pytest.mark.components

STREAMS_SETTINGS = {
    "group_streams_min_heartbeat_interval_ms": 200,
    "group_streams_min_session_timeout_ms": 2_000,
    "group_streams_initial_rebalance_delay_ms": 300,
}


@pytest.fixture
def java():
    try:
        return Java(program=str(find_java().program), class_path=streams_class_path())
    except SharelensError as error:
        pytest.skip(f"Kafka Streams: {error}")


@pytest.mark.soak
def test_an_application_counts_every_record_once_while_its_instances_come_and_go(start_broker, tmp_path, java):
    broker = start_broker(**SETTINGS, **STREAMS_SETTINGS)
    path = tmp_path / "journal.jsonl"
    options = WorkloadOptions(
        bootstrap=broker.bootstrap, profile=STREAMS, amount=Amount(duration_s=12, rate=100), topic="", group="app"
    )
    journal = Journal(path)
    try:
        StreamsWorkload(options, journal, java).run()
    finally:
        journal.close()
    checked = check(read_journal(path))
    assert checked.findings == ()
    assert checked.counts["counted"] == checked.counts["committed"] > 500
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    events = Counter(entry["event"] for entry in entries)
    assert {name: events[name] for name in ("joined", "left", "killed", "group_deleted")} == {
        "joined": 6, "left": 5, "killed": 1, "group_deleted": 1
    }  # fmt: skip
    at = next(number for number, entry in enumerate(entries) if entry["event"] == "killed")
    settled = next(entry for entry in entries[at:] if entry["event"] == "settled")
    assert settled["at_ms"] - entries[at]["at_ms"] > 2_000, "the group misses a killed instance after its session"
    assert broker.stop() == 0
    assert audit_errors(broker.log_dir, "4.3") == []
    source = Source(log_dirs=(str(broker.log_dir),), needs_state_log=False)
    with open_evidence(source) as evidence:
        (state,) = describe(evidence, "app", None, View.STATE).table.to_pylist()
    last = [entry["group_epoch"] for entry in entries if entry["event"] == "settled"][-1]
    assert (state["state"], state["subtopology_count"], state["group_epoch"]) == ("EMPTY", 1, last + 1)
