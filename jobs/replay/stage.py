"""Replay: silver.share_record -> the three gold state tables, incremental, parallel over state partitions and spans.

Seeds come from gold.share_partition_state, which is committed last: a killed replay starts from the same seeds.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evidence.placement import placed
from jobs import books, retained
from jobs.decode.stage import SHARE_RECORD, changed
from jobs.progress import Progress
from jobs.replay.losses import find_losses
from jobs.spark import executors
from jobs.spark.executors import Engine
from kafka_log.union import log_start
from lake.lake import Lake
from lake.parquet import DataFile, ParquetSink, conform
from lake.slices import SILVER, PartitionKey, Slice, read_unit, slices, units
from lake.tables import TABLES
from state_model.columnar import replay, schemas, spans
from state_model.columnar.keys import SHARE_PARTITION_KEY, number_keys, only_keys_of, place_of_keys
from state_model.columnar.replay import Replayed
from state_model.columnar.values import Loss
from state_model.topics import STATE_TOPIC

STATE, HISTORY, DELIVERY = "gold.share_partition_state", "gold.share_partition_history", "gold.delivery_history"
CHUNK_BYTES = 24 << 20
BUSY_JOBS = 16
"""From this number of state partitions with news on, each one is a single chunk."""
THIN_COLUMNS = [
    *(n for n in schemas.REPLAYED.names if n != "state_batches"),
    "state_batches.list.element.delivery_state",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One state partition to replay: its new slices (all of them when it starts over), seeds and losses."""

    cluster_id: str
    topic_id: str
    partition: int
    slices: tuple[Slice, ...]
    seed: pa.Table
    losses: tuple[Loss, ...]
    log_start_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A part of a job that is folded on its own: units [first, end); `scalars` holds the state before it, no ranges."""

    job: Job
    first: int
    end: int
    scalars: pa.Table | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The chunks that one executor task replays."""

    lake: Lake
    run: int
    update_limit: int
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The result of a chunk for the driver: the state after it, its keys, closed rows without a beginning."""

    state: pa.Table
    touched: pa.Table
    unfinished: pa.Table
    record_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Result of a task: files by table, and a part for each chunk."""

    files: dict[str, tuple[DataFile, ...]]
    parts: tuple[Part, ...]


