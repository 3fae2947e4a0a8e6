"""Cost and lives of the recorded logs: counted against what Kafka's own formatter printed."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sharelens.cli import main
from tests.compat.test_log_dir_answers import lines
from tests.datasets import dataset
from tests.processes.in_process import recorded_lake

pytestmark = pytest.mark.usefixtures("evidence_opened_once")


def answer_of(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    assert main([*words, "--output", "json"]) == 0
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return rows


@pytest.mark.parametrize("name", ["admin", "basic", "edge", "upgrade"])
def test_every_record_is_counted(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    printed = Counter(
        "tombstones" if line["value"] is None else ("snapshots", "updates")[line["key"]["type"]]
        for line in lines(dataset(name) / "formatter.jsonl")
    )
    rows = answer_of(capsys, "cost", "--log-dir", str(dataset(name) / "logs"))
    kinds = ("snapshots", "updates", "tombstones")
    assert {kind: sum(row[kind] for row in rows) for kind in kinds} == {kind: printed[kind] for kind in kinds}
    parts = answer_of(capsys, "cost", "--state-partitions", "--log-dir", str(dataset(name) / "logs"))
    assert sum(row["records"] for row in parts) == printed.total()


@pytest.mark.parametrize("name", ["admin", "edge"])
def test_every_tombstone_of_a_live_share_partition_is_a_deletion(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    tombstones = sum(line["value"] is None for line in lines(dataset(name) / "formatter.jsonl"))
    rows = answer_of(capsys, "life", "--event", "deleted", "--log-dir", str(dataset(name) / "logs"))
    assert len(rows) == tombstones


@pytest.mark.one_in(3)
@pytest.mark.parametrize("words", [("life",), ("cost",), ("cost", "--state-partitions")])
def test_a_lake_answers_as_its_logs_do(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    logs = str(dataset("admin") / "logs")
    lake = recorded_lake("admin")
    straight = answer_of(capsys, *words, "--log-dir", logs)
    assert straight
    assert answer_of(capsys, *words, "--lake", str(lake)) == straight


def test_who_deleted_is_what_the_clients_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    rows = answer_of(capsys, "life", "--event", "deleted", "--log-dir", str(dataset("admin") / "logs"))
    values: dict[tuple[str, str], list[str]] = {}
    for row in sorted(rows, key=lambda row: row["log_time_ms"]):
        if row["partition"] == 0:
            values.setdefault((row["group_id"], row["topic_id"][:4]), []).append(row["deleted_by_inferred"])
    assert values == {
        ("gE", "rcsW"): ["group_offsets", "topic"],
        ("gL", "K51C"): ["group"],
        ("gD", "rcsW"): ["topic"],
        ("gX", "rcsW"): ["topic"],
        ("gD", "K51C"): ["group"],
        ("gD", "bQpe"): ["group"],
    }


def test_a_group_log_too_large_to_read_leaves_untold_who_deleted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = Path(shutil.copytree(dataset("admin") / "logs", tmp_path / "logs"))
    with next((logs / "__consumer_offsets-1").glob("*.log")).open("ab") as segment:
        segment.write(bytes(40_000))
    words = ["life", "--event", "deleted", "--log-dir", str(logs), "--max-bytes", "50000"]
    assert main([*words, "--output", "json"]) == 0
    out, err = capsys.readouterr()
    assert {row["deleted_by_inferred"] for row in json.loads(out)} == {None}
    assert "warning: who deleted is unknown: " in err


def test_the_cost_of_two_windows_is_the_cost_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    logs = ("--log-dir", str(dataset("basic") / "logs"))
    middle = "2026-11-21T03:12:43Z"
    whole_rows = answer_of(capsys, "cost", *logs)
    halves = answer_of(capsys, "cost", *logs, "--to", middle) + answer_of(capsys, "cost", *logs, "--from", middle)
    for name in ("records", "updates", "snapshots", "bytes", "acknowledged_offsets"):
        sums: Counter[tuple[str, str, int]] = Counter()
        for row in halves:
            sums[row["group_id"], row["topic_id"], row["partition"]] += row[name]
        assert sums == {(row["group_id"], row["topic_id"], row["partition"]): row[name] for row in whole_rows}
    assert len(halves) > len(whole_rows)


@pytest.mark.parametrize("words", [("--from", "2", "--to", "1"), ("--state-partitions", "--from", "1")])
def test_a_window_that_cannot_be_meant_is_refused(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", "--log-dir", str(dataset("basic") / "logs"), *words]) == 2
    assert capsys.readouterr().err.startswith("sharelens: cost: ")


def test_a_lake_compares_both_designs_as_its_logs_do(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("cost", "--compare-early-draft")
    rows = answer_of(capsys, *words, "--log-dir", str(dataset("admin") / "logs"))
    assert rows
    assert answer_of(capsys, *words, "--lake", str(recorded_lake("admin"))) == rows


def test_the_shipped_side_of_the_comparison_is_what_the_log_cost(capsys: pytest.CaptureFixture[str]) -> None:
    logs = ("--log-dir", str(dataset("edge") / "logs"))
    key = ("group_id", "topic_id", "partition", "state_partition")
    costs = {tuple(row[name] for name in key): row for row in answer_of(capsys, "cost", *logs)}
    rows = answer_of(capsys, "cost", "--compare-early-draft", *logs)
    assert rows
    for row in rows:
        cost = costs[tuple(row[name] for name in key)]
        assert (row["records"], row["bytes"]) == (cost["records"], cost["bytes"])
        assert 0 < row["draft_checkpoints"] <= row["draft_records"]
