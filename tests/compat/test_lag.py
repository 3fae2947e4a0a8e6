"""Lag, start offset and leader epoch against what the brokers' Admin API listed, from logs and from lakes."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sharelens.cli import main
from sharelens.lake.scan import open_lake
from sharelens.measures.lag_over_time import VALUES
from state_model.columnar.keys import SHARE_PARTITION_ORDER
from tests.compat.test_log_dir_answers import answerable, at_offsets, first_offsets, lines
from tests.datasets import FEW, KINDS, dataset, kinds_first, scenarios
from tests.depths import in_soak, rows_in_soak
from tests.processes.in_process import recorded_lake

pytestmark = pytest.mark.usefixtures("evidence_opened_once")

Json = dict[str, Any]
Ask = Callable[..., list[Json]]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """Runs a command with --output json and returns its document."""

    def rows_of(*words: str) -> list[Json]:
        code = main([*words, "--output", "json"])
        out, err = capsys.readouterr()
        assert code == 0, err
        document = json.loads(out)
        assert isinstance(document, list)
        return document

    return rows_of


def listed(checkpoint: Json) -> Iterator[tuple[tuple[str, str, int], Json]]:
    """Start offset, leader epoch and lag that the Admin API listed, by group, topic and partition; 4.1 knew no lag."""
    for group, partitions in checkpoint.get("listShareGroupOffsets", {}).items():
        for place, entry in partitions.items():
            topic, _, partition = place.rpartition("-")
            if entry is not None:
                start = entry["startOffset"] if "startOffset" in entry else entry["offset"]
                listing = {"start_offset": start, "leader_epoch": entry["leaderEpoch"], "lag": entry.get("lag")}
                yield (group, topic, int(partition)), listing


def compare(rows: list[Json], checkpoint: Json) -> int:
    """Compares what the broker listed of live topics; how many it was."""
    ours: dict[tuple[str, str, int], list[Json]] = {}
    for row in rows:
        ours.setdefault((row["group_id"], row["topic"], row["partition"]), []).append(row)
    compared = 0
    for key, listing in listed(checkpoint):
        answers = [{name: row[name] for name in listing} for row in ours[key]]
        assert listing in answers, f"{key} at checkpoint {checkpoint['name']}: {ours[key]}"
        assert len(answers) == 1 or checkpoint_has_two_ids(checkpoint, key)
        compared += 1
    return compared


def checkpoint_has_two_ids(checkpoint: Json, key: tuple[str, str, int]) -> bool:
    """Whether the topic was created again and the state of both still stood."""
    ids = {entry["topicId"] for entry in checkpoint["states"] if (entry["group"], entry["topic"]) == key[:2]}
    return len(ids) > 1


def end_offsets(checkpoint: Json, folder: Path) -> str:
    """The topics' ends at a checkpoint, as kafka-get-offsets prints them."""
    text = "".join(
        f"{topic}:{partition}:{offset}\n"
        for topic, offsets in checkpoint["topics"].items()
        for partition, offset in offsets["end"].items()
    )
    file = folder / f"ends-{checkpoint['checkpoint']}"
    file.write_text(text, encoding="ascii")
    return str(file)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", scenarios())
def test_lag_now_is_what_the_broker_listed_last(name: str, ask: Ask) -> None:
    logs = dataset(name) / "logs"
    *_, last = lines(dataset(name) / "checkpoints.jsonl")
    straight = ask("lag", "--log-dir", str(logs))
    expected = sum(1 for _ in listed(last))
    assert compare(straight, last) == expected


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", kinds_first())
def test_lag_now_of_a_lake_is_that_of_its_log(name: str, ask: Ask) -> None:
    straight = ask("lag", "--log-dir", str(dataset(name) / "logs"))
    lake = recorded_lake(name)
    assert ask("lag", "--lake", str(lake)) == straight
    gold = open_lake(lake).scan("gold.lag").sort_by(SHARE_PARTITION_ORDER)
    assert [{name: row[name] for name in straight[0]} for row in gold.to_pylist()] == straight


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("name", "with_lake"),
    [
        *((name, name in FEW) for name in KINDS),
        *rows_in_soak(*((name, True) for name in scenarios() if name not in FEW)),
    ],
)
def test_lag_at_every_checkpoint_is_what_the_broker_listed(
    name: str, with_lake: bool, ask: Ask, tmp_path: Path
) -> None:
    logs = dataset(name) / "logs"
    first = first_offsets(logs)
    for checkpoint in lines(dataset(name) / "checkpoints.jsonl"):
        if not answerable(checkpoint, first) or "topics" not in checkpoint:
            continue
        cut = ["--at-offset", at_offsets(checkpoint, first), "--end-offsets", end_offsets(checkpoint, tmp_path)]
        rows = ask("lag", "--log-dir", str(logs), *cut)
        compare(rows, checkpoint)
        if with_lake:
            assert ask("lag", "--lake", str(recorded_lake(name)), *cut) == rows


