"""Questions to a running cluster: what they answer from the broker's own log directory, and what else can happen."""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import AcknowledgeType

from sharelens.cli import main
from sharelens.kafka_live.cluster import Cluster
from sharelens.kafka_live.connection import Connection
from sharelens.kafka_live.log_copy import LogCopy
from tests.broker import running
from tests.broker.running import RunningBroker
from tests.broker.share_clients import SHARE_SETTINGS, new_share_group, share_consumer, work
from tests.broker.test_clients import new_topic, produce
from tests.broker.test_overview import RECORDS, accept, filled
from tests.pages import DOCS

PAGE = DOCS / "how-to" / "ask-a-cluster.md"
CHECKPOINT_S = 0.2
SETTINGS = SHARE_SETTINGS | {"replica_high_watermark_checkpoint_interval_ms": round(CHECKPOINT_S * 1000)}
MOMENTS = ("read_until_ms", "now_ms", "age_ms", "duration_ms")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    running_broker = running.start(tmp_path_factory.mktemp("live") / "log", **SETTINGS)
    yield running_broker
    assert running_broker.stop() == 0, running_broker.problems.read_text()[-2000:]


@pytest.fixture(scope="module")
def groups(broker: RunningBroker) -> tuple[str, str]:
    """A group that is done with its topic, and one that rejected a record of another and released half of it."""
    done, behind = new_share_group(broker), new_share_group(broker)
    topic, other = filled(broker), filled(broker)
    with share_consumer(broker, done, topic) as consumer:
        accept(consumer, RECORDS)
    with share_consumer(broker, behind, other) as consumer:
        work(consumer, lambda message: outcome(message.offset()), lambda messages: len(messages) >= RECORDS)
    time.sleep(2 * CHECKPOINT_S)
    return done, behind


