"""The command audit: findings and exit codes, rules by name, explanations without a log, refusals."""

import json

import pytest

from sharelens.cli import main
from tests.logs.state_logs import snapshot, update, write_log_directory
from tests.processes.in_process import make_lake

RECORDS = [
    snapshot(start=-1, delivery_complete_count=-1),
    update(start=0, batches=[(0, 4, 2, 1)], delivery_complete_count=5),
    snapshot(start=0, epoch=3, batches=[(0, 4, 2, 1)], delivery_complete_count=5),
    update(start=0, epoch=3, batches=[(5, 5, 1, 0)], delivery_complete_count=5),
]


@pytest.fixture
def logs(tmp_path):
    return str(write_log_directory(tmp_path / "logs", RECORDS))


def run(capsys, *words):
    capsys.readouterr()
    try:
        code = main(["audit", *words]) or 0
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    return code, out, err


def test_findings_have_their_proof(logs, capsys):
    code, out, _ = run(capsys, "--log-dir", logs, "--output", "json")
    findings = json.loads(out)["findings"]
    assert code == 0
    assert [row["rule"] for row in findings] == ["snapshot_epoch_skips", "acquired_state_written", "never_delivered"]
    skipped = findings[0]
    assert (skipped["topic"], skipped["partition"], skipped["expected"], skipped["seen"]) == ("orders", 0, "1", "3")
    assert [record["offset"] for record in skipped["records"]] == [0, 1, 2]


@pytest.mark.slow
def test_fail_on_exits_with_3_for_that_severity_and_worse(logs, capsys):
    assert run(capsys, "--log-dir", logs, "--fail-on", "error")[0] == 3
    assert run(capsys, "--log-dir", logs, "--rule", "41", "--fail-on", "error")[0] == 0
    assert run(capsys, "--log-dir", logs, "--rule", "41", "--fail-on", "warning")[0] == 3
    assert run(capsys, "--log-dir", logs, "--rule", "41", "--kafka-version", "4.4", "--fail-on", "error")[0] == 3


@pytest.mark.slow
def test_text_names_rules_that_are_not_tested(logs, capsys):
    _, out, _ = run(capsys, "--log-dir", logs)
    assert "NOT TESTED" in out
    assert "__consumer_offsets" in out
    assert "findings: error 2, warning 1, info 0" in out


def test_the_number_of_deliveries_needs_its_limit(logs, tmp_path, capsys):
    config = tmp_path / "server.properties"
    config.write_text("group.share.delivery.count.limit=2\n", encoding="utf-8")
    _, out, _ = run(capsys, "--log-dir", logs, "--broker-config", str(config), "--output", "json")
    assert "delivery count limit" not in str(json.loads(out)["not_tested"])


@pytest.mark.slow
def test_rules_of_other_groups_are_not_listed(logs, capsys):
    assert run(capsys, "--log-dir", logs, "--group", "g")[0] == 0
    code, _, err = run(capsys, "--log-dir", logs, "--group", "nobody")
    assert code == 2
    assert "no share group nobody" in err


def test_an_explanation_needs_no_log(capsys):
    code, out, _ = run(capsys, "--explain", "snapshot_epoch_skips")
    assert code == 0
    assert out.startswith("snapshot_epoch_skips (rule 10): ")
    assert "what to do:" in out
    assert run(capsys, "--explain", "40")[1].count("(rule 40)") == 3
    assert "lost a stretch of records" in run(capsys, "--explain", "records_lost")[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--rule", "nothing"], "'nothing' is no rule"),
        (["--rule", "22"], "leader_epoch_zero_after_init is what healthy brokers do"),
        (["--explain", "99"], "'99' is no rule"),
        (["--from", "2026-01-02T00:00:00Z", "--to", "2026-01-01T00:00:00Z"], "--to lies before --from"),
        (["--max-bytes", "1"], "--max-bytes allows 1 bytes"),
    ],
)
def test_refusals_say_what_to_do(logs, capsys, words, message):
    code, _, err = run(capsys, "--log-dir", logs, *words)
    assert code in (1, 2)
    assert message in err


def test_a_lake_or_a_log_directory_is_needed(capsys):
    code, _, err = run(capsys)
    assert code == 2
    assert "give either --lake DIR (the tables) or --log-dir DIR" in err


@pytest.mark.slow
def test_a_finding_says_what_it_means_for_records(logs, capsys):
    findings = json.loads(run(capsys, "--log-dir", logs, "--output", "json")[1])["findings"]
    written = next(row for row in findings if row["rule"] == "acquired_state_written")
    assert (written["impact"], written["first_offset"], written["last_offset"]) == ("stuck", 5, None)
    assert written["impact_text"] == "records from offset 5 on may wait without being delivered"
    assert {row["completeness"] for row in findings} == {"complete"}
    _, out, _ = run(capsys, "--log-dir", logs, "--columns", "RULE,EFFECT,CAUSE,EVIDENCE")
    assert "may wait without being delivered" in out
    assert "impact: stuck: records may wait" in run(capsys, "--explain", "acquired_state_written")[1]


SUPPRESSIONS = """
- {rule: snapshot_epoch_skips, group: g, topic: orders, reason: restored from a copy, until: 2999-12-31}
- {rule: 40, reason: a preview build, until: 2999-12-31}
- {rule: 41, reason: an old release, until: 2020-02-01}
"""


@pytest.fixture
def suppressions_file(tmp_path):
    (tmp_path / "known.yaml").write_text(SUPPRESSIONS, encoding="utf-8")
    return str(tmp_path / "known.yaml")


