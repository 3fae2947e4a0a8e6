"""Ages of records of a running cluster, from single batches: what all headers say, in a fraction of the bytes."""

import json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from prometheus_client.parser import text_string_to_metric_families

from sharelens.cli import main
from tests.broker import running
from tests.broker.live.test_live import answer, outcome, without_places
from tests.broker.running import RunningBroker
from tests.broker.share_clients import SHARE_SETTINGS, TIMEOUT_S, new_share_group, share_consumer, work
from tests.broker.test_clients import new_topic, produce
from tests.broker.test_overview import RECORDS, accept, filled

AGE = "kafka_sharegroup_oldest_incomplete_age_seconds"
LARGE = 400_000
NOT_IN_A_LAKE = {"last_stable_offset": None, "lag_stable": None}
"""What a cluster says of open transactions, and a lake does not keep."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    running_broker = running.start(tmp_path_factory.mktemp("samples") / "log", **SHARE_SETTINGS)
    yield running_broker
    assert running_broker.stop() == 0, running_broker.problems.read_text()[-2000:]


@pytest.fixture(scope="module")
def groups(broker: RunningBroker) -> dict[str, str]:
    """The topic of each of: a group that is done, one that released records, one whose next records nobody reads.

    The unread ones begin with a batch larger than the first two answers that are asked for.
    """
    done, released, silent = (new_share_group(broker) for _ in range(3))
    topics = {done: filled(broker), released: filled(broker), silent: filled(broker)}
    for group in (done, silent):
        with share_consumer(broker, group, topics[group]) as consumer:
            accept(consumer, RECORDS)
    with share_consumer(broker, released, topics[released]) as consumer:
        work(consumer, lambda message: outcome(message.offset()), lambda messages: len(messages) >= RECORDS)
    produce(broker, topics[silent], ["x" * LARGE])
    produce(broker, topics[silent], ["y" * LARGE, "z"])
    return topics


@pytest.fixture(scope="module")
def transactional(broker: RunningBroker) -> dict[str, str]:
    """The topic of each of three groups that read committed records and have done the first transaction's.

    Behind its marker stand: an aborted transaction, an aborted and a committed one, nothing.
    """
    topics = {}
    for number, outcomes in enumerate(((False,), (False, True), ())):
        group, topic = new_share_group(broker, share_isolation_level="read_committed"), new_topic(broker)
        producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": f"of-samples-{number}"})
        producer.init_transactions(TIMEOUT_S)
        transaction(producer, topic, is_committed=True)
        with share_consumer(broker, group, topic) as consumer:
            accept(consumer, RECORDS)
        for is_committed in outcomes:
            transaction(producer, topic, is_committed=is_committed)
        topics[group] = topic
    return topics


def transaction(producer: Producer, topic: str, *, is_committed: bool) -> None:
    producer.begin_transaction()
    for number in range(RECORDS):
        producer.produce(topic, str(number).encode())
    producer.flush(TIMEOUT_S)
    (producer.commit_transaction if is_committed else producer.abort_transaction)(TIMEOUT_S)


def ages(broker: RunningBroker, folder: Path, user_topics: str) -> dict[str, float]:
    return ages_of(folder, "--bootstrap-server", broker.bootstrap, "--user-topics", user_topics)


def ages_of(folder: Path, *source: str) -> dict[str, float]:
    file = folder / "metrics.prom"
    assert main(["metrics", *source, "--output-file", str(file)]) == 0
    families = text_string_to_metric_families(file.read_text())
    return {sample.labels["topic"]: sample.value for each in families for sample in each.samples if sample.name == AGE}


def stalls(
    broker: RunningBroker, capsys: pytest.CaptureFixture[str], user_topics: str, groups: Iterable[str]
) -> list[dict[str, Any]]:
    """Those of some groups; the broker has other tests' groups, whose stalls have ended."""
    rows = stalls_of(capsys, "--bootstrap-server", broker.bootstrap, "--user-topics", user_topics)
    return [row for row in rows if row["group_id"] in groups]


