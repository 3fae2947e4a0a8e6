"""Cost and lives of the recorded logs: counted against what Kafka's own formatter printed."""

import json
from collections import Counter
from typing import Any

import pytest

from sharelens.cli import main
from tests.compat.test_log_dir_answers import lines
from tests.datasets import dataset
from tests.in_process import recorded_lake


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    assert main([*words, "--output", "json"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("name", ["admin", "basic", "edge", "upgrade"])
def test_every_record_is_counted(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    printed = Counter(
        "tombstones" if line["value"] is None else ("snapshots", "updates")[line["key"]["type"]]
        for line in lines(dataset(name) / "formatter.jsonl")
    )
    rows = asked(capsys, "cost", "--log-dir", str(dataset(name) / "logs"))
    kinds = ("snapshots", "updates", "tombstones")
    assert {kind: sum(row[kind] for row in rows) for kind in kinds} == {kind: printed[kind] for kind in kinds}
    parts = asked(capsys, "cost", "--state-partitions", "--log-dir", str(dataset(name) / "logs"))
    assert sum(row["records"] for row in parts) == printed.total()


@pytest.mark.parametrize("name", ["admin", "edge"])
def test_every_tombstone_of_a_live_share_partition_is_a_deletion(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    tombstones = sum(line["value"] is None for line in lines(dataset(name) / "formatter.jsonl"))
    rows = asked(capsys, "life", "--event", "deleted", "--log-dir", str(dataset(name) / "logs"))
    assert len(rows) == tombstones


@pytest.mark.parametrize("words", [("life",), ("cost",), ("cost", "--state-partitions")])
def test_a_lake_answers_as_its_logs_do(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    logs = str(dataset("admin") / "logs")
    lake = recorded_lake("admin")
    straight = asked(capsys, *words, "--log-dir", logs)
    assert straight
    assert asked(capsys, *words, "--lake", str(lake)) == straight


def test_who_deleted_is_what_the_clients_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    rows = asked(capsys, "life", "--event", "deleted", "--log-dir", str(dataset("admin") / "logs"))
    told: dict[tuple[str, str], list[str]] = {}
    for row in sorted(rows, key=lambda row: row["log_time_ms"]):
        if row["partition"] == 0:
            told.setdefault((row["group_id"], row["topic_id"][:4]), []).append(row["deleted_by_inferred"])
    assert told == {
        ("gE", "rcsW"): ["group_offsets", "topic"],
        ("gL", "K51C"): ["group"],
        ("gD", "rcsW"): ["topic"],
        ("gX", "rcsW"): ["topic"],
        ("gD", "K51C"): ["group"],
        ("gD", "bQpe"): ["group"],
    }


def test_a_group_log_too_large_to_read_leaves_untold_who_deleted(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["life", "--event", "deleted", "--log-dir", str(dataset("admin") / "logs"), "--max-bytes", "30000"]
    assert main([*words, "--output", "json"]) == 0
    out, err = capsys.readouterr()
    assert {row["deleted_by_inferred"] for row in json.loads(out)} == {None}
    assert "warning: who deleted is not told: " in err
