"""A lake from a running cluster, in several runs, holds what a lake from the broker's log directory holds."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import AcknowledgeType
from confluent_kafka.admin import AdminClient

from sharelens.cli import main
from sharelens.kafka_live.cluster import Cluster, Topic
from sharelens.lake.scan import open_lake
from tests.broker import running
from tests.broker.running import RunningBroker
from tests.broker.share_clients import SHARE_SETTINGS, TIMEOUT_S, new_share_group, share_consumer, work
from tests.broker.test_overview import RECORDS, accept, filled
from tests.lakes import CONTENT, content, differences
from tests.processes.in_process import empty_lake

OF_FILES = {"bronze.setting", "silver.name"}
"""Tables of what files of settings and the names of folders say; a cluster says more, or from another time on."""
COMPARED = tuple(name for name in CONTENT if name not in OF_FILES)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RunningBroker]:
    running_broker = running.start(tmp_path / "log", **SHARE_SETTINGS)
    yield running_broker
    assert running_broker.stop() == 0, running_broker.problems.read_text()[-2000:]


def consumed(broker: RunningBroker) -> str:
    """A new group is done with a new topic, whose name it returns."""
    group, topic = new_share_group(broker), filled(broker)
    with share_consumer(broker, group, topic) as consumer:
        accept(consumer, RECORDS)
    return topic


def run(capsys: pytest.CaptureFixture[str], lake: Path, *words: str) -> Any:
    """The summary of a run; the tables of a new lake are copies of empty ones."""
    if not lake.exists():
        shutil.copytree(empty_lake(), lake)
    assert main(["run", "--lake", str(lake), *words]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def judged(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[set[tuple[str, str, int]], set[str]]:
    """The findings of the audit (rule, group, partition), and the rules that it could not test, with a reason each."""
    assert main(["audit", "--severity", "info", *words, "-o", "json"]) in (0, 3)
    answer = json.loads(capsys.readouterr().out)
    findings = {(row["rule"], row["group_id"], row["partition"]) for row in answer["findings"]}
    assert all(row["needs"] for row in answer["not_tested"])
    return findings, {rule for row in answer["not_tested"] for rule in row["rules"]}


def test_a_rule_is_judged_alike_or_not_at_all_where_settings_are_missing(broker, tmp_path, capsys):
    """A cluster tells the delivery count limit, its directory does not: records are archived below it here."""
    group, topic = new_share_group(broker), filled(broker)
    with share_consumer(broker, group, topic) as consumer:
        work(consumer, lambda _: AcknowledgeType.REJECT, lambda messages: len(messages) >= RECORDS)
    live, copied = tmp_path / "live", tmp_path / "copied"
    run(capsys, live, "--bootstrap-server", broker.bootstrap)
    broker.stop()
    run(capsys, copied, "--log-dir", str(broker.log_dir))
    of_cluster, untested_in_cluster = judged(capsys, "--lake", str(live))
    assert {rule for rule, _, _ in of_cluster} == {"archived_below_limit"}
    assert "archived_below_limit" not in untested_in_cluster
    for source in (("--lake", str(copied)), ("--log-dir", str(broker.log_dir))):
        findings, untested = judged(capsys, *source)
        assert findings == {finding for finding in of_cluster if finding[0] not in untested} == set()
        assert "archived_below_limit" in untested
    limit = tmp_path / "server.properties"
    limit.write_text("group.share.delivery.count.limit=5\n", encoding="utf-8")
    os.utime(limit, (0, 0))
    assert judged(capsys, "--log-dir", str(broker.log_dir), "--broker-config", str(limit))[0] == of_cluster


def test_a_lake_from_a_cluster_is_that_from_its_directory(broker, tmp_path, capsys):
    live, copied = tmp_path / "live", tmp_path / "copied"
    of_cluster = ("--bootstrap-server", broker.bootstrap, "--user-topics", "all")
    consumed(broker)
    first = run(capsys, live, *of_cluster)
    consumed(broker)
    second = run(capsys, live, *of_cluster)
    idle = run(capsys, live, *of_cluster)
    assert second["rows"]["bronze.log_record"] > 0
    assert (idle["run_id"], first["gaps"], second["gaps"]) == (None, 0, 0)
    assert all(first["fetched_bytes"].values())
    assert idle["fetched_bytes"] == {"logs": 0, "user_topics": 0}
    broker.stop()
    run(capsys, copied, "--log-dir", str(broker.log_dir))
    assert differences(content(live, COMPARED), content(copied, COMPARED)) == []
    after = run(capsys, live, "--log-dir", str(broker.log_dir))
    assert after["rows"].get("bronze.log_record", 0) == 0


def stop(*_: object) -> None:
    """Ends a run behind its plan. Ctrl-C would end all processes that the tests started, if one has imported Spark."""
    raise MemoryError


@pytest.mark.soak
def test_a_run_that_was_stopped_goes_on_with_the_next_one(broker, tmp_path, capsys, monkeypatch):
    consumed(broker)
    lake = tmp_path / "lake"
    with monkeypatch.context() as patch:
        patch.setattr("jobs.run.Pipeline._read", stop)
        assert main(["run", "--lake", str(lake), "--bootstrap-server", broker.bootstrap]) == 1
    capsys.readouterr()
    done = run(capsys, lake, "--bootstrap-server", broker.bootstrap)
    assert (done["gaps"], done["lost_offsets"]) == (0, 0)
    copied = tmp_path / "copied"
    run(capsys, copied, "--log-dir", str(broker.log_dir))
    state = ("silver.share_record", "gold.share_partition_state", "gold.delivery_history")
    assert differences(content(lake, state), content(copied, state)) == []


@pytest.mark.soak
def test_a_run_fetches_about_as_many_bytes_as_it_may_and_the_next_one_goes_on(broker, tmp_path, capsys):
    live, copied = tmp_path / "live", tmp_path / "copied"
    of_cluster = ("--bootstrap-server", broker.bootstrap, "--user-topics", "all", "--max-bytes", "1")
    consumed(broker)
    runs = [run(capsys, live, *of_cluster)]
    while runs[-1]["run_id"] is not None:
        assert len(runs) < 10
        runs.append(run(capsys, live, *of_cluster))
    assert runs[0]["fetched_bytes"]["user_topics"] == 0 < runs[1]["fetched_bytes"]["user_topics"]
    assert all(summary["gaps"] == 0 for summary in runs)
    broker.stop()
    run(capsys, copied, "--log-dir", str(broker.log_dir))
    assert differences(content(live, COMPARED), content(copied, COMPARED)) == []


def test_a_run_names_groups_that_the_cluster_hides(broker, tmp_path, capsys, monkeypatch):
    consumed(broker)
    monkeypatch.setattr("sharelens.live.cluster.group_ids", lambda _connection: frozenset())
    assert main(["run", "--lake", str(tmp_path / "lake"), "--bootstrap-server", broker.bootstrap]) == 0
    assert capsys.readouterr().err.count("which the cluster does not list") == 1


@pytest.mark.soak
def test_a_run_names_topics_that_the_cluster_hides_but_not_those_that_were_deleted(
    broker, tmp_path, capsys, monkeypatch
):
    hidden, deleted = consumed(broker), consumed(broker)
    with_all = Cluster.topics

    def topics(cluster: Cluster) -> dict[str, Topic]:
        return {name: topic for name, topic in with_all(cluster).items() if name != hidden}

    def lines() -> list[str]:
        assert main(["run", "--lake", str(tmp_path / "lake"), "--bootstrap-server", broker.bootstrap]) == 0
        return [line for line in capsys.readouterr().err.splitlines() if "does not list" in line]

    assert lines() == []
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics([deleted])[deleted].result(TIMEOUT_S)
    assert lines() == []
    monkeypatch.setattr(Cluster, "topics", topics)
    consumed(broker)
    (line,) = lines()
    assert "the log has state of 1 topic (" in line
    assert line.endswith("--operation Describe --topic NAME")


def test_a_cluster_that_is_not_there_leaves_no_lake(tmp_path, capsys):
    assert main(["run", "--lake", str(tmp_path / "lake"), "--bootstrap-server", "127.0.0.1:9"]) == 1
    assert "the cluster does not answer" in capsys.readouterr().err
    assert not (tmp_path / "lake").exists()


@pytest.mark.soak
def test_the_lag_needs_no_record_of_a_user_topic_and_another_cluster_than_named_is_refused(broker, tmp_path, capsys):
    consumed(broker)
    lake = tmp_path / "lake"
    run(capsys, lake, "--bootstrap-server", broker.bootstrap)
    assert main(["lag", "--lake", str(lake), "--output", "json"]) == 0
    assert [row["lag"] for row in json.loads(capsys.readouterr().out)] == [0]
    publication = open_lake(lake).publication
    assert main(["run", "--lake", str(lake), "--bootstrap-server", broker.bootstrap, "--cluster-id", "x"]) == 1
    assert "is of cluster" in capsys.readouterr().err
    assert open_lake(lake).publication == publication
    assert not (lake / ".fetched").exists()


@pytest.mark.soak
def test_a_lake_of_another_cluster_is_refused_unless_the_user_names_the_cluster(broker, tmp_path, capsys):
    lake, other = tmp_path / "lake", running.start(tmp_path / "other", **SHARE_SETTINGS)
    consumed(broker)
    run(capsys, lake, "--bootstrap-server", broker.bootstrap)
    publication = open_lake(lake).publication
    consumed(other)
    words = ("run", "--lake", str(lake), "--bootstrap-server", other.bootstrap)
    assert main([*words]) == 1
    message = capsys.readouterr().err
    assert "the lake is of cluster " in message
    assert message.count("\n") == 1
    assert open_lake(lake).publication == publication
    named = message.rpartition("--cluster-id ")[2].split()[0]
    assert main([*words, "--cluster-id", named]) == 0
    assert json.loads(capsys.readouterr().out)["cluster_id"] == named
    assert other.stop() == 0
