"""What an increment recomputes: the same rows as one run, whatever the order of the evidence, and few of them."""

import gc
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import generate
from jobs.measure import stage
from jobs.measure.files import is_final
from jobs.measure.inputs import LakeInputs
from jobs.measure.reach import Reach
from jobs.measure.recompute import changes
from sharelens.lake.lake import Lake
from sharelens.measures.catalog import STAGED
from sharelens.measures.histories.settled import HOUR_MS
from state_model.columnar.codes import ABOVE_ALL
from tests.datasets import dataset
from tests.depths import examples, rows_in_soak
from tests.lakes import content, differences
from tests.logs.state_logs import (
    START_MS,
    snapshot,
    tombstone,
    update,
    write_log_directory,
    write_state_partition,
)
from tests.logs.user_topics import write_orders
from tests.processes.in_process import TO_MEASURES, make_lake, recorded_lake
from tests.unit.jobs.test_measure_on import STEPS, story

pytestmark = pytest.mark.slow

TABLES = tuple(measure.table for measure in STAGED.values())
FEW_ROWS = 100
MOST_REWRITTEN = {"hot": 0.03, "cool": 0.10}
"""By shape the part of a measure's rows that 1 % more records may rewrite."""


def logs_of(folder: Path, records: list[dict[str, Any]], first: int, end: int, *, topic: bool) -> Path:
    """A copy of the log from one record up to, not including, another."""
    logs = write_log_directory(folder, records)
    shutil.rmtree(logs / "__share_group_state-0")
    write_state_partition(logs, records[first:end], base_offset=first)
    if topic:
        shutil.rmtree(logs / "orders-0")
        write_orders(logs)
    return logs


@pytest.mark.soak
@examples("lake", shrink=False)
@given(
    STEPS,
    st.lists(st.tuples(st.integers(0, 27), st.integers(1, 12), st.booleans()), min_size=1, max_size=3),
    st.booleans(),
)
def test_copies_in_any_order_measure_what_one_run_measures(
    steps: list[tuple[Any, int]], copies: list[tuple[int, int, bool]], topic: bool
) -> None:
    records = story(steps)
    with tempfile.TemporaryDirectory() as scratch:
        root, lake = Path(scratch), Lake(Path(scratch) / "lake")
        for number, (first, size, with_topic) in enumerate(copies):
            first = min(first, len(records) - 1)
            end = min(first + size, len(records))
            logs = logs_of(root / f"{number}", records, first, end, topic=topic and with_topic)
            make_lake(lake, logs, stages=TO_MEASURES)
        full_logs = logs_of(root / "whole", records, 0, len(records), topic=topic)
        make_lake(lake, full_logs, stages=TO_MEASURES)
        make_lake(root / "at-once", full_logs, stages=TO_MEASURES)
        assert not differences(content(root / "lake", TABLES), content(root / "at-once", TABLES))


@pytest.mark.soak
@pytest.mark.parametrize(("shape", "share_partitions"), [("cool", 40), *rows_in_soak(("hot", 1))])
def test_one_percent_of_news_rewrites_few_rows_and_no_final_one(
    shape: str, share_partitions: int, tmp_path: Path
) -> None:
    logs, lake = tmp_path / "logs", tmp_path / "lake"
    generate.generate(logs, shape=shape, records=20_000, share_partition_count=share_partitions, state_partitions=1)
    make_lake(lake, logs, stages=TO_MEASURES)
    before = files(lake)
    generate.append(logs, fraction=0.01)
    make_lake(lake, logs, stages=TO_MEASURES)
    after = files(lake)
    for table, files_before in before.items():
        gone = {path: rows for path, rows in files_before.items() if path not in after[table]}
        assert not any(path.startswith("is_final=true") for path in gone), table
        rows = sum(files_before.values())
        if rows >= FEW_ROWS and any(path.startswith("is_final") for path in files_before):
            assert sum(gone.values()) <= MOST_REWRITTEN[shape] * rows, table


def files(lake: Path) -> dict[str, dict[str, int]]:
    """For each measure the live files with the number of their rows."""
    opened = Lake(lake)
    return {
        table: {str(file["path"]): int(file["num_records"]) for file in opened.snapshot(table).files}
        for table in TABLES
    }


