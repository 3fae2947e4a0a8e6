"""A lake and the log directory that it was made from give the same answers to every question."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.cli import main
from sharelens.parameters.filters import parse_key_filter
from sharelens.questions.records import records
from sharelens.questions.state import state
from sharelens.questions.timelines.diff import diff
from sharelens.questions.traces.trace import trace
from sharelens.source.request import CutChoice, Source
from sharelens.tables.opening import open_evidence
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_share_partitions
from sharelens.tables.where import Span
from tests.datasets import dataset, scenarios
from tests.depths import examples
from tests.logs.state_logs import START_MS, snapshot, tombstone, update, write_log_directory
from tests.processes.in_process import make_lake, recorded_lake

pytestmark = pytest.mark.usefixtures("evidence_opened_once")

ALL_KEYS = parse_key_filter([], [], [])
OFFSETS = 12
CUTS = 2
"""Checkpoints of a scenario that are asked for."""
TRACED = 2
"""Share partitions of a scenario of which records are traced."""
Ask = Callable[..., Any]


@st.composite
def record_lists(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Records of a few share partitions in one state partition, with clocks that step back now and then."""
    kinds = st.sampled_from(["snapshot", "update", "update", "update", "tombstone"])
    story = []
    for number in range(draw(st.integers(1, 14))):
        group = draw(st.sampled_from("ghi"))
        at_ms = START_MS + number * 1000 - draw(st.sampled_from([0, 0, 0, 500, 120_000])) * (number > 3)
        kind = draw(kinds)
        if kind == "tombstone":
            story.append(tombstone(group, at_ms=at_ms))
            continue
        batches = draw(
            st.lists(
                st.tuples(*(st.integers(0, OFFSETS),) * 2, st.sampled_from([0, 2, 4]), st.integers(1, 3)), max_size=3
            )
        )
        ordered = [(min(a, b), max(a, b), delivery_state, count) for a, b, delivery_state, count in batches]
        start = draw(st.integers(-1, OFFSETS))
        make = snapshot if kind == "snapshot" else update
        story.append(make(group, start=start, epoch=number, at_ms=at_ms, batches=ordered if kind == "update" else []))
    return story


def answers(evidence: Tables, count: int) -> Iterator[tuple[str, str]]:
    """Every question at every cut, as the JSON that it would print."""

    def answer_to(name: str, table: Any) -> tuple[str, str]:
        return name, json.dumps(table.to_pylist())

    first = min(part.first_ms or 0 for part in evidence.cover())
    yield answer_to("state", state(evidence, ALL_KEYS, CutChoice()).table)
    yield answer_to("records", records(evidence, ALL_KEYS, Span()).read_all().table)
    for offset in range(-1, count):
        yield answer_to(f"at {offset}", state(evidence, ALL_KEYS, CutChoice(at_offsets={0: offset})).table)
    for moment in range(first, first + 1000 * count, 700):
        answer = state(evidence, ALL_KEYS, CutChoice(as_of_ms=moment))
        yield answer_to(f"as of {moment}", answer.table)
        yield f"warnings at {moment}", json.dumps(answer.warnings)
        yield answer_to(f"diff {moment}", diff(evidence, ALL_KEYS, first, moment).table)
    for group in read_share_partitions(evidence).column("group_id").unique().to_pylist():
        for offset in range(0, OFFSETS, 3):
            trace_rows = trace(evidence, parse_key_filter([group], ["orders"], [0]), offset)
            yield answer_to(f"trace {group} {offset}", trace_rows.table)
            yield f"verdict {group} {offset}", str(trace_rows.summary).splitlines()[0]


