"""Rules between logs over a lake: the same findings as over its log directory."""

import json
import os
import shutil

import pyarrow.compute as pc
import pytest

from sharelens.cli import main
from sharelens.lake.scan import open_lake
from sharelens.settings.folder import read_settings_folder
from state_model.audit.columnar.log_pairs import BETWEEN
from state_model.audit.rule import Need
from state_model.audit.table import RULES
from tests.audit.cluster_damages import (
    DAMAGES,
    NEW_STATE_ID,
    beyond_epoch,
    cut_topic,
    forgotten,
    later_epoch,
    odd_group_records,
    older_state,
    other_assignment,
    parted_group,
    short_topic,
    state_created_again,
)
from tests.datasets import dataset
from tests.depths import in_soak
from tests.lakes import content, differences
from tests.logs.cluster_logs import END_MS, GROUPS, state, write_cluster, write_orders
from tests.logs.state_logs import START_MS, snapshot, write_state_partition
from tests.once import made_once
from tests.processes.in_process import TO_AUDIT, make_lake, recorded_lake

pytestmark = pytest.mark.slow

EARLY = "cold_snapshot_too_early"
AUDIT = ("gold.audit_finding", "gold.audit_record")
COMPARED = ("rule", "group_id", "topic_id", "partition", "state_partition", "first_log_offset", "expected", "seen",
    "cause_inferred")  # fmt: skip


def of_lake(lake):
    """The findings of the rules between logs that stand."""
    rows = open_lake(lake).scan("gold.audit_finding", None, pc.field("withdrawn_run_id").is_null()).to_pylist()
    codes = {rule.code for rule in BETWEEN}
    return _compared(row for row in rows if row["rule"] in codes)


def of_logs(capsys, logs):
    """The same of the command over the log directory."""
    words = [word for rule in BETWEEN for word in ("--rule", rule.code)]
    capsys.readouterr()
    assert main(["audit", "--log-dir", str(logs), *words, "--severity", "info", "--output", "json"]) in (0, None)
    rows = json.loads(capsys.readouterr().out)["findings"]
    return _compared(rows)


def _compared(rows):
    return sorted(((*(row[name] for name in COMPARED), str(row["records"])) for row in rows), key=str)


def damaged(damage):
    """A damaged cluster, made once a test run: its log directory and its lake, to be read."""

    def make(folder):
        damage(write_cluster(folder / "logs"))
        make_lake(folder / "lake", folder / "logs", stages=TO_AUDIT)

    folder = made_once(f"between-logs/{damage.__name__}", make)
    return folder / "logs", folder / "lake"


@pytest.mark.one_in(3)
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_lake_has_the_findings_of_its_log_directory(damage, capsys):
    logs, lake = damaged(damage)
    assert of_lake(lake) == of_logs(capsys, logs) != []


def test_what_each_new_damage_is_found_as(capsys):
    rules_by_damage = {
        damage: {row[0] for row in of_logs(capsys, damaged(damage)[0])}
        for damage in (other_assignment, parted_group, older_state, state_created_again)
    }
    assert rules_by_damage == {
        other_assignment: {"assigned_beyond_target", "target_not_assigned", "partition_not_in_topic"},
        parted_group: {"group_in_many_partitions", "misplaced_group"},
        older_state: {"state_epoch_below_group"},
        state_created_again: {"state_topic_created_again", "initialized_without_state"},
    }


def test_a_state_topic_that_was_created_again_explains_the_state_that_groups_lack(tmp_path, capsys):
    """Without a metadata log share partitions of the old topic show how many state partitions there are."""
    old, new = write_cluster(tmp_path / "old"), tmp_path / "new"
    shutil.rmtree(old / "__cluster_metadata-0")
    write_state_partition(new, [snapshot("late", state_epoch=2, at_ms=END_MS + 1)], topic_id=NEW_STATE_ID)
    make_lake(tmp_path / "lake", old, stages=TO_AUDIT)
    make_lake(tmp_path / "lake", new, stages=TO_AUDIT)
    answers = [
        answer(capsys, *words)["findings"]
        for words in (("--log-dir", old, "--log-dir", new), ("--lake", tmp_path / "lake"))
    ]
    without_state = [row for row in answers[0] if row["rule"] == "initialized_without_state"]
    assert {row["group_id"] for row in without_state} == set(GROUPS)
    assert {row["cause_inferred"] for row in without_state} == {"state_topic_created_again"}
    assert _compared(answers[1]) == _compared(answers[0])


