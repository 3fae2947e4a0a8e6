"""Replay: silver.share_record -> the three gold state tables, incremental, parallel over state partitions and chunks.

Seeds come from gold.share_partition_state, which is committed last: a killed replay starts from the same seeds.
"""

import itertools
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jobs import books, retained
from jobs.decode.stage import SHARE_RECORD
from jobs.progress import Progress
from jobs.replay.losses import find_losses
from jobs.spark import executors
from jobs.spark.executors import Engine
from sharelens.evidence.placement import placed
from sharelens.kafka_log.bounds import log_start
from sharelens.lake.lake import Lake
from sharelens.lake.parquet import DataFile, ParquetSink, conform
from sharelens.lake.slices import SILVER, PartitionKey, Slice, read_partitions, read_unit, slices, take_units, units
from sharelens.lake.tables import TABLES
from state_model.columnar import replay, schemas
from state_model.columnar.boundaries import BoundaryStates, ChunkSummary, settled, summary_of
from state_model.columnar.keys import number_keys, place_of_keys
from state_model.columnar.ordering import order_by
from state_model.columnar.values import Loss, losses_until
from state_model.topics import STATE_TOPIC

STATE, HISTORY, DELIVERY = "gold.share_partition_state", "gold.share_partition_history", "gold.delivery_history"
CHUNK_BYTES = 24 << 20
TOGETHER_BYTES = 1 << 20
"""About this much of small state partitions is replayed at once."""
PART_ROWS = 1 << 15
"""Rows of a row group where there are many share partitions."""
ROWS_A_PLACE = 32
"""With fewer rows for each share partition in a unit, most of its cost would be that of share partitions."""
NO_STATES = books.of_cluster(schemas.SHARE_PARTITION_STATE.empty_table(), "")
NO_ROWS = pa.array([], pa.int64())
BUSY_JOBS = 16
"""From this number of state partitions with news on, each one is a single chunk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One state partition to replay: its new slices (all of them when it starts over), seeds and losses.

    A chunk of a job is a job itself, with some of the slices (`is_chunk`).
    """

    cluster_id: str
    topic_id: str
    partition: int
    slices: tuple[Slice, ...]
    seed: pa.Table
    losses: tuple[Loss, ...]
    log_start_offset: int
    is_chunk: bool = False

    @property
    def is_small(self) -> bool:
        """Whether it may be replayed together with others."""
        return not self.losses and not self.is_chunk and self.size_bytes < TOGETHER_BYTES

    @property
    def size_bytes(self) -> int:
        """Bytes that its slices have in their files."""
        return sum(piece.size_bytes for piece in self.slices)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The jobs, or chunks of jobs, that one executor task replays."""

    lake: Lake
    run: int
    update_limit: int
    jobs: tuple[Job, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Result of a task: files by table, the number of records, and the states after all jobs but chunks."""

    files: dict[str, tuple[DataFile, ...]]
    record_count: int
    states: pa.Table


@dataclass(frozen=True, slots=True, kw_only=True)
class CutJob:
    """A job as chunks, each with the state before it, and the state after all; None: its only chunk yields that."""

    chunks: tuple[Job, ...]
    state: pa.Table | None = None


