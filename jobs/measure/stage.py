"""Measure: what the histories say, into one gold table a measure (`jobs.measure.rows`), incremental by share partition.

A share partition is measured again when a run since the last measuring wrote a record of it or took headers of its user
partition; it begins anew when its topic's name was learned, when its state partition starts over or has a hole that
was found or filled, and when it moved to another state partition. Everything else keeps its rows.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evidence.incarnations import newest_first
from jobs import books
from jobs.decode.stage import changed
from jobs.measure.bases import BY_OFFSET, PLACE, TEXTS, WHERE, Bases, bases
from jobs.measure.files import MeasureFiles, is_final_values, newest_ms
from jobs.measure.inputs import EVERYTHING, HISTORY, NOTHING, PROGRESS, STATE, Inputs, Task
from jobs.measure.rows import MEASURES, Changes, Measure
from jobs.measure.steps import in_one_step, steps
from jobs.progress import Progress
from jobs.spark.executors import TASKS_AIMED_AT, Engine, binned, cores
from lake.lake import Lake
from lake.parquet import DataFile, coded_schema, conform
from lake.tables import TABLES
from measures.parts import stretches
from measures.places import Places, codes_in, places_of
from state_model.columnar.keys import KEY, number_keys
from state_model.topics import STATE_TOPIC

TASK_ROWS, LEAST_TASK_ROWS = 1 << 17, 1 << 15
"""Records of the history that one task reads, about: what is in memory at once, and what is not split over cores."""
LEAST_TASKS, MOST_TASKS = 4, 16
"""Tasks that are done one after the other and write into the same files."""
LEAST_ROWS = 2
"""What a share partition counts for, however little is new."""
READ_ON = tuple(name for name in MEASURES if name != "lag")
"""Measures that take steps, `progress` last; lag is about the end of the log alone."""
STEP, MOST_STEPS = "measure-step", 1 << 20
"""Transaction of a step that is not the last one of a run: its run and number in one."""
LIVES = [life for _, life in BY_OFFSET.values()]
JUDGED = {*WHERE, *KEY, *LIVES, *(measure.order for measure in MEASURES.values()), "outcome"}
"""Columns that tell whether a row of a measure is replaced; `outcome`: `Measure.about_end`."""
JUDGED_OPEN = {"cluster_id", *PLACE}
"""The same for a row that is not final."""
NO_PLACES = pa.schema(
    [
        *(TABLES[HISTORY].schema.field(name).remove_metadata() for name in (*WHERE, *KEY)),
        pa.field("whole", pa.bool_()),
        pa.field("rows", pa.int64()),
    ]
).empty_table()
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What some tasks did for one measure: files by whether their rows are final, and what they replace.

    `replaced`: cluster_id, PLACE and `since` of places of which final rows from that value on are to go.
    """

    files: tuple[DataFile, ...]
    replaced: pa.Table


def measure_tasks(tasks: Sequence[Task]) -> dict[str, Outcome]:
    """Measures the share partitions of tasks of a run, task after task, and writes their rows; runs on an executor."""
    names = tasks[0].measures
    replaced: dict[str, list[pa.Table]] = {name: [] for name in names}
    with ExitStack() as stack:
        files = {
            name: stack.enter_context(MeasureFiles(tasks[0].lake, MEASURES[name], tasks[0].newest_ms)) for name in names
        }
        for task in tasks:
            inputs = Inputs(task)
            for name in names:
                replaced[name].append(_measured(inputs, MEASURES[name], files[name]))
            del inputs
            pa.default_memory_pool().release_unused()
    return {name: Outcome(files=tuple(files[name].files), replaced=pa.concat_tables(replaced[name])) for name in names}


def _measured(inputs: Inputs, measure: Measure, files: MeasureFiles) -> pa.Table:
    """Writes the rows of a task; which ones they replace, as `Outcome` says it."""
    changes = measure.changes(inputs)
    constants = {"run_id": inputs.task.run, "cluster_id": inputs.task.cluster_id}
    if measure.order is None:
        files.write(changes.rows, **constants)
        return _replaced(inputs, np.zeros(inputs.places.count, np.bool_))
    assert changes.since is not None
    assert changes.final_below is not None
    assert changes.final_before is not None
    rows = inputs.base.clipped(measure.table, conform_open(changes.rows, measure.table, constants))
    rows = _with_kept(inputs, measure, changes, rows)
    final = measure.values(rows) < changes.final_below[inputs.places.of(rows)]
    files.write_final(rows.filter(pa.array(final)))
    files.write(rows.filter(pa.array(~final)))
    reaching = inputs.whole | (changes.since < changes.final_before)
    return _replaced(inputs, reaching, changes.since)