@pytest.mark.soak
@examples("lake and log")
@given(story=record_lists())
def test_any_log_gives_the_same_answers_with_and_without_a_lake(
    tmp_path_factory: pytest.TempPathFactory, story: list[dict[str, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("same")
    logs = write_log_directory(folder / "logs", story, cluster_id="a-cluster")
    make_lake(folder / "lake", logs)
    straight = dict(answers(open_evidence(Source(log_dirs=(str(logs),))), len(story)))
    from_lake = dict(answers(open_evidence(Source(lake=str(folder / "lake"))), len(story)))
    assert len(straight) > 4
    assert from_lake == straight


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """Runs a command with --output json and returns its document."""

    def ask_json(*words: str) -> Any:
        code = main([*words, "--output", "json"])
        out, err = capsys.readouterr()
        assert code == 0, err
        return json.loads(out)

    return ask_json


def questions(folder: Path, straight: list[str], ask: Ask) -> Iterator[list[str]]:
    """Questions about a scenario: its checkpoints by time and offset, and records around start offsets."""
    checkpoints = [json.loads(line) for line in (folder / "checkpoints.jsonl").read_text(encoding="utf-8").splitlines()]
    partitions = {row["state_partition"]: row for row in ask("status", *straight)["state_partitions"]}
    begin = min(row["first_log_time_ms"] for row in partitions.values())
    now = ask("state", *straight)
    yield ["records"]
    yield ["state"]
    for checkpoint in checkpoints[:: max(1, len(checkpoints) // CUTS)]:
        if checkpoint["wallMs"] >= begin:
            yield ["state", "--as-of", str(checkpoint["wallMs"])]
        ends = {int(part): end - 1 for part, end in checkpoint["logEndOffsets"].items() if int(part) in partitions}
        if all(end == -1 or end >= partitions[part]["first_log_offset"] for part, end in ends.items()):
            yield ["state", "--at-offset", ",".join(f"{part}:{end}" for part, end in ends.items())]
    yield ["diff", "--from", str(max(begin, checkpoints[0]["wallMs"])), "--to", str(checkpoints[-1]["wallMs"])]
    for row in now[:: max(1, len(now) // TRACED)]:
        key = ["--group", row["group_id"], "--topic", row["topic_id"], "--partition", str(row["partition"])]
        yield ["state", *key]
        yield ["records", *key]
        start = max(0, row["start_offset"])
        for offset in {max(0, start - 1), *(batch["first_offset"] for batch in row["state_batches"][-1:])}:
            yield ["trace", *key, "--offset", str(offset)]


@pytest.mark.soak
@pytest.mark.parametrize("name", scenarios())
def test_a_scenario_gives_the_same_answers_with_and_without_a_lake(name: str, ask: Ask) -> None:
    logs = dataset(name) / "logs"
    lake = recorded_lake(name)
    straight, from_lake = ["--log-dir", str(logs)], ["--lake", str(lake)]
    question_count = 0
    for question in questions(dataset(name), straight, ask):
        question_count += 1
        assert ask(*question, *from_lake) == ask(*question, *straight), " ".join(question)
    assert question_count >= 9
    ours, lakes = ask("status", *straight), ask("status", *from_lake)
    parts = ("state_partitions", "gaps", "quarantine")
    assert {part: lakes[part] for part in parts} == {part: ours[part] for part in parts}


def unreadable(record: dict[str, Any]) -> dict[str, Any]:
    """The record with a value version that nobody knows."""
    return record | {"damage": "value_version"}


def test_records_that_cannot_be_decoded_mark_their_own_share_partition_in_both(tmp_path: Path) -> None:
    story = [snapshot("g"), snapshot("h"), update("g"), unreadable(update("g")), update("h"), snapshot("g", epoch=1)]
    logs = write_log_directory(tmp_path / "logs", story)
    make_lake(tmp_path / "lake", logs)
    marks = []
    for source in (Source(log_dirs=(str(logs),)), Source(lake=str(tmp_path / "lake"))):
        of_lake = dict(answers(open_evidence(source), len(story)))
        at_four = json.loads(of_lake["at 4"])
        marks.append({row["group_id"]: row["completeness"] for row in at_four})
        assert [row["completeness"] for row in json.loads(of_lake["state"])] == ["complete", "complete"]
        marks.append(of_lake)
    assert marks[0] == marks[2] == {"g": "incomplete", "h": "complete"}
    assert marks[1] == marks[3]
