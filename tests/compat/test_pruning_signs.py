"""State partitions that can't be pruned: figures of a lake, of its log directory and of the question agree."""

import pytest

from sharelens.parameters.filters import KeyFilter
from sharelens.questions.answers.measured import scope
from sharelens.questions.cost import pruning
from sharelens.questions.findings.pruning_signs import unpruned_state
from sharelens.source.request import CutChoice, Source
from sharelens.tables.opening import open_evidence
from tests.datasets import dataset
from tests.processes.in_process import recorded_lake

NAMES = ("basic", "pruned")


def source(name: str, kind: str) -> Source:
    if kind == "lake":
        return Source(lake=str(recorded_lake(name)))
    return Source(log_dirs=(str(dataset(name) / "logs"),))


@pytest.mark.parametrize("kind", ["log-dir", "lake"])
@pytest.mark.parametrize("name", NAMES)
def test_the_oldest_snapshot_is_that_of_the_question(name: str, kind: str) -> None:
    with open_evidence(source(name, kind)) as evidence:
        rows = pruning(evidence, CutChoice()).table.to_pylist()
        states = unpruned_state(scope(evidence, KeyFilter(), CutChoice()), least_bytes=1)
        ends_ms = {part.state_partition: part.last_ms for part in evidence.cover()}
    held_up = {row["state_partition"]: row for row in rows if row["prune_log_offset"] is not None}
    assert held_up
    assert {state.state_partition for state in states} == held_up.keys()
    for state in states:
        row = held_up[state.state_partition]
        assert (state.group_id, state.topic_id, state.partition) == (
            row["held_up_by_group_id"], row["held_up_by_topic_id"], row["held_up_by_partition"],
        )  # fmt: skip
        assert state.held_up_ms == row["held_up_ms"]
        assert ends_ms[state.state_partition] == state.since_ms + state.held_up_ms
        assert 0 < state.written_bytes <= row["bytes"] - row["freeable_bytes"]


@pytest.mark.parametrize("name", NAMES)
def test_a_lake_and_its_log_directory_agree(name: str) -> None:
    gathered = []
    for kind in ("log-dir", "lake"):
        with open_evidence(source(name, kind)) as evidence:
            gathered.append(unpruned_state(scope(evidence, KeyFilter(), CutChoice()), least_bytes=1))
    assert gathered[0] == gathered[1]


@pytest.mark.parametrize("kind", ["log-dir", "lake"])
def test_small_logs_earlier_moments_and_other_groups_have_none(kind: str) -> None:
    with open_evidence(source("basic", kind)) as evidence:
        scoped = scope(evidence, KeyFilter(), CutChoice())
        last_ms = max(part.last_ms or 0 for part in evidence.cover())
        assert unpruned_state(scoped) == ()
        assert unpruned_state(scope(evidence, KeyFilter(), CutChoice(as_of_ms=last_ms)), least_bytes=1) == ()
        states = unpruned_state(scoped, least_bytes=1)
        of_group = unpruned_state(
            scope(evidence, KeyFilter(groups=frozenset({"g-implicit"})), CutChoice()), least_bytes=1
        )
        assert list(of_group) == [state for state in states if state.group_id == "g-implicit"]