def conform_open(rows: pa.Table, table: str, constants: dict[str, Any]) -> pa.Table:
    """The rows with all columns of the table's files."""
    schema = pa.schema([field for field in TABLES[table].schema if field.name != "is_final"])
    return conform(rows, schema, constants)


def _replaced(inputs: Inputs, chosen: Flags, since: Ints | None = None) -> pa.Table:
    values = np.full(inputs.places.count, EVERYTHING, np.int64) if since is None else since
    keys = inputs.places.keys.append_column("since", pa.array(values))
    keys = keys.append_column("cluster_id", pa.repeat(inputs.task.cluster_id, keys.num_rows))
    return keys.filter(pa.array(chosen))


def _with_kept(inputs: Inputs, measure: Measure, changes: Changes, rows: pa.Table) -> pa.Table:
    """The rows with those that were not final and are kept, by share partition and what orders them."""
    assert changes.since is not None
    if inputs.base.layers or not inputs.whole.all():
        names = rows.column_names
        held = inputs.scan(measure.table, names, ~pc.field("is_final"))
        at = inputs.places.of(held)
        stays = ~inputs.whole[at] & (measure.values(held) < changes.since[at])
        stays = (at >= 0) & (stays | inputs.base.stays(measure.table, held))
        if stays.any():
            rows = pa.concat_tables([rows, held.filter(pa.array(stays)).cast(rows.schema)])
    order = np.lexsort((measure.values(rows), inputs.places.of(rows)))
    return rows.take(pa.array(order))


def is_due(lake: Lake, run: int) -> bool:
    """Whether a measure has not seen what the runs up to `run` wrote."""
    return any(not books.is_committed(lake, measure.table, "measure", run) for measure in MEASURES.values())


def run_measure(engine: Engine, lake: Lake, run: int, progress: Progress) -> dict[str, int]:
    """Measures what changed since each measure was last taken; rows written, by table."""
    due = [name for name, measure in MEASURES.items() if not books.is_committed(lake, measure.table, "measure", run)]
    if not due:
        return {}
    done = {name: lake.transaction(MEASURES[name].table, "measure") or 0 for name in due}
    # A killed run leaves tables that are ahead of others; what was measured of them says nothing to those: begin anew.
    anew = len(set(done.values())) > 1 or len(due) < len(MEASURES) or _is_on_its_way(lake, done)
    before = min(done.values())
    touched = touched_since(lake, before, anew=anew)
    size_bytes = _size_bytes(lake, touched)
    since = 0 if anew else before
    parts = list(steps(lake, run, since, touched)) if READ_ON[-1] in due else [in_one_step(touched, since)]
    counts: Counter[str] = Counter()
    for number, part in enumerate(parts, 1):
        is_last = number == len(parts)
        names = tuple(name for name in due if is_last or name in READ_ON)
        batches = _batches(_tasks(lake, run, names, part))
        outcomes = engine.run("measure", measure_tasks, batches, progress, size_bytes=size_bytes)
        txn = ("measure", run) if is_last else (STEP, run * MOST_STEPS + number)
        counts.update(_commit(lake, txn, names, part, outcomes))
    return {MEASURES[name].table: counts[MEASURES[name].table] for name in due}