def outcome(offset: int) -> AcknowledgeType:
    if offset == 0:
        return AcknowledgeType.REJECT
    return AcknowledgeType.ACCEPT if offset < RECORDS // 2 else AcknowledgeType.RELEASE


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main([*words, "--output", "json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "question",
    ["state", "lag", "groups", "latency", "life --group {group}",
     "describe --group {group}", "trace --group {group} --topic {topic} --partition 0 --offset 7", "status"],
)  # fmt: skip
def test_a_cluster_answers_what_its_log_directory_answers(broker, groups, question, capsys):
    _, group = groups
    topic = answer(capsys, "state", "--log-dir", str(broker.log_dir), "--group", group)[0]["topic"]
    words = question.format(group=group, topic=topic).split()
    of_cluster = answer(capsys, *words, "--bootstrap-server", broker.bootstrap, "--user-topics", "all")
    of_directory = answer(capsys, *words, "--log-dir", str(broker.log_dir))
    assert without_places(of_cluster) == without_places(of_directory)
    assert of_cluster


def without_places(document: Any) -> Any:
    """The document without the places of the evidence and the ages of records, which grow between two answers."""
    if isinstance(document, dict):
        left_out = {"place", "source", "sources", "log_dirs", "copies", "end_offset_source", *MOMENTS}
        return {name: without_places(value) for name, value in document.items() if name not in left_out}
    return [without_places(entry) for entry in document] if isinstance(document, list) else document


def test_the_lag_needs_no_record_of_a_user_topic(broker, groups, capsys):
    rows = answer(capsys, "lag", "--bootstrap-server", broker.bootstrap)
    assert {row["group_id"]: row["lag"] for row in rows} == {groups[0]: 0, groups[1]: RECORDS // 2}
    unknown = answer(capsys, "lag", "--bootstrap-server", broker.bootstrap, "--user-topics", "none")
    assert {row["lag"] for row in unknown} == {None}


@pytest.mark.parametrize(
    ("question", "count"),
    [("state", "2 of 2 share partitions"), ("lag", "2 of 2 share partitions"), ("audit", "2 of 2 share partitions"),
     ("describe --group {group}", "1 of 1 share partition"), ("describe --members --group {group}", "1 of 1 group")],
)  # fmt: skip
def test_an_answer_about_now_says_that_the_coordinators_say_the_same(broker, groups, question, count, capsys):
    words = question.format(group=groups[1]).split()
    assert main([*words, "--bootstrap-server", broker.bootstrap]) == 0
    printed = capsys.readouterr()
    assert f"compared with the coordinator on node 1: {count} the same" in printed.out
    assert "differ" not in printed.err


def test_settings_are_those_of_the_clusters_groups(broker, groups, capsys):
    (record,) = answer(capsys, "poison", "--bootstrap-server", broker.bootstrap, "--user-topics", "all")
    assert (record["group_id"], record["cause"], record["delivery_count_limit"]) == (groups[1], "rejected", 5)
    assert record["delivery_count_limit_source"] == "default_config"
    words = ("audit", "--bootstrap-server", broker.bootstrap)
    assert not [row for row in answer(capsys, *words)["not_tested"] if "configuration" in str(row)]


def test_commands_in_an_answer_name_the_cluster_and_now_is_the_clock(broker, groups, capsys):
    begun_ms = time.time_ns() // 1_000_000
    document = answer(capsys, "overview", "--bootstrap-server", broker.bootstrap)
    commands = [finding["command"] for finding in document["findings"]]
    assert commands
    assert all(f"--bootstrap-server {broker.bootstrap} " in command for command in commands)
    assert main(["overview", "--bootstrap-server", broker.bootstrap]) == 0
    assert "after the last record" in capsys.readouterr().out
    assert begun_ms <= time.time_ns() // 1_000_000


def test_a_second_reading_fetches_only_what_is_new(broker, tmp_path):
    topic = new_topic(broker)
    produce(broker, topic, [str(number) for number in range(100)])
    with Connection(broker.bootstrap) as connection:
        cluster = Cluster(connection)
        copy = LogCopy(tmp_path / "logs", cluster, most_bytes=1 << 30)
        copy.refresh([cluster.topics()[topic]])
        first = copy.fetched_bytes
        copy.refresh([cluster.topics()[topic]])
        assert copy.fetched_bytes == first > 0
        produce(broker, topic, ["one more"])
        copy.refresh([cluster.topics()[topic]])
    segment = f"{topic}-0/{0:020d}.log"
    assert (copy.folder / segment).read_bytes() == (broker.log_dir / segment).read_bytes()
    assert 0 < copy.fetched_bytes - first < first


def test_a_cluster_without_share_groups_is_one_line(tmp_path, capsys):
    without = running.start(tmp_path / "log", "--feature", "share.version=0")
    try:
        assert main(["state", "--bootstrap-server", without.bootstrap]) == 1
        message = capsys.readouterr().err
        assert "the cluster has no share groups: share.version is 0; turn them on with" in message
        assert message.count("\n") == 1
        lake = tmp_path / "lake"
        assert main(["run", "--lake", str(lake), "--bootstrap-server", without.bootstrap]) == 1
        assert "the cluster has no share groups" in capsys.readouterr().err
        assert not lake.exists() or not list(lake.glob("*/*/_delta_log"))
    finally:
        assert without.stop() == 0


def test_a_cluster_whose_share_groups_were_never_used_has_empty_answers(tmp_path, capsys):
    empty = running.start(tmp_path / "log")
    try:
        assert answer(capsys, "state", "--bootstrap-server", empty.bootstrap) == []
    finally:
        assert empty.stop() == 0


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize(
    ("words", "text", "code"),
    [
        (["state", "--bootstrap-server", "127.0.0.1:{port}"], "the cluster does not answer", 1),
        (["state", "--bootstrap-server", "127.0.0.1:{port}"], "look whether the broker runs there\n", 1),
        (["state", "--bootstrap-server", "no port"], "'no port' is no HOST:PORT; give the address of a listener", 2),
        (["state", "--bootstrap-server", "127.0.0.1:{port},h:65536"], "'h:65536' is no HOST:PORT", 2),
        (["lag", "--bootstrap-server", ":9092"], "':9092' is no HOST:PORT", 2),
        (["run", "--lake", "x", "--log-dir", "y", "--max-bytes", "1"], "--max-bytes goes with --bootstrap-server", 2),
        (["state", "--bootstrap-server", "127.0.0.1:1", "--lake", "x"], "give either --lake DIR", 2),
        (["state", "--bootstrap-server", "127.0.0.1:1", "--include-uncommitted"], "committed records alone", 2),
        (["state", "--log-dir", "x", "--user-topics", "all"], "--user-topics goes with --bootstrap-server", 2),
        (["run", "--lake", "x", "--bootstrap-server", "127.0.0.1:1", "--log-dir", "y"], "exclude each other", 2),
        (["run", "--lake", "x", "--log-dir", "y", "--user-topics", "all"], "goes with --bootstrap-server", 2),
    ],
)
def test_what_can_not_be_read_is_one_line(words, text, code, capsys):
    port = closed_port()
    assert main([word.format(port=port) for word in words]) == code
    message = capsys.readouterr().err
    assert text in message
    assert message.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("state --topic nope", "no topic nope in {place}; topics with share state: t-"),
        ("lag --group nope", "no share group nope in {place}; groups there: g-"),
        ("describe --group nope", "no consumer, share or streams group nope in {place}; groups there: g-"),
        ("locate --topic nope --key k", "no topic nope in {place}; topics there: t-"),
    ],
)
def test_a_name_that_the_cluster_does_not_have_is_a_failure_and_of_a_directory_an_error_of_usage(
    broker, groups, words, text, capsys
):
    for code, source in ((1, ("--bootstrap-server", broker.bootstrap)), (2, ("--log-dir", str(broker.log_dir)))):
        assert main([*words.split(), *source]) == code
        message = capsys.readouterr().err
        assert message.count("\n") == 1
        if code == 1:
            assert text.format(place=broker.bootstrap) in message


