"""The measure stage: rows of every measure (`sharelens.measures.catalog`) for the share partitions with new evidence.

Plan: `jobs.measure.touched` and `jobs.measure.steps`. Task: `measure_tasks` computes and writes the rows of some share
partitions. Commit: each table's new files replace old ones. `jobs.measure.reach` decides which rows are replaced.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jobs import books
from jobs.incarnations import newest_incarnations
from jobs.measure.bases import TEXTS, WHERE, Bases, bases
from jobs.measure.files import MeasureFiles, has_final_rows, is_final
from jobs.measure.inputs import LakeInputs
from jobs.measure.reach import Reach
from jobs.measure.reading import HISTORY, Flags, Ints, StateTopic, Task, by_cluster
from jobs.measure.recompute import changes, order_of
from jobs.measure.steps import in_one_step, steps
from jobs.measure.touched import touched_since
from jobs.progress import Progress
from jobs.spark.executors import TASKS_AIMED_AT, Engine, cores
from sharelens.lake.lake import Lake
from sharelens.lake.parquet import DataFile, coded_schema
from sharelens.lake.tables import TABLES
from sharelens.measures.catalog import STAGED, Measure
from sharelens.measures.ranges.parts import stretches
from sharelens.measures.ranges.places import Places, codes_in, places_of
from state_model.columnar.codes import ABOVE_ALL, BELOW_ALL
from state_model.columnar.keys import PLACE_KEY, SHARE_PARTITION_KEY
from state_model.threads import map_in_threads, threads_for

TASK_ROWS, LEAST_TASK_ROWS = 1 << 17, 1 << 15
"""About the number of history records that one task reads: its memory, and the unit of parallel work."""
LEAST_TASKS, MOST_TASKS = 4, 16
"""Tasks that are done one after the other and write into the same files."""
LEAST_ROWS = 2
"""The least weight of a share partition, whatever the number of its new records."""
IN_STEPS = tuple(name for name in STAGED if name != "lag")
"""Measures that take steps, `progress` last; lag is about the end of the log alone."""
STEP, MOST_STEPS = "measure-step", 1 << 20
"""Transaction of a step before the last one of a run: run and step number in one."""
COMPARED = {
    *WHERE, *SHARE_PARTITION_KEY, "hour_ms", "life_log_offset",
    *(measure.order for measure in STAGED.values() if measure.order),
}  # fmt: skip
"""Columns by which a final row is kept or goes."""
COMPARED_OPEN = {"cluster_id", *PLACE_KEY}
"""The same for an open row."""


class Replaced(NamedTuple):
    """The rows of one measure that a task replaces, by its share partitions in the order of PLACE_KEY.

    `since`: from which value of the measure's order on final rows go; ABOVE_ALL alone: none goes. `opened`: whether
    open rows go.
    """

    since: Ints
    opened: Flags


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """New files of one measure by some tasks, and the rows that each task replaces. The driver has the names."""

    files: tuple[DataFile, ...]
    replaced: tuple[Replaced, ...]


def measure_tasks(names: Sequence[str], tasks: Sequence[Task]) -> dict[str, Outcome]:
    """Measures the share partitions of tasks one after the other, and writes the rows of the measures `names`.

    Runs on an executor.
    """
    replaced: dict[str, list[Replaced]] = {name: [] for name in names}
    with ExitStack() as stack:
        files = {name: stack.enter_context(MeasureFiles(tasks[0].topic.lake, STAGED[name])) for name in names}
        for task in tasks:
            reach = Reach(LakeInputs(task))
            for name in names:
                replaced[name].append(_measured(reach, STAGED[name], files[name]))
            del reach
            pa.default_memory_pool().release_unused()
    return {name: Outcome(files=tuple(files[name].files), replaced=tuple(replaced[name])) for name in names}


def _measured(reach: Reach, measure: Measure, files: MeasureFiles) -> Replaced:
    """Writes the rows of a task."""
    row_changes = changes(reach, measure)
    files.write(row_changes.open_rows)
    files.write_final(row_changes.final_rows)
    has_final = any(map(is_final, reach.inputs.topic.lake.snapshot(measure.table).paths))
    since = row_changes.since if has_final and (row_changes.since < ABOVE_ALL).any() else np.array([ABOVE_ALL])
    return Replaced(since=since, opened=row_changes.replaces_open)


def run_measure(engine: Engine, lake: Lake, run: int, progress: Progress) -> dict[str, int]:
    """Measures the changes since the last run of each measure; returns the number of rows written by table."""
    due = [name for name, measure in STAGED.items() if not books.is_committed(lake, measure.table, "measure", run)]
    if not due:
        return {}
    done = {name: books.newest_run(lake, STAGED[name].table, "measure") for name in due}
    # A killed run leaves tables that are ahead of others, whose progress is not that of the others: measure whole.
    is_whole = len(set(done.values())) > 1 or len(due) < len(STAGED) or _is_on_its_way(lake, done)
    before = min(done.values())
    touched = touched_since(lake, before, is_whole=is_whole)
    size_bytes = _size_bytes(lake, touched)
    since = 0 if is_whole else before
    parts = list(steps(lake, run, since, touched)) if IN_STEPS[-1] in due else [in_one_step(touched, since)]
    counts: Counter[str] = Counter()
    for number, part in enumerate(parts, 1):
        is_last = number == len(parts)
        names = tuple(name for name in due if is_last or name in IN_STEPS)
        batches = _batches(_tasks(lake, run, part))
        outcomes = engine.run("measure", partial(measure_tasks, names), batches, progress, size_bytes=size_bytes)
        txn = ("measure", run) if is_last else (STEP, run * MOST_STEPS + number)
        threads = threads_for(size_bytes, cores())
        counts.update(_commit(lake, txn, names, part, batches, outcomes, threads))
    return {STAGED[name].table: counts[STAGED[name].table] for name in due}


def _is_on_its_way(lake: Lake, done: Mapping[str, int]) -> bool:
    """Whether a killed run committed steps beyond the progress of the measures."""
    newest = {name: lake.transaction(STAGED[name].table, STEP) or 0 for name in done}
    return any(newest[name] // MOST_STEPS > run for name, run in done.items())


def _commit(
    lake: Lake,
    txn: tuple[str, int],
    names: Sequence[str],
    touched: pa.Table,
    batches: Sequence[Sequence[Task]],
    outcomes: Sequence[Mapping[str, Outcome]],
    threads: int,
) -> dict[str, int]:
    """Commits the rows of tasks in place of the replaced rows; returns the number of rows written by table."""
    base = {cluster_id: bases(lake, cluster_id, topic_id) for cluster_id, topic_id in newest_incarnations(lake).items()}
    places = {cluster_id: places_of(rows)[1] for cluster_id, rows in by_cluster(touched)}
    keys = [(task.topic.cluster_id, task.keys) for batch in batches for task in batch]
    tasks = [(cluster_id, np.sort(places[cluster_id].of(rows))) for cluster_id, rows in keys]

    def without(name: str) -> tuple[list[DataFile], list[str]]:
        # Share partitions of earlier incarnations of the state topic are in no task; their rows go.
        known_by_cluster = {
            cluster_id: np.arange(cluster_places.count + 1) < cluster_places.count
            for cluster_id, cluster_places in places.items()
        }
        replaced = {
            cluster_id: Replaced(np.where(is_known, BELOW_ALL, ABOVE_ALL), is_known)
            for cluster_id, is_known in known_by_cluster.items()
        }
        by_task = (of_task for outcome in outcomes for of_task in outcome[name].replaced)
        for (cluster_id, at), of_task in zip(tasks, by_task, strict=True):
            replaced[cluster_id].since[at] = of_task.since
            replaced[cluster_id].opened[at] = of_task.opened
        return _without(lake, STAGED[name], replaced, places, base)

    rewritten = map_in_threads(without, names, threads)
    counts = {}
    for name, (kept_files, removes) in zip(names, rewritten, strict=True):
        table = STAGED[name].table
        adds = [file for outcome in outcomes for file in outcome[name].files]
        counts[table] = sum(file.record_count for file in adds)
        books.commit(lake, table, *txn, [*adds, *kept_files], removes)
    return counts


def batches_of(lake: Lake, run: int, before: int) -> list[list[Task]]:
    """The tasks over the news of the runs after `before` up to `run`, for `measure_tasks`.

    Without the steps, which go on from what was committed.
    """
    return _batches(_tasks(lake, run, in_one_step(touched_since(lake, before), before)))


def _batches(tasks: Iterable[Task]) -> list[list[Task]]:
    """Neighbouring tasks together: few files, and as many batches for each core."""
    tasks = list(tasks)
    together = max(LEAST_TASKS, min(MOST_TASKS, len(tasks) // TASKS_AIMED_AT))
    count = min(len(tasks), _of_all_cores(-(-len(tasks) // together)))
    ends = np.linspace(0, len(tasks), count + 1).astype(int)
    return [tasks[begin:end] for begin, end in pairwise(ends.tolist())]


def _of_all_cores(count: int) -> int:
    """A number of parts of the work, rounded up so that each core gets as many."""
    return count + -count % cores()


def _tasks(lake: Lake, run: int, step: pa.Table) -> Iterator[Task]:
    """Tasks of about TASK_ROWS records of a step, share partitions of one state partition together."""
    incarnations, view = newest_incarnations(lake), lake.view()
    kinds = step.group_by(["cluster_id", "before"]).aggregate([]).sort_by("cluster_id").to_pylist()
    for cluster_id, before in (kind.values() for kind in kinds):
        topic = StateTopic(lake=view, cluster_id=cluster_id, log_topic_id=incarnations.get(cluster_id, ""))
        condition = (pc.field("cluster_id") == cluster_id) & (pc.field("log_topic_id") == topic.log_topic_id)
        condition &= pc.field("before") == before
        keys = step.filter(condition).sort_by(
            [(name, "ascending") for name in ("state_partition", *SHARE_PARTITION_KEY)]
        )
        weights = np.maximum(keys.column("rows").to_numpy(), LEAST_ROWS)
        for task_keys in stretches(keys, weights, _task_rows(int(weights.sum()))):
            yield Task(topic=topic, run=run, before=before, keys=task_keys.select([*PLACE_KEY, "whole", "upto"]))


def _task_rows(total: int) -> int:
    """The rows of a task: an equal part of all, at most TASK_ROWS, with as many tasks for each core."""
    count = _of_all_cores(max(1, -(-total // TASK_ROWS)))
    return max(LEAST_TASK_ROWS, -(-total // count))


def _size_bytes(lake: Lake, touched: pa.Table) -> int:
    """About the bytes that the tasks read: the touched share of the histories and of the headers."""
    history = lake.snapshot(HISTORY).files
    records = sum(int(str(file["num_records"])) for file in history)
    names = (HISTORY, "gold.delivery_history", "bronze.topic_batch")
    total_bytes = sum(int(str(f["size_bytes"])) for name in names for f in lake.snapshot(name).files)
    return total_bytes * min(int(pc.sum(touched.column("rows")).as_py() or 0), records) // max(1, records)


def _without(
    lake: Lake,
    measure: Measure,
    replaced: Mapping[str, Replaced],
    places: Mapping[str, Places],
    base: Mapping[str, Bases],
) -> tuple[list[DataFile], list[str]]:
    """New files with the rows that no task replaced, and the paths of the files that they replace.

    By cluster: the rows that are replaced, of the measured share partitions (`places`) and at last of unknown ones; the
    bounds of rows never recomputed (`base`).
    """
    table = measure.table
    removes: list[str] = []
    late = {
        cluster_id for cluster_id, cluster_replaced in replaced.items() if (cluster_replaced.since < ABOVE_ALL).any()
    }
    early = {cluster_id for cluster_id, cluster_replaced in replaced.items() if cluster_replaced.opened.any()}
    with MeasureFiles(lake, measure) as files:
        for fragment in lake.snapshot(table).dataset(TEXTS).get_fragments():
            path = fragment.path
            final = is_final(path)
            if not (late if final else early):
                continue
            without = {"is_final"} if has_final_rows(measure) else set()
            schema = coded_schema([field for field in TABLES[table].schema if field.name not in without], TEXTS)
            names = COMPARED if final else COMPARED_OPEN
            rows = fragment.to_table(schema=schema, columns=[name for name in schema.names if name in names])
            gone = np.zeros(rows.num_rows, np.bool_)
            for cluster_id in late if final else early:
                is_replaced = codes_in(rows.column("cluster_id"), pa.array([cluster_id])) == 0
                place = places[cluster_id].of(rows)
                if final:
                    is_replaced &= order_of(rows, measure) >= replaced[cluster_id].since[place]
                    is_replaced &= ~base[cluster_id].stays(measure, rows)
                else:
                    is_replaced &= replaced[cluster_id].opened[place]
                gone |= is_replaced
            if gone.any():
                removes.append(path)
            if gone.any() and not gone.all():
                kept_rows = fragment.to_table(schema=schema).filter(pa.array(~gone))
                (files.write_final if final else files.write)(kept_rows)
    return list(files.files), removes
