"""Delivery states and record types that a later Kafka may write: kept, shown, marked, and never an obstacle."""

import json
from pathlib import Path
from typing import Any

import pytest

from sharelens.cli import main
from tests.logs.state_logs import START_MS, other, snapshot, update, write_log_directory
from tests.logs.user_topics import write_orders
from tests.once import made_once
from tests.processes.in_process import make_lake

pytestmark = pytest.mark.slow

UNKNOWN = ("incomplete", "unknown_state")
COMPLETE = ("complete", None)
STORY = [
    snapshot("g", start=0),
    snapshot("h", start=0, at_ms=START_MS + 1000),
    update("g", start=0, batches=[(0, 4, 2, 1), (5, 9, 5, 1)], delivery_complete_count=5, at_ms=START_MS + 2000),
    update("g", start=0, batches=[(5, 6, 2, 1)], delivery_complete_count=5, at_ms=START_MS + 3000),
    other(7, "h", at_ms=START_MS + 4000),
    update("h", start=0, batches=[(0, 0, 2, 1)], delivery_complete_count=1, at_ms=START_MS + 5000),
    snapshot(
        "g", start=0, epoch=1, batches=[(0, 9, 2, 1)], delivery_complete_count=10, at_ms=START_MS + 6000,
        create_timestamp_ms=START_MS + 6000, write_timestamp_ms=START_MS + 6000,
    ),
    update("g", start=0, epoch=1, batches=[(10, 12, -3, 1)], delivery_complete_count=10, at_ms=START_MS + 7000),
]  # fmt: skip
PENDING, AFTER = ["--at-offset", "0:4"], ["--at-offset", "0:6"]


@pytest.fixture
def folder() -> Path:
    """The story as a log directory `logs`, and as a lake `lake` of two runs."""

    def make(folder: Path) -> None:
        logs = write_log_directory(folder / "logs", STORY, cluster_id="later-kafka")
        write_orders(logs)
        for until_ms in (START_MS + 4500, None):
            make_lake(folder / "lake", logs, until_ms=until_ms)

    return made_once("stories/later-kafka", make)


@pytest.fixture(params=["--log-dir", "--lake"])
def place(request: pytest.FixtureRequest, folder: Path) -> list[str]:
    """The options that name the story."""
    return [request.param, str(folder / ("lake" if request.param == "--lake" else "logs"))]


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    capsys.readouterr()
    assert main([*words, "--output", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def marks(rows: list[dict[str, Any]]) -> dict[str, tuple[str, str | None]]:
    return {row["group_id"]: (row["completeness"], row["completeness_reason"]) for row in rows}


def test_records_show_unknown_types_and_states(place: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    rows = answer(capsys, "records", *place)
    assert [row["type"] for row in rows] == [
        "snapshot", "snapshot", "update", "update", "UNKNOWN(7)", "update", "snapshot", "update",
    ]  # fmt: skip
    assert (rows[4]["group_id"], rows[4]["partition"], rows[4]["state_batches"]) == ("h", 0, None)
    assert rows[2]["state_batches"][1]["delivery_state_name"] == "UNKNOWN(5)"


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("cut", "expected"),
    [
        (["--at-offset", "0:1"], {"g": COMPLETE, "h": COMPLETE}),
        (["--at-offset", "0:3"], {"g": UNKNOWN, "h": COMPLETE}),
        (PENDING, {"g": UNKNOWN, "h": UNKNOWN}),
        (AFTER, {"g": COMPLETE, "h": UNKNOWN}),
        ([], {"g": UNKNOWN, "h": UNKNOWN}),
    ],
)
def test_states_are_marked_until_a_snapshot_of_known_states(
    cut: list[str], expected: dict[str, Any], place: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert marks(answer(capsys, "state", *cut, *place)) == expected


def test_an_unknown_state_is_no_outcome(place: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    lags = {row["group_id"]: row for row in answer(capsys, "lag", *place)}
    assert (lags["g"]["lag_recounted"], lags["g"]["first_incomplete_offset"]) == (30, 10)
    assert marks(list(lags.values())) == {"g": UNKNOWN, "h": UNKNOWN}
    events = answer(capsys, "trace", "--group", "g", "--topic", "orders", "--partition", "0", "--offset", "11", *place)
    assert (events[-1]["delivery_state_name"], events[-1]["outcome"]) == ("UNKNOWN(-3)", "unknown_state")
    assert answer(capsys, "poison", *place) == []


def test_nothing_of_it_is_quarantined(place: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", *place]) == 0
    assert "gaps 0, quarantined 0" in capsys.readouterr().out


@pytest.mark.parametrize(("version", "severity"), [(None, "info"), ("4.4", "error"), ("4.1", "error")])
def test_the_audit_takes_it_for_a_fault_of_brokers_that_have_no_such_state(
    version: str | None, severity: str, place: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "audit",
        *place,
        "--severity",
        "info",
        *(["--kafka-version", version] if version else []),
    ]
    findings = {(row["rule"], row["group_id"]): row for row in answer(capsys, *words)["findings"]}
    unknown = findings["unknown_format", "h"], findings["unknown_delivery_state", "g"]
    assert [row["severity"] for row in unknown] == [severity, severity]
    assert [row["first_log_offset"] for row in unknown] == [4, 2]
