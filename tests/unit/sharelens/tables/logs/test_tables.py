"""Answers straight from a log directory: cuts, what is missing, what is held back, what is refused."""

from pathlib import Path
from typing import Any

import pytest

from sharelens.output import Answer, Stream
from sharelens.parameters.filters import parse_key_filter
from sharelens.questions.records import records
from sharelens.questions.state import state
from sharelens.questions.status import log_status
from sharelens.source.request import CutChoice, Source
from sharelens.tables.logs.tables import LogTables, open_log_tables
from sharelens.tables.where import Span
from state_model.errors import SharelensError, UsageError
from tests.logs.state_logs import (
    ORDERS_ID,
    START_MS,
    STATE_TOPIC,
    STATE_TOPIC_ID,
    snapshot,
    tombstone,
    update,
    write_log_directory,
    write_state_partition,
)

ALL_KEYS = parse_key_filter([], [], [])
NOW = CutChoice()
STORY = [
    snapshot(start=-1, delivery_complete_count=-1),
    update(start=0, batches=[(0, 4, 2, 1), (5, 9, 0, 1)], at_ms=START_MS + 1000),
    update(start=5, batches=[(5, 6, 2, 2)], at_ms=START_MS + 2000),
    snapshot("h", 1, start=7, at_ms=START_MS + 3000),
    tombstone("h", 1, at_ms=START_MS + 4000),
]


def evidence(directory: Path, **source_options: Any) -> LogTables:
    return open_log_tables(Source(log_dirs=(str(directory),), **source_options))


def rows(answer: Answer | Stream) -> list[dict[str, Any]]:
    return (answer.read_all() if isinstance(answer, Stream) else answer).table.to_pylist()


def ranges(row: dict[str, Any]) -> list[tuple[int, ...]]:
    names = ("first_offset", "last_offset", "delivery_state", "delivery_count")
    return [tuple(batch[name] for name in names) for batch in row["state_batches"]]


@pytest.fixture
def story(tmp_path: Path) -> Path:
    return write_log_directory(tmp_path / "logs", STORY)


def test_the_state_now_leaves_out_deleted_share_partitions(story: Path) -> None:
    (row,) = rows(state(evidence(story), ALL_KEYS, NOW))
    assert (row["group_id"], row["topic"], row["partition"], row["start_offset"]) == ("g", "orders", 0, 5)
    assert ranges(row) == [(5, 6, 2, 2), (7, 9, 0, 1)]
    assert (row["state_partition"], row["log_offset"], row["completeness"]) == (0, 2, "complete")
    assert row["state_batches"][0]["delivery_state_name"] == "ACKNOWLEDGED"


@pytest.mark.parametrize(
    ("cut", "groups"),
    [
        (CutChoice(at_offsets={0: -1}), []),
        (CutChoice(at_offsets={0: 0}), ["g"]),
        (CutChoice(at_offsets={0: 3}), ["g", "h"]),
        (CutChoice(as_of_ms=START_MS), ["g"]),
        (CutChoice(as_of_ms=START_MS + 3999), ["g", "h"]),
        (CutChoice(as_of_ms=START_MS + 4000), ["g"]),
    ],
)
def test_a_cut_is_a_prefix_of_the_log(story: Path, cut: CutChoice, groups: list[str]) -> None:
    assert [row["group_id"] for row in rows(state(evidence(story), ALL_KEYS, cut))] == groups


def test_a_cut_past_the_end_is_answered_as_of_there_and_says_so(story: Path) -> None:
    late = state(evidence(story), ALL_KEYS, CutChoice(as_of_ms=START_MS + 10_000))
    assert len(rows(late)) == 1
    assert "the answer is as of that time" in late.warnings[0]
    beyond = state(evidence(story), ALL_KEYS, CutChoice(at_offsets={0: 99}))
    assert beyond.warnings == ("state partition 0 ends at log offset 4; the answer is as of that offset, not of 99",)


def test_a_time_before_the_evidence_is_refused(story: Path) -> None:
    with pytest.raises(SharelensError, match="lies before the evidence in .*, which begins at"):
        state(evidence(story), ALL_KEYS, CutChoice(as_of_ms=START_MS - 1))


def test_a_state_partition_that_is_not_there_is_refused_with_those_that_are(story: Path) -> None:
    with pytest.raises(UsageError, match="no state partition 7 in .*; there: 0"):
        state(evidence(story), ALL_KEYS, CutChoice(at_offsets={7: 1}))


