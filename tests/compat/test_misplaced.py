"""A share partition found in two state partitions: one row is its state, the other is marked, in both ways to ask."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sharelens.cli import main
from sharelens.lake.scan import open_lake
from sharelens.output import Answer
from sharelens.parameters.filters import KeyFilter, parse_key_filter
from sharelens.questions.life import life as lives
from sharelens.questions.records import records
from sharelens.questions.redelivered import redelivered
from sharelens.questions.state import state
from sharelens.questions.timelines.diff import diff
from sharelens.questions.traces.trace import trace
from sharelens.source.request import CutChoice, Source
from sharelens.tables.opening import open_evidence
from sharelens.tables.port import Tables
from sharelens.tables.where import Span
from state_model.java import partition_for
from tests.depths import examples
from tests.lakes import assert_same
from tests.logs.state_logs import ORDERS_ID, START_MS, snapshot, tombstone, update, write_state_partition
from tests.once import made_once
from tests.processes.in_process import make_lake
from tools.log_writer.writer import write_meta

BEFORE, AFTER = 3, 5
GROUPS = [f"g{number}" for number in range(8)]
STATE = "gold.share_partition_state"
Story = list[tuple[int, dict[str, Any]]]
"""State partition and record, in the order of writing."""


def home(group: str, count: int) -> int:
    """The state partition of a group's share partition orders-0."""
    return partition_for(group, ORDERS_ID, 0, count)


MOVES = next(group for group in GROUPS if home(group, BEFORE) != home(group, AFTER))
OLD, NEW = home(MOVES, BEFORE), home(MOVES, AFTER)


def write(folder: Path, story: Story) -> Path:
    """A log directory with the story's state partitions."""
    by_place: dict[int, list[dict[str, Any]]] = {}
    for place, record in story:
        by_place.setdefault(place, []).append(record)
    for place, rows_there in by_place.items():
        write_state_partition(folder, rows_there, number=place)
    write_meta(folder, cluster_id="a-cluster", node_id=1)
    return folder


def life(groups: list[str], count: int, at_ms: int) -> Story:
    """Each group's share partition is created and written once, where `count` state partitions put it."""
    story: Story = []
    for number, group in enumerate(groups):
        place, then = home(group, count), at_ms + 100 * number
        created = {"create_timestamp_ms": then, "write_timestamp_ms": then}
        story.append((place, snapshot(group, start=0, at_ms=then, **created)))
        story.append((place, update(group, start=count, batches=[(count, 9, 0, 1)], at_ms=then + 10)))
    return story


CHANGED = [*life(GROUPS, BEFORE, START_MS), *life([MOVES, "new-1", "new-2"], AFTER, START_MS + 60_000)]
"""The number of state partitions went from BEFORE to AFTER; one share partition moved, two are new."""
DELETED_WHERE_IT_WAS = [
    *life(GROUPS[:4], 1, START_MS),
    *life([MOVES], AFTER, START_MS + 60_000),
    (0, tombstone(MOVES, at_ms=START_MS + 95_000)),
]
"""A share partition moved, and an old coordinator deletes it in the state partition where it was."""
STALE_SNAPSHOT = snapshot(
    MOVES,
    start=BEFORE,
    batches=[(BEFORE, 9, 0, 1)],
    epoch=1,
    at_ms=START_MS + 90_000,
    create_timestamp_ms=START_MS + 10,
)
"""What the old coordinator writes of the share partition that moved, later than anything else."""


def answer_to(name: str, answer: Answer) -> tuple[str, str]:
    """An answer as JSON, with its warnings."""
    return name, json.dumps([answer.table.to_pylist(), answer.warnings])


def answers(evidence: Tables, groups: list[str], end_ms: int) -> Iterator[tuple[str, str]]:
    """What the questions say: of everything and of each group, now, at times and at offsets."""
    no_filter = KeyFilter()
    places = [part.state_partition for part in evidence.cover()]
    yield answer_to("records", records(evidence, no_filter, Span()).read_all())
    for moment in range(START_MS, end_ms + 30_000, 30_000):
        yield answer_to(f"diff {moment}", diff(evidence, no_filter, START_MS, moment))
    yield answer_to("life", lives(evidence, no_filter, CutChoice(), Span()))
    yield answer_to("redelivered", redelivered(evidence, no_filter, CutChoice(), Span()))
    for key_filter in (no_filter, *(parse_key_filter([group], [], []) for group in groups)):
        name = str(key_filter.groups)
        yield answer_to(f"state {name}", state(evidence, key_filter, CutChoice()))
        yield answer_to(f"state {name} as of", state(evidence, key_filter, CutChoice(as_of_ms=end_ms - 1000)))
        yield answer_to(f"state {name} at", state(evidence, key_filter, CutChoice(at_offsets=dict.fromkeys(places, 1))))
    for group in groups:
        traced = trace(evidence, parse_key_filter([group], ["orders"], [0]), BEFORE)
        yield answer_to(f"trace {group}", traced)
        yield f"verdict {group}", str(traced.summary).splitlines()[0]