TO_REPLAY = ("ingest", "decode", "replay")
REACHES = [
    ([snapshot("g", start=5, epoch=1)], ABOVE_ALL),
    ([snapshot("g", start=5, epoch=number) for number in (1, 2)], ABOVE_ALL),
    ([snapshot("g", start=9, epoch=1)], 9),
    ([snapshot("g", start=5, epoch=1, delivery_complete_count=1)], 5),
    ([update("g", start=5, batches=[])], 5),
    ([snapshot("g", start=5, epoch=1, batches=[(7, 8, 0, 1)])], 7),
]
"""New records of a share partition whose only record is a snapshot with start offset 5, and what they reach."""


def inputs_of_news(
    folder: Path, stories: Sequence[tuple[dict[str, Any], Sequence[dict[str, Any]]]]
) -> list[LakeInputs]:
    """The inputs of a task for the news of stories, each about a share partition in a state partition of its own."""
    logs, lake = folder / "logs", folder / "lake"
    for number, (first, _) in enumerate(stories):
        write_state_partition(logs, [first | {"partition": number}], number=number)
    make_lake(lake, logs, stages=TO_MEASURES)
    for number, (_, news) in enumerate(stories):
        write_state_partition(logs, [each | {"partition": number} for each in news], number=number, base_offset=1)
    make_lake(lake, logs, stages=TO_REPLAY)
    tasks = [task for batch in stage.batches_of(Lake(lake), run=2, before=1) for task in batch]
    return [LakeInputs(task) for task in tasks]


def test_a_snapshot_that_repeats_the_state_reaches_no_row(tmp_path: Path) -> None:
    inputs = inputs_of_news(tmp_path, [(snapshot("g", start=5), news) for news, _ in REACHES])
    reached = {
        partition: reach
        for each in inputs
        for partition, reach in zip(each.places.keys.column("partition").to_pylist(), each.reach.tolist(), strict=True)
    }
    assert [reached[number] for number in range(len(REACHES))] == [reach for _, reach in REACHES]


def test_open_offsets_that_the_start_offset_passes_are_reached(tmp_path: Path) -> None:
    first = snapshot("g", start=5, batches=[(5, 6, 0, 1), (7, 7, 2, 1)])
    (inputs,) = inputs_of_news(tmp_path, [(first, [update("g", start=9)])])
    assert (inputs.reach.tolist(), inputs.reach_of_open.tolist()) == ([9], [5])


@pytest.mark.soak
def test_a_range_that_a_snapshot_shows_first_is_read_from_the_record_before_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.measure.inputs.FIRST_STRETCH", 1)
    settled = [update("g", start=number, batches=[(number - 1, number - 1, 2, 1)]) for number in range(1, 40)]
    later_ms = START_MS + HOUR_MS
    shown = snapshot("g", start=39, epoch=1, batches=[(41, 41, 0, 1)], at_ms=later_ms)
    other_records = [snapshot("h"), *(update("h", start=number, at_ms=later_ms) for number in range(11))]
    logs = write_log_directory(tmp_path / "logs", [snapshot("g"), *settled, *other_records, shown])
    make_lake(tmp_path / "lake", logs, stages=TO_MEASURES)
    write_state_partition(logs, [update("g", batches=[(41, 41, 2, 2)], at_ms=later_ms)], base_offset=53)
    make_lake(tmp_path / "lake", logs, stages=TO_REPLAY)
    ((task,),) = stage.batches_of(Lake(tmp_path / "lake"), run=2, before=1)
    read = Reach(LakeInputs(task)).by_offset.history().column("log_offset")
    assert sorted(read.to_pylist()) == [39, 52, 53]
    make_lake(tmp_path / "lake", logs, stages=TO_MEASURES)
    make_lake(tmp_path / "at-once", logs, stages=TO_MEASURES)
    assert not differences(content(tmp_path / "lake", TABLES), content(tmp_path / "at-once", TABLES))