def stalls_of(capsys: pytest.CaptureFixture[str], *source: str) -> list[dict[str, Any]]:
    rows = answer(capsys, "stalled", "--min-duration", "0s", *source)
    compared_fields = ("group_id", "first_incomplete_offset", "since_ms", "since_clock", "until_ms", "end_offset")
    return sorted(({name: row[name] for name in compared_fields} for row in rows), key=json.dumps)


@pytest.mark.soak
def test_ages_and_stalls_are_those_that_all_headers_give(broker, groups, tmp_path, capsys):
    before_s = time.time()
    sampled, full_ages = (ages(broker, tmp_path, user_topics) for user_topics in ("samples", "all"))
    passed_s = time.time() - before_s
    assert sampled.keys() == full_ages.keys()
    assert sampled.keys() & set(groups.values()) == set(list(groups.values())[1:])
    assert all(0 <= full_ages[topic] - age <= passed_s for topic, age in sampled.items())
    assert ages(broker, tmp_path, "none") == {}
    capsys.readouterr()
    assert stalls(broker, capsys, "samples", groups) == stalls(broker, capsys, "all", groups)


@pytest.mark.soak
def test_markers_and_aborted_records_do_not_wait(broker, groups, transactional, tmp_path, capsys):
    transactional_topics, (_, waiting, _) = set(transactional.values()), transactional.values()
    sampled, full_ages = (ages(broker, tmp_path, user_topics) for user_topics in ("samples", "all"))
    assert sampled.keys() & transactional_topics == full_ages.keys() & transactional_topics == {waiting}
    capsys.readouterr()
    rows = stalls(broker, capsys, "samples", transactional)
    assert rows == stalls(broker, capsys, "all", transactional)
    assert [row["group_id"] for row in rows if transactional.get(row["group_id"]) == waiting]


@pytest.mark.soak
def test_aborted_records_wait_for_a_group_that_reads_uncommitted_ones(broker, tmp_path, capsys):
    group, topic = new_share_group(broker), new_topic(broker)
    produce(broker, topic, ["read"])
    with share_consumer(broker, group, topic) as consumer:
        accept(consumer, 1)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "uncommitted"})
    producer.init_transactions(TIMEOUT_S)
    transaction(producer, topic, is_committed=False)
    lake = str(tmp_path / "lake")
    for _ in range(2):
        rows = stalls(broker, capsys, "samples", {group})
        assert rows == stalls(broker, capsys, "all", {group})
        assert [row["first_incomplete_offset"] for row in rows] == [1]
        assert main(["run", "--lake", lake, "--bootstrap-server", broker.bootstrap]) == 0
        capsys.readouterr()
        assert [row for row in stalls_of(capsys, "--lake", lake) if row["group_id"] == group] == rows
        produce(broker, topic, ["behind"])


@pytest.mark.soak
def test_a_lake_has_the_ages_that_the_cluster_gives_and_reads_each_batch_once(
    broker, groups, transactional, tmp_path, capsys
):
    committed, done = new_share_group(broker, share_isolation_level="read_committed"), new_share_group(broker)
    topics = {committed: new_topic(broker), done: new_topic(broker)}
    for group, topic in topics.items():
        produce(broker, topic, ["read"])
        with share_consumer(broker, group, topic) as consumer:
            accept(consumer, 1)
    lake, of_cluster = str(tmp_path / "lake"), ("--bootstrap-server", broker.bootstrap)

    def fetched_bytes() -> int:
        assert main(["run", "--lake", lake, *of_cluster]) == 0
        summary = json.loads(capsys.readouterr().out)
        return summary["fetched_bytes"]["user_topics"]

    def assert_equal_answers() -> None:
        before_s = time.time()
        of_lake, direct = ages_of(tmp_path, "--lake", lake), ages(broker, tmp_path, "samples")
        capsys.readouterr()
        assert of_lake.keys() == direct.keys()
        assert all(-60 <= of_lake[topic] - direct[topic] <= time.time() - before_s for topic in direct)
        assert stalls_of(capsys, "--lake", lake) == stalls_of(capsys, *of_cluster)
        for question in ("lag", "state"):
            rows = (answer(capsys, question, *source) for source in (("--lake", lake), of_cluster))
            of_lake, direct = ([row | NOT_IN_A_LAKE for row in without_places(each)] for each in rows)
            assert of_lake == direct

    assert fetched_bytes() > LARGE
    assert_equal_answers()
    assert main(["stalled", "--lake", lake]) == 0
    assert "look alike there" not in capsys.readouterr().err
    assert fetched_bytes() == 0
    produce(broker, topics[done], ["waits"])
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "of-a-lake"})
    producer.init_transactions(TIMEOUT_S)
    for is_committed in (False, True):
        transaction(producer, topics[committed], is_committed=is_committed)
        assert 0 < fetched_bytes() < LARGE
        assert_equal_answers()
    with share_consumer(broker, done, topics[done]) as consumer:
        accept(consumer, 1)
    assert fetched_bytes() == 0
    assert_equal_answers()


