"""Answers from a lake against what the real brokers said, checkpoint by checkpoint.

Checkpoints whose records Kafka pruned are asked of a lake made from segments that our writer made of every record that
a consumer had seen.
"""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from sharelens.cli import main
from sharelens.lake.scan import open_lake
from tests.compat.test_log_dir_answers import (
    Ask,
    answerable,
    at_offsets,
    compare_states,
    first_offsets,
    formatted,
    lines,
)
from tests.datasets import FEW, dataset, kinds_first
from tests.logs.state_logs import STATE_TOPIC, encoded_records
from tests.once import made_once
from tests.processes.in_process import make_lake, recorded_lake
from tools.log_writer.writer import encode_log, record_columns, write_partition

pytestmark = pytest.mark.usefixtures("evidence_opened_once")

PRUNED = "pruned"


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """Asks with --output json; any exit code but 0 fails."""

    def rows_of(*words: str) -> list[dict[str, Any]]:
        code = main([*words, "--output", "json"])
        out, err = capsys.readouterr()
        assert code == 0, err
        document: list[dict[str, Any]] = json.loads(out)
        return document

    return rows_of


@pytest.mark.parametrize("name", kinds_first(FEW))
def test_a_lake_answers_every_checkpoint_as_the_broker_did(name: str, ask: Ask) -> None:
    lake = str(recorded_lake(name))
    first = first_offsets(dataset(name) / "logs")
    compared = 0
    for checkpoint in lines(dataset(name) / "checkpoints.jsonl"):
        if answerable(checkpoint, first):
            rows = ask("state", "--lake", lake, "--at-offset", at_offsets(checkpoint, first))
            compared += compare_states(checkpoint, rows)
    assert compared > 0
    assert compare_states(checkpoint, ask("state", "--lake", lake)) > 0


def record(printed: dict[str, Any]) -> dict[str, Any]:
    """What a formatter printed, as a record to be encoded."""
    ours = formatted(printed)
    names = ("first_offset", "last_offset", "delivery_state", "delivery_count")
    batches = ours["state_batches"]
    described = {name: value for name, value in ours.items() if name not in ("type", "log_offset", "state_partition")}
    return described | {
        "record_type": ours["type"],
        "value_version": None if batches is None else 0,
        "state_batches": None if batches is None else [dict(zip(names, batch, strict=True)) for batch in batches],
        "unknown_tags": [],
    }


def write_unpruned(logs: Path) -> None:
    rows_by_partition: dict[int, list[dict[str, Any]]] = {}
    with gzip.open(dataset(PRUNED) / "formatter-all.jsonl.gz", "rt", encoding="utf-8") as file:
        for line in file:
            printed = json.loads(line)
            rows = rows_by_partition.setdefault(printed["partition"], [])
            assert printed["offset"] == len(rows), "nothing is missing"
            rows.append(record(printed))
    (topic_id,) = {row["topic_id"] for row in state_rows(recorded_lake(PRUNED))}
    for partition, rows in rows_by_partition.items():
        columns = record_columns(*zip(*encoded_records(rows), strict=True))
        encoded = encode_log(columns, records_per_batch=7)
        write_partition(logs, STATE_TOPIC, partition, encoded, topic_id=topic_id, segment_bytes=200_000)


@pytest.fixture
def unpruned() -> Path:
    """A log directory with every record of the state topic that was ever written."""
    return made_once("unpruned/logs", write_unpruned)


@pytest.fixture
def unpruned_lake(unpruned: Path) -> Path:
    """The lake of that directory; nothing in it was unreadable."""

    def make(lake: Path) -> None:
        assert make_lake(lake, unpruned).quarantined == 0

    return made_once("unpruned/lake", make)


def state_rows(lake: Path) -> list[dict[str, Any]]:
    """Rows of the state topic in bronze."""
    rows = open_lake(lake).scan("bronze.log_record").to_pylist()
    return [row for row in rows if row["topic"] == STATE_TOPIC]


@pytest.mark.soak
def test_pruned_checkpoints_are_answered_from_all_that_was_ever_written(
    ask: Ask, unpruned: Path, unpruned_lake: Path
) -> None:
    first_remaining = first_offsets(dataset(PRUNED) / "logs")
    early = compared = 0
    for checkpoint in lines(dataset(PRUNED) / "checkpoints.jsonl"):
        early += not answerable(checkpoint, first_remaining)
        offsets = at_offsets(checkpoint, first_offsets(unpruned))
        compared += compare_states(checkpoint, ask("state", "--lake", str(unpruned_lake), "--at-offset", offsets))
    assert early >= 4
    assert compared > 0


def test_our_writers_bytes_are_those_that_kafka_left(unpruned_lake: Path) -> None:
    ours = {(row["partition"], row["offset"]): (row["key"], row["value"]) for row in state_rows(unpruned_lake)}
    theirs = state_rows(recorded_lake(PRUNED))
    assert len(theirs) > 5000
    assert all(ours[row["partition"], row["offset"]] == (row["key"], row["value"]) for row in theirs)