def sorted_by_key(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Rows by (group_id, topic_id, partition), then by the given integer columns."""
    (number,), keys = number_keys(rows)
    by = [rows.column(name).to_numpy() for name in columns]
    return rows.take(pa.array(order_by(place_of_keys(keys)[number], *by)))


def replay_task(task: Task) -> Outcome:
    """Replays the chunks of a task and writes their history; runs on an executor."""
    constants = {"run_id": task.run}
    states = [NO_STATES]
    count = 0
    with (
        ParquetSink(task.lake, TABLES[HISTORY], constants=constants) as history,
        ParquetSink(task.lake, TABLES[DELIVERY], constants=constants, partition_values={"is_open": "false"}) as closed,
    ):
        for job_group in together(task.jobs):
            job = job_group[0]
            state = pa.concat_tables([other.seed for other in job_group])
            waiting = _units_of(job_group)
            starts = {other.partition: other.log_start_offset for other in job_group}
            while waiting:
                unit = take_units(waiting, ROWS_A_PLACE * state.num_rows)
                records = read_partitions(unit, schemas.REPLAYED)
                done = replay.replay_records(
                    records,
                    seed=state,
                    losses=losses_until(job.losses, records) if waiting else job.losses,
                    update_limit=task.update_limit,
                    log_start_offset=starts,
                    by_key=True,
                    encoded=True,
                )
                state = done.state
                for sink, rows in ((history, done.history), (closed, done.closed)):
                    for row_group in _row_groups(rows, state.num_rows):
                        sink.write(row_group, cluster_id=job.cluster_id)
                count += records.num_rows
            if not job.is_chunk:
                states.append(books.of_cluster(state, job.cluster_id))
    files = {HISTORY: tuple(history.files), DELIVERY: tuple(closed.files)}
    return Outcome(files=files, record_count=count, states=pa.concat_tables(states))


def _row_groups(rows: pa.Table, share_partitions: int) -> Iterator[pa.Table]:
    """The rows of a unit, which are in order of share partitions, in row groups: where these are many, each of a part
    of them, so that readers leave out row groups of others.
    """
    size = PART_ROWS if ROWS_A_PLACE * share_partitions > PART_ROWS else max(1, rows.num_rows)
    for first in range(0, rows.num_rows, size):
        yield rows.slice(first, size)


def _units_of(jobs: Sequence[Job]) -> deque[list[Slice]]:
    """The records of a job in units; those of several jobs at once."""
    if len(jobs) == 1:
        return deque(units(jobs[0].slices))
    return deque([[piece for job in jobs for piece in job.slices]])


def together(jobs: Sequence[Job]) -> Iterator[list[Job]]:
    """Neighbouring jobs that are replayed at once: small ones of one state topic that have no losses; else each alone.

    What a replay costs beside its records, it costs once for all of them, and their rows are one row group.
    """
    for (_, _, is_small), neighbours in itertools.groupby(
        jobs, lambda job: (job.cluster_id, job.topic_id, job.is_small)
    ):
        yield from executors.binned([(job, job.size_bytes) for job in neighbours], TOGETHER_BYTES if is_small else 0)


def summary_task(chunk: Job) -> ChunkSummary:
    """The summary of a chunk; runs on an executor."""
    return summary_of(read_unit(unit, schemas.REPLAYED) for unit in units(chunk.slices))


def run_replay(engine: Engine, lake: Lake, run: int, progress: Progress, *, update_limit: int) -> dict[str, int]:
    """Replays the records decoded since the last replay; returns the number of rows written."""
    before = books.done(lake, "replay")
    rows = {k: r for k, r in books.changed(lake, before, ["log_record", "replay"]).items() if r["topic"] == STATE_TOPIC}
    late = {key for key, row in rows.items() if row["rebuild"]}
    state = lake.snapshot(STATE).rows()
    jobs = plan_jobs(lake, rows, late, state, (before + 1, run))
    quiet, busy = ([job for job in jobs if bool(job.slices) is is_busy] for is_busy in (False, True))
    cut_jobs = with_seeds(engine, [cut(job, len(busy)) for job in busy], progress, update_limit=update_limit)
    chunks = [(chunk, chunk.size_bytes) for job in cut_jobs for chunk in job.chunks]
    tasks = [
        Task(lake=lake, run=run, update_limit=update_limit, jobs=tuple(group)) for group in executors.binned(chunks)
    ]
    outcomes = engine.run("replay", replay_task, tasks, progress, size_bytes=sum(size for _, size in chunks))
    fresh = pa.concat_tables([*(outcome.states for outcome in outcomes), *_states(quiet, cut_jobs)])
    return _commit(lake, run, outcomes, fresh, set(rows), late, state)


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
    late_slices = (
        slices(lake.snapshot(SHARE_RECORD), SILVER, runs=(0, runs[1]), only=late, begins=begins) if late else {}
    )
    every = books.by_partition(books.extents(lake, pc.field("topic") == STATE_TOPIC))
    extents = {key: every[key] for key in rows}
    losses = find_losses(lake, extents, late, runs)
    no_state = schemas.SHARE_PARTITION_STATE.empty_table()  # a slice of a table is pickled with all of its buffers
    places = _rows_by_partition(state)
    state = state.combine_chunks()  # each take from chunks would join them first
    jobs = []
    for key in sorted(rows):
        seed = bases.get(key, no_state) if key in late else state.take(places.get(key, NO_ROWS))
        seed = seed.select(schemas.SHARE_PARTITION_STATE.names).cast(schemas.SHARE_PARTITION_STATE)
        begin = begins.get(key, 0) if key in late else 0
        jobs.append(
            Job(
                cluster_id=key[0],
                topic_id=key[1],
                partition=key[2],
                slices=tuple({**fresh, **late_slices}.get(key, [])),
                seed=seed,
                losses=tuple(loss for loss in losses[key] if loss.first_offset >= begin),
                log_start_offset=log_start((row["log_start_offset"], row["log_start_known"]) for row in extents[key]),
            )
        )
    return jobs


def _begins(lake: Lake, late: set[PartitionKey]) -> dict[PartitionKey, int]:
    """The retention cuts of state partitions; read only when some start over."""
    return retained.offsets(retained.cuts(lake, retained.SILVER)) if late else {}


def _rows_by_partition(state: pa.Table) -> dict[PartitionKey, pa.Array]:
    """The row numbers of each state partition, ascending."""
    names = ["cluster_id", "log_topic_id", "state_partition"]
    numbered = state.select(names).append_column("row", pa.array(np.arange(state.num_rows)))
    grouped = numbered.group_by(names, use_threads=False).aggregate([("row", "list")])
    keys = zip(*(grouped.column(name).to_pylist() for name in names), strict=True)
    return {key: rows.values for key, rows in zip(keys, grouped.column("row_list"), strict=True)}


def cut(job: Job, jobs: int) -> list[Job]:
    """A job as chunks: several when the job is large and there are too few jobs to keep a cluster busy."""
    if jobs >= BUSY_JOBS or job.size_bytes < 2 * CHUNK_BYTES:
        return [job]
    groups = executors.binned([(unit, sum(p.size_bytes for p in unit)) for unit in units(job.slices)], CHUNK_BYTES)
    return [replace(job, slices=tuple(piece for unit in group for piece in unit)) for group in groups]


def with_seeds(engine: Engine, jobs: Sequence[list[Job]], progress: Progress, *, update_limit: int) -> list[CutJob]:
    """Jobs, each as chunks, with the states between the chunks, which follow from summaries of them."""
    without_seeds = [
        (replace(chunk, seed=schemas.SHARE_PARTITION_STATE.empty_table()), chunk.size_bytes)
        for chunks in jobs
        for chunk in chunks
        if len(chunks) > 1
    ]
    size_bytes = sum(size for _, size in without_seeds)
    specs = [chunk for chunk, _ in without_seeds]
    summaries = iter(engine.run("replay summaries", summary_task, specs, progress, size_bytes=size_bytes))
    result = []
    for chunks in jobs:
        if len(chunks) == 1:
            result.append(CutJob(chunks=tuple(chunks)))
            continue
        boundary = BoundaryStates(chunks[0].seed, chunks[0].losses, update_limit=update_limit)
        seeded = tuple(replace(chunk, seed=boundary.advance(next(summaries)), is_chunk=True) for chunk in chunks)
        result.append(CutJob(chunks=seeded, state=boundary.settled(chunks[0].log_start_offset)))
    return result


def _states(quiet: Sequence[Job], cut_jobs: Sequence[CutJob]) -> Iterator[pa.Table]:
    """The states after the run of jobs without a new record, and of those that were cut into chunks."""
    yield NO_STATES
    for job in quiet:
        yield books.of_cluster(settled(job.seed, job.losses, job.log_start_offset), job.cluster_id)
    for cut_job in cut_jobs:
        if cut_job.state is not None:
            yield books.of_cluster(cut_job.state, cut_job.chunks[0].cluster_id)


def _commit(
    lake: Lake,
    run: int,
    outcomes: Sequence[Outcome],
    fresh: pa.Table,
    keys: set[PartitionKey],
    late: set[PartitionKey],
    previous_state: pa.Table,
) -> dict[str, int]:
    place = ("log_topic_id", "state_partition")
    begins = _begins(lake, late)
    drop = retained.derived_again(late, *place, "log_offset", begins)
    if not books.is_committed(lake, HISTORY, "replay", run):
        drop = books.with_unfinished(lake, HISTORY, "replay", run, drop)
        kept_files, removes = books.rewritten_without(lake, HISTORY, drop)
        books.commit(
            lake, HISTORY, "replay", run, [*(f for o in outcomes for f in o.files[HISTORY]), *kept_files], removes
        )
    state = whole_state(fresh, previous_state, keys, run)
    if not books.is_committed(lake, DELIVERY, "replay", run):
        drop = retained.derived_again(late, *place, "valid_to_log_offset", begins)
        drop = books.with_unfinished(lake, DELIVERY, "replay", run, drop)
        _commit_delivery(lake, run, outcomes, state, drop)
    if not books.is_committed(lake, STATE, "replay", run):
        gone = lake.snapshot(STATE).paths
        with ParquetSink(lake, TABLES[STATE], constants={}) as sink:
            sink.write(state)
        books.commit(lake, STATE, "replay", run, sink.files, gone)
    misplaced = int(pc.sum(state.column("misplaced")).as_py() or 0)
    return {
        "replayed_records": sum(outcome.record_count for outcome in outcomes),
        "share_partitions": state.num_rows - misplaced,
        "misplaced": misplaced,
        "open_ranges": int(pc.sum(pc.list_value_length(state.column("state_batches"))).as_py() or 0),
        "closed_ranges": sum(f.record_count for o in outcomes for f in o.files[DELIVERY]),
    }


def whole_state(fresh: pa.Table, previous: pa.Table, keys: set[PartitionKey], run: int) -> pa.Table:
    """All rows of gold.share_partition_state: of state partitions `keys` the `fresh` ones, else `previous`.

    Of a share partition that lies in several state partitions, or incarnations of the state topic, all rows but one are
    marked as misplaced; each is what the next run folds on there.
    """
    rows = conform(fresh, TABLES[STATE].schema, {"run_id": run, "misplaced": False})
    is_kept = np.ones(previous.num_rows, np.bool_)
    for key, row_numbers in _rows_by_partition(previous).items():
        is_kept[row_numbers.to_numpy()] = key not in keys
    all_rows = pa.concat_tables([rows, previous.filter(pa.array(is_kept))])
    clusters = pc.unique(all_rows.column("cluster_id")).sort()
    return pa.concat_tables([all_rows.slice(0, 0), *(_placed(all_rows, cluster) for cluster in clusters)])


def _placed(state: pa.Table, cluster_id: pa.Scalar) -> pa.Table:
    """The rows of a cluster with their marks, sorted by key."""
    cluster_rows = state.filter(pc.equal(state.column("cluster_id"), cluster_id))
    marks = placed(cluster_rows.select(schemas.SHARE_PARTITION_STATE.names)).column("misplaced")
    index = cluster_rows.schema.get_field_index("misplaced")
    return sorted_by_key(cluster_rows.set_column(index, cluster_rows.schema.field(index), marks), ["state_partition"])


def _commit_delivery(
    lake: Lake, run: int, outcomes: Sequence[Outcome], state: pa.Table, drop: pc.Expression | None
) -> None:
    """Appends closed ranges and puts the open ones, which follow from the state, in the place of the former."""
    former = [str(f["path"]) for f in lake.snapshot(DELIVERY).files if _is_open(f)]
    kept_files, removes = books.rewritten_without(lake, DELIVERY, drop, {"is_open": "false"})
    with ParquetSink(lake, TABLES[DELIVERY], constants={"run_id": run}, partition_values={"is_open": "true"}) as sink:
        sink.write(_open_rows(state))
    closed = [file for outcome in outcomes for file in outcome.files[DELIVERY]]
    books.commit(lake, DELIVERY, "replay", run, [*closed, *kept_files, *sink.files], [*former, *removes])


def _open_rows(state: pa.Table) -> pa.Table:
    """Open rows of gold.delivery_history for all clusters of `state`."""
    tables = [schemas.DELIVERY_HISTORY.empty_table().append_column("cluster_id", pa.array([], pa.string()))]
    for cluster_id in pc.unique(state.column("cluster_id")).to_pylist():
        cluster_ranges = replay.open_ranges(state.filter(pc.equal(state.column("cluster_id"), cluster_id)))
        rows = sorted_by_key(cluster_ranges, ["first_offset", "valid_from_log_offset"])
        tables.append(rows.append_column("cluster_id", pa.repeat(cluster_id, rows.num_rows)))
    return pa.concat_tables(tables)


def _is_open(file: Mapping[str, Any]) -> bool:
    return "is_open=true" in str(file["path"])