def make_both(folder: Path, story: Story) -> Path:
    """The story's log directory `logs`, the topic's name in `names`, and the lake made of both, in a folder."""
    (folder / "names").write_text(f"{ORDERS_ID} orders\n", encoding="utf-8")
    make_lake(folder / "lake", write(folder / "logs", story), topic_names={ORDERS_ID: "orders"})
    return folder


def evidence_of_both(folder: Path) -> tuple[Tables, Tables]:
    """The evidence of the log directory, and of the lake made from it."""
    straight = open_evidence(Source(log_dirs=(str(folder / "logs"),), topic_names=str(folder / "names")))
    return straight, open_evidence(Source(lake=str(folder / "lake")))


@pytest.fixture
def changed() -> Path:
    """What `make_both` makes of CHANGED, once a test run."""
    return made_once("misplaced/changed", lambda folder: make_both(folder, CHANGED))


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """Two numbers of state partitions one after the other, and what old coordinators still write afterwards."""
    before, after = draw(st.integers(1, 4)), draw(st.integers(2, 7))
    moved = draw(st.lists(st.sampled_from(GROUPS[:4]), unique=True, max_size=4))
    story = [*life(GROUPS[:4], before, START_MS), *life(moved, after, START_MS + 60_000)]
    for group in draw(st.lists(st.sampled_from(GROUPS[:4]), max_size=3)):
        late = draw(st.sampled_from([snapshot, update]))
        story.append((home(group, before), late(group, start=1, epoch=1, at_ms=START_MS + 90_000)))
    for group in draw(st.lists(st.sampled_from(GROUPS[:4]), max_size=1)):
        story.append((home(group, draw(st.sampled_from([before, after]))), tombstone(group, at_ms=START_MS + 95_000)))
    return story


@pytest.mark.soak
@examples("lake")
@example(story=DELETED_WHERE_IT_WAS)
@given(story=stories())
def test_any_move_gives_the_same_answers_with_and_without_a_lake(
    tmp_path_factory: pytest.TempPathFactory, story: Story
) -> None:
    straight, lake = evidence_of_both(make_both(tmp_path_factory.mktemp("moved"), story))
    groups = sorted({record["group_id"] for _, record in story})
    rows_there = dict(answers(straight, groups, START_MS + 95_000))
    assert len(rows_there) > 10
    assert dict(answers(lake, groups, START_MS + 95_000)) == rows_there


def test_the_state_is_the_one_where_the_newest_records_hash_to(tmp_path: Path) -> None:
    for evidence in evidence_of_both(make_both(tmp_path, [*CHANGED, (OLD, STALE_SNAPSHOT)])):
        for key_filter in (KeyFilter(), parse_key_filter([MOVES], [], [])):
            answer = state(evidence, key_filter, CutChoice())
            rows = {row["group_id"]: row for row in answer.table.to_pylist()}
            assert len(rows) == len(answer.table) == (1 if key_filter.groups else len(GROUPS) + 2)
            assert (rows[MOVES]["state_partition"], rows[MOVES]["start_offset"]) == (NEW, AFTER)
            assert rows[MOVES]["completeness"] == "complete"
            (warning,) = answer.warnings
            assert warning.endswith(f"misplaced: {MOVES} orders:0 in state partition {OLD}")


def test_before_the_number_changed_nothing_is_misplaced(changed: Path) -> None:
    for evidence in evidence_of_both(changed):
        answer = state(evidence, KeyFilter(), CutChoice(as_of_ms=START_MS + 30_000))
        assert {row["group_id"]: row["state_partition"] for row in answer.table.to_pylist()}[MOVES] == OLD
        assert answer.warnings == ()


