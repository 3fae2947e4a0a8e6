"""The command audit over all logs of a directory: what contradicts between them is a finding, never an error."""

import json
import os

import pytest

from sharelens.cli import main
from tests.logs.cluster_logs import (
    END_MS,
    GROUPS,
    MINUTE,
    OTHER_ID,
    group_entries,
    metadata,
    state,
    write_cluster,
    write_orders,
)
from tests.logs.group_files import GroupEntry, epoch, write_group_partition
from tests.logs.metadata_logs import write_metadata
from tests.logs.state_logs import START_MS, STATE_TOPIC, snapshot, tombstone, write_state_partition


@pytest.fixture
def logs(tmp_path):
    return write_cluster(tmp_path / "logs")


def audited(capsys, logs, *words):
    capsys.readouterr()
    assert main(["audit", "--log-dir", str(logs), "--output", "json", *words]) in (0, None)
    return json.loads(capsys.readouterr().out)


def rules(capsys, logs):
    return [row["rule"] for row in audited(capsys, logs)["findings"]]


@pytest.mark.slow
def test_logs_that_agree_have_no_finding_and_all_rules_between_them_are_tested(logs, capsys):
    answer = audited(capsys, logs, "--kafka-version", "4.4")
    assert answer["findings"] == []
    untested = {rule for row in answer["not_tested"] for rule in row["rules"]}
    assert not untested & {"initialized_without_state", "unknown_topic_partition", "batch_beyond_end", "negative_lag"}


def test_missing_logs_switch_their_rules_off(tmp_path, capsys):
    write_state_partition(tmp_path / "logs", state())
    needs = {need for row in audited(capsys, tmp_path / "logs")["not_tested"] for need in row["needs"]}
    assert {"__consumer_offsets", "__cluster_metadata", "the logs of the user topics"} <= needs


@pytest.mark.slow
def test_group_records_of_another_cluster_are_one_finding(logs, capsys):
    write_group_partition(logs, group_entries(("stock", "fraud", "billing")))
    (row,) = audited(capsys, logs)["findings"]
    assert row["rule"] == "no_common_group"
    assert {record["topic"] for record in row["records"]} == {"__share_group_state", "__consumer_offsets"}


@pytest.mark.slow
@pytest.mark.parametrize("other", [{"state_id": OTHER_ID}, {"offsets_id": OTHER_ID}])
def test_a_metadata_log_of_another_cluster_is_a_finding(logs, capsys, other):
    write_metadata(logs, metadata(**other))
    assert rules(capsys, logs) == ["log_of_other_cluster"]


@pytest.mark.slow
def test_a_state_topic_that_was_created_again_is_a_finding(logs, capsys):
    write_metadata(logs, metadata(again=[(STATE_TOPIC, OTHER_ID)]))
    assert rules(capsys, logs) == ["state_topic_created_again"]


def test_a_state_topic_that_was_created_again_behind_the_metadata_log_is_of_its_cluster(tmp_path, capsys):
    write_state_partition(tmp_path / "node1", state())
    write_metadata(tmp_path / "node2", [(START_MS - MINUTE, value) for _, value in metadata(OTHER_ID)[:3]])
    words = ("--log-dir", str(tmp_path / "node2"))
    findings = audited(capsys, tmp_path / "node1", *words)["findings"]
    assert [row["rule"] for row in findings] == ["state_topic_created_again"]


def of_cluster(logs, cluster_id):
    (logs / "meta.properties").write_text(f"version=1\ncluster.id={cluster_id}\nnode.id=1\n", encoding="utf-8")
    return logs


@pytest.mark.slow
def test_log_directories_of_another_cluster_are_a_finding_and_nothing_else_of_them_is_read(logs, tmp_path, capsys):
    other = tmp_path / "other"
    write_group_partition(other, group_entries(("stock", "fraud", "billing")))
    of_cluster(logs, "a")
    (row,) = audited(capsys, logs, "--log-dir", str(of_cluster(other, "b")))["findings"]
    assert (row["rule"], row["severity"]) == ("log_of_other_cluster", "error")
    assert row["records"] == [{"topic": "__consumer_offsets", "partition": 0, "offset": 0}]


