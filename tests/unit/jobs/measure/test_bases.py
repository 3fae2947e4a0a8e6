"""Measuring on in a lake whose histories were cut, against measuring on in one that was not."""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.upkeep.maintain import MaintainOptions, Upkeep, maintain
from sharelens.lake.lake import Lake
from sharelens.measures.catalog import STAGED
from tests.depths import examples, in_soak
from tests.lakes import content, differences
from tests.logs.state_logs import START_MS, snapshot, tombstone, update, write_log_directory
from tests.once import made_once
from tests.processes.in_process import TO_MEASURES, make_lake

pytestmark = pytest.mark.slow

HOUR = 3_600_000
TABLES = tuple(measure.table for name, measure in STAGED.items() if name != "progress")
"""How far the measures have read tells nobody anything: measured again, it names the last write that is left."""


def at(hours: float) -> int:
    return START_MS + int(hours * HOUR)


def story() -> list[dict[str, Any]]:
    """Two days of a group that goes on, one that stands still, one that is reset and one that is deleted."""
    records = [snapshot(group, start=0, at_ms=at(0)) for group in ("on", "still", "reset", "gone")]
    records += [
        update("on", batches=[(0, 4, 2, 1), (5, 5, 4, 5)], at_ms=at(1)),
        update("still", batches=[(0, 3, 2, 1), (4, 4, 0, 1), (5, 9, 2, 2)], at_ms=at(1.2)),
        update("reset", batches=[(0, 7, 2, 1), (8, 8, 4, 2)], at_ms=at(1.5)),
        update("gone", batches=[(0, 1, 0, 1)], at_ms=at(2)),
        update("still", start=4, at_ms=at(2.1)),
        update("gone", batches=[(0, 1, 4, 2)], at_ms=at(3)),
        update("on", start=6, batches=[(6, 9, 0, 1)], at_ms=at(4)),
        snapshot("reset", start=5, epoch=1, state_epoch=2, at_ms=at(5)),
        tombstone("gone", at_ms=at(6)),
        update("on", start=6, batches=[(6, 7, 2, 2), (8, 9, 0, 2)], at_ms=at(20)),
        update("reset", epoch=1, batches=[(5, 6, 2, 1)], at_ms=at(21)),
        update("on", batches=[(8, 8, 2, 3)], at_ms=at(22.2)),
        update("on", batches=[(9, 9, 2, 3)], at_ms=at(22.9)),
        update("on", start=10, batches=[(10, 15, 0, 1)], at_ms=at(23.1)),
        update("still", batches=[(10, 12, 2, 1)], at_ms=at(23.5)),
        snapshot("on", start=10, epoch=1, batches=[(10, 15, 0, 1)], at_ms=at(24)),
    ]
    return records


def news() -> list[dict[str, Any]]:
    return [
        update("on", epoch=1, start=11, batches=[(10, 10, 2, 2), (11, 15, 0, 2)], at_ms=at(24.1)),
        update("reset", epoch=1, batches=[(7, 7, 2, 1)], at_ms=at(24.2)),
        update("still", start=10, batches=[(4, 4, 2, 2)], at_ms=at(24.3)),
        snapshot("gone", start=0, at_ms=at(24.5)),
        update("gone", batches=[(3, 3, 4, 1)], at_ms=at(25)),
        tombstone("reset", at_ms=at(26)),
        update("on", epoch=1, start=16, batches=[(11, 15, 2, 3)], at_ms=at(27)),
    ]


def cut(lake: Path, hours: float) -> Upkeep:
    return maintain(MaintainOptions(lake=Lake(lake), dry_run=False, retain={"history": int(hours * HOUR)}))


