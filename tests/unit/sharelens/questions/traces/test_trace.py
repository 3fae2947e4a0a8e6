"""The life of one record."""

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sharelens.cli import main
from sharelens.evidence.schemas import GROUP_RECORD
from sharelens.groups.members import assigned
from sharelens.measures.topics.offset_kinds import kind_of_offset
from sharelens.parameters.filters import parse_key_filter
from sharelens.questions.traces.trace import trace
from sharelens.source.request import Source
from sharelens.tables.logs.tables import open_log_tables
from state_model.errors import UsageError
from tests.logs.state_logs import ORDERS_ID, START_MS, snapshot, tombstone, update, write_log_directory
from tests.logs.topic_headers import headers
from tests.logs.user_topics import write_orders
from tests.processes.in_process import make_lake

AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4
RECORD = ["--topic", "orders", "--partition", "0"]
BEYOND = "it lies beyond the end of the topic"


def traced(tmp_path: Path, story: list[dict[str, Any]], offset: int) -> tuple[list[tuple[Any, ...]], str]:
    logs = write_log_directory(tmp_path / "logs", story)
    with open_log_tables(Source(log_dirs=(str(logs),))) as evidence:
        answer = trace(evidence, parse_key_filter(["g"], ["orders"], [0]), offset)
    rows = answer.table.to_pylist()
    events = [
        (row["log_offset"], row["event"])
        if row["event"] != "delivery_state"
        else (
            row["log_offset"],
            row["delivery_state_name"],
            row["delivery_count"],
            row["end_reason"],
            row["until_log_offset"],
        )
        for row in rows
    ]
    return events, (answer.summary or "").splitlines()[0]


def test_a_record_that_was_released_and_then_acknowledged(tmp_path: Path) -> None:
    story = [
        snapshot(start=-1),
        update(start=0, batches=[(0, 9, AVAILABLE, 1)]),
        update(start=0, batches=[(3, 3, AVAILABLE, 2)]),
        update(start=0, batches=[(5, 9, ACKNOWLEDGED, 2)]),
        update(start=0, batches=[(2, 3, ACKNOWLEDGED, 3)]),
        update(start=8),
    ]
    events, verdict = traced(tmp_path, story, 3)
    assert events == [
        (0, "created"),
        (1, "start_offset_set"),
        (1, "AVAILABLE", 1, "changed", 2),
        (2, "AVAILABLE", 2, "changed", 4),
        (4, "ACKNOWLEDGED", 3, "start_offset_passed", 5),
        (5, "start_offset_passed"),
    ]
    assert verdict == "record 3: acknowledged, delivery count 3; passed by the start offset"