@pytest.mark.slow
def test_suppressed_findings_are_counted_and_not_listed(logs, suppressions_file, capsys):
    code, out, err = run(capsys, "--log-dir", logs, "--suppressions", suppressions_file, "--fail-on", "error")
    assert code == 0
    assert "findings: error 0, warning 1, info 0; 2 suppressed (--show-suppressed lists them)" in out
    assert "snapshot_epoch_skips" not in out
    assert "warning: suppression 3 (never_delivered; 'an old release') until 2020-02-01 has expired" in err
    assert run(capsys, "--log-dir", logs, "--suppressions", suppressions_file, "--fail-on", "warning")[0] == 3


def test_suppressed_findings_are_listed_with_their_reasons(logs, suppressions_file, capsys):
    _, out, _ = run(
        capsys, "--log-dir", logs, "--suppressions", suppressions_file, "--show-suppressed", "--output", "json"
    )
    answer = json.loads(out)
    assert [row["rule"] for row in answer["findings"]] == ["never_delivered"]
    assert [(row["rule"], row["reason"], row["until"]) for row in answer["suppressed"]] == [
        ("snapshot_epoch_skips", "restored from a copy", "2999-12-31"),
        ("acquired_state_written", "a preview build", "2999-12-31"),
    ]


def test_a_suppression_until_a_day_that_does_not_exist_is_refused(logs, tmp_path, capsys):
    (tmp_path / "known.yaml").write_text("- {rule: 62, reason: known, until: 2026-02-30}", encoding="utf-8")
    code, _, err = run(capsys, "--log-dir", logs, "--suppressions", str(tmp_path / "known.yaml"))
    assert code == 2
    assert "has a date that does not exist (" in err


@pytest.mark.slow
def test_suppressions_come_from_the_configuration(logs, monkeypatch, capsys):
    entry = {"rule": 10, "reason": "known", "until": "2999-01-01"}
    monkeypatch.setenv("SHARELENS_AUDIT", json.dumps({"suppressions": [entry]}))
    assert "error 1, warning 1, info 0; 1 suppressed" in run(capsys, "--log-dir", logs)[1]
    monkeypatch.setenv("SHARELENS_AUDIT", json.dumps({"suppressions": [entry, {"rule": 10}]}))
    code, _, err = run(capsys, "--log-dir", logs)
    assert code == 2
    assert "setting audit.suppressions in environment variables SHARELENS_*: entry 2: no reason" in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- {rule: 10, until: 2999-01-01}", "entry 1: no reason"),
        ("- {rule: [}", "can't be read as YAML"),
        ("[" * 1500, "can't be read as YAML"),
        ("rule: 10", "suppressions are a list of entries"),
    ],
)
def test_a_bad_file_of_suppressions_is_refused_in_one_line(logs, suppressions_file, text, message, capsys):
    with open(suppressions_file, "w", encoding="utf-8") as file:
        file.write(text)
    code, _, err = run(capsys, "--log-dir", logs, "--suppressions", suppressions_file)
    assert code == 2
    assert message in err
    assert suppressions_file in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.slow
def test_a_limit_leaves_the_rules_that_are_not_tested(logs, capsys):
    full_answer = json.loads(run(capsys, "--log-dir", logs, "--output", "json")[1])
    limited = json.loads(run(capsys, "--log-dir", logs, "--output", "json", "--limit", "1")[1])
    assert len(limited["findings"]) == 1
    assert limited["not_tested"] == full_answer["not_tested"] != limited["not_tested"][:1]
    out = run(capsys, "--log-dir", logs, "--limit", "1")[1]
    assert "__cluster_metadata" in out[out.index("NOT TESTED") :]


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """A lake of the log of `logs`."""
    folder = tmp_path_factory.mktemp("audited")
    make_lake(folder / "lake", write_log_directory(folder / "logs", RECORDS))
    return str(folder / "lake")


@pytest.mark.one_in(3)
@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--severity", "info"],
        ["--rule", "41", "--kafka-version", "4.4"],
        ["--group", "g", "--fail-on", "error"],
        ["--topic", "orders", "--fail-on", "warning"],
        ["--kafka-version", "4.3"],
    ],
)
def test_a_lake_answers_as_its_log_directory_does(lake, logs, capsys, words):
    answers = [run(capsys, *source, *words, "--output", "json") for source in (["--lake", lake], ["--log-dir", logs])]
    assert answers[0][0] == answers[1][0]
    of_lake, of_log = (json.loads(out) for _, out, _ in answers)
    assert of_lake["findings"] == of_log["findings"] != []


@pytest.mark.slow
def test_findings_of_a_lake_are_those_seen_in_a_time(lake, capsys):
    def rules(*words):
        return [
            row["rule"] for row in json.loads(run(capsys, "--lake", lake, *words, "--output", "json")[1])["findings"]
        ]

    finding_by_rule = {
        row["rule"]: row for row in json.loads(run(capsys, "--lake", lake, "--output", "json")[1])["findings"]
    }
    first = min(row["first_seen_ms"] for row in finding_by_rule.values())
    assert rules("--to", str(first)) == []
    assert rules("--to", str(first + 1)) != []
    assert rules("--from", str(max(row["last_seen_ms"] for row in finding_by_rule.values()) + 1)) == []


@pytest.mark.slow
def test_other_settings_than_those_of_the_lake_are_refused(lake, tmp_path, capsys):
    config = tmp_path / "server.properties"
    config.write_text("group.share.delivery.count.limit=2\n", encoding="utf-8")
    code, _, err = run(capsys, "--lake", lake, "--broker-config", str(config))
    assert code == 2
    assert "store others with `sharelens run --lake DIR --settings DIR`" in err
