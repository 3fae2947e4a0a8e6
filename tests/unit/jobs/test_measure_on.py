"""Measuring on after each part of a log, against measuring the whole log at once."""

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.measure import steps as measure_steps
from sharelens.lake.lake import Lake
from tests.depths import examples
from tests.lakes import assert_same
from tests.logs.state_logs import START_MS, snapshot, tombstone, update, write_log_directory
from tests.logs.user_topics import write_orders
from tests.processes.in_process import make_lake

STATES = st.sampled_from([0, 2, 4])
BATCHES = st.lists(
    st.builds(
        lambda first, size, state, count: (first, first + size, state, count),
        st.integers(0, 30),
        st.integers(0, 6),
        STATES,
        st.integers(1, 3),
    ),
    max_size=3,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What a snapshot that repeats the state of a share partition holds."""

    start: int = 0
    epoch: int = 0
    batches: tuple[tuple[int, int, int, int], ...] = ()

    def after(self, make: Any, *, start: int = -1, batches: Sequence[tuple[int, int, int, int]] = ()) -> "State":
        """The state behind a record."""
        if make is cold:
            return replace(self, epoch=self.epoch + 1)
        if make is update:
            return replace(
                self, start=max(start, self.start) if start < 0 else start, batches=(*self.batches, *batches)
            )
        return State(start=start)

    def again(self, group: str, at_ms: int) -> dict[str, Any]:
        """The snapshot, as the job of cold snapshots writes it."""
        stamps = {"create_timestamp_ms": START_MS, "write_timestamp_ms": START_MS + 1}
        batches = [batch for batch in self.batches if batch[1] >= self.start]
        return snapshot(group, start=self.start, epoch=self.epoch, batches=batches, at_ms=at_ms, **stamps)


def cold(group: str) -> None:
    """Stands for a snapshot that repeats the state; `story` makes it."""


GROUPS = st.sampled_from("ghij")
"""Several stories a lake: what a lake costs is not its rows."""
RECORDS = st.one_of(
    st.builds(lambda group, start: (snapshot, group, {"start": start}), GROUPS, st.integers(-1, 20)),
    st.builds(
        lambda group, start, batches: (update, group, {"start": start, "batches": batches}),
        GROUPS,
        st.integers(-1, 20),
        BATCHES,
    ),
    st.builds(
        lambda group, start, batches: (update, group, {"start": start, "batches": batches}),
        GROUPS,
        st.just(-1),
        BATCHES,
    ),
    st.builds(lambda group: (tombstone, group, {}), GROUPS),
    st.builds(lambda group: (cold, group, {}), GROUPS),
    st.builds(lambda group: (cold, group, {}), GROUPS),
)
STEPS = st.lists(st.tuples(RECORDS, st.sampled_from([1, 1_000, 70_000, 2_000_000])), min_size=4, max_size=24)


def story(steps: list[tuple[Any, int]]) -> list[dict[str, Any]]:
    """Records with times: each step later than the one before by so many milliseconds."""
    result = [snapshot(group, start=0) for group in "ghij"]
    states = {group: State() for group in "ghij"}
    now = START_MS
    for (make, group, fields), later in steps:
        now += later
        states[group] = states[group].after(make, **fields)
        if make is update:
            fields = fields | {"epoch": states[group].epoch}
        result.append(states[group].again(group, now) if make is cold else make(group, at_ms=now, **fields))
    return result


def logs_of(folder: Path, records: list[dict[str, Any]], *, topic: bool) -> Path:
    if folder.exists():
        shutil.rmtree(folder)
    logs = write_log_directory(folder, records)
    if topic:
        shutil.rmtree(logs / "orders-0")
        write_orders(logs)
    return logs


@pytest.mark.slow
@examples("lake", shrink=False)
@given(
    STEPS,
    st.lists(st.integers(1, 24), min_size=1, max_size=3),
    st.sampled_from([1, 2, 5, measure_steps.STEP_ROWS]),
    st.booleans(),
    st.booleans(),
)
def test_any_cut_of_a_log_in_any_steps_measures_what_one_run_measures(
    steps: list[tuple[Any, int]], cuts: list[int], step_rows: int, topic: bool, topic_at_first: bool
) -> None:
    records = story(steps)
    with tempfile.TemporaryDirectory() as scratch, pytest.MonkeyPatch.context() as patch:
        root = Path(scratch)
        parts = Lake(root / "parts")
        patch.setattr(measure_steps, "STEP_ROWS", step_rows)
        for cut in sorted({min(4 + cut, len(records)) for cut in cuts}):
            make_lake(parts, logs_of(root / "logs", records[:cut], topic=topic and topic_at_first))
        full_logs = logs_of(root / "logs", records, topic=topic)
        make_lake(parts, full_logs)
        patch.undo()
        make_lake(root / "at-once", full_logs)
        assert_same(root / "parts", root / "at-once")


@pytest.mark.soak
@pytest.mark.slow
def test_what_a_start_offset_had_passed_is_open_again_when_the_next_life_tells_none(tmp_path: Path) -> None:
    first, second = [(8, 9, 0, 2), (20, 26, 2, 2)], [(17, 21, 0, 3)]
    records = story(
        [
            ((update, "g", {"start": -1, "batches": first}), 1),
            ((update, "g", {"start": 15, "batches": []}), 1),
            ((tombstone, "g", {}), 1),
            ((update, "g", {"start": -1, "batches": second}), 1),
            ((update, "g", {"start": 2, "batches": [(8, 14, 0, 1)]}), 1),
        ]
    )
    in_parts = Lake(tmp_path / "in-parts")
    for end in (6, 7, 8, 9):
        make_lake(in_parts, logs_of(tmp_path / "logs", records[:end], topic=False))
    make_lake(tmp_path / "at-once", tmp_path / "logs")
    assert_same(tmp_path / "in-parts", tmp_path / "at-once")
