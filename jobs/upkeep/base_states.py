"""The states at the offsets where retention cuts silver.share_record; `--rebuild` starts its fold from them."""

import pyarrow as pa
import pyarrow.compute as pc

from jobs import books, retained
from jobs.replay import stage as replay
from jobs.retained import BASE
from sharelens.lake.lake import Lake
from sharelens.lake.parquet import DataFile, conform, write_rows
from sharelens.lake.slices import PartitionKey, read_unit, units
from sharelens.lake.tables import TABLES
from state_model.columnar import schemas
from state_model.columnar.boundaries import settled
from state_model.columnar.replay import replay_states
from state_model.columnar.values import losses_until


def commit_bases(lake: Lake, stage: str, run: int, ends: dict[PartitionKey, int], update_limit: int) -> None:
    """Puts the states before the log offsets `ends` of state partitions into gold.share_partition_base.

    Rows that cuts in the books refer to stay: the new rows count once the books name `run`.
    """
    if not ends:
        return
    bases = retained.bases(lake, retained.cuts(lake, retained.SILVER))
    rows = pa.concat_tables([*bases.values(), _states(lake, run, ends, update_limit)])
    files: list[DataFile] = write_rows(lake, TABLES[BASE], rows, {})
    removes = lake.snapshot(BASE).paths
    books.commit(lake, BASE, stage, run, files, removes)


def _states(lake: Lake, run: int, ends: dict[PartitionKey, int], update_limit: int) -> pa.Table:
    """Rows of gold.share_partition_base: the earlier bases, with the silver records below the ends folded in."""
    empty_state = lake.snapshot(replay.STATE).dataset().to_table(filter=pc.scalar(False))
    extents = books.by_partition(books.extents(lake, pc.field("status") == "taken"))
    newest = {key: max(extents[key], key=lambda row: int(row["run_id"])) for key in ends}
    states = [TABLES[BASE].schema.empty_table()]
    for job in replay.plan_jobs(lake, newest, set(ends), empty_state, (0, run)):
        end = ends[job.cluster_id, job.topic_id, job.partition]
        state = books.of_cluster(_folded(job, end, update_limit), job.cluster_id)
        states.append(conform(state, TABLES[BASE].schema, {"run_id": run, "misplaced": False}))
    return pa.concat_tables(states)


def _folded(job: replay.Job, end: int, update_limit: int) -> pa.Table:
    """The state of a state partition before a log offset (SHARE_PARTITION_STATE), unit after unit."""
    losses = [loss for loss in job.losses if loss.first_offset < end]
    state = job.seed
    for unit in units([piece for piece in job.slices if piece.first_offset < end]):
        records = read_unit(unit, schemas.REPLAYED).filter(pc.field("log_offset") < end)
        state = replay_states(records, seed=state, losses=losses_until(losses, records), update_limit=update_limit)
    return settled(state, losses, job.log_start_offset)
