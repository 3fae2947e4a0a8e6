"""The timeline of streams groups over recorded logs, against what the recording says was done."""

import json
from collections import Counter
from typing import Any

import pytest

from sharelens.cli import main
from state_model.group_records import GroupRecord, decode_record
from state_model.offset_commits import key_prefix
from state_model.topics import OFFSETS_TOPIC
from tests.datasets import dataset, raw_records
from tests.processes.in_process import recorded_lake


def _timeline(capsys: pytest.CaptureFixture[str], place: str, group: str, *words: str) -> list[dict[str, Any]]:
    assert main(["timeline", *place.split(" ", 1), "--group", group, *words, "--output", "json"]) == 0
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    assert [row["at_ms"] for row in rows] == sorted(row["at_ms"] for row in rows)
    return rows


def _logs(name: str) -> str:
    return f"--log-dir {dataset(name) / 'logs'}"


def test_a_deleted_group_that_was_created_again_and_offsets_that_somebody_changed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = _timeline(capsys, _logs("streams-admin"), "app-wc")
    lives = ("group_created", "topology_set", "group_deleted")
    assert [(row["event"], row["text"]) for row in rows if row["event"] in lives] == [
        ("group_created", "group epoch 2"),
        ("topology_set", "topology epoch 0: 2 subtopologies of text"),
        ("group_deleted", ""),
        ("group_created", "group epoch 2"),
        ("topology_set", "topology epoch 0: 3 subtopologies of plain, text"),
        ("group_deleted", ""),
    ]
    changed = [row["text"] for row in rows if row["event"].startswith("offsets_")]
    assert changed[:4] == ["text 0: 10 to 2, 1: 10 to 3", "text 2: 10", "text 0: 2 to 0, 1: 3 to 0", "text 3: 10"]
    deletions = {row["at_ms"] for row in rows if row["event"] == "group_deleted"}
    assert {row["at_ms"] for row in rows if row["event"] == "offsets_deleted"} >= deletions
    counts = Counter(row["event"] for row in rows)
    assert counts["member_joined"] == counts["member_left"] == 7
    assert counts["offsets_reset"] == 2


def test_each_entry_names_a_record_of_the_group(capsys: pytest.CaptureFixture[str]) -> None:
    rows = _timeline(capsys, _logs("streams-topology"), "app-wc")
    records = raw_records("streams-topology", OFFSETS_TOPIC)
    for row in rows:
        key, value = records[row["log_partition"], row["log_offset"]]
        record = decode_record(key, value)
        is_of_group = isinstance(record, GroupRecord) and record.group_id == "app-wc"
        assert is_of_group or (key or b"").startswith(key_prefix("app-wc")), row


def test_times_without_topics_and_the_tasks_that_moved(capsys: pytest.CaptureFixture[str]) -> None:
    rows = _timeline(capsys, _logs("streams-topology"), "app-wc")
    waits = [(row["event"], row["text"]) for row in rows if row["event"].startswith("not_ready")]
    reason = ("not_ready_began", "topics of the topology are missing or have other partition counts")
    assert waits[::2] == [reason] * 4
    assert [text for _, text in waits[1::2]] == ["after 0.8 s, ASSIGNING"] * 2 + [
        "after 0.1 s, ASSIGNING",
        "after 0.1 s, EMPTY",
    ]
    epochs = [row["text"] for row in rows if row["event"] == "rebalanced"]
    assert len(epochs) == 12
    assert epochs[2] == "group epoch 4, 8 tasks moved, stable after 2.8 s"
    assert epochs[3] == "group epoch 5, 8 tasks moved, 8 tasks without an owner for 1.3 s at most"


def test_nothing_after_the_cut_or_outside_the_span_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    whole_timeline = _timeline(capsys, _logs("streams-topology"), "app-wc")
    middle_ms = whole_timeline[len(whole_timeline) // 2]["at_ms"]
    cut = _timeline(capsys, _logs("streams-topology"), "app-wc", "--as-of", str(middle_ms))
    assert 5 < len(cut) < len(whole_timeline)
    assert {row["at_ms"] <= middle_ms for row in cut} == {True}
    later = _timeline(capsys, _logs("streams-topology"), "app-wc", "--from", str(middle_ms + 1))
    assert later == [row for row in whole_timeline if row["at_ms"] > middle_ms]


def test_a_lake_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    straight = _timeline(capsys, _logs("streams"), "wc-app")
    assert {"group_created", "rebalanced", "group_deleted"} < {row["event"] for row in straight}
    assert _timeline(capsys, f"--lake {recorded_lake('streams')}", "wc-app") == straight
