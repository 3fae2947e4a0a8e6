"""Stalls and poison in the recorded logs, against the clients' journals, the dead letters and the topics themselves."""

import json
from pathlib import Path
from typing import Any

import pytest

from sharelens.cli import main
from sharelens.lake.scan import open_lake
from tests.dataset_settings import given_settings as settings
from tests.dataset_settings import lines
from tests.datasets import dataset
from tests.processes.in_process import recorded_lake

pytestmark = pytest.mark.usefixtures("evidence_opened_once")

Json = dict[str, Any]
Place = tuple[str, str, int, int]
COLUMNS = {"offset": "first_offset"}
"""Columns of the table by the names that the answer has for them."""
NAMES = ("admin", "dlq", "timeouts", "transactions")
CAUSES = {
    "Offset rejected by client.": "rejected",
    "Offset delivery count exceeded the threshold.": "delivery_limit",
}


def ask(capsys: pytest.CaptureFixture[str], *words: str) -> list[Json]:
    code = main([*words, "--output", "json"])
    out, err = capsys.readouterr()
    assert code == 0, err
    rows: list[Json] = json.loads(out)
    return rows


def given_up(rows: list[Json]) -> dict[Place, Json]:
    """The newest row of each record by (group, topic, partition, offset)."""
    rows = sorted(rows, key=lambda row: int(row["last_outcome_ms"]))
    return {
        (row["group_id"], row["topic"], row["partition"], offset): row
        for row in rows
        for offset in range(row["offset"], row["last_offset"] + 1)
    }


def topic_ids(folder: Path) -> dict[str, list[str]]:
    """The ids that each topic's name had, the newest last."""
    ids: dict[str, list[str]] = json.loads((folder / "meta.json").read_text(encoding="utf-8"))["topicIds"]
    return ids


def of_live_topics(folder: Path, rows: list[Json]) -> list[Json]:
    """Without rows of topics that were deleted: nothing of their records is left to judge by."""
    ids = topic_ids(folder)
    return [row for row in rows if row["topic_id"] == ids[row["topic"]][-1]]


def lasting_topics(folder: Path) -> set[str]:
    """Names that meant one topic all the time."""
    return {name for name, ids in topic_ids(folder).items() if len(ids) == 1}