KEPT_TABLES = ("gold.poison_record", "gold.redelivered_record", "gold.latency", "gold.attempts", "gold.life_event")
HALF_DONE = [(0, 4, 2, 3), (6, 9, 0, 2), (11, 12, 4, 5)]


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("later_ms", "changed_fields", "rewritten"),
    [
        *rows_in_soak((1, {}, ())),
        (HOUR_MS, {}, ("gold.latency", "gold.attempts")),
        (1, {"delivery_complete_count": 1}, KEPT_TABLES[:-1]),
        (1, {"start": 7}, KEPT_TABLES[:-1]),
        (1, {"state_epoch": 2}, ("gold.poison_record", "gold.redelivered_record", "gold.latency", "gold.attempts")),
    ],
)
def test_rows_stay_in_their_files_until_evidence_adds_some_or_makes_them_final(
    later_ms: int, changed_fields: dict[str, Any], rewritten: tuple[str, ...], tmp_path: Path
) -> None:
    records = [snapshot("g"), update("g", batches=HALF_DONE), update("g", start=5)]
    logs = write_log_directory(tmp_path / "logs", records)
    make_lake(tmp_path / "lake", logs, stages=TO_MEASURES)
    before = files(tmp_path / "lake")
    cold = {"start": 5, "epoch": 1, "batches": HALF_DONE[1:], "at_ms": START_MS + later_ms}
    write_state_partition(logs, [snapshot("g", **(cold | changed_fields))], base_offset=3)
    make_lake(tmp_path / "lake", logs, stages=TO_MEASURES)
    after = files(tmp_path / "lake")
    assert [table for table in KEPT_TABLES if before[table].keys() - after[table].keys()] == list(rewritten)


INCREMENTS = [
    (
        [snapshot("g"), update("g", batches=[(0, 0, 0, 1)])],
        [snapshot("g", epoch=1, batches=[(0, 0, 0, 1), (5, 5, 0, 1)])],
    ),
    ([snapshot("g"), tombstone("g")], [snapshot("g", state_epoch=2)]),
]
"""An open offset above those of its block; a creation after a deletion that was the newest record."""


def test_an_increment_has_the_rows_of_one_run(tmp_path: Path) -> None:
    logs, lake = tmp_path / "logs", tmp_path / "lake"
    for part in (0, 1):
        for number, story_parts in enumerate(INCREMENTS):
            base_offset = len(story_parts[0]) if part else 0
            write_state_partition(logs, story_parts[part], number=number, base_offset=base_offset)
        make_lake(lake, logs, stages=TO_MEASURES)
    make_lake(tmp_path / "at-once", logs, stages=TO_MEASURES)
    assert not differences(content(lake, TABLES), content(tmp_path / "at-once", TABLES))


def test_tasks_replace_final_rows_only_where_the_tables_have_some(tmp_path: Path) -> None:
    lake = Lake(Path(shutil.copytree(recorded_lake("basic"), tmp_path / "lake")))
    (tasks,) = stage.batches_of(lake, run=2, before=0)
    again = {
        name for name, outcome in stage.measure_tasks(tuple(STAGED), tasks).items() if some_final_row_goes(outcome)
    }
    final = {name for name, measure in STAGED.items() if any(map(is_final, lake.snapshot(measure.table).paths))}
    assert again == final
    make_lake(tmp_path / "new", dataset("basic") / "logs", stages=TO_REPLAY)
    (tasks,) = stage.batches_of(Lake(tmp_path / "new"), run=1, before=0)
    assert not any(map(some_final_row_goes, stage.measure_tasks(tuple(STAGED), tasks).values()))


def some_final_row_goes(outcome: stage.Outcome) -> bool:
    """Whether tasks replace final rows of a measure."""
    return any((replaced.since < ABOVE_ALL).any() for replaced in outcome.replaced)


def test_the_histories_of_a_task_go_with_it_without_the_garbage_collector(tmp_path: Path) -> None:
    lake = Lake(Path(shutil.copytree(recorded_lake("basic"), tmp_path / "lake")))
    ((task, *_), *_) = stage.batches_of(lake, run=2, before=0)
    gc.disable()
    try:
        reach = Reach(LakeInputs(task))
        assert sum(changes(reach, measure).open_rows.num_rows for measure in STAGED.values())
        inputs, views = weakref.ref(reach.inputs), [weakref.ref(reach.by_offset), weakref.ref(reach.from_record)]
        del reach
        assert [reference() for reference in (inputs, *views)] == [None, None, None]
    finally:
        gc.enable()
