"""kill -9 in a loop under load: what was acknowledged is there after each restart."""

import random
import threading
import time
from collections import defaultdict

import pytest

from sharelens.kafka_formats.messages.api_keys import ApiKey
from sharelens.workloads.check import check
from sharelens.workloads.journal import Journal, read_journal
from sharelens.workloads.load import Amount
from sharelens.workloads.profiles import PROFILES
from sharelens.workloads.run import Workload, WorkloadOptions
from sharelens.workloads.wire import UnreachableError, ask
from tests.broker.workload_runs import Supervised, assert_kafkas_tool_reads, audit_errors, batches_of, read_state

pytestmark = pytest.mark.broker

GROUP, TOPIC = "g-kill", "t-kill"
ACKNOWLEDGED, ARCHIVED = 2, 4
ENDED_STATES = {"accept": ACKNOWLEDGED, "reject": ARCHIVED}
PATIENCE_S = 60
DUMP_TIMEOUT_S = 600


class Confirmed:
    """The acknowledgements that were confirmed so far (a listener to the journal)."""

    def __init__(self):
        self._lock = threading.Lock()
        self._ended = defaultdict(dict)

    def note(self, entry):
        if entry["event"] == "ack" and entry["outcome"] == "confirmed" and entry["type"] in ENDED_STATES:
            with self._lock:
                for offset in entry["offsets"]:
                    self._ended[entry["partition"]][offset] = ENDED_STATES[entry["type"]]

    def now(self):
        """{partition: {offset: delivery state}}"""
        with self._lock:
            return {partition: dict(offsets) for partition, offsets in self._ended.items()}

    def count(self):
        return sum(map(len, self.now().values()))


def until(condition):
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, "it did not come about"
        time.sleep(0.01)


def topic_id(bootstrap):
    answer = ask(bootstrap, ApiKey.METADATA, 12, {"topics": [{"name": TOPIC}]})
    return answer.topics[0].topic_id


def lost(bootstrap, topic, confirmed):
    """The confirmed acknowledgements that the broker does not know."""
    missing = []
    for partition, offsets in confirmed.items():
        actual = read_state(bootstrap, GROUP, topic, partition, leader_epoch=0)
        start, states = actual.start_offset, batches_of(actual)
        missing += [
            (partition, offset, expected, states.get(offset))
            for offset, expected in offsets.items()
            if offset >= start and states.get(offset, (None,))[0] != expected
        ]
    return missing


def reachable_topic_id(bootstrap):
    actual = []

    def is_there():
        try:
            actual[:] = [topic_id(bootstrap)]
        except UnreachableError:
            return False
        return actual[0] is not None

    until(is_there)
    return actual[0]


def kill_in_a_loop(folder, rounds, **settings):
    """What the clients saw of so many kills, and how long the starts took."""
    dice = random.Random(rounds)
    journal, confirmed, is_over = Journal(folder / "journal.jsonl"), Confirmed(), threading.Event()
    journal.listen(confirmed.note)
    problems = []
    with Supervised(folder / "log", [], **settings) as supervised:
        bootstrap = supervised.broker.bootstrap
        requested = WorkloadOptions(
            bootstrap=bootstrap, profile=PROFILES["poison"], amount=Amount(rate=300), seed=3, topic=TOPIC, group=GROUP
        )

        def run():
            try:
                Workload(requested, journal).run(is_over.is_set)
            except Exception as error:
                problems.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            for number in range(rounds):
                enough = confirmed.count() + dice.randint(1, 60)
                until(lambda enough=enough: confirmed.count() >= enough or problems)
                confirmed_states = confirmed.now()
                supervised.broker.process.kill()
                until(lambda number=number: len(supervised.starts_s) == number + 2)
                assert lost(bootstrap, reachable_topic_id(bootstrap), confirmed_states) == []
        finally:
            is_over.set()
            thread.join()
        assert problems == []
        assert lost(bootstrap, topic_id(bootstrap), confirmed.now()) == []
        supervised.stop()
    journal.close()
    return check(read_journal(folder / "journal.jsonl"))


def test_what_was_acknowledged_is_there_after_each_kill(tmp_path):
    checked = kill_in_a_loop(tmp_path, 3)
    assert checked.findings == ()
    assert checked.counts["committed"] > 50
    assert audit_errors(tmp_path / "log", "4.3") == []


@pytest.mark.soak
@pytest.mark.components
def test_kafkas_tool_reads_what_kills_left(tmp_path):
    kill_in_a_loop(tmp_path, 2)
    assert assert_kafkas_tool_reads(tmp_path / "log") > 100


@pytest.mark.soak
def test_what_was_acknowledged_is_there_after_hundreds_of_kills(tmp_path):
    # Kafka's tool looks up every entry of an index from the first one on: with few entries it is done in minutes.
    checked = kill_in_a_loop(tmp_path, 150, log_index_interval_bytes=4_096)
    assert checked.findings == ()
    assert assert_kafkas_tool_reads(tmp_path / "log", timeout_s=DUMP_TIMEOUT_S) > 1_000
