"""How long records waited, against the journals of the clients and the records' own timestamps."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sharelens.cli import main
from sharelens.lake.scan import open_lake
from sharelens.tables.lakes.tables import LakeTables
from sharelens.tables.logs.tables import LogTables
from tests.compat.test_stalled_poison import ask, journal, lasting_topics, lines
from tests.datasets import dataset
from tests.processes.in_process import recorded_lake

Json = dict[str, Any]
Place = tuple[str, str, int, int]
NAMES = ("basic", "timeouts", "transactions", "dlq", "v44")
DONE = {"ACCEPT": "acknowledged", "IMPLICIT": "acknowledged", "REJECT": "archived"}
SLACK_MS = 2
"""The log's time is the running maximum of the records' own, which differ by a millisecond or so."""


def rows_by_place(folder: Path, capsys: pytest.CaptureFixture[str]) -> dict[Place, Json]:
    """The range of each settled offset by (group, topic, partition, offset); of topics whose name has one id."""
    rows = ask(capsys, "latency", "--ranges", "--log-dir", str(folder / "logs"))
    one_life = lasting_topics(folder)
    by_place: dict[Place, Json] = {}
    for row in rows:
        for offset in range(row["first_offset"], row["last_offset"] + 1):
            place = (row["group_id"], row["topic"], row["partition"], offset)
            if row["topic"] in one_life:
                assert place not in by_place
                by_place[place] = row
    return by_place


def answered(folder: Path) -> dict[Place, int]:
    """When the broker's last answer about a record reached its client."""
    by_place: dict[Place, int] = {}
    for line in lines(folder, "journal.jsonl"):
        if line.get("ev") != "ackcb":
            continue
        for name, offsets in line["offsets"].items():
            topic, _, partition = name.rpartition("-")
            for offset in offsets:
                place = (line["g"], topic, int(partition), offset)
                by_place[place] = max(int(line["t"]), by_place.get(place, 0))
    return by_place


@pytest.mark.parametrize("name", NAMES)
def test_the_true_age_and_the_journals_times_lie_within_the_bounds(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = dataset(name)
    stamps = {
        (line["topic"], line["partition"], line["offset"]): int(line["timestamp"])
        for line in lines(folder, "topics.jsonl")
    }
    ranges, answers = rows_by_place(folder, capsys), answered(folder)
    for place, row in ranges.items():
        stamp = stamps[place[1:]]
        assert row["age_min_ms"] <= row["settled_ms"] - stamp <= row["age_max_ms"], place
    by_hand = {place: did[-1] for place, did in journal(folder).items() if did[-1]["ack"] in DONE}
    shared_places = {
        place for place in by_hand.keys() & ranges if DONE[by_hand[place]["ack"]] == ranges[place]["outcome"]
    }
    assert len(shared_places) > 50
    for place in shared_places:
        handed_out = int(by_hand[place]["t"]) - stamps[place[1:]]
        assert handed_out <= ranges[place]["age_max_ms"] + SLACK_MS, place
    for place in shared_places & answers.keys():
        if (name, ranges[place]["outcome"]) == ("dlq", "archived"):
            continue  # answered while ARCHIVING, before the dead letter is written
        assert answers[place] - stamps[place[1:]] >= ranges[place]["age_min_ms"] - SLACK_MS, place


@pytest.mark.parametrize("name", NAMES)
def test_delivery_counts_are_those_that_the_clients_saw_last(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = dataset(name)
    ranges = rows_by_place(folder, capsys)
    last_entries = {place: did[-1] for place, did in journal(folder).items() if did[-1]["ack"] in DONE}
    compared = Counter(
        (DONE[line["ack"]], ranges[place]["outcome"], ranges[place]["delivery_count"] >= line["dc"])
        for place, line in last_entries.items()
        if place in ranges
    )
    assert compared["acknowledged", "acknowledged", True] > 50
    late = {("acknowledged", "archived", True)} if name in ("dlq", "timeouts") else set()
    outcomes = {("acknowledged", "acknowledged", True), ("archived", "archived", True)}
    assert compared.keys() <= outcomes | late, "accepted when the last lock had run out"


FINEST = ("latency", "--by", "hour", "--by", "partition")
WORDS = (("latency",), FINEST, ("latency", "--ranges"), ("attempts",))
"""Of the edge log everything is asked, of the others what depends on every row."""


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param(name, words, marks=() if name == "edge" and words == FINEST else pytest.mark.soak)
        for name in ("admin", "pruned", "crash", "transactions", "edge")
        for words in WORDS
    ],
)
def test_a_lake_answers_as_its_logs_do_however_they_are_cut_into_parts(
    name: str, words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = (["--log-dir", str(dataset(name) / "logs")], ["--lake", str(recorded_lake(name))])
    answers = []
    for part_records in (LakeTables.part_records, 1):
        for tables in (LogTables, LakeTables):
            monkeypatch.setattr(tables, "part_records", part_records)
        for source in sources:
            assert main([*words, *source, "--output", "json"]) == 0
            answers.append(json.loads(capsys.readouterr().out))
    assert answers[0]
    assert answers == [answers[0]] * len(answers)


def test_markers_of_transactions_are_no_settled_records(capsys: pytest.CaptureFixture[str]) -> None:
    rows = ask(capsys, "latency", "--by", "partition", "--log-dir", str(dataset("transactions") / "logs"))
    (row,) = [
        row
        for row in rows
        if (row["group_id"], row["topic"], row["partition"], row["outcome"]) == ("g-rc", "payments", 0, "archived")
    ]
    assert (row["settled_offsets"], row["gap_offsets"]) == (12, 41)


@pytest.mark.parametrize("name", ["pruned", "timeouts"])
def test_the_gold_tables_hold_what_the_questions_tell(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    lake = recorded_lake(name)
    opened = open_lake(lake)
    for question in ("latency", "attempts"):
        rows_by_place = ask(capsys, question, "--by", "partition", "--by", "hour", "--lake", str(lake))
        rows = [
            {field: row[field] for field in rows_by_place[0]} for row in opened.scan(f"gold.{question}").to_pylist()
        ]
        assert sorted(map(json.dumps, rows)) == sorted(map(json.dumps, rows_by_place))