@pytest.mark.soak
def test_rules_of_the_coordinators_configuration_are_tested_in_a_lake(tmp_path, capsys):
    logs, settings = write_cluster(tmp_path / "logs"), tmp_path / "settings"
    early = snapshot("mail", epoch=1, state_epoch=2, at_ms=END_MS - 2, write_timestamp_ms=START_MS + 10)
    behind = [snapshot("mail", epoch=2, state_epoch=2, at_ms=END_MS - 1, write_timestamp_ms=START_MS + 20)]
    records = [*state()[:4], early, *behind, *state()[4:]]
    write_state_partition(logs, records)
    write_state_partition(logs, [*records, *records], number=1)  # a task audits all of them together
    write_state_partition(logs, records, number=2, base_offset=5)
    settings.mkdir()
    config = settings / "broker.properties"
    config.write_text("share.coordinator.cold.partition.snapshot.interval.ms=20\n", encoding="utf-8")
    os.utime(config, (START_MS / 1000, START_MS / 1000))
    expected = answer(capsys, "--log-dir", logs, "--settings", settings)
    counts = {(row["state_partition"], row["count"]) for row in expected["findings"] if row["rule"] == EARLY}
    assert counts == {(0, 2), (1, 4), (2, 2)}
    observations = read_settings_folder(str(settings)).observations
    make_lake(tmp_path / "whole", logs, observations=observations, stages=TO_AUDIT)
    for until_ms in (END_MS - 1, None):
        make_lake(tmp_path / "parts", logs, observations=observations, until_ms=until_ms, stages=TO_AUDIT)
    make_lake(tmp_path / "late", logs, stages=TO_AUDIT)
    make_lake(tmp_path / "late", observations=observations, stages=("audit", "publish"))
    for name in ("whole", "parts", "late"):
        assert answer(capsys, "--lake", tmp_path / name)["findings"] == expected["findings"]


def answer(capsys, *words):
    capsys.readouterr()
    assert main(["audit", *map(str, words), "--output", "json"]) in (0, None)
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("damage", [cut_topic, *in_soak(short_topic, later_epoch, beyond_epoch)])
def test_logs_that_come_one_after_the_other_make_the_lake_of_all_at_once(damage, tmp_path):
    logs, one_run_lake = damaged(damage)
    part, lake = tmp_path / "part" / "logs", tmp_path / "lake"
    for pattern, until_ms in (("__share*", START_MS + 1), ("__share*", None), ("orders*", None), ("__*", None)):
        for folder in logs.glob(pattern):
            shutil.copytree(folder, part / folder.name, dirs_exist_ok=True)
        make_lake(lake, part, until_ms=until_ms, stages=TO_AUDIT)
    assert not differences(content(lake, AUDIT), content(one_run_lake, AUDIT))


@pytest.mark.soak
def test_a_finding_is_withdrawn_when_its_topic_has_grown(tmp_path, capsys):
    logs, lake = write_cluster(tmp_path / "logs"), tmp_path / "lake"
    short_topic(logs)
    make_lake(lake, logs, stages=TO_AUDIT)
    assert of_lake(lake) != []
    shutil.rmtree(logs / "orders-0")
    write_orders(logs)
    make_lake(lake, logs, stages=TO_AUDIT)
    assert of_lake(lake) == of_logs(capsys, logs) == []
    rows = open_lake(lake).scan("gold.audit_finding").to_pylist()
    assert {row["rule"] for row in rows if row["withdrawn_run_id"]} == {"start_offset_beyond_end", "negative_lag"}


def test_a_lake_without_a_state_log_has_the_findings_about_groups_of_its_log_directory(tmp_path, capsys):
    logs, lake = write_cluster(tmp_path / "logs"), tmp_path / "lake"
    odd_group_records(logs)
    shutil.rmtree(logs / "__share_group_state-0")
    make_lake(lake, logs, stages=TO_AUDIT)
    assert of_lake(lake) == of_logs(capsys, logs) != []
    by_lake, by_logs = (untested(answer(capsys, *source)) for source in (("--lake", lake), ("--log-dir", logs)))
    of_directories = [rule for rule in RULES if Need.LOG_DIRECTORIES in rule.needs]
    assert by_lake - by_logs == {rule.code for rule in of_directories if not rule.needs_state_log}


def untested(answered):
    """The rules that an answer names as not tested."""
    return {rule for row in answered["not_tested"] for rule in row["rules"]}


def test_streams_groups_of_a_recorded_broker_are_audited_without_a_state_log(capsys):
    lake = recorded_lake("streams-admin")
    assert of_lake(lake) == of_logs(capsys, dataset("streams-admin") / "logs")
    listed = answer(capsys, "--lake", lake)["findings"]
    assert {(row["rule"], row["group_id"]) for row in listed} == {
        ("streams_topology_not_ready", "app-eos"),
        ("streams_topology_not_ready", "app-wc"),
    }


@pytest.mark.soak
def test_findings_about_groups_stand_when_the_state_log_comes_later(tmp_path, capsys):
    logs, part, lake = write_cluster(tmp_path / "logs"), tmp_path / "part" / "logs", tmp_path / "lake"
    odd_group_records(logs)
    shutil.copytree(logs, part, ignore=shutil.ignore_patterns("__share*"))
    make_lake(lake, part, stages=TO_AUDIT)
    first = of_lake(lake)
    make_lake(lake, logs, stages=TO_AUDIT)
    assert of_lake(lake) == of_logs(capsys, logs) == first != []


@pytest.mark.parametrize("scenario", ["v44", *in_soak("admin")])
def test_the_lake_of_a_recorded_broker_has_no_finding(scenario, capsys):
    assert of_lake(recorded_lake(scenario)) == of_logs(capsys, dataset(scenario) / "logs") == []


def test_the_command_lists_findings_between_logs_of_a_lake_and_names_what_is_not_tested(capsys):
    _, lake = damaged(forgotten)
    listed = answer(capsys, "--lake", lake)
    assert [row["rule"] for row in listed["findings"]] == ["initialized_without_state"]
    assert "update_over_limit" in untested(listed)
    assert untested(listed) & {rule.code for rule in BETWEEN} == {"window_over_locks"}
