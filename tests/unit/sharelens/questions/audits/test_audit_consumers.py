"""What commands over a lake say of the audit's findings: overview, metrics, report; suppressions count for all."""

import json
import shutil

import pytest

from sharelens.cli import main
from sharelens.lake.gates import closed
from sharelens.lake.lake import Lake
from tests.logs.state_logs import snapshot, update, write_log_directory
from tests.processes.in_process import story_lake
from tests.report_pages import leave_out_charts

pytestmark = pytest.mark.slow

RECORDS = [
    snapshot(start=-1, delivery_complete_count=-1),
    update(start=0, batches=[(0, 4, 2, 1)], delivery_complete_count=5),
    snapshot(start=0, epoch=3, batches=[(0, 4, 2, 1)], delivery_complete_count=5),
    update(start=0, epoch=3, batches=[(5, 5, 1, 0)], delivery_complete_count=5),
]
HEALTHY = RECORDS[:2]
SUPPRESSIONS = [{"rule": rule, "reason": "planted", "until": "2999-12-31"} for rule in (10, 40, 41)]


@pytest.fixture
def lake():
    return str(story_lake("audited", RECORDS))


def run(capsys, *words):
    capsys.readouterr()
    try:
        code = main([*words]) or 0
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    return code, out, err


def suppressed(monkeypatch, entries=SUPPRESSIONS):
    monkeypatch.setenv("SHARELENS_AUDIT", json.dumps({"suppressions": entries}))


def test_the_overview_names_violated_rules_by_group_with_the_command(lake, capsys):
    _, out, _ = run(capsys, "overview", "--lake", lake, "--output", "json")
    findings = [row for row in json.loads(out)["findings"] if row["kind"].startswith("audit")]
    assert [(row["severity"], row["group_id"], row["size"], row["share_partitions"]) for row in findings] == [
        ("error", "g", 2, 1),
        ("warning", "g", 1, 1),
    ]
    error = findings[0]
    assert error["text"].startswith("snapshot_epoch_skips and 1 more rule violated by 2 records in orders-0, first at")
    assert error["command"] == f"sharelens audit --lake {lake} --group=g"
    assert run(capsys, *error["command"].split()[1:])[0] == 0
    assert "audit: 3 findings; sharelens audit --lake" in run(capsys, "overview", "--lake", lake)[1]


def test_the_overview_of_log_directories_says_how_to_audit(tmp_path, capsys):
    logs = write_log_directory(tmp_path / "logs", RECORDS)
    _, out, _ = run(capsys, "overview", "--log-dir", str(logs))
    assert f"audit: not run; sharelens audit --log-dir {logs}" in out
    assert "audit_error" not in out


def test_suppressed_findings_are_no_findings_of_the_overview(lake, monkeypatch, capsys):
    suppressed(monkeypatch)
    out = run(capsys, "overview", "--lake", lake)[1]
    assert "audit_error" not in out
    assert "audit: 0 findings, 3 suppressed" in out
    suppressed(monkeypatch, [*SUPPRESSIONS[:2], SUPPRESSIONS[2] | {"until": "2020-01-01"}])
    _, out, err = run(capsys, "overview", "--lake", lake)
    assert "audit_warning" in out
    assert "(never_delivered; 'planted') until 2020-01-01 has expired" in err


def samples(capsys, folder, *evidence):
    file = folder / "sharelens.prom"
    assert run(capsys, "metrics", *evidence, "--output-file", str(file))[0] == 0
    return {
        line.partition(" ")[0]: float(line.rpartition(" ")[2])
        for line in file.read_text(encoding="utf-8").splitlines()
        if line.startswith("sharelens_audit_findings{")
    }


def test_metrics_count_findings_by_rule(lake, tmp_path, monkeypatch, capsys):
    counts = samples(capsys, tmp_path, "--lake", lake)
    label = 'sharelens_audit_findings{cluster="unknown",rule="%s",severity="%s"}'
    assert counts[label % ("snapshot_epoch_skips", "error")] == 1
    assert counts[label % ("never_delivered", "warning")] == 1
    assert counts[label % ("state_epoch_goes_back", "error")] == 0
    assert sum(counts.values()) == 3
    suppressed(monkeypatch)
    assert sum(samples(capsys, tmp_path, "--lake", lake).values()) == 0


def test_metrics_of_log_directories_have_no_finding(tmp_path, capsys):
    logs = write_log_directory(tmp_path / "logs", RECORDS)
    assert samples(capsys, tmp_path, "--log-dir", str(logs)) == {}


@pytest.mark.soak
def test_a_report_has_a_section_of_the_audit(lake, tmp_path, monkeypatch, capsys):
    leave_out_charts(monkeypatch)
    assert run(capsys, "report", "--lake", lake, "--out", str(tmp_path / "bad.html"))[0] == 0
    page = (tmp_path / "bad.html").read_text(encoding="utf-8")
    assert "2 errors, 1 warning." in page
    assert "snapshot_epoch_skips" in page
    assert "may have been delivered again, or never processed" in page
    healthy = str(story_lake("audited-healthy", HEALTHY))
    assert run(capsys, "report", "--lake", healthy, "--out", str(tmp_path / "good.html"))[0] == 0
    assert "The coordinators wrote what they must" in (tmp_path / "good.html").read_text(encoding="utf-8")
    logs = write_log_directory(tmp_path / "logs", RECORDS)
    assert run(capsys, "report", "--log-dir", str(logs), "--out", str(tmp_path / "logs.html"))[0] == 0
    assert "Nobody has audited this evidence." in (tmp_path / "logs.html").read_text(encoding="utf-8")


@pytest.fixture
def own_lake(lake, tmp_path):
    shutil.copytree(lake, tmp_path / "lake")
    return str(tmp_path / "lake")


def test_by_default_errors_of_the_audit_are_a_warning_of_the_check(own_lake, capsys):
    code, out, _ = run(capsys, "check", "--lake", own_lake, "--table", "gold.audit_finding", "--output", "json")
    rows = [row for row in json.loads(out)["not_met"] if row["kind"] == "audit"]
    assert code == 0
    assert [(row["level"], row["expectation"]) for row in rows] == [("warning", "no_error_stands")]
    assert rows[0]["details"] == "acquired_state_written, snapshot_epoch_skips"


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("blocks", "failed"), [("error", ("no_error_stands",)), ("warning", ("no_error_stands", "no_warning_stands"))]
)
def test_findings_close_the_gate_where_they_are_to_block(own_lake, blocks, failed, monkeypatch, capsys):
    checked = ("check", "--lake", own_lake, "--skip", "freshness", "--table", "gold.audit_finding")
    code, _, err = run(capsys, *checked, "--audit-blocks", blocks)
    assert (code, "gates closed: gold.audit_finding" in err) == (3, True)
    assert [gate.failed for gate in closed(Lake(own_lake))] == [failed]
    suppressed(monkeypatch)
    assert run(capsys, *checked, "--audit-blocks", blocks)[0] == 0
    assert closed(Lake(own_lake)) == ()


def test_the_setting_closes_the_gate_and_the_option_opens_it(own_lake, monkeypatch, capsys):
    monkeypatch.setenv("SHARELENS_AUDIT", json.dumps({"blocks": "error"}))
    assert run(capsys, "check", "--lake", own_lake, "--table", "gold.audit_finding")[0] == 3
    assert run(capsys, "check", "--lake", own_lake, "--table", "gold.audit_finding", "--audit-blocks", "none")[0] == 0