def test_the_lag_up_to_an_open_transaction_needs_no_header(broker, transactional, capsys):
    topic = next(iter(transactional.values()))
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "open"})
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    producer.produce(topic, b"open")
    producer.flush(TIMEOUT_S)
    by_mode = {
        user_topics: {
            row["topic"]: (row["lag"], row["lag_stable"], row["last_stable_offset"])
            for row in answer(capsys, "lag", "--bootstrap-server", broker.bootstrap, "--user-topics", user_topics)
        }
        for user_topics in ("samples", "all")
    }
    producer.abort_transaction(TIMEOUT_S)
    assert by_mode["samples"] == by_mode["all"]
    lag, stable, _ = by_mode["all"][topic]
    assert lag > stable


def test_the_lag_at_a_moment_is_that_by_the_timestamps_of_records(broker, capsys):
    group, topic = new_share_group(broker), filled(broker)
    with share_consumer(broker, group, topic) as consumer:
        work(consumer, lambda message: outcome(message.offset()), lambda messages: len(messages) >= RECORDS)
    moment_ms = time.time_ns() // 1_000_000
    time.sleep(0.01)
    produce(broker, topic, ["later", "and later"])
    with share_consumer(broker, group, topic) as consumer:
        accept(consumer, RECORDS // 2 + 2)
    words = ("lag", "--group", group, "--as-of", str(moment_ms), "--bootstrap-server", broker.bootstrap)
    sampled, full_row = (answer(capsys, *words, "--user-topics", user_topics)[0] for user_topics in ("samples", "all"))
    compared_fields = ("start_offset", "end_offset", "end_offset_inferred", "lag", "lag_inferred")
    assert [sampled[name] for name in compared_fields] == [full_row[name] for name in compared_fields]
    assert (sampled["end_offset_inferred"], sampled["lag_inferred"]) == (RECORDS, RECORDS // 2)
    assert answer(capsys, *words, "--user-topics", "none")[0]["lag_inferred"] is None


def test_a_record_that_nobody_read_is_no_silence_that_looks_like_idleness(broker, groups, capsys):
    words = ("stalled", "--bootstrap-server", broker.bootstrap)
    assert main([*words]) == 0
    assert "look alike there" not in capsys.readouterr().err
    assert main([*words, "--user-topics", "none"]) == 0
    assert "look alike there" in capsys.readouterr().err


def test_measures_that_need_all_headers_say_so(broker, groups, capsys):
    for question in ("latency", "attempts", "poison"):
        assert main([question, "--bootstrap-server", broker.bootstrap]) == 0
        assert "the answer is incomplete" in capsys.readouterr().err


def test_only_batches_of_records_that_wait_are_read_and_their_bytes_are_said(broker, groups, capsys):
    produce(broker, new_topic(broker), ["of no group"])
    assert main(["stalled", "--bootstrap-server", broker.bootstrap]) == 0
    text = capsys.readouterr().out
    size_bytes = int(text.rpartition(" of user topics")[0].rpartition(" ")[2])
    assert LARGE < size_bytes < LARGE + 10_000
