"""The overview over recorded logs: a lake and its log directory say the same, and missing dead letters are named."""

import json
from pathlib import Path
from typing import Any

import pytest

from sharelens.cli import main
from tests.dataset_settings import given_settings
from tests.datasets import dataset, scenarios
from tests.processes.in_process import recorded_lake

pytestmark = pytest.mark.usefixtures("evidence_opened_once")

LAKE_ALONE = ("audit_error", "audit_warning")
"""Log directories are audited by `audit` alone."""
LOG_DIRECTORY_ALONE = ("lag_growing", "not_started")
"""A lake compares its publications, of which there is one here, and holds no end of a partition that nobody read."""


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capsys.readouterr()
    try:
        code = main(["overview", *arguments, "--output", "json"]) or 0
    except SystemExit as stop:
        code = int(stop.code or 0)
    out, err = capsys.readouterr()
    assert code == 0, err
    answer: dict[str, Any] = json.loads(out)
    return answer


def without_commands(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in row.items() if name != "command"}
        for row in rows
        if row["kind"] not in (*LOG_DIRECTORY_ALONE, *LAKE_ALONE)
    ]


@pytest.mark.soak
@pytest.mark.parametrize("scenario", scenarios())
def test_a_lake_and_its_log_directory_say_the_same(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    of_logs = ask(capsys, "--log-dir", str(dataset(scenario) / "logs"))
    of_lake = ask(capsys, "--lake", str(recorded_lake(scenario)))
    assert without_commands(of_lake["findings"]) == without_commands(of_logs["findings"])
    assert of_lake["groups"] == of_logs["groups"]
    assert of_logs["groups"]


@pytest.mark.parametrize("source", ["lake", "log-dir"])
def test_missing_dead_letters_come_first(source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = recorded_lake("dlq") if source == "lake" else dataset("dlq") / "logs"
    settings = given_settings(dataset("dlq"), tmp_path)
    findings = ask(capsys, f"--{source}", str(place), *settings)["findings"]
    missing = [row for row in findings if row["kind"] == "dead_letters_missing"]
    assert [(row["group_id"], row["size"], row["severity"]) for row in missing] == [("gd-broken", 69, "error")]
    assert findings[0] == missing[0]


def test_now_makes_silence_a_finding(capsys: pytest.CaptureFixture[str]) -> None:
    logs = str(dataset("timeouts") / "logs")
    of_the_end = ask(capsys, "--log-dir", logs)
    later = ask(capsys, "--log-dir", logs, "--now", "2026-11-21T04:00:00Z")
    stuck = [row for row in of_the_end["findings"] if row["kind"] == "stuck"]
    assert [(row["result"], row["remedy"]) for row in stuck] == [("not_judged", "--now TIME")]
    assert "evidence_old" in [row["kind"] for row in later["findings"]]
    first = later["findings"][0]
    assert (first["kind"], first["group_id"], first["result"]) == ("stuck", "g-never", "found")
    assert later["verdict"].startswith("ERROR: g-never: stands still at offset ")
