"""Rules between logs over a lake: the same findings as over its log directory."""

import json

import pyarrow.compute as pc
import pytest

from jobs.audit.between_logs import BETWEEN
from lake.scan import open_lake
from sharelens.cli import main
from tests.cluster_logs import END_MS, GROUPS, MINUTE, OTHER_ID, group_entries, metadata, state, write_cluster
from tests.datasets import dataset
from tests.group_files import GroupEntry, epoch, lists, write_group_partition
from tests.in_process import make_lake, recorded_lake
from tests.metadata_logs import write_metadata
from tests.state_logs import snapshot, write_state_partition

pytestmark = pytest.mark.slow

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


DAMAGES = (forgotten, unlisted, beyond_epoch, skipped_epoch, other_cluster, other_partition, other_groups)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_lake_has_the_findings_of_its_log_directory(damage, tmp_path, capsys):
    logs = write_cluster(tmp_path / "logs")
    damage(logs)
    make_lake(tmp_path / "lake", logs)
    assert of_lake(tmp_path / "lake") == of_logs(capsys, logs) != []


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
    assert {"batch_beyond_end", "preview_record_type", "update_over_limit"} <= untested
    assert not untested & {rule.code for rule in BETWEEN}