def _is_on_its_way(lake: Lake, done: Mapping[str, int]) -> bool:
    """Whether a killed run took steps beyond what is done of measures."""
    newest = {name: lake.transaction(MEASURES[name].table, STEP) or 0 for name in done}
    return any(newest[name] // MOST_STEPS > run for name, run in done.items())


def _commit(
    lake: Lake,
    txn: tuple[str, int],
    names: Sequence[str],
    touched: pa.Table,
    outcomes: Sequence[Mapping[str, Outcome]],
) -> dict[str, int]:
    """Puts what tasks wrote of the share partitions in the place of what it replaces; rows written, by table."""
    base = {cluster_id: bases(lake, cluster_id, topic_id) for cluster_id, topic_id in newest_incarnations(lake).items()}
    order = [(name, "ascending") for name in PLACE]
    places = {
        cluster_id: Places(keys=rows.group_by(PLACE).aggregate([]).sort_by(order).combine_chunks())
        for cluster_id, rows in _by_cluster([touched])
    }

    def without(name: str) -> tuple[list[DataFile], list[str]]:
        return _without(lake, MEASURES[name], places, [outcome[name].replaced for outcome in outcomes], base)

    with ThreadPoolExecutor(cores()) as pool:
        rewritten = list(pool.map(without, names))
    counts = {}
    for name, (kept, removes) in zip(names, rewritten, strict=True):
        table = MEASURES[name].table
        adds = [file for outcome in outcomes for file in outcome[name].files]
        counts[table] = sum(file.record_count for file in adds)
        books.commit(lake, table, *txn, [*adds, *kept], removes)
    return counts


def batches_of(lake: Lake, run: int, before: int, names: Sequence[str]) -> list[list[Task]]:
    """The tasks of some measures over what runs after `before`, up to `run`, wrote, as `measure_tasks` takes them.

    Without the steps, which go on from what was committed.
    """
    return _batches(_tasks(lake, run, tuple(names), in_one_step(touched_since(lake, before), before)))


def _batches(tasks: Iterable[Task]) -> list[list[Task]]:
    """Neighbouring tasks together: enough to keep some cores busy, and few files."""
    weighed = [(task, 1) for task in tasks]
    together = max(LEAST_TASKS, min(MOST_TASKS, len(weighed) // TASKS_AIMED_AT))
    return binned(weighed, min(together, -(-len(weighed) // cores())))


def touched_since(lake: Lake, before: int, *, anew: bool = False) -> pa.Table:
    """The share partitions (NO_PLACES) that have news since run `before`, without repetition.

    `whole`: begins anew. `rows`: about how many records of the history are read for it.
    """
    found = [NO_PLACES, _with_records(lake, pc.field("run_id") > before, whole=anew or before == 0)]
    holes = _state_partitions_with_holes(lake, before)
    if holes is not None and before > 0:
        found.append(_with_records(lake, holes, whole=True))
    held = _held(lake)
    topics = changed(lake, before, ["topic_batch"])
    later = lake.snapshot("silver.name").rows(["cluster_id", "topic_id"], pc.field("run_id") > before)
    named = set(zip(*(later.column(name).to_pylist() for name in later.column_names), strict=True))
    if topics or named:
        places = list(
            zip(*(held.column(name).to_pylist() for name in ("cluster_id", "topic_id", "partition")), strict=True)
        )
        found.append(held.filter(pa.array([place in topics for place in places], pa.bool_())))
        found.append(_anew(held.filter(pa.array([place[:2] in named for place in places], pa.bool_()))))
    touched = _unique(pa.concat_tables(found))
    live = _places_in(lake, STATE, ["misplaced"])
    known = pa.concat_tables([held, live.select(NO_PLACES.column_names)])
    touched = _unique(pa.concat_tables([touched, *_moved(touched, known), *_judged_otherwise(live, held)]))
    touched = _unique(pa.concat_tables([touched, _anew(_only_keys(held, touched.filter(pc.field("whole"))))]))
    return touched if before == 0 else _unique(pa.concat_tables([touched, *_counted(lake, touched)]))


def _counted(lake: Lake, touched: pa.Table) -> Iterator[pa.Table]:
    """The share partitions that begin anew, with how many rows the histories have of them, whatever run wrote these."""
    whole = touched.filter(pc.field("whole"))
    if whole.num_rows:
        there = pc.field("state_partition").isin(pc.unique(whole.column("state_partition")))
        rows = _with_records(lake, there, whole=True)
        yield rows.filter(pa.array(_among(rows, whole, ["cluster_id", *PLACE])))


def _with_records(lake: Lake, where: pc.Expression, *, whole: bool) -> pa.Table:
    """The share partitions that have rows in the history, and how many."""
    found = [NO_PLACES]
    columns = [*WHERE, *KEY]
    for fragment in lake.snapshot(HISTORY).dataset().get_fragments(filter=where):
        rows = fragment.to_table(schema=TABLES[HISTORY].schema, columns=columns, filter=where)
        counted = rows.group_by(columns).aggregate([([], "count_all")]).rename_columns([*columns, "rows"])
        counted = counted.append_column("whole", pa.repeat(whole, counted.num_rows))
        found.append(counted.select(NO_PLACES.column_names).cast(NO_PLACES.schema))
    summed = pa.concat_tables(found).group_by([*columns, "whole"]).aggregate([("rows", "sum")])
    return summed.rename_columns([*columns, "whole", "rows"]).select(NO_PLACES.column_names)


def _held(lake: Lake) -> pa.Table:
    """The share partitions that were measured before, as rows of NO_PLACES."""
    return _places_in(lake, PROGRESS, [])


def _places_in(lake: Lake, table: str, more: list[str]) -> pa.Table:
    """The share partitions in a table, as rows of NO_PLACES, with some more of its columns."""
    rows = lake.snapshot(table).rows([*WHERE, *KEY, *more])
    rows = rows.append_column("whole", pa.repeat(False, rows.num_rows))
    rows = rows.append_column("rows", pa.repeat(0, rows.num_rows)).select([*NO_PLACES.column_names, *more])
    return rows.cast(pa.schema([*NO_PLACES.schema, *(TABLES[table].schema.field(name) for name in more)]))


def _judged_otherwise(live: pa.Table, held: pa.Table) -> Iterator[pa.Table]:
    """Places, to begin anew, of which others decided that they are misplaced now, or are not any more."""
    names = ["cluster_id", *KEY]
    counted = live.group_by(names).aggregate([([], "count_all")]).filter(pc.field("count_all") > 1)
    if counted.num_rows:
        several = _only_keys(live, counted)
        is_held = _among(several, held, ["cluster_id", *PLACE])
        misplaced = several.column("misplaced").to_numpy(zero_copy_only=False)
        yield _anew(several.select(NO_PLACES.column_names).filter(pa.array(is_held == misplaced)))


def _anew(rows: pa.Table) -> pa.Table:
    at = NO_PLACES.schema.get_field_index("whole")
    return rows.set_column(at, NO_PLACES.schema.field(at), pa.repeat(True, rows.num_rows))


def _unique(rows: pa.Table) -> pa.Table:
    grouped = rows.group_by([*WHERE, *KEY]).aggregate([("whole", "any"), ("rows", "max")])
    return grouped.rename_columns([*WHERE, *KEY, "whole", "rows"]).select(NO_PLACES.column_names)


def _only_keys(rows: pa.Table, keys: pa.Table) -> pa.Table:
    return rows.filter(pa.array(_among(rows, keys, ["cluster_id", *KEY])))


def _moved(touched: pa.Table, held: pa.Table) -> list[pa.Table]:
    """All places, to begin anew, of share partitions that lie in several state partitions or state topics."""
    both = _unique(pa.concat_tables([touched, _only_keys(held, touched)]))
    names = ["cluster_id", *KEY]
    several = both.group_by(names).aggregate([([], "count_all")]).filter(pc.field("count_all") > 1)
    return [_anew(_only_keys(both, several))]


def _among(rows: pa.Table, others: pa.Table, names: Sequence[str]) -> Flags:
    """Whether each row's values of the columns are those of one of the others."""
    result = np.zeros(rows.num_rows, np.bool_)
    clusters = rows.column("cluster_id")
    for cluster_id in pc.unique(clusters).to_pylist():
        here = pc.equal(clusters, cluster_id)
        mine, wanted = rows.filter(here), others.filter(pc.field("cluster_id") == cluster_id)
        if "state_partition" in names:
            (ours, theirs), _ = places_of(mine, wanted)
        else:
            (ours, theirs), _ = number_keys(mine, wanted)
        result[here.to_numpy(zero_copy_only=False)] = np.isin(ours, theirs)
    return result


def _state_partitions_with_holes(lake: Lake, before: int) -> pc.Expression | None:
    """State partitions that start over, or in which a run since then found or filled a hole."""
    later = (pc.field("run_id") > before) & (pc.field("status") == "taken") & (pc.field("topic") == STATE_TOPIC)
    rows = [row for row in books.extents(lake, later) if row["rebuild"] or row["gaps"]]
    return books.of_partitions(set(books.by_partition(rows)), "log_topic_id", "state_partition")


def _tasks(lake: Lake, run: int, names: tuple[str, ...], step: pa.Table) -> Iterator[Task]:
    """Tasks of about TASK_ROWS records of a step, share partitions of one state partition together."""
    incarnations, newest, view = newest_incarnations(lake), newest_ms(lake), lake.view()
    kinds = step.group_by(["cluster_id", "before"]).aggregate([]).sort_by("cluster_id").to_pylist()
    for cluster_id, before in (kind.values() for kind in kinds):
        log_topic_id = incarnations.get(cluster_id, "")
        here = (pc.field("cluster_id") == cluster_id) & (pc.field("log_topic_id") == log_topic_id)
        here &= pc.field("before") == before
        keys = step.filter(here).sort_by([(name, "ascending") for name in ("state_partition", *KEY)])
        weights = np.maximum(keys.column("rows").to_numpy(), LEAST_ROWS)
        share = int(weights.sum()) // cores() + 1
        for some in stretches(keys, weights, min(TASK_ROWS, max(LEAST_TASK_ROWS, share))):
            yield Task(
                lake=view,
                run=run,
                before=before,
                measures=names,
                cluster_id=cluster_id,
                log_topic_id=log_topic_id,
                keys=some.select([*PLACE, "whole", "upto"]),
                newest_ms=newest,
            )


def newest_incarnations(lake: Lake) -> dict[str, str]:
    """Per cluster the id of the state topic whose records are the newest: what questions answer from."""
    extents = books.extents(lake, (pc.field("topic") == STATE_TOPIC) & (pc.field("status") == "taken"))
    times: dict[str, list[tuple[str, int | None]]] = {}
    for row in extents:
        if row["content"] == "log_record":
            times.setdefault(row["cluster_id"], []).append((row["topic_id"], row["log_time_ms"]))
    return {cluster_id: newest_first(incarnations)[0] for cluster_id, incarnations in times.items()}


def _size_bytes(lake: Lake, touched: pa.Table) -> int:
    """About how much the tasks read: the share of the histories and of the headers that is touched."""
    history = lake.snapshot(HISTORY).files
    records = sum(int(str(file["num_records"])) for file in history)
    names = (HISTORY, "gold.delivery_history", "bronze.topic_batch")
    whole = sum(int(str(f["size_bytes"])) for name in names for f in lake.snapshot(name).files)
    return whole * min(int(pc.sum(touched.column("rows")).as_py() or 0), records) // max(1, records)


def _without(
    lake: Lake,
    measure: Measure,
    touched: Mapping[str, Places],
    replaced: Sequence[pa.Table],
    base: Mapping[str, Bases],
) -> tuple[list[DataFile], list[str]]:
    """New files with the rows that no task replaced, and the paths of the files that held others.

    `touched`, `base`: of each cluster what was measured, and what is never made anew.
    """
    removes: list[str] = []
    final = {cluster_id: _Since(rows) for cluster_id, rows in _by_cluster(replaced)}
    with MeasureFiles(lake, measure, newest_ms(lake)) as files:
        for fragment in lake.snapshot(measure.table).dataset(TEXTS).get_fragments():
            path = fragment.path
            is_final = path.startswith("is_final=true")
            if is_final and not final:
                continue
            told = is_final_values(measure, final=is_final)
            schema = coded_schema([field for field in TABLES[measure.table].schema if field.name not in told], TEXTS)
            judged_by = JUDGED if is_final else JUDGED_OPEN
            judged = fragment.to_table(schema=schema, columns=[name for name in schema.names if name in judged_by])
            gone = np.zeros(judged.num_rows, np.bool_)
            for cluster_id in final if is_final else touched:
                mine = codes_in(judged.column("cluster_id"), pa.array([cluster_id])) == 0
                if is_final:
                    mine &= final[cluster_id].reaches(measure, judged) & ~base[cluster_id].stays(measure.table, judged)
                else:
                    mine &= touched[cluster_id].of(judged) >= 0
                gone |= mine
            if gone.any():
                removes.append(path)
            if gone.any() and not gone.all():
                kept = fragment.to_table(schema=schema).filter(pa.array(~gone))
                (files.write_final if is_final else files.write)(kept)
    return list(files.files), removes


class _Since:
    """From which value on rows of a measure were made anew, by place."""

    def __init__(self, replaced: pa.Table) -> None:
        ordered = replaced.sort_by([(name, "ascending") for name in PLACE]).combine_chunks()
        self._places = Places(keys=ordered.select(PLACE))
        self._since = np.append(ordered.column("since").to_numpy(), NOTHING)

    def reaches(self, measure: Measure, rows: pa.Table) -> Flags:
        """Which rows lie at or above it."""
        result: Flags = measure.values(rows) >= self._since[self._places.of(rows)]
        return result


def _by_cluster(tables: Sequence[pa.Table]) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each cluster."""
    rows = pa.concat_tables(tables) if tables else None
    if rows is not None:
        for cluster_id in pc.unique(rows.column("cluster_id")).to_pylist():
            yield cluster_id, rows.filter(pc.field("cluster_id") == cluster_id)