def test_records_of_a_topic_that_were_not_fetched_need_an_option(broker, groups, capsys):
    topic = answer(capsys, "state", "--bootstrap-server", broker.bootstrap)[0]["topic"]
    assert main(["locate", "--topic", topic, "--key", "k", "--bootstrap-server", broker.bootstrap]) == 2
    assert "--user-topics all; give that option\n" in capsys.readouterr().err


def test_logs_larger_than_the_limit_are_refused(broker, groups, capsys):
    assert main(["state", "--bootstrap-server", broker.bootstrap, "--max-bytes", "100"]) == 1
    assert "raise --max-bytes" in capsys.readouterr().err


def test_the_page_runs(broker, groups, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    commands = [line for line in PAGE.read_text().splitlines() if line.startswith("sharelens ")]
    assert len(commands) >= 4
    for command in commands:
        line = command.replace("localhost:9092", broker.bootstrap).replace("orders-workers", groups[1])
        assert main(shlex.split(line)[1:]) == 0, line
        assert capsys.readouterr().out


def test_the_copy_goes_with_the_command(broker, groups, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert main(["state", "--bootstrap-server", broker.bootstrap]) == 0
    assert list(Path(tmp_path).iterdir()) == []


def test_the_copy_goes_with_a_command_that_is_terminated(broker, groups, tmp_path):
    command = [sys.executable, "-m", "sharelens", "overview", "--watch", "1s", "--bootstrap-server", broker.bootstrap]
    with subprocess.Popen(command, env=os.environ | {"TMPDIR": str(tmp_path)}, stdout=subprocess.PIPE) as watching:
        assert watching.stdout is not None
        while b"evidence: " not in watching.stdout.readline():
            assert watching.poll() is None
        assert len(list(tmp_path.iterdir())) == 1
        watching.terminate()
        assert watching.wait(30) == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []


def test_doctor_says_that_a_cluster_can_be_read(broker, groups, capsys):
    checks = answer(capsys, "doctor", "--bootstrap-server", broker.bootstrap)
    named = {check["check"]: check["ok"] for check in checks}
    assert named.keys() >= {"cluster", "share-groups", "logs", "read-logs", "read-topics", "rights", "settings"}
    assert all(named.values())


def test_doctor_names_the_rights_that_a_user_lacks(tmp_path, capsys):
    guarded = running.start(
        tmp_path / "log", authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    )
    try:
        assert main(["doctor", "--bootstrap-server", guarded.bootstrap, "--output", "json"]) == 1
        checks = {check["check"]: check for check in json.loads(capsys.readouterr().out)}
        assert checks["cluster"]["ok"]
        assert "no right to describe topic __" in checks["logs"]["detail"]
        assert "--operation Describe --operation DescribeConfigs --cluster" in checks["rights"]["detail"]
    finally:
        assert guarded.stop() == 0
    assert main(["doctor", "--bootstrap-server", f"127.0.0.1:{closed_port()}"]) == 1
    assert "the cluster does not answer" in capsys.readouterr().out


@pytest.mark.soak
def test_an_evidence_folder_is_verified_against_its_cluster(broker, groups, tmp_path, capsys):
    folder, words = str(tmp_path / "case"), ["--bootstrap-server", broker.bootstrap]
    window = ["--from", "2020-01-01T00:00:00Z", "--to", "2100-01-01T00:00:00Z"]
    assert main(["evidence", *words, *window, "--group", groups[1], "--case", "c", "--out", folder]) == 0
    assert main(["verify", folder, *words]) == 0
    assert "the recomputed content is equal" in capsys.readouterr().out