@pytest.mark.parametrize(
    ("groups", "topics", "partitions", "message"),
    [
        (["nobody"], [], [], "no share group nobody in .*; groups there: g, h"),
        ([], ["shipping"], [], "no topic shipping in .*; topics with share state: orders"),
        ([], ["AAAAAAAAAAAAAAAAAAAACQ"], [], "no share state for topic AAAAAAAAAAAAAAAAAAAACQ in .*: orders"),
        (["g"], ["orders"], [9], "no such share partition in .*; share partitions there: orders:0"),
    ],
)
def test_an_unknown_name_is_refused_with_the_names_that_are_there(
    story: Path, groups: list[str], topics: list[str], partitions: list[int], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        state(evidence(story), parse_key_filter(groups, topics, partitions), NOW)


def test_a_deleted_share_partition_is_known_and_has_no_state(story: Path) -> None:
    assert rows(state(evidence(story), parse_key_filter(["h"], [], []), NOW)) == []


@pytest.mark.parametrize("topic", ["orders", ORDERS_ID, "orders:0", f"{ORDERS_ID}:0,3"])
def test_a_topic_is_meant_by_name_or_id(story: Path, topic: str) -> None:
    assert len(rows(state(evidence(story), parse_key_filter([], [topic], []), NOW))) == 1


def test_records_come_in_log_order_within_half_open_bounds(story: Path) -> None:
    every = rows(records(evidence(story), ALL_KEYS, Span()))
    assert [row["type"] for row in every] == ["snapshot", "update", "update", "snapshot", "tombstone"]
    assert every[4]["state_batches"] is None
    bounded_rows = rows(records(evidence(story), ALL_KEYS, Span(from_offset=1, to_offset=3)))
    assert [row["log_offset"] for row in bounded_rows] == [1, 2]
    timed = rows(records(evidence(story), ALL_KEYS, Span(from_ms=START_MS + 1000, to_ms=START_MS + 3000)))
    assert [row["log_offset"] for row in timed] == [1, 2]
    assert rows(records(evidence(story), ALL_KEYS, Span(state_partitions=frozenset({3})))) == []


def test_records_above_the_high_watermark_are_held_back_unless_asked_for(tmp_path: Path) -> None:
    logs = write_log_directory(tmp_path / "logs", STORY, committed=2)
    committed = evidence(logs)
    (row,) = rows(state(committed, ALL_KEYS, NOW))
    assert (row["log_offset"], row["completeness"]) == (1, "complete")
    assert committed.cover()[0].held_back == 3
    (row,) = rows(state(evidence(logs, include_uncommitted=True), ALL_KEYS, NOW))
    assert (row["log_offset"], row["completeness"], row["completeness_reason"]) == (2, "uncommitted", "uncommitted")


@pytest.mark.slow
def test_a_lost_range_makes_the_state_incomplete_until_the_next_snapshot(tmp_path: Path) -> None:
    story = [snapshot(), snapshot("h", 1), *(update(batches=[(n, n, 2, 1)]) for n in range(4)), snapshot(epoch=1)]
    logs = write_log_directory(tmp_path / "logs", story)
    segment = logs / f"{STATE_TOPIC}-0" / f"{0:020d}.log"
    content = bytearray(segment.read_bytes())
    third = sum(int.from_bytes(content[at + 8 : at + 12], "big") + 12 for at in _starts(content)[:3])
    content[third + 70] ^= 0xFF
    segment.write_bytes(content)
    before = evidence(logs)
    marks = {
        row["group_id"]: row["completeness"] for row in rows(state(before, ALL_KEYS, CutChoice(at_offsets={0: 5})))
    }
    assert marks == {"g": "incomplete", "h": "incomplete"}
    assert {row["completeness"] for row in rows(state(before, ALL_KEYS, CutChoice(at_offsets={0: 2})))} == {"complete"}
    now = {row["group_id"]: row["completeness"] for row in rows(state(evidence(logs), ALL_KEYS, NOW))}
    assert now == {"g": "complete", "h": "incomplete"}
    gaps = log_status(evidence(logs)).parts["gaps"].table.to_pylist()
    place = {"cluster_id": "unknown", "state_partition": 0}
    assert gaps == [{**place, "first_log_offset": 3, "last_log_offset": 3, "reason": "quarantined"}]


def _starts(content: bytearray) -> list[int]:
    """Positions of the batches of a segment."""
    starts, at = [], 0
    while at < len(content):
        starts.append(at)
        at += int.from_bytes(content[at + 8 : at + 12], "big") + 12
    return starts


def test_updates_without_their_snapshot_are_provisional_and_what_was_pruned_is_a_gap(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    write_state_partition(logs, [update(start=3, batches=[(3, 4, 2, 1)])], base_offset=10)
    (row,) = rows(state(evidence(logs), ALL_KEYS, NOW))
    assert (row["completeness"], row["completeness_reason"]) == ("provisional", "orphan")
    assert row["topic"] is None
    gaps = log_status(evidence(logs)).parts["gaps"].table.to_pylist()
    place = {"cluster_id": "unknown", "state_partition": 0}
    assert gaps == [{**place, "first_log_offset": 0, "last_log_offset": 9, "reason": "pruned"}]
    with pytest.raises(SharelensError, match="log offset 5 of state partition 0 lies before the evidence"):
        state(evidence(logs), ALL_KEYS, CutChoice(at_offsets={0: 5}))


def test_a_clock_that_ran_ahead_is_told_with_the_offset_to_ask_for(tmp_path: Path) -> None:
    jumped = START_MS + 600_000
    story = [
        snapshot(),
        snapshot("h", at_ms=jumped),
        update(start=2, at_ms=START_MS + 1000),
        update(start=3, at_ms=jumped),
    ]
    logs = write_log_directory(tmp_path / "logs", story)
    answer = state(evidence(logs), ALL_KEYS, CutChoice(as_of_ms=START_MS + 2000))
    assert [row["log_offset"] for row in rows(answer)] == [0]
    assert len(answer.warnings) == 1
    assert answer.warnings[0].endswith("--at-offset 0:2")
    assert state(evidence(logs), ALL_KEYS, CutChoice(as_of_ms=jumped)).warnings == ()


def test_names_of_topics_without_a_folder_may_be_given(tmp_path: Path) -> None:
    names = tmp_path / "names"
    names.write_text(f"{ORDERS_ID} bestellungen\n")
    write_state_partition(tmp_path / "logs", STORY[:1])
    (row,) = rows(state(evidence(tmp_path / "logs", topic_names=str(names)), ALL_KEYS, NOW))
    assert row["topic"] == "bestellungen"


def test_directories_of_two_clusters_are_refused(tmp_path: Path) -> None:
    first = write_log_directory(tmp_path / "one", STORY, cluster_id="first")
    other = write_log_directory(tmp_path / "other", STORY, cluster_id="second")
    with pytest.raises(UsageError, match="different clusters"):
        open_log_tables(Source(log_dirs=(str(first), str(other))))
    with pytest.raises(UsageError, match="belongs to cluster first, not to second"):
        evidence(first, cluster_id="second")
    assert evidence(first).cluster_id == "first"
    assert evidence(write_log_directory(tmp_path / "nameless", STORY), cluster_id="first").cluster_id == "first"


def test_a_directory_without_the_state_topic_says_what_to_copy(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / f"{0:020d}.log").write_bytes(b"")
    with pytest.raises(SharelensError, match="no __share_group_state partition in"):
        evidence(tmp_path)


def test_more_log_than_allowed_is_refused_with_the_ways_on(story: Path) -> None:
    with pytest.raises(SharelensError, match="--max-bytes allows 10 bytes.*sharelens run --log-dir"):
        state(evidence(story, max_bytes=10), ALL_KEYS, NOW)


def test_nothing_is_written_beside_the_log(story: Path) -> None:
    def listing() -> set[tuple[str, int]]:
        return {(str(path), path.stat().st_mtime_ns) for path in story.rglob("*")}

    before = listing()
    state(evidence(story), ALL_KEYS, NOW)
    records(evidence(story), ALL_KEYS, Span()).read_all()
    assert listing() == before


def test_the_newest_incarnation_of_the_state_topic_answers(tmp_path: Path) -> None:
    """A state topic that was deleted and made again starts at offset 0 under another id."""
    logs = tmp_path / "logs"
    old = write_state_partition(logs, [snapshot("old"), update("old", start=4)], topic_id="AAAAAAAAAAAAAAAAAAAAAg")
    old.rename(logs / f"{STATE_TOPIC}-0.0123456789abcdef0123456789abcdef-delete")
    write_state_partition(logs, [snapshot("new", at_ms=START_MS + 5000)])
    assert [row["group_id"] for row in rows(state(evidence(logs), ALL_KEYS, NOW))] == ["new"]
    both_incarnations = evidence(logs, include_deleted=True)
    assert [row["group_id"] for row in rows(state(both_incarnations, ALL_KEYS, NOW))] == ["new"]
    assert [part.log_topic_id for part in both_incarnations.cover()] == [STATE_TOPIC_ID]


def test_empty_state_partitions_are_no_evidence_and_may_be_named_with_none_of_their_records(story: Path) -> None:
    empty = story / f"{STATE_TOPIC}-1"
    empty.mkdir()
    (empty / f"{0:020d}.log").write_bytes(b"")
    (empty / "partition.metadata").write_text(f"version: 0\ntopic_id: {STATE_TOPIC_ID}", encoding="ascii")
    assert [part.state_partition for part in evidence(story).cover()] == [0]
    cut = CutChoice(at_offsets={0: 2, 1: -1})
    assert [row["group_id"] for row in rows(state(evidence(story), ALL_KEYS, cut))] == ["g"]


def test_a_log_without_any_record_has_no_state_and_no_moment(tmp_path: Path) -> None:
    empty = tmp_path / "logs" / f"{STATE_TOPIC}-0"
    empty.mkdir(parents=True)
    (empty / f"{0:020d}.log").write_bytes(b"")
    assert rows(state(evidence(tmp_path / "logs"), ALL_KEYS, NOW)) == []
    assert rows(records(evidence(tmp_path / "logs"), ALL_KEYS, Span())) == []
    with pytest.raises(SharelensError, match="has no share-group state"):
        state(evidence(tmp_path / "logs"), ALL_KEYS, CutChoice(as_of_ms=START_MS))