@pytest.mark.slow
def test_text_shows_a_state_beside_the_events_that_are_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    story = [snapshot(start=0), update(start=0, batches=[(0, 4, ACKNOWLEDGED, 2)])]
    logs = write_log_directory(tmp_path, story)
    assert main(["trace", "--log-dir", str(logs), "--group", "g", *RECORD, "--offset", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert ["ACKNOWLEDGED/2" in line for line in lines[1:5]] == [False, False, False, True]
    assert not any("None" in line for line in lines)


def test_ranges_that_only_split_around_the_record_are_one_state(tmp_path: Path) -> None:
    story = [
        snapshot(start=0),
        update(start=0, batches=[(0, 9, AVAILABLE, 1)]),
        update(start=0, batches=[(7, 9, ACKNOWLEDGED, 2)]),
        update(start=0, batches=[(0, 0, ARCHIVED, 2)]),
    ]
    events, verdict = traced(tmp_path, story, 3)
    assert events[-1] == (1, "AVAILABLE", 1, None, None)
    again = "available again (release, lock timeout or member left: not logged)"
    assert verdict == f"record 3: {again}, deliveries so far 1"


def test_a_record_below_the_first_start_offset_was_never_in_reach(tmp_path: Path) -> None:
    events, verdict = traced(tmp_path, [snapshot(start=-1), update(start=50)], 3)
    assert events == [(0, "created"), (1, "below_start_offset")]
    assert "below the first start offset" in verdict


def test_a_record_that_was_never_delivered_has_no_state(tmp_path: Path) -> None:
    events, verdict = traced(tmp_path, [snapshot(start=0), update(start=0, batches=[(0, 0, 2, 1)])], 77)
    assert events == [(0, "created"), (0, "start_offset_set")]
    assert verdict == f"record 77: no delivery state was ever written for it; {BEYOND}"


def test_a_record_passed_without_any_state(tmp_path: Path) -> None:
    _, verdict = traced(tmp_path, [snapshot(start=0), update(start=100)], 77)
    none = "no delivery state was ever written for it"
    assert verdict == f"record 77: passed by the start offset; {none}; {BEYOND}"


def test_deletion_and_a_new_life_stand_in_the_story(tmp_path: Path) -> None:
    story = [
        snapshot(start=0),
        update(start=0, batches=[(3, 3, AVAILABLE, 1)]),
        tombstone(),
        snapshot(start=0, state_epoch=2),
        snapshot(start=2, state_epoch=3, epoch=1),
    ]
    events, verdict = traced(tmp_path, story, 3)
    assert events == [
        (0, "created"),
        (0, "start_offset_set"),
        (1, "AVAILABLE", 1, "deleted", 2),
        (2, "deleted"),
        (3, "created"),
        (3, "start_offset_set"),
        (4, "reset"),
        (4, "start_offset_set"),
    ]
    assert verdict == f"record 3: no delivery state was ever written for it; {BEYOND}"


def test_a_deleted_share_partition_ends_the_story(tmp_path: Path) -> None:
    verdict = traced(tmp_path, [snapshot(), tombstone()], 3)[1]
    assert verdict.startswith("record 3: the share partition is deleted; its life ended without an outcome")


def test_a_start_offset_that_goes_back_is_told(tmp_path: Path) -> None:
    events, _ = traced(tmp_path, [snapshot(start=0), update(start=9), update(start=1)], 3)
    assert events == [(0, "created"), (0, "start_offset_set"), (1, "start_offset_passed"), (2, "start_offset_returned")]


def test_what_came_before_the_evidence_is_not_invented(tmp_path: Path) -> None:
    events, _ = traced(tmp_path, [update(start=0, batches=[(3, 3, AVAILABLE, 4)], epoch=7)], 3)
    assert events == [(0, "first_seen"), (0, "start_offset_set"), (0, "AVAILABLE", 4, None, None)]


def test_an_unknown_share_partition_is_refused(tmp_path: Path) -> None:
    logs = write_log_directory(tmp_path / "logs", [snapshot()])
    with (
        open_log_tables(Source(log_dirs=(str(logs),))) as evidence,
        pytest.raises(UsageError, match="share partitions there: orders:0"),
    ):
        trace(evidence, parse_key_filter(["g"], ["orders"], [5]), 0)


def rows_of(tmp_path: Path, story: list[dict[str, Any]], offset: int) -> list[dict[str, Any]]:
    logs = write_log_directory(tmp_path / "logs", story)
    with open_log_tables(Source(log_dirs=(str(logs),))) as evidence:
        rows: list[dict[str, Any]] = trace(evidence, parse_key_filter(["g"], ["orders"], [0]), offset).table.to_pylist()
    return rows


def test_each_event_is_told_in_the_fixed_vocabulary(tmp_path: Path) -> None:
    story = [
        snapshot(start=0),
        update(start=0, batches=[(3, 3, AVAILABLE, 1)]),
        update(start=0, batches=[(3, 3, ARCHIVED, 4)]),
        update(start=9),
        snapshot(start=0, state_epoch=2, epoch=1),
        update(start=0, batches=[(3, 3, ACKNOWLEDGED, 1)]),
        tombstone(),
    ]
    rows = rows_of(tmp_path, story, 3)
    assert [row["meaning"] for row in rows] == [
        "share partition created",
        "start offset determined, at or below the record",
        "available again (release, lock timeout or member left: not logged)",
        "2 attempts not logged",
        "archived",
        "passed by the start offset",
        "offset reset",
        "start offset determined, at or below the record",
        "acknowledged",
        "life ended",
    ]
    assert [row["outcome"] for row in rows] == ["archived"] * 6 + ["acknowledged"] * 4
    assert [row["attempts_not_logged"] for row in rows if row["event"] == "attempts_not_logged"] == [2]


def test_attempts_before_the_evidence_began_are_not_called_unlogged(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, [update(start=0, batches=[(3, 3, AVAILABLE, 4)], epoch=7)], 3)
    assert "attempts_not_logged" not in {row["event"] for row in rows}


def test_attempts_that_a_lost_record_may_tell_are_not_called_unlogged(tmp_path: Path) -> None:
    story = [
        snapshot(start=0),
        update(start=0, batches=[(3, 3, AVAILABLE, 1)]),
        update(start=0, batches=[(3, 3, AVAILABLE, 2)]) | {"damage": "value_version"},
        update(start=0, batches=[(3, 3, ACKNOWLEDGED, 4)]),
    ]
    assert "attempts_not_logged" not in {row["event"] for row in rows_of(tmp_path, story, 3)}


def test_an_offset_of_the_topic_that_was_never_settled_has_no_other_reason(tmp_path: Path) -> None:
    logs = write_log_directory(tmp_path / "logs", [snapshot(start=0), update(start=0, batches=[(0, 0, 2, 1)])])
    (logs / "orders-0" / "00000000000000000000.log").unlink()
    write_orders(logs)
    with open_log_tables(Source(log_dirs=(str(logs),))) as evidence:
        answer = trace(evidence, parse_key_filter(["g"], ["orders"], [0]), 7)
    assert {row["offset_holds"] for row in answer.table.to_pylist()} == {"record"}
    assert (answer.summary or "").splitlines()[0] == "record 7: no delivery state was ever written for it"


HEADERS = """
    0-9 at 1 producer 7
    10-10 at 2 producer 7 ABORT
    15-19 at 3
    20-24 at 4 producer 8
    25-25 at 5 producer 8 COMMIT
    26-29 at 6 producer 9
"""


@pytest.mark.parametrize(
    ("offset", "holds"),
    [
        (0, "aborted"),
        (9, "aborted"),
        (10, "control"),
        (12, "absent"),
        (15, "record"),
        (24, "record"),
        (27, "open_transaction"),
        (30, None),
    ],
)
@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_headers_tell_what_an_offset_holds(offset: int, holds: str | None, at_once: int) -> None:
    table = headers(HEADERS)
    parts = [table.slice(first, at_once) for first in range(0, table.num_rows, at_once)]
    assert kind_of_offset(offset, iter(parts)) == holds


def test_members_are_those_whose_assignment_held_the_partition_at_that_moment() -> None:
    with_partition, away = [{"topicId": ORDERS_ID, "partitions": [0, 1]}], [{"topicId": ORDERS_ID, "partitions": [1]}]
    client = {"clientId": "c", "clientHost": "/127.0.0.1"}
    assignments = assigned(
        group_records(
            (10, "m", client), (14, "m", with_partition), (14, "n", with_partition), (14, "m", away), (14, "n", None)
        ),
        ORDERS_ID,
        0,
    )
    assert assignments.at(START_MS) is None
    member_n = {"member_id": "n", "client_id": None, "client_host": None, "since_ms": START_MS + 2}
    member_m = {"member_id": "m", "client_id": "c", "client_host": "/127.0.0.1", "since_ms": START_MS + 1}
    assert assignments.at(START_MS + 1) == [member_m]
    assert assignments.at(START_MS + 2) == [member_m, member_n]
    assert assignments.at(START_MS + 3) == [member_n]
    assert assignments.at(START_MS + 9) == []


def group_records(*entries: tuple[int, str, Any]) -> pa.Table:
    """GROUP_RECORD rows of (record type, member, client or assigned partitions), one millisecond apart."""
    rows = [
        {
            "log_topic_id": "t",
            "partition": 0,
            "log_offset": offset,
            "timestamp_ms": START_MS + offset,
            "record_type": kind,
            "record_name": "r",
            "group_id": "g",
            "member_id": member,
            "is_tombstone": value is None,
            "value_json": None if value is None else json.dumps({"assignedPartitions": value} if kind == 14 else value),
            "below_log_start": False,
            "uncommitted": False,
        }
        for offset, (kind, member, value) in enumerate(entries)
    ]
    return pa.Table.from_pylist(rows, schema=GROUP_RECORD)


NO_START = (
    "record {}: no delivery state was ever written for it; the start offset is not yet determined: under latest, the "
    "default of share.auto.offset.reset, the record may never be delivered; "
)


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--log-dir", "--lake"])
def test_a_record_of_a_share_partition_without_a_start_offset_may_never_be_delivered(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = write_log_directory(tmp_path / "logs", [snapshot(start=-1), snapshot("h", start=30)])
    write_orders(logs)
    place = logs if option == "--log-dir" else tmp_path / "lake"
    if option == "--lake":
        make_lake(place, logs)
    for offset, end in ((3, "the topic partition ends at offset 40"), (35, "the topic partition ends at offset 40")):
        assert main(["trace", option, str(place), "--group", "g", *RECORD, "--offset", str(offset)]) == 0
        assert NO_START.format(offset) + end in capsys.readouterr().out
    assert main(["trace", option, str(place), "--group", "g", *RECORD, "--offset", "40"]) == 0
    assert BEYOND in capsys.readouterr().out


def test_without_a_start_offset_the_end_of_the_topic_may_be_missing(tmp_path: Path) -> None:
    logs = write_log_directory(tmp_path / "logs", [snapshot(start=-1)])
    shutil.rmtree(logs / "orders-0")
    with open_log_tables(Source(log_dirs=(str(logs),))) as evidence:
        answer = trace(evidence, parse_key_filter(["g"], [ORDERS_ID], [0]), 3)
    verdict = (answer.summary or "").splitlines()[0]
    assert verdict == NO_START.format(3) + "the end of the topic partition is not in the evidence"