def journal(folder: Path) -> dict[Place, list[Json]]:
    """What clients did with each record, in the order of time."""
    lines_by_place: dict[Place, list[Json]] = {}
    for line in sorted(
        (line for line in lines(folder, "journal.jsonl") if "ack" in line), key=lambda row: int(row["t"])
    ):
        lines_by_place.setdefault((line["g"], line["topic"], line["p"], line["o"]), []).append(line)
    return lines_by_place


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", NAMES)
def test_rejected_records_are_those_that_clients_rejected_at_that_delivery(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = dataset(name)
    rows = ask(capsys, "poison", "--log-dir", str(folder / "logs"), *settings(folder, tmp_path))
    causes = given_up(of_live_topics(folder, rows))
    journal_lines = journal(folder)
    rejected = {(*place, row["delivery_count"]) for place, row in causes.items() if row["cause"] == "rejected"}
    did = {(*place, line["dc"]) for place, did in journal_lines.items() for line in did if line["ack"] == "REJECT"}
    assert rejected <= did
    last = {place: did[-1] for place, did in journal_lines.items()}
    settled = {place for place, line in last.items() if line["ack"] == "REJECT" and place[1] in lasting_topics(folder)}
    assert settled <= causes.keys()
    accepted = {place for place in causes.keys() & last.keys() if last[place]["ack"] in ("ACCEPT", "IMPLICIT")}
    if name == "admin":  # its groups are reset and created again: what one life rejected another one accepts
        accepted -= {place for place in accepted if int(last[place]["t"]) > causes[place]["last_outcome_ms"]}
    assert {causes[place]["cause"] for place in accepted} <= {"delivery_limit"}, "its last lock ran out before that"


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", NAMES)
def test_records_at_the_limit_have_as_many_deliveries_as_their_group_allows(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = dataset(name)
    rows = ask(capsys, "poison", "--log-dir", str(folder / "logs"), *settings(folder, tmp_path))
    for row in of_live_topics(folder, rows):
        assert row["cause"] in ("rejected", "delivery_limit")
        assert (row["delivery_count"] >= row["delivery_count_limit"]) == (row["cause"] == "delivery_limit")
    sources = {row["delivery_count_limit_source"] for row in rows}
    assert sources <= {"dynamic_group_config", "broker_config"}
    assert name == "admin" or rows


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", NAMES)
def test_gaps_are_exactly_the_archived_offsets_without_a_record(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = dataset(name)
    rows = ask(capsys, "poison", "--gaps", "--log-dir", str(folder / "logs"), *settings(folder, tmp_path))
    causes = given_up(of_live_topics(folder, rows))
    records = {
        (line["topic"], line["partition"], line["offset"])
        for line in lines(folder, "topics.jsonl")
        if "control" not in line
    }
    gaps = {place for place, row in causes.items() if row["cause"] == "gap"}
    assert gaps == {place for place in causes if place[1:] not in records}
    if name == "transactions":
        payments = [row["cause"] for place, row in causes.items() if place[:3] == ("g-rc", "payments", 0)]
        assert (len(payments), payments.count("gap")) == (53, 41)


def test_causes_are_those_that_the_dead_letters_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A record that was rejected at its last delivery looks like one that exceeded the limit; only its letter tells."""
    folder = dataset("dlq")
    causes = given_up(ask(capsys, "poison", "--log-dir", str(folder / "logs"), *settings(folder, tmp_path)))
    letters = 0
    for line in lines(folder, "topics.jsonl"):
        headers = {header["key"].removeprefix("__dlq.errors."): header["utf8"] for header in line.get("headers", ())}
        if "offset" not in headers or not line["topic"].startswith("dlq."):
            continue
        row = causes[headers["group"], headers["topic"], int(headers["partition"]), int(headers["offset"])]
        assert row["delivery_count"] == int(headers["delivery.count"])
        at_limit = row["delivery_count"] >= row["delivery_count_limit"]
        assert at_limit or (row["cause"], row["cause_source"]) == (CAUSES[headers["message"]], "dead_letter")
        assert row["cause"] == CAUSES[headers["message"]] or at_limit
        letters += 1
    assert letters > 100


@pytest.mark.parametrize("name", ["basic", "v42", "v44"])
def test_after_a_clean_stop_nothing_stands_still(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The stop came within a second of the last records, which nobody took: no minute of silence, no pin."""
    logs = str(dataset(name) / "logs")
    assert ask(capsys, "stalled", "--log-dir", logs) == []
    pinned_rows = ask(capsys, "pinned", "--min-duration", "0", "--log-dir", logs)
    assert {row["kind"] for row in pinned_rows} == {"silent_with_backlog"}


def test_what_members_left_behind_stands_still(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = dataset("timeouts")
    rows = ask(capsys, "pinned", "--min-duration", "10", "--log-dir", str(folder / "logs"), *settings(folder, tmp_path))
    assert {row["group_id"] for row in rows} == {"g-never", "g-slow"}
    journal_lines = journal(folder)
    for row in rows:
        place = (row["group_id"], row["topic"], row["partition"], row["first_incomplete_offset"])
        assert journal_lines[place][-1]["ack"] not in ("ACCEPT", "REJECT", "IMPLICIT")
        assert row["end_offset"] > row["first_incomplete_offset"]


def without_letters(row: dict[str, object]) -> dict[str, object]:
    """The row, its cause left out where it was ARCHIVING: the question asks the dead letter, a run does not."""
    return row if row["archiving_ms"] is None else row | {"cause": None, "cause_source": None}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", NAMES)
def test_the_gold_tables_hold_what_the_questions_tell_without_settings(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = recorded_lake(name)
    opened = open_lake(lake)
    rows = ask(capsys, "poison", "--gaps", "--lake", str(lake))
    order = [(name, "ascending") for name in ("group_id", "topic_id", "partition", "life_log_offset", "first_offset")]
    gold_rows = opened.scan("gold.poison_record").sort_by(order).to_pylist()
    assert [without_letters({key: row[COLUMNS.get(key, key)] for key in rows[0]}) for row in gold_rows] == [
        without_letters(row) for row in rows
    ]
    gold = opened.scan("gold.stall").to_pylist()
    assert all(row["kind"] != "idle" for row in gold)
    assert all((row["duration_ms"] is None) == (row["until_ms"] is None) for row in gold)
    still = {place(row): row["first_incomplete_offset"] for row in gold if row["until_ms"] is None}
    rows = ask(capsys, "pinned", "--min-duration", "0", "--lake", str(lake))
    assert {place(row): row["first_incomplete_offset"] for row in rows}.items() <= still.items()


def place(row: Json) -> tuple[str, str, int]:
    return row["group_id"], row["topic_id"], row["partition"]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", NAMES)
def test_a_lake_answers_what_its_logs_answer(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = dataset(name)
    lake = recorded_lake(name)
    options = settings(folder, tmp_path)
    for question in (
        ["poison", "--gaps", "--near-limit", *options],
        ["stalled", "--idle", "--min-duration", "1", *options],
        ["stalled", "--min-duration", "0.1"],
    ):
        from_lake = ask(capsys, *question, "--lake", str(lake))
        assert from_lake == ask(capsys, *question, "--log-dir", str(folder / "logs"))
        assert from_lake or name == "admin"


@pytest.mark.parametrize("seconds", ["nan", "-1", "inf", "x"])
def test_a_shortest_stall_that_cannot_be_meant_is_refused(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["stalled", "--log-dir", str(dataset("basic") / "logs"), "--min-duration", seconds]
    assert main(words) == 2
    assert "--min-duration" in capsys.readouterr().err
