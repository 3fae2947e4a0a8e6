"""Evidence folders about streams groups: all of it is there, the same from a log directory and from its lake."""

import json
from pathlib import Path
from typing import Any

import pytest

from sharelens.cli import main
from tests.datasets import dataset
from tests.once import made_once
from tests.processes.in_process import make_lake

WINDOW = ("--from", "2026-11-22T21:29:05Z", "--to", "2026-11-22T21:29:30Z")
LOGS = dataset("streams-topology") / "logs"


def _make_evidence(
    place: Path, source: str, where: Path, group: str = "app-wc", window: tuple[str, ...] = WINDOW
) -> Path:
    words = ["evidence", source, str(where), "--group", group, *window, "--case", "INC-1", "--out", str(place)]
    assert main(words) in (0, None)
    return place


def _rows(folder: Path, table: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((folder / "tables" / f"{table}.json").read_text(encoding="utf-8"))
    return rows


@pytest.fixture(scope="module")
def folder() -> Path:
    return made_once("evidence-streams", lambda into: _make_evidence(into / "folder", "--log-dir", LOGS)) / "folder"


def test_records_histories_rebalances_events_and_findings_of_the_window_are_there(folder: Path) -> None:
    assert {path.stem for path in (folder / "tables").glob("*.csv")} == {
        *("note", "finding", "timeline", "rebalance", "group", "group_record", "quarantine", "audit"),
        *("group_history", "member_history", "task_history"),
    }
    assert [row["group_epoch"] for row in _rows(folder, "rebalance")] == [5, 6, 7, 8, 9, 10, 11]
    assert {row["group_id"] for row in _rows(folder, "group_record")} == {"app-wc"}
    assert [row["state"] for row in _rows(folder, "group")] == ["ASSIGNING", "STABLE"]
    events = [row["event"] for row in _rows(folder, "timeline")]
    assert (events.count("not_ready_began"), events.count("offsets_deleted")) == (2, 1)
    assert [row["rule"] for row in _rows(folder, "audit")] == ["streams_topology_not_ready"]
    assert _rows(folder, "finding") == _rows(folder, "note") == []


def test_the_pages_are_about_a_streams_group_alone(folder: Path) -> None:
    readme, report = ((folder / page).read_text(encoding="utf-8") for page in ("README.md", "report.html"))
    assert "| streams group | app-wc |" in readme
    assert "<dt>Streams group</dt><dd>app-wc</dd>" in report
    for text in (readme, report):
        assert "Share group" not in text
        assert "state_before" not in text


@pytest.mark.soak
def test_a_lake_gives_the_same_bytes(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_lake(tmp_path / "lake", LOGS)
    of_lake = _make_evidence(tmp_path / "folder", "--lake", tmp_path / "lake")
    for path in sorted((folder / "tables").iterdir()):
        assert (of_lake / "tables" / path.name).read_bytes() == path.read_bytes(), path.name
    capsys.readouterr()
    assert main(["verify", str(folder), "--log-dir", str(LOGS)]) in (0, None)
    assert main(["verify", str(of_lake), "--lake", str(tmp_path / "lake")]) in (0, None)
    assert capsys.readouterr().out.count("the recomputed content is equal") == 2


def test_what_is_wrong_at_the_end_of_the_window_is_a_finding(tmp_path: Path) -> None:
    window = ("--from", "2026-11-22T21:27:00Z", "--to", "2026-11-22T21:40:00Z")
    evidence_path = _make_evidence(
        tmp_path / "folder", "--log-dir", dataset("streams-basic") / "logs", "app-plain", window
    )
    assert _rows(evidence_path, "finding") == []
    assert "ends_early" in {row["code"] for row in _rows(evidence_path, "note")}


def test_a_window_before_the_group_and_an_unknown_group_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--log-dir", str(LOGS), "--case", "INC-1", "--out", str(tmp_path / "folder"), "--group"]
    before = ["--from", "2026-11-01T00:00:00Z", "--to", "2026-11-02T00:00:00Z"]
    assert main(["evidence", *words, "app-wc", *before]) == 1
    assert "lies before the evidence" in capsys.readouterr().err
    assert main(["evidence", *words, "nobody", *WINDOW]) == 2
    assert "no share group nobody" in capsys.readouterr().err