def test_the_recorded_sets_hold_many_listed_lags() -> None:
    """So that the comparisons above mean something."""
    every = [
        listing["lag"]
        for name in scenarios()
        for checkpoint in lines(dataset(name) / "checkpoints.jsonl")
        for _, listing in listed(checkpoint)
    ]
    assert len(every) > 400
    assert sum(lag is not None and lag > 0 for lag in every) > 100


def test_the_closing_lines_name_the_one_cut_and_its_age(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    end_ms = 1_795_230_767_891
    monkeypatch.setattr(time, "time_ns", lambda: (end_ms + 7_800_000) * 1_000_000)
    for words, cut in (
        ([], "cut: 2026-11-21T03:12:47.891Z, 2 h 10 min ago; end offsets: high_watermark"),
        (["--as-of", str(end_ms - 2000)], "cut: 2026-11-21T03:12:45.891Z, 2 h 10 min ago; "),
        (["--at-offset", "0:3"], "cut: offsets of the state log; "),
    ):
        assert main(["lag", "--log-dir", str(dataset("basic") / "logs"), *words]) == 0
        assert cut in capsys.readouterr().out


@pytest.mark.parametrize("name", ["transactions", *in_soak("admin", "upgrade", "pruned")])
def test_lag_over_time_is_the_same_from_lake_and_log_and_ends_where_the_broker_did(name: str, ask: Ask) -> None:
    logs = dataset(name) / "logs"
    lake = recorded_lake(name)
    rows = ask("lag", "--log-dir", str(logs), "--every", "5s")
    assert ask("lag", "--lake", str(lake), "--every", "5s") == rows
    newest = {(row["group_id"], row["topic_id"], row["partition"]): row for row in rows}
    now = ask("lag", "--log-dir", str(logs))
    known_rows = [row for row in now if row["lag"] is not None and row["newest_batch_ms"] is not None]
    assert known_rows
    for row in known_rows:
        assert newest[row["group_id"], row["topic_id"], row["partition"]]["lag_inferred"] == row["lag"]


@pytest.mark.parametrize("name", ["transactions", *in_soak("admin", "upgrade", "pruned", "crash")])
def test_the_table_of_changes_is_the_lag_at_every_minute(name: str, ask: Ask) -> None:
    changes: dict[tuple[str, str, int], list[Json]] = {}
    for row in open_lake(recorded_lake(name)).scan("gold.lag_over_time").to_pylist():
        changes.setdefault((row["group_id"], row["topic_id"], row["partition"]), []).append(row)
    rows = ask("lag", "--log-dir", str(dataset(name) / "logs"), "--every", "1m")
    assert rows
    for row in rows:
        until_then = [
            change
            for change in changes[row["group_id"], row["topic_id"], row["partition"]]
            if change["at_ms"] <= row["at_ms"] and change["state_partition"] == row["state_partition"]
        ]
        newest = max(until_then, key=lambda change: int(change["at_ms"]))
        assert {name: newest[name] for name in VALUES} == {name: row[name] for name in VALUES}


@pytest.mark.parametrize(
    "words",
    [
        ["--from", "1"],
        ["--every", "5s", "--as-of", "1"],
        ["--every", "0s"],
        ["--every", "5"],
        ["--every", "1ms", "--from", "1"],
        ["--every", "5s", "--from", "2026-11-21T03:12:45Z", "--to", "2026-11-21T03:12:40Z"],
    ],
)
def test_moments_that_cannot_be_meant_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lag", "--log-dir", str(dataset("basic") / "logs"), *words]) == 2
    assert capsys.readouterr().err.startswith("sharelens: ")
