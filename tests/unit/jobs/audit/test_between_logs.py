"""Rules between logs over a lake: the same findings as over its log directory."""

import json
import os
import shutil
from typing import NamedTuple

import pyarrow.compute as pc
import pytest

from lake.scan import open_lake
from sharelens.cli import main
from sharelens.settings_files import read_settings_folder
from state_model.audit.columnar.log_pairs import BETWEEN
from tests.cluster_logs import (
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
from tests.datasets import dataset
from tests.group_files import GroupEntry, epoch, lists, write_group_partition
from tests.in_process import make_lake, recorded_lake
from tests.lakes import content, differences
from tests.metadata_logs import write_metadata
from tests.state_logs import START_MS, snapshot, update, write_state_partition

pytestmark = pytest.mark.slow

EARLY = "cold_snapshot_too_early"
AUDIT = ("gold.audit_finding", "gold.audit_record")
COMPARED = ("rule", "group_id", "topic_id", "partition", "state_partition", "first_log_offset", "expected", "seen")


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


def forgotten(logs):
    write_state_partition(logs, [record for record in state() if record["group_id"] != "mail"])


def unlisted(logs):
    write_group_partition(logs, [*group_entries(), GroupEntry(END_MS - 5 * MINUTE, 15, lists(), "mail")])


def beyond_epoch(logs):
    creations, writes = state()[: len(GROUPS)], state()[len(GROUPS) :]
    again = snapshot("mail", epoch=1, state_epoch=9, at_ms=END_MS - 3 * MINUTE)
    write_state_partition(logs, [*creations, again, *writes])


def skipped_epoch(logs):
    write_group_partition(logs, [*group_entries(), GroupEntry(END_MS, 11, epoch(9), "orders")])


def other_cluster(logs):
    write_metadata(logs, metadata(state_id=OTHER_ID))


def other_partition(logs):
    write_state_partition(logs, [*state(), snapshot("mail", 7, state_epoch=2)])


def other_groups(logs):
    write_group_partition(logs, group_entries(("stock", "fraud", "billing")))


def short_topic(logs):
    write_orders(logs, count=1)


def cut_topic(logs):
    creations = [snapshot(group, state_epoch=2, start=0) for group in GROUPS]
    beyond = update("mail", start=2, batches=[(2, 30, 2, 1)], delivery_complete_count=29, at_ms=END_MS)
    write_state_partition(logs, [*creations, *state()[len(GROUPS) :], beyond])


def later_epoch(logs):
    ahead = update("mail", start=2, leader_epoch=4, delivery_complete_count=0, at_ms=END_MS - MINUTE)
    write_state_partition(logs, [*state(), ahead])


class OddEntry(NamedTuple):
    """A record of a group with any bytes."""

    time_ms: int
    key: bytes

    def encoded(self):
        return self.key, b"?"


def odd_group_records(logs):
    preview, cut_short = ((kind).to_bytes(2, "big") + b"\0\4mail" for kind in (9, 15))
    write_group_partition(logs, [*group_entries(), OddEntry(END_MS, preview), OddEntry(END_MS, cut_short)])


DAMAGES = (
    *(forgotten, unlisted, beyond_epoch, skipped_epoch, other_cluster, other_partition, other_groups),
    *(short_topic, cut_topic, later_epoch, odd_group_records),
)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_lake_has_the_findings_of_its_log_directory(damage, tmp_path, capsys):
    logs = write_cluster(tmp_path / "logs")
    damage(logs)
    make_lake(tmp_path / "lake", logs)
    assert of_lake(tmp_path / "lake") == of_logs(capsys, logs) != []


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
    make_lake(tmp_path / "whole", logs, observations=observations)
    for until_ms in (END_MS - 1, END_MS, None):
        make_lake(tmp_path / "parts", logs, observations=observations, until_ms=until_ms)
    make_lake(tmp_path / "late", logs)
    make_lake(tmp_path / "late", observations=observations, stages=("measure", "audit", "publish"))
    for name in ("whole", "parts", "late"):
        assert answer(capsys, "--lake", tmp_path / name)["findings"] == expected["findings"]


def answer(capsys, *words):
    capsys.readouterr()
    assert main(["audit", *map(str, words), "--output", "json"]) in (0, None)
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("damage", [short_topic, cut_topic, later_epoch, beyond_epoch])
def test_logs_that_come_one_after_the_other_make_the_lake_of_all_at_once(damage, tmp_path):
    logs = write_cluster(tmp_path / "logs")
    damage(logs)
    make_lake(tmp_path / "whole", logs)
    part, lake = tmp_path / "part" / "logs", tmp_path / "lake"
    for pattern, until_ms in (("__share*", START_MS + 1), ("__share*", None), ("orders*", None), ("__*", None)):
        for folder in logs.glob(pattern):
            shutil.copytree(folder, part / folder.name, dirs_exist_ok=True)
        make_lake(lake, part, until_ms=until_ms)
    assert not differences(content(lake, AUDIT), content(tmp_path / "whole", AUDIT))


def test_a_finding_is_withdrawn_when_its_topic_has_grown(tmp_path, capsys):
    logs, lake = write_cluster(tmp_path / "logs"), tmp_path / "lake"
    short_topic(logs)
    make_lake(lake, logs)
    assert of_lake(lake) != []
    shutil.rmtree(logs / "orders-0")
    write_orders(logs)
    make_lake(lake, logs)
    assert of_lake(lake) == of_logs(capsys, logs) == []
    rows = open_lake(lake).scan("gold.audit_finding").to_pylist()
    assert {row["rule"] for row in rows if row["withdrawn_run_id"]} == {"start_offset_beyond_end", "negative_lag"}


@pytest.mark.parametrize("scenario", ["v44", "admin"])
def test_the_lake_of_a_recorded_broker_has_no_finding(scenario, capsys):
    assert of_lake(recorded_lake(scenario)) == of_logs(capsys, dataset(scenario) / "logs") == []


def test_the_command_lists_findings_between_logs_of_a_lake_and_names_what_is_not_tested(tmp_path, capsys):
    logs = write_cluster(tmp_path / "logs")
    forgotten(logs)
    make_lake(tmp_path / "lake", logs)
    capsys.readouterr()
    assert main(["audit", "--lake", str(tmp_path / "lake"), "--output", "json"]) in (0, None)
    answer = json.loads(capsys.readouterr().out)
    assert [row["rule"] for row in answer["findings"]] == ["initialized_without_state"]
    untested = {rule for row in answer["not_tested"] for rule in row["rules"]}
    assert "update_over_limit" in untested
    assert untested & {rule.code for rule in BETWEEN} == {"window_over_locks"}
