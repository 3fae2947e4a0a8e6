"""Share partitions replayed: states, scalar history and delivery history from decoded records.

Nothing has to be in one task: a state partition falls into chunks of offsets, which are replayed at the same time from
the states at their beginnings (`state_model.columnar.boundaries`).

    records    by chunk of offsets           each chunk is reduced to a summary            (_summaries)
    summaries  by buckets of share partitions   folded to the states between chunks        (_boundary_states)
    records    by chunk, behind those states    each chunk is replayed                     (_by_chunk)
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from sharelens.frames import envelopes
from sharelens.frames.envelopes import AT_END, ENVELOPE, PLAIN_REPLAYED, of_kind, packed, unpacked
from sharelens.frames.refusals import Argument, once_each, refuse_duplicates
from sharelens.frames.shapes import checked, in_groups, spark_schema, timed_schema, together
from sharelens.lake.parquet import conform
from state_model.columnar import replay, schemas
from state_model.columnar.boundaries import WEIGHT, BoundaryStates, ChunkReducer, ChunkSummary
from state_model.columnar.keys import FULL_PLACE_KEY, STATE_PARTITION_KEY
from state_model.columnar.replay import Replayed
from state_model.columnar.schemas import SHARE_PARTITION_STATE
from state_model.columnar.values import losses_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_START = "log_start_offset"


def share_partition_states(
    share_records: "DataFrame",
    *,
    seeds: "DataFrame | None" = None,
    losses: "DataFrame | None" = None,
    log_starts: "DataFrame | None" = None,
    update_limit: int = replay.UPDATE_LIMIT,
) -> "DataFrame":
    """The state of each live share partition after all records: what ReadShareGroupState would answer.

    Args:
        share_records: SHARE_RECORD rows (`frames.share_records`, silver.share_record), in any order, each offset once.
        seeds: states before the first of the records (rows of this function, gold.share_partition_state); None: the
            records begin where the log does, and a share partition whose first record is an update is provisional.
        losses: ranges that the records lack (`frames.losses`); None: the records are all that was written.
        log_starts: `log_topic_id`, `state_partition` and `log_start_offset`; None: as `below_log_start` of the records
            says.
        update_limit: `share.coordinator.snapshot.update.records.per.snapshot` of the broker.

    Returns:
        Rows with the columns of gold.share_partition_state but cluster_id, run_id and misplaced, in no order. A share
        partition that has records in two state partitions has two rows.

    Raises:
        UsageError: a column is missing or has another type.

    Rules: share-group-state-log §8 (replay) and §9 (state batches).
    """
    name = "share_partition_states"
    folded = _boundary_states(share_records, seeds, [*envelopes.contexts(losses, log_starts, name)], update_limit, name)
    states = folded.where(F.col("chunk") == AT_END).select("state.*")
    timed = timed_schema(SHARE_PARTITION_STATE)

    def with_times(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from conform(pa.Table.from_batches([batch]), timed).to_batches()

    return states.mapInArrow(with_times, spark_schema(timed))


def share_partition_history(
    share_records: "DataFrame",
    *,
    seeds: "DataFrame | None" = None,
    losses: "DataFrame | None" = None,
    update_limit: int = replay.UPDATE_LIMIT,
) -> "DataFrame":
    """The coordinator's scalars after each record: epochs, start offset, delivery complete count.

    Args:
        share_records, seeds, losses, update_limit: as in `share_partition_states`.

    Returns:
        One row a record, with the columns of gold.share_partition_history but cluster_id and run_id, in no order;
        scalars are null after a tombstone.

    Raises:
        UsageError: a column is missing or has another type.
    """
    name = "share_partition_history"
    folded = _boundary_states(share_records, seeds, [*envelopes.contexts(losses, None, name)], update_limit, name)
    folded = folded.where(F.col("chunk") != AT_END)
    return _by_chunk(share_records, folded, lambda done: done.history, schemas.SHARE_PARTITION_HISTORY, update_limit)


def delivery_history(
    share_records: "DataFrame",
    *,
    seeds: "DataFrame | None" = None,
    losses: "DataFrame | None" = None,
    update_limit: int = replay.UPDATE_LIMIT,
) -> "DataFrame":
    """The ranges of record offsets that stay the same in consecutive states, from one log record to another.

    Args:
        share_records, seeds, losses, update_limit: as in `share_partition_states`.

    Returns:
        Rows with the columns of gold.delivery_history but cluster_id and run_id, in no order. Ranges of the state at
        the end are open (`is_open`, no `valid_to_…`). A range that a seed holds begins where the seed says; rows that
        ended before the seed are not among these.

    Raises:
        UsageError: a column is missing or has another type.
    """
    name = "delivery_history"
    folded = _boundary_states(share_records, seeds, [*envelopes.contexts(losses, None, name)], update_limit, name)
    return _by_chunk(share_records, folded, lambda done: done.closed, schemas.DELIVERY_HISTORY, update_limit)


def _records(share_records: "DataFrame", function: str) -> "DataFrame":
    """SHARE_RECORD rows as ENVELOPE rows."""
    flagged = PLAIN_REPLAYED.append(schemas.SHARE_RECORD.field("below_log_start"))
    rows = checked(share_records, flagged, function, "share_records")
    batches = F.coalesce(F.col("state_batches"), F.array()).alias("state_batches")  # as in `shapes.blank`
    envelope_columns = {
        "chunk": F.shiftright("log_offset", envelopes.CHUNK_BITS),
        "kind": F.lit(envelopes.RECORD),
        "place": F.col("log_offset"),
        "record": F.struct(*(batches if name == "state_batches" else F.col(name) for name in PLAIN_REPLAYED.names)),
        _START: F.when(F.col("below_log_start"), F.col("log_offset") + 1),
    }
    return envelopes.enveloped(rows, envelope_columns)


def _boundary_states(
    share_records: "DataFrame",
    seeds: "DataFrame | None",
    contexts: "Sequence[DataFrame]",
    update_limit: int,
    function: str,
) -> "DataFrame":
    """ENVELOPE rows: the states before each chunk and (AT_END) after all, and what chunks must know of losses."""
    parts = [_summaries(_records(share_records, function), Argument(function, "share_records")), *contexts]
    if seeds is not None:
        rows = checked(seeds, SHARE_PARTITION_STATE, function, "seeds")
        envelope_columns = {
            "kind": F.lit(envelopes.STATE),
            "state": F.struct(*rows.columns),
            "bucket": envelopes.bucket_of(""),
        }
        parts.append(envelopes.enveloped(rows, envelope_columns))

    def fold(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _states_between(batches, update_limit, Argument(function, "seeds"))

    return in_groups(together(parts), [*STATE_PARTITION_KEY, "bucket"], ["chunk", "kind", "place"], fold, ENVELOPE)


def _summaries(records: "DataFrame", argument: Argument) -> "DataFrame":
    """Each chunk of records reduced, as ENVELOPE rows in the buckets of their share partitions."""
    key = [*STATE_PARTITION_KEY, "log_offset"]

    def summarise(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reducer, chunk = ChunkReducer(), 0
        for batch in once_each(batches, argument, key, ascending="place"):
            rows = pa.Table.from_batches([batch])
            chunk = rows.column("chunk")[0].as_py()
            read = unpacked(rows, "record", PLAIN_REPLAYED).append_column(_START, rows.column(_START))
            head, thin = reducer.take(read)
            for kind, kind_rows in ((envelopes.HEAD, head), (envelopes.THIN, thin)):
                weight_columns = {"weight": kind_rows.column(WEIGHT)} if WEIGHT in kind_rows.column_names else {}
                record = kind_rows.select(PLAIN_REPLAYED.names)
                yield from packed(
                    kind, chunk, kind_rows, record=record, **{_START: kind_rows.column(_START)}, **weight_columns
                )
        yield from packed(envelopes.END, chunk, reducer.ends, state=reducer.ends)

    summaries = in_groups(records, [*STATE_PARTITION_KEY, "chunk"], ["place"], summarise, ENVELOPE)
    return summaries.withColumn("bucket", envelopes.bucket_of("record", "state"))


def _states_between(batches: Iterator[pa.RecordBatch], update_limit: int, seeds: Argument) -> Iterator[pa.RecordBatch]:
    """The states before each chunk and at the end, of one bucket of a state partition."""
    context = envelopes.Context([])
    states = BoundaryStates(SHARE_PARTITION_STATE.empty_table(), (), update_limit=update_limit)
    position = None
    for chunk, rows in envelopes.chunks_of(batches):
        context.take(rows)
        position = rows if position is None else position
        if chunk == envelopes.BEFORE_ALL:
            seed = unpacked(of_kind(rows, envelopes.STATE), "state", SHARE_PARTITION_STATE)
            refuse_duplicates(seed, seeds, FULL_PLACE_KEY)
            states = BoundaryStates(seed, context.losses, update_limit=update_limit)
            continue
        head = unpacked(of_kind(rows, envelopes.HEAD), "record", PLAIN_REPLAYED)
        few = of_kind(rows, envelopes.THIN)
        thin = unpacked(few, "record", PLAIN_REPLAYED).append_column(WEIGHT, few.column("weight"))
        ends = unpacked(of_kind(rows, envelopes.END), "state", SHARE_PARTITION_STATE)
        before = states.advance(ChunkSummary(head=head, thin=thin, ends=ends))
        yield from context.row(rows, chunk)
        yield from packed(envelopes.STATE, chunk, before, state=before)
    last = states.settled(context.log_start_offset)
    yield from packed(envelopes.STATE, AT_END, last, state=last)


def _by_chunk(
    share_records: "DataFrame",
    boundary_states: "DataFrame",
    part: Callable[[Replayed], pa.Table],
    schema: pa.Schema,
    update_limit: int,
) -> "DataFrame":
    """A part of what the replay of each chunk yields; of states at the end their ranges."""
    timed = timed_schema(schema)
    envelope_rows = boundary_states.unionByName(_records(share_records, "replay"))

    def replayed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = envelopes.Context([])
        state = SHARE_PARTITION_STATE.empty_table()
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            context.take(of_kind(rows, envelopes.CONTEXT))
            before = unpacked(of_kind(rows, envelopes.STATE), "state", SHARE_PARTITION_STATE)
            if rows.column("chunk")[0].as_py() == AT_END:
                yield from conform(replay.open_ranges(before), timed).to_batches()
                continue
            records = unpacked(of_kind(rows, envelopes.RECORD), "record", PLAIN_REPLAYED)
            losses = losses_until(context.losses, records)
            seed = pa.concat_tables([state, before])
            done = replay.replay_records(records, seed=seed, losses=losses, update_limit=update_limit)
            state = done.state
            yield from conform(part(done), timed).to_batches()

    return in_groups(envelope_rows, [*STATE_PARTITION_KEY, "chunk"], ["kind", "place"], replayed, timed)