def test_state_logs_of_two_clusters_are_refused(tmp_path, capsys):
    words = []
    for name in ("a", "b"):
        write_state_partition(tmp_path / name, state())
        words += ["--log-dir", str(of_cluster(tmp_path / name, name))]
    assert main(["audit", *words]) == 2
    assert "log directories of different clusters" in capsys.readouterr().err


def test_two_incarnations_of_the_state_topic_are_a_finding(tmp_path, capsys):
    write_state_partition(tmp_path / "logs", state())
    write_state_partition(tmp_path / "logs", state(), number=1, topic_id=OTHER_ID)
    assert rules(capsys, tmp_path / "logs") == ["state_topic_created_again"]


@pytest.mark.slow
def test_a_topic_that_ends_before_its_state_is_a_finding(logs, capsys):
    write_orders(logs, count=1)
    findings = audited(capsys, logs)["findings"]
    assert {row["rule"] for row in findings} == {"start_offset_beyond_end", "negative_lag"}
    assert {"topic": "orders", "partition": 0, "offset": 0} in findings[0]["records"]


def test_a_topic_that_was_copied_before_its_state_is_none(logs, capsys):
    write_orders(logs, last_ms=END_MS, count=1)
    assert rules(capsys, logs) == []


@pytest.mark.slow
def test_a_coordinator_that_forgot_a_share_partition_is_found(logs, capsys):
    write_state_partition(logs, [record for record in state() if record["group_id"] != "mail"])
    (row,) = audited(capsys, logs)["findings"]
    assert (row["rule"], row["group_id"], row["topic"]) == ("initialized_without_state", "mail", "orders")


@pytest.mark.slow
def test_findings_of_a_group_are_those_that_name_it(logs, capsys):
    write_group_partition(logs, [*group_entries(), GroupEntry(END_MS, 11, epoch(2), "mail")])
    assert [row["rule"] for row in audited(capsys, logs, "--group", "mail")["findings"]] == ["group_epoch_skips"]
    assert audited(capsys, logs, "--group", "orders")["findings"] == []


@pytest.mark.slow
def test_text_names_the_topic_of_a_record_that_is_of_no_state_log(logs, capsys):
    write_group_partition(logs, [*group_entries(), GroupEntry(END_MS, 11, epoch(2), "mail")])
    capsys.readouterr()
    main(["audit", "--log-dir", str(logs), "--rule", "70"])
    assert "__consumer_offsets-0:4 __consumer_offsets-0:9" in capsys.readouterr().out


@pytest.mark.slow
def test_the_coordinators_configuration_counts_from_the_time_of_its_file(logs, tmp_path, capsys):
    early = snapshot("mail", epoch=1, state_epoch=2, at_ms=END_MS, write_timestamp_ms=START_MS + 10)
    write_state_partition(logs, [*state(), early])
    config = tmp_path / "server.properties"
    config.write_text("share.coordinator.cold.partition.snapshot.interval.ms=20\n", encoding="utf-8")
    answers = {}
    for written_ms in (START_MS, END_MS + MINUTE):
        os.utime(config, (written_ms / 1000, written_ms / 1000))
        answers[written_ms] = audited(capsys, logs, "--rule", "57", "--broker-config", str(config))["findings"]
    (row,) = answers[START_MS]
    assert (row["rule"], row["expected"]) == ("cold_snapshot_too_early", f">= {START_MS + 20}")
    assert answers[END_MS + MINUTE] == []


@pytest.mark.slow
def test_a_partition_that_was_copied_earlier_than_others_is_known_no_longer(tmp_path, capsys):
    """The group coordinator's log of one node is ten minutes older than the state log of the other."""
    first = [entry for entry in group_entries() if entry.time_ms == START_MS]
    write_group_partition(tmp_path / "node1", first)
    creations = [snapshot(group, state_epoch=2) for group in GROUPS]
    gone = [tombstone("mail", at_ms=START_MS + 2 * MINUTE), snapshot("mail", 1, state_epoch=2, at_ms=END_MS)]
    write_state_partition(tmp_path / "node2", [*creations, *gone])
    write_group_partition(tmp_path / "node2", [GroupEntry(END_MS, 11, epoch(1), "late")], number=1)
    write_orders(tmp_path / "node2")
    assert main(["audit", "--log-dir", str(tmp_path / "node1"), "--log-dir", str(tmp_path / "node2")]) in (0, None)
    assert "initialized_without_state" not in capsys.readouterr().out