def measures(lake: Path) -> dict[str, pa.Table]:
    return content(lake, TABLES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """A log in two parts. `before`: the lake of the first, `plain`: that lake after the second part."""

    folder: Path
    second: Path

    @property
    def before(self) -> Path:
        return self.folder / "before"

    @property
    def plain(self) -> Path:
        return self.folder / "plain"

    def cut_between(self, lake: Path, hours: float) -> Path:
        """A lake that was cut between the two parts."""
        shutil.copytree(self.before, lake)
        cut(lake, hours)
        make_lake(lake, self.second, stages=TO_MEASURES)
        return lake


def parts(folder: Path, first: list[dict[str, Any]], second: list[dict[str, Any]]) -> Parts:
    lake_parts = Parts(folder=folder, second=write_log_directory(folder / "second", [*first, *second]))
    make_lake(lake_parts.before, write_log_directory(folder / "first", first), stages=TO_MEASURES)
    shutil.copytree(lake_parts.before, lake_parts.plain)
    make_lake(lake_parts.plain, lake_parts.second, stages=TO_MEASURES)
    return lake_parts


@pytest.fixture(scope="module")
def story_parts(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    """The story and its news; tests read it."""
    return parts(tmp_path_factory.mktemp("told"), story(), news())


def cut_once(story_parts: Parts, hours: float) -> Path:
    """The story's lake that was cut between the two parts; tests read or copy it."""
    return made_once(f"measure-base/{hours}", lambda folder: story_parts.cut_between(folder / "lake", hours)) / "lake"


@pytest.mark.parametrize("hours", [2, *in_soak(0.5, 4.2, 19)])
def test_measures_after_a_cut_are_those_of_a_lake_that_was_not_cut(hours: float, story_parts: Parts) -> None:
    cut_lake = cut_once(story_parts, hours)
    (deliveries,) = content(story_parts.plain, ["gold.delivery_history"]).values()
    (deliveries_kept,) = content(cut_lake, ["gold.delivery_history"]).values()
    assert deliveries_kept.num_rows < deliveries.num_rows
    assert not differences(measures(story_parts.plain), measures(cut_lake))


@pytest.mark.soak
def test_a_share_partition_that_was_there_before_the_cut_is_not_first_seen_after_it(story_parts: Parts) -> None:
    (events,) = content(cut_once(story_parts, 2), ["gold.life_event"]).values()
    assert events.num_rows > 0
    assert not pc.any(pc.equal(events.column("event"), "first_seen")).as_py()


@pytest.mark.soak
def test_measuring_anew_after_a_cut_leaves_what_was_final_before_it(story_parts: Parts, tmp_path: Path) -> None:
    cut_lake = Path(shutil.copytree(cut_once(story_parts, 2), tmp_path / "cut"))
    cut(cut_lake, 2)
    before = measures(cut_lake)
    make_lake(cut_lake, rebuild="measure", stages=TO_MEASURES)
    assert not differences(before, measures(cut_lake))
    assert not differences(measures(story_parts.plain), measures(cut_lake))


@pytest.mark.soak
def test_a_cut_keeps_the_deletions_that_tell_a_new_creation_from_a_reset(tmp_path: Path) -> None:
    before = [
        snapshot("g", start=0, at_ms=at(0)),
        update("g", batches=[(0, 3, 2, 1)], at_ms=at(1)),
        snapshot("g", start=0, epoch=1, state_epoch=2, at_ms=at(2)),
        tombstone("g", at_ms=at(3)),
        snapshot("g", start=0, state_epoch=3, at_ms=at(4)),
    ]
    after = [update("g", batches=[(0, 1, 2, 1)], at_ms=at(20))]
    cut_lake = parts(tmp_path, before, after).cut_between(tmp_path / "cut", 0.5)
    cut(cut_lake, 2)
    for _ in range(2):
        replays = measures(cut_lake)["gold.redelivered_record"].column("kind").to_pylist()
        assert replays == ["replayed_by_recreation"]
        make_lake(cut_lake, rebuild="measure", stages=TO_MEASURES)


@pytest.mark.soak
def test_a_row_across_the_lowest_start_offset_of_the_kept_records_stays_whole(tmp_path: Path) -> None:
    before = [
        snapshot("g", start=0, at_ms=at(0)),
        update("g", batches=[(0, 2, 2, 1), (3, 9, 0, 1)], at_ms=at(1)),
        update("g", start=3, batches=[(3, 9, 2, 2)], at_ms=at(2)),
        snapshot("g", start=5, epoch=1, batches=[(5, 9, 2, 2), (10, 10, 2, 1)], at_ms=at(3)),
        update("g", epoch=1, batches=[(12, 12, 2, 1)], at_ms=at(20)),
    ]
    story_parts = parts(tmp_path, before, [update("g", epoch=1, start=6, at_ms=at(21))])
    cut_lake = story_parts.cut_between(tmp_path / "cut", 2)
    (rows,) = content(cut_lake, ["gold.redelivered_record"]).values()
    assert rows.select(["first_offset", "last_offset"]).to_pylist() == [{"first_offset": 3, "last_offset": 9}]
    assert not differences(measures(story_parts.plain), measures(cut_lake))


GROUPS = "gh"
BATCHES = st.lists(
    st.builds(
        lambda first, size, state, count: (first, first + size, state, count),
        st.integers(0, 20),
        st.integers(0, 6),
        st.sampled_from([0, 2, 4]),
        st.integers(1, 3),
    ),
    max_size=3,
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(GROUPS),
        st.sampled_from(["update", "update", "update", "move", "back", "snapshot", "reset", "delete"]),
        st.integers(0, 6),
        BATCHES,
        st.sampled_from([1_000, 70_000, 900_000, HOUR, 5 * HOUR]),
    ),
    min_size=6,
    max_size=20,
)


def any_story(steps: list[tuple[str, str, int, list[Any], int]], cut: int) -> list[dict[str, Any]]:
    """Records as brokers write them, and start offsets that go back inside a life: what a life has settled stays as it
    is until then.

    From record `cut` on no start offset lies below what was passed before: the histories of that may be dropped, and
    what they alone tell (an offset is delivered once more in another life) is not told any more.
    """
    records = [snapshot(group, start=0) for group in GROUPS]
    settled: dict[str, set[int]] = {group: set() for group in GROUPS}
    start, epochs, now = dict.fromkeys(GROUPS, 0), dict.fromkeys(GROUPS, (0, 1)), START_MS
    gone: set[str] = set()
    passed = dict.fromkeys(GROUPS, 0)
    for group, kind, offset, batches, later in steps:
        now += later
        if len(records) <= cut:
            passed[group] = max(passed[group], start[group])
        least = passed[group] if len(records) >= cut else 0
        epoch, state_epoch = epochs[group]
        if kind == "delete" and group not in gone:
            gone.add(group)
            records.append(tombstone(group, at_ms=now))
        elif group in gone or kind == "reset":
            gone.discard(group)
            settled[group].clear()
            offset = max(offset, least)
            start[group], epochs[group] = offset, (epoch + 1, state_epoch + 1)
            epoch = epoch + 1 if kind == "reset" else 0
            epochs[group] = (epoch, state_epoch + 1)
            records.append(snapshot(group, start=offset, epoch=epoch, state_epoch=state_epoch + 1, at_ms=now))
        else:
            moved = -1
            if kind in ("move", "back"):
                moved = max(least, start[group] + (offset if kind == "move" else -offset))
                settled[group] -= set(range(moved, start[group]))
                start[group] = moved
            live = [(max(first, start[group]), *rest) for first, *rest in batches if rest[0] >= start[group]]
            records.append(update(group, start=moved, epoch=epoch, batches=open_ones(live, settled[group]), at_ms=now))
    return records


def open_ones(batches: list[Any], settled: set[int]) -> list[Any]:
    """The batches that touch nothing settled, each before what it settles itself is noted."""
    open_batches = []
    for first, last, state, count in batches:
        offsets = set(range(first, last + 1))
        if not offsets & settled:
            open_batches.append((first, last, state, count))
            settled |= offsets if state != 0 else set()
    return open_batches


@pytest.mark.soak
@examples("lake", shrink=False)
@given(STEPS, st.integers(2, 18), st.sampled_from([0.1, 1, 6, 20]))
def test_any_cut_of_the_histories_leaves_what_is_measured_after_it(
    steps: list[tuple[str, str, int, list[Any], int]], part: int, hours: float
) -> None:
    part = min(part, len(GROUPS) + len(steps) - 1)
    records = any_story(steps, part)
    with tempfile.TemporaryDirectory() as scratch:
        story_parts = parts(Path(scratch), records[:part], records[part:])
        cut_lake = story_parts.cut_between(Path(scratch) / "cut", hours)
        assert not differences(measures(story_parts.plain), measures(cut_lake))
        cut(cut_lake, hours)
        before_cut = measures(cut_lake)
        make_lake(cut_lake, rebuild="measure", stages=TO_MEASURES)
        assert not differences(before_cut, measures(cut_lake))
