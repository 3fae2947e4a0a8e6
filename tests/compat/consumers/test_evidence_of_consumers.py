"""Answers and evidence folders about a consumer group that a real Kafka wrote among share groups."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sharelens.cli import main
from tests.datasets import dataset
from tests.processes.in_process import recorded_lake

GROUP = "regex-app"
MEMBER = "nymZzS4vSbS1t-P3FQwlTQ"
WINDOW = ("--from", "2026-11-21T03:35:10Z", "--to", "2026-11-21T03:36:00Z")
LOGS = dataset("admin") / "logs"


@pytest.fixture(params=["--log-dir", "--lake"])
def source(request: pytest.FixtureRequest) -> tuple[str, str]:
    """The logs, and the lake of them."""
    return request.param, str(LOGS if request.param == "--log-dir" else recorded_lake("admin"))


def answered(capsys: pytest.CaptureFixture[str], words: Sequence[str]) -> list[dict[str, Any]]:
    assert main([*words, "--output", "json"]) in (0, None)
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return rows


def test_a_group_is_described_with_the_topics_of_its_expression(
    source: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    about = (*source, "--group", GROUP)
    (member,) = answered(capsys, ["describe", *about, "--members", "--as-of", "2026-11-21T03:35:19.700Z"])
    assert (member["member_id"], member["member_type"], member["member_state"]) == (MEMBER, "consumer", "STABLE")
    assert (member["subscribed_topic_regex"], member["matched_topics"]) == ("^(alpha|be.*)$", ["alpha", "beta"])
    assigned = {of["topic"]: of["partitions"] for of in member["assigned_partitions"]}
    assert (assigned, member["partition_count"]) == ({"alpha": [0, 1, 2], "beta": [0, 1]}, 5)
    (state,) = answered(capsys, ["describe", *about, "--state"])
    assert (state["state"], state["group_epoch"], state["assignment_epoch"]) == ("EMPTY", 3, 2)
    offsets = answered(capsys, ["describe", *about])
    assert [(row["topic"], row["partition"], row["committed_offset"], row["lag"]) for row in offsets] == [
        ("alpha", 0, 109, 70),
        ("alpha", 1, 11, 168),
        ("alpha", 2, 0, 179),
    ]
    rebalances = answered(capsys, ["rebalances", *about])
    assert [(row["group_epoch"], row["state"], len(row["moved"])) for row in rebalances] == [
        (2, "ASSIGNING", 5),
        (3, "EMPTY", 5),
    ]
    assert {move["topic"] for row in rebalances for move in row["moved"]} == {"alpha", "beta"}
    events = [row["event"] for row in answered(capsys, ["timeline", *about])]
    assert events == [
        *("member_joined", "expression_resolved", "group_created", "rebalanced", "member_left", "rebalanced"),
        "offsets_deleted",
    ]


def test_it_has_no_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", "--log-dir", str(LOGS), "--group", GROUP, "--tasks"]) == 2
    assert f"{GROUP} is a consumer group, which has no tasks; leave --tasks out" in capsys.readouterr().err


@pytest.mark.parametrize("question", ["lag", "stalled"])
def test_questions_about_share_groups_say_what_is_about_it(question: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([question, "--log-dir", str(LOGS), "--group", GROUP]) == 2
    error = capsys.readouterr().err
    assert f"no share group {GROUP} in" in error
    assert "it is a consumer group: groups, describe, rebalances, timeline and overview are about it" in error


def test_a_folder_of_evidence_has_its_records_histories_rebalances_and_events(
    source: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "case"
    words = ["evidence", *source, "--group", GROUP, *WINDOW, "--case", "INC-1", "--out", str(folder)]
    assert main(words) in (0, None)
    capsys.readouterr()
    tables = {path.stem: json.loads(path.read_text("utf-8")) for path in (folder / "tables").glob("*.json")}
    assert tables.keys() >= {
        "timeline",
        "rebalance",
        "group_history",
        "member_history",
        "group_record",
        "group",
        "audit",
    }
    assert not tables.keys() & {"task_history", "finding", "state_before"}
    assert tables["audit"] == []
    assert {row["regular_expression"] for row in tables["group_record"]} == {None, "^(alpha|be.*)$"}
    assert {row["member_id"] for row in tables["member_history"]} == {MEMBER}
    readme, report = ((folder / page).read_text("utf-8") for page in ("README.md", "report.html"))
    assert f"| consumer group | {GROUP} |" in readme
    assert f"<dt>Consumer group</dt><dd>{GROUP}</dd>" in report
    assert "is a classic group again" in report
    if source[0] == "--log-dir":
        assert main(["verify", str(folder), *source]) in (0, None)
