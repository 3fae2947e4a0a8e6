"""What the state log calls delivered more than once, against what the clients saw."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from sharelens.lake.scan import open_lake
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.redelivered import redelivered
from sharelens.source.request import CutChoice, Source
from sharelens.tables.logs.tables import open_log_tables
from sharelens.tables.where import Span
from tests.compat.test_stalled_poison import ask
from tests.datasets import dataset
from tests.depths import in_soak
from tests.processes.in_process import recorded_lake

Place = tuple[str, str, int, int]
COLUMNS = {"life": "life_log_offset", "earlier_life": "earlier_life_log_offset"}
"""Columns of the table by the names that the answer has for them."""


def journal(folder: Path) -> list[dict[str, Any]]:
    packed = folder / "journal.jsonl.gz"
    text = gzip.decompress(packed.read_bytes()) if packed.exists() else (folder / "journal.jsonl").read_bytes()
    return [json.loads(line) for line in text.splitlines()]


def measured(folder: Path) -> dict[Place, int]:
    """The largest delivery count by (group, topic, partition, offset)."""
    with open_log_tables(Source(log_dirs=(str(folder / "logs"),))) as evidence:
        rows = redelivered(evidence, KeyFilter(), CutChoice(), Span()).table.to_pylist()
    counts: dict[Place, int] = {}
    for row in rows:
        for offset in range(row["first_offset"], row["last_offset"] + 1):
            place = (row["group_id"], row["topic"], row["partition"], offset)
            counts[place] = max(counts.get(place, 0), row["max_delivery_count"])
    return counts


@pytest.mark.parametrize("name", ["basic", "timeouts", "transactions", "dlq", "v44"])
def test_what_clients_settled_at_a_later_delivery_is_told_with_its_count(name: str) -> None:
    """A record that was fetched but never handed to the application counts too: no journal has a line for it."""
    folder = dataset(name)
    settled: dict[Place, int] = {}
    for line in journal(folder):
        if line.get("ack") in ("ACCEPT", "REJECT", "IMPLICIT"):
            place = (line["g"], line["topic"], line["p"], line["o"])
            settled[place] = max(settled.get(place, 0), line["dc"])
    again = {place: count for place, count in settled.items() if count > 1}
    measures = measured(folder)
    assert again
    assert {place: measures.get(place, 0) >= count for place, count in again.items()} == dict.fromkeys(again, True)
    assert not {place for place, count in settled.items() if count == 1} & measures.keys()


@pytest.mark.parametrize("name", ["timeouts", *in_soak("admin", "dlq", "transactions")])
def test_the_gold_table_holds_what_the_question_tells(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    lake = recorded_lake(name)
    measures = ask(capsys, "redelivered", "--lake", str(lake))
    assert measures
    assert measures == ask(capsys, "redelivered", "--log-dir", str(dataset(name) / "logs"))
    order = ["group_id", "topic_id", "partition", "state_partition", "first_offset", "kind", "life"]
    gold_rows = open_lake(lake).scan("gold.redelivered_record").to_pylist()
    rows = [{column: row[COLUMNS.get(column, column)] for column in measures[0]} for row in gold_rows]
    assert sorted(rows, key=lambda row: [row[name] for name in order]) == sorted(
        measures, key=lambda row: [row[name] for name in order]
    )