def test_the_lake_keeps_the_misplaced_row_with_its_mark(changed: Path) -> None:
    rows = open_lake(changed / "lake").scan(STATE).to_pylist()
    assert len(rows) == len(GROUPS) + 3
    assert [(row["group_id"], row["state_partition"]) for row in rows if row["misplaced"]] == [(MOVES, OLD)]
    start_offsets = {row["state_partition"]: row["start_offset"] for row in rows if row["group_id"] == MOVES}
    assert start_offsets == {OLD: BEFORE, NEW: AFTER}


@pytest.mark.soak
def test_a_log_that_grows_while_the_number_changes_gives_the_lake_of_one_run(tmp_path: Path) -> None:
    story = [*CHANGED, (OLD, STALE_SNAPSHOT), (OLD, update(MOVES, start=6, epoch=1, at_ms=START_MS + 91_000))]
    for end in (len(GROUPS) * 2, len(CHANGED) - 3, len(CHANGED) + 1, len(story)):
        now = write(tmp_path / "now", story[:end])
        make_lake(tmp_path / "growing", now)
        now.rename(tmp_path / f"was-{end}")
    make_lake(tmp_path / "whole", write(tmp_path / "now", story))
    assert_same(tmp_path / "growing", tmp_path / "whole")


def test_a_mark_goes_when_the_misplaced_state_is_deleted(changed: Path, tmp_path: Path) -> None:
    lake = shutil.copytree(changed / "lake", tmp_path / "lake")
    make_lake(lake, write(tmp_path / "then", [*CHANGED, (OLD, tombstone(MOVES, at_ms=START_MS + 95_000))]))
    rows = open_lake(lake).scan(STATE).to_pylist()
    assert [row["state_partition"] for row in rows if row["group_id"] == MOVES] == [NEW]
    assert not any(row["misplaced"] for row in rows)


def test_a_move_between_two_moments_is_told_as_one(changed: Path) -> None:
    for evidence in evidence_of_both(changed):
        answer = diff(evidence, parse_key_filter([MOVES], [], []), START_MS + 30_000, START_MS + 60_200)
        (row,) = answer.table.to_pylist()
        assert (row["change"], row["state_partition"]) == ("moved", NEW)
        assert (row["state_partition_before"], row["state_partition_after"]) == (OLD, NEW)
        assert (row["start_offset_before"], row["start_offset_after"]) == (BEFORE, AFTER)
        assert len(answer.warnings) == 1


def test_the_trace_marks_the_events_of_the_misplaced_state(changed: Path) -> None:
    for evidence in evidence_of_both(changed):
        answer = trace(evidence, parse_key_filter([MOVES], ["orders"], [0]), BEFORE)
        marks = {
            (row["state_partition"], row["completeness"], row["completeness_reason"])
            for row in answer.table.to_pylist()
        }
        assert marks == {(OLD, "incomplete", "misplaced"), (NEW, "complete", None)}
        verdict = str(answer.summary).splitlines()[0]
        assert verdict.startswith(f"record {BEFORE}: passed by the start offset")
        assert len(answer.warnings) == 1


def test_a_share_partition_deleted_in_both_places_is_deleted(tmp_path: Path) -> None:
    gone = [(place, tombstone(MOVES, at_ms=START_MS + 95_000 + place)) for place in (OLD, NEW)]
    for evidence in evidence_of_both(make_both(tmp_path, [*CHANGED, *gone])):
        assert state(evidence, parse_key_filter([MOVES], [], []), CutChoice()).table.num_rows == 0
        answer = trace(evidence, parse_key_filter([MOVES], ["orders"], [0]), BEFORE)
        assert str(answer.summary).startswith(f"record {BEFORE}: the share partition is deleted")
        assert {row["completeness_reason"] for row in answer.table.to_pylist()} == {None, "misplaced"}


def test_the_command_line_warns_and_the_document_stays_one_row_a_share_partition(
    changed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for source, topic in (
        (["--log-dir", str(changed / "logs")], ORDERS_ID),
        (["--lake", str(changed / "lake")], "orders"),
    ):
        assert main(["state", *source, "--group", MOVES, "--output", "json"]) == 0
        out, err = capsys.readouterr()
        assert [row["state_partition"] for row in json.loads(out)] == [NEW]
        assert f"misplaced: {MOVES} {topic}:0 in state partition {OLD}" in err
        named = ["--group", MOVES, "--topic", ORDERS_ID, "--partition", "0", "--offset", str(BEFORE)]
        assert main(["trace", *source, *named, "--require-complete"]) == 1
        out, err = capsys.readouterr()
        assert "incomplete:misplaced" in out