def sorted_by_key(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Rows by (group_id, topic_id, partition), then by the given integer columns."""
    (number,), keys = number_keys(rows)
    by = [rows.column(name).to_numpy() for name in reversed(columns)]
    return rows.take(pa.array(np.lexsort([*by, place_of_keys(keys)[number]])))


def replay_task(task: Task) -> Outcome:
    """Replays the chunks of a task and writes their history; runs on an executor."""
    constants = {"run_id": task.run}
    parts = []
    with (
        ParquetSink(task.lake, TABLES[HISTORY], constants=constants) as history,
        ParquetSink(task.lake, TABLES[DELIVERY], constants=constants, partition_values={"is_open": "false"}) as closed,
    ):
        for chunk in task.chunks:
            parts.append(_replay_chunk(chunk, task.update_limit, history, closed))
    return Outcome(files={HISTORY: tuple(history.files), DELIVERY: tuple(closed.files)}, parts=tuple(parts))


def _replay_chunk(chunk: Chunk, update_limit: int, history: ParquetSink, closed: ParquetSink) -> Part:
    """Folds a chunk unit after unit; the memory it takes is that of a unit and of the state."""
    job = chunk.job
    whole = list(units(job.slices))
    state = job.seed if chunk.scalars is None else _seed_inside(chunk, whole)
    touched = [schemas.SHARE_PARTITION_STATE.empty_table().select(SHARE_PARTITION_KEY)]
    unfinished = [schemas.DELIVERY_HISTORY.empty_table()]
    count = 0
    for number, records in _units_read(whole, chunk.first, chunk.end):
        last = number == len(whole) - 1
        done = replay.replay_records(
            records,
            seed=state,
            losses=spans.losses_until(job.losses, records, last=last),
            update_limit=update_limit,
            log_start_offset=job.log_start_offset,
            by_key=True,
        )
        state = done.state
        history.write(done.history, cluster_id=job.cluster_id)
        began_before = pc.equal(done.closed.column("valid_from_log_offset"), replay.UNKNOWN_BEGIN)
        if pc.any(began_before).as_py():
            unfinished.append(done.closed.filter(began_before).cast(schemas.DELIVERY_HISTORY))
            done = dataclasses.replace(done, closed=done.closed.filter(pc.invert(began_before)))
        closed.write(done.closed, cluster_id=job.cluster_id)
        touched.append(number_keys(records)[1].cast(touched[0].schema))
        count += records.num_rows
    keys = pa.concat_tables(touched).group_by(SHARE_PARTITION_KEY).aggregate([])
    return Part(state=state, touched=keys, unfinished=pa.concat_tables(unfinished), record_count=count)


def _units_read(whole: Sequence[list[Slice]], first: int, end: int) -> Iterator[tuple[int, pa.Table]]:
    for number in range(first, end):
        yield number, read_unit(whole[number], schemas.REPLAYED)


def _seed_inside(chunk: Chunk, whole: Sequence[list[Slice]]) -> pa.Table:
    """The state at a chunk's beginning: scalars from the thin pass, ranges from each latest snapshot on."""
    assert chunk.scalars is not None
    here = [read_unit(u, schemas.SHARE_RECORD, columns=SHARE_PARTITION_KEY) for u in whole[chunk.first : chunk.end]]
    scalars = only_keys_of(chunk.scalars, pa.concat_tables(here))
    begin = spans.span_begin(scalars, chunk.job.slices[0].first_offset)
    needed = [n for n in range(chunk.first) if whole[n][-1].last_offset >= begin]
    earlier = [records for number in needed[:1] for _, records in _units_read(whole, number, chunk.first)]
    return spans.chunk_seed(pa.concat_tables([schemas.REPLAYED.empty_table(), *earlier]), chunk.job.seed, scalars)


def scalar_task(task: Task) -> list[pa.Table]:
    """The thin pass over one job: the state without ranges at the beginning of each chunk; runs on an executor."""
    states = []
    job = task.chunks[0].job
    whole = list(units(job.slices))
    state = replay.without_ranges(job.seed)
    for chunk in task.chunks:
        states.append(state)
        for unit in whole[chunk.first : chunk.end]:
            records = read_unit(unit, schemas.REPLAYED, columns=THIN_COLUMNS)
            losses = spans.losses_until(job.losses, records, last=False)
            state = replay.replay_scalars(records, seed=state, losses=losses, update_limit=task.update_limit)
    return states


def run_replay(engine: Engine, lake: Lake, run: int, progress: Progress, *, update_limit: int) -> dict[str, int]:
    """Replays the records decoded since the last replay; returns the number of rows written."""
    before = books.done(lake, "replay")
    rows = {k: r for k, r in changed(lake, before, ["log_record", "replay"]).items() if r["topic"] == STATE_TOPIC}
    late = {key for key, row in rows.items() if row["rebuild"]}
    state = lake.snapshot(STATE).rows()
    jobs = plan_jobs(lake, rows, late, state, (before + 1, run))
    busy = [job for job in jobs if job.slices]
    chunks = _with_scalars(engine, [cut(job, len(busy)) for job in busy], lake, run, update_limit, progress)
    weighed = [(chunk, _weight(chunk)) for group in chunks for chunk in group]
    tasks = [
        Task(lake=lake, run=run, update_limit=update_limit, chunks=tuple(group)) for group in executors.binned(weighed)
    ]
    size_bytes = sum(weight for _, weight in weighed)
    outcomes = engine.run("replay", replay_task, tasks, progress, size_bytes=size_bytes)
    parts = [part for outcome in outcomes for part in outcome.parts]
    stitched = _stitch(chunks, parts, [job for job in jobs if not job.slices])
    return _commit(lake, run, outcomes, stitched, set(rows), late, state)


def _weight(chunk: Chunk) -> int:
    return sum(piece.size_bytes for unit in list(units(chunk.job.slices))[chunk.first : chunk.end] for piece in unit)


def plan_jobs(
    lake: Lake,
    rows: dict[PartitionKey, dict[str, Any]],
    late: set[PartitionKey],
    state: pa.Table,
    runs: tuple[int, int],
) -> list[Job]:
    """One job for each state partition with news."""
    fresh = slices(lake.snapshot(SHARE_RECORD), SILVER, runs=runs, only=set(rows) - late)
    bases, begins = retained.bases(lake, late), _begins(lake, late)
    whole = slices(lake.snapshot(SHARE_RECORD), SILVER, runs=(0, runs[1]), only=late, begins=begins) if late else {}
    every = books.by_partition(books.extents(lake, pc.field("topic") == STATE_TOPIC))
    extents = {key: every[key] for key in rows}
    losses = find_losses(lake, extents, late, runs)
    jobs = []
    for key in sorted(rows):
        seed = bases.get(key, state.slice(0, 0)) if key in late else state.filter(_at(key))
        seed = seed.select(schemas.SHARE_PARTITION_STATE.names).cast(schemas.SHARE_PARTITION_STATE)
        begin = begins.get(key, 0) if key in late else 0
        jobs.append(
            Job(
                cluster_id=key[0],
                topic_id=key[1],
                partition=key[2],
                slices=tuple({**fresh, **whole}.get(key, [])),
                seed=seed,
                losses=tuple(loss for loss in losses[key] if loss.first_offset >= begin),
                log_start_offset=log_start((row["log_start_offset"], row["log_start_known"]) for row in extents[key]),
            )
        )
    return jobs


def _begins(lake: Lake, late: set[PartitionKey]) -> dict[PartitionKey, int]:
    """The retention cuts of state partitions; read only when some start over."""
    return retained.offsets(retained.cuts(lake, retained.SILVER)) if late else {}


def _at(key: PartitionKey) -> pc.Expression:
    """Rows of one state partition."""
    here = (pc.field("log_topic_id") == key[1]) & (pc.field("state_partition") == key[2])
    return (pc.field("cluster_id") == key[0]) & here


def cut(job: Job, jobs: int) -> list[Chunk]:
    """A job as chunks: several when the job is large and there are too few jobs to keep a cluster busy."""
    whole = list(units(job.slices))
    sizes = [sum(piece.size_bytes for piece in unit) for unit in whole]
    if jobs >= BUSY_JOBS or sum(sizes) < 2 * CHUNK_BYTES:
        return [Chunk(job=job, first=0, end=len(whole), scalars=None)]
    groups = executors.binned(list(zip(range(len(whole)), sizes, strict=True)), CHUNK_BYTES)
    return [Chunk(job=job, first=group[0], end=group[-1] + 1, scalars=None) for group in groups]


def _with_scalars(
    engine: Engine, jobs: Sequence[list[Chunk]], lake: Lake, run: int, update_limit: int, progress: Progress
) -> list[list[Chunk]]:
    """The chunks with the scalars at their beginnings; a thin pass over the jobs with several chunks computes them."""
    long = [chunks for chunks in jobs if len(chunks) > 1]
    tasks = [Task(lake=lake, run=run, update_limit=update_limit, chunks=tuple(c)) for c in long]
    size_bytes = sum(_weight(chunk) for chunks in long for chunk in chunks)
    states_of_jobs = iter(engine.run("replay scalars", scalar_task, tasks, progress, size_bytes=size_bytes))
    result = []
    for first, *later in jobs:
        states = next(states_of_jobs)[1:] if later else []
        with_states = zip(later, states, strict=True)
        later = [Chunk(job=c.job, first=c.first, end=c.end, scalars=state) for c, state in with_states]
        result.append([first, *later])
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stitched:
    """Rows for the driver to write: closed rows with their beginnings filled in, and the states after the run."""

    closed: pa.Table
    state: pa.Table


def _stitch(jobs: Sequence[list[Chunk]], parts: Sequence[Part], quiet: Sequence[Job]) -> _Stitched:
    """The rows that the driver computes from the parts, and from jobs without a new record."""
    closed = [books.of_cluster(schemas.DELIVERY_HISTORY.empty_table(), "")]
    states = [books.of_cluster(schemas.SHARE_PARTITION_STATE.empty_table(), "")]
    states += [_settled(job, job.seed) for job in quiet]
    at = 0
    for chunks in jobs:
        own = parts[at : at + len(chunks)]
        at += len(chunks)
        if len(own) == 1:
            states.append(books.of_cluster(own[0].state, chunks[0].job.cluster_id))
            continue
        replayed = [Replayed(history=part.touched, closed=part.unfinished, state=part.state) for part in own]
        finished, state = spans.stitch(chunks[0].job.seed, replayed)
        closed += [books.of_cluster(rows, chunks[0].job.cluster_id) for rows in finished]
        states.append(_settled(chunks[0].job, state))
    return _Stitched(closed=pa.concat_tables(closed), state=pa.concat_tables(states))


def _settled(job: Job, state: pa.Table) -> pa.Table:
    """The state with the job's losses and log start applied to share partitions that no record touched."""
    none = schemas.SHARE_RECORD.empty_table()
    settled = replay.replay_records(none, seed=state, losses=job.losses, log_start_offset=job.log_start_offset)
    return books.of_cluster(settled.state, job.cluster_id)


def _commit(
    lake: Lake,
    run: int,
    outcomes: Sequence[Outcome],
    stitched: _Stitched,
    keys: set[PartitionKey],
    late: set[PartitionKey],
    previous_state: pa.Table,
) -> dict[str, int]:
    place = ("log_topic_id", "state_partition")
    begins = _begins(lake, late)
    drop = retained.derived_again(late, *place, "log_offset", begins)
    if not books.is_committed(lake, HISTORY, "replay", run):
        drop = books.with_unfinished(lake, HISTORY, "replay", run, drop)
        kept, removes = books.rewritten_without(lake, HISTORY, drop)
        books.commit(lake, HISTORY, "replay", run, [*(f for o in outcomes for f in o.files[HISTORY]), *kept], removes)
    state = whole_state(stitched.state, previous_state, keys, run)
    if not books.is_committed(lake, DELIVERY, "replay", run):
        drop = retained.derived_again(late, *place, "valid_to_log_offset", begins)
        drop = books.with_unfinished(lake, DELIVERY, "replay", run, drop)
        _commit_delivery(lake, run, outcomes, stitched.closed, state, drop)
    if not books.is_committed(lake, STATE, "replay", run):
        gone = lake.snapshot(STATE).paths
        with ParquetSink(lake, TABLES[STATE], constants={}) as sink:
            sink.write(state)
        books.commit(lake, STATE, "replay", run, sink.files, gone)
    misplaced = int(pc.sum(state.column("misplaced")).as_py() or 0)
    return {
        "replayed_records": sum(part.record_count for outcome in outcomes for part in outcome.parts),
        "share_partitions": state.num_rows - misplaced,
        "misplaced": misplaced,
        "open_ranges": int(pc.sum(pc.list_value_length(state.column("state_batches"))).as_py() or 0),
        "closed_ranges": sum(f.record_count for o in outcomes for f in o.files[DELIVERY]) + stitched.closed.num_rows,
    }


def whole_state(fresh: pa.Table, previous: pa.Table, keys: set[PartitionKey], run: int) -> pa.Table:
    """All rows of gold.share_partition_state: of state partitions `keys` the `fresh` ones, else `previous`.

    Of a share partition that lies in several state partitions, or incarnations of the state topic, all rows but one are
    marked as misplaced; each is what the next run folds on there.
    """
    rows = conform(fresh, TABLES[STATE].schema, {"run_id": run, "misplaced": False})
    columns = [previous.column(name).to_pylist() for name in ("cluster_id", "log_topic_id", "state_partition")]
    place = zip(*columns, strict=True)
    kept = previous.filter(pa.array([key not in keys for key in place], pa.bool_()))
    both = pa.concat_tables([rows, kept])
    clusters = pc.unique(both.column("cluster_id")).sort()
    return pa.concat_tables([both.slice(0, 0), *(_placed(both, cluster) for cluster in clusters)])


def _placed(state: pa.Table, cluster_id: pa.Scalar) -> pa.Table:
    """The rows of a cluster with their marks, sorted by key."""
    mine = state.filter(pc.equal(state.column("cluster_id"), cluster_id))
    marks = placed(mine.select(schemas.SHARE_PARTITION_STATE.names)).column("misplaced")
    index = mine.schema.get_field_index("misplaced")
    return sorted_by_key(mine.set_column(index, mine.schema.field(index), marks), ["state_partition"])


def _commit_delivery(
    lake: Lake,
    run: int,
    outcomes: Sequence[Outcome],
    stitched: pa.Table,
    state: pa.Table,
    drop: pc.Expression | None,
) -> None:
    """Appends closed ranges and puts the open ones, which follow from the state, in the place of the former."""
    table = TABLES[DELIVERY]
    adds = [file for outcome in outcomes for file in outcome.files[DELIVERY]]
    removes = [str(f["path"]) for f in lake.snapshot(DELIVERY).files if _is_open(f)]
    kept, gone = books.rewritten_without(lake, DELIVERY, drop, {"is_open": "false"})
    adds += kept
    removes += gone
    order = ["first_offset", "valid_from_log_offset"]
    for rows, is_open in ((sorted_by_key(stitched, order), "false"), (_open_rows(state, order), "true")):
        values = {"is_open": is_open}
        with ParquetSink(lake, table, constants={"run_id": run}, partition_values=values) as sink:
            sink.write(rows)
        adds += sink.files
    books.commit(lake, DELIVERY, "replay", run, adds, removes)


def _open_rows(state: pa.Table, order: Sequence[str]) -> pa.Table:
    """Open rows of gold.delivery_history for all clusters of `state`."""
    tables = [schemas.DELIVERY_HISTORY.empty_table().append_column("cluster_id", pa.array([], pa.string()))]
    for cluster_id in pc.unique(state.column("cluster_id")).to_pylist():
        mine = replay.open_ranges(state.filter(pc.equal(state.column("cluster_id"), cluster_id)))
        rows = sorted_by_key(mine, order)
        tables.append(rows.append_column("cluster_id", pa.repeat(cluster_id, rows.num_rows)))
    return pa.concat_tables(tables)


def _is_open(file: Mapping[str, Any]) -> bool:
    return "is_open=true" in str(file["path"])
