"""The audit of recorded streams and consumer groups: nothing to blame on healthy brokers, and a cause for each warning.

LEGAL_WARNINGS is the list of warnings that recorded logs may have, each with its cause; every entry is needed.
"""

import json
import shutil

import pytest

from sharelens.cli import main
from sharelens.settings.files import NO_SETTINGS_FILES
from sharelens.settings.folder import with_single_files
from state_model.audit.table import BY_CODE
from tests.datasets import CONSUMER_SETS, STREAMS_SETS, dataset
from tests.processes.in_process import make_lake

RECORDED = ("streams", *STREAMS_SETS, *CONSUMER_SETS)
NOT_READY, OLDER = "streams_topology_not_ready", "streams_member_with_older_topology"
LEGAL_WARNINGS = {
    ("streams", "wc-app", NOT_READY): "no initial rebalance delay: a target is computed before internal topics exist",
    ("streams-topology", "app-miss", NOT_READY): "a source topic is missing",
    ("streams-topology", "app-sd", NOT_READY): "its source topic was deleted while it ran",
    ("streams-topology", "app-wc", NOT_READY): "internal topics were deleted, and the source got partitions",
    ("streams-topology", "raw-g", OLDER): "a raw client joins with an older topology",
    ("streams-admin", "app-eos", NOT_READY): "no initial rebalance delay",
    ("streams-admin", "app-wc", NOT_READY): "no initial rebalance delay",
}


def audited(capsys, scenario, *extra_options):
    capsys.readouterr()
    logs = str(dataset(scenario) / "logs")
    code = main(["audit", "--log-dir", logs, "--kafka-version", "4.3", *extra_options, "--output", "json"])
    out, err = capsys.readouterr()
    assert code in (0, None), err
    return json.loads(out)


def test_healthy_brokers_have_no_error_and_no_warning_without_a_cause(capsys):
    seen_warnings = set()
    for scenario in RECORDED:
        findings = audited(capsys, scenario)["findings"]
        of_groups = [row for row in findings if BY_CODE[row["rule"]].is_of_model_groups]
        assert [row for row in of_groups if row["severity"] == "error"] == []
        seen_warnings |= {(scenario, row["group_id"], row["rule"]) for row in of_groups}
    assert seen_warnings == LEGAL_WARNINGS.keys()


OF_THE_BROKER = "group.streams.heartbeat.interval.ms=700\n"
"""What the broker of the recorded log was configured with; the rest had Kafka's defaults."""


@pytest.mark.parametrize(
    ("extra_settings", "rules"),
    [
        ("", {}),
        ("group.streams.assignment.interval.ms=15000\n", {"streams_assignment_time"}),
        ("group.streams.max.standby.replicas=0\n", {"streams_standby_replicas_limit"}),
    ],
)
def test_the_configuration_of_the_brokers_reaches_the_rules(extra_settings, rules, tmp_path, capsys):
    (tmp_path / "server.properties").write_text(OF_THE_BROKER + extra_settings)
    findings = audited(capsys, "streams-basic", "--broker-config", str(tmp_path / "server.properties"))["findings"]
    assert {row["rule"] for row in findings} == set(rules)


def test_the_configuration_of_consumer_groups_reaches_the_rules(tmp_path, capsys):
    (tmp_path / "server.properties").write_text("group.consumer.assignment.interval.ms=15000\n")
    findings = audited(capsys, "consumer", "--broker-config", str(tmp_path / "server.properties"))["findings"]
    assert {row["rule"] for row in findings} == {"consumer_assignment_time"}
    assert "scaled" in {row["group_id"] for row in findings}


def test_the_configuration_of_a_group_counts_before_that_of_the_brokers(tmp_path, capsys):
    configs = (
        "Dynamic configs for group app-wc are:\n  streams.assignment.interval.ms=15000 sensitive=false synonyms={}\n"
    )
    (tmp_path / "groups.txt").write_text(configs)
    findings = audited(capsys, "streams-basic", "--group-configs", str(tmp_path / "groups.txt"))["findings"]
    assert {(row["rule"], row["group_id"]) for row in findings} == {("streams_assignment_time", "app-wc")}


def test_a_lake_audits_with_the_settings_that_it_keeps(tmp_path, capsys):
    (tmp_path / "server.properties").write_text("group.streams.assignment.interval.ms=15000\n")
    observations = with_single_files(NO_SETTINGS_FILES, None, str(tmp_path / "server.properties")).observations
    make_lake(tmp_path / "lake", dataset("streams") / "logs", observations=observations)
    capsys.readouterr()
    assert main(["audit", "--lake", str(tmp_path / "lake"), "--rule", "ST-5", "--output", "json"]) in (0, None)
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert {(row["rule"], row["group_id"]) for row in findings} == {("streams_assignment_time", "wc-app")}


def test_a_log_of_groups_alone_is_audited_and_the_answer_names_what_it_lacks(capsys):
    answer = audited(capsys, "streams-topology", "--rule", "ST-37", "--rule", "ST-33", "--rule", "10")
    assert {row["group_id"] for row in answer["findings"]} == {"app-miss", "app-sd", "app-wc"}
    assert answer["findings"][0]["impact_text"] == "records of the group may wait without being delivered"
    assert {row["topic"] for finding in answer["findings"] for row in finding["records"]} == {"__consumer_offsets"}
    lacking = {code: row["needs"] for row in answer["not_tested"] for code in row["rules"]}
    assert lacking == {
        "snapshot_epoch_skips": ["the state log"],
        "streams_metadata_hash": ["__cluster_metadata"],
    }


def test_a_folder_without_any_of_the_logs_is_refused(tmp_path, capsys):
    shutil.copytree(dataset("streams") / "logs" / "counts-out-0", tmp_path / "counts-out-0")
    assert main(["audit", "--log-dir", str(tmp_path)]) == 1
    assert "copy the brokers' __share_group_state-N folders too" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["ST-4", "streams_assignment_epoch_stale"])
def test_a_rule_is_explained_by_number_and_by_code(name, capsys):
    assert main(["audit", "--explain", name]) in (0, None)
    first, *rest = capsys.readouterr().out.splitlines()
    assert first == "streams_assignment_epoch_stale (rule ST-4): A new target assignment has the group epoch."
    assert "needs: __consumer_offsets" in rest
