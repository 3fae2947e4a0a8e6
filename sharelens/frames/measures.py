"""Measures of share partitions, from histories: rows of the gold tables of the same names.

    history.transform(frames.stalls, deliveries, headers=headers, extents=extents)

`measures.catalog` computes them; a group of rows, those of one user partition, is its input here. A group is computed
in one task, which holds the histories of that user partition.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from kafka_log.schemas import TOPIC_BATCH
from lake.parquet import conform
from measures.catalog import MEASURES
from measures.inputs import StateInputs
from measures.settings import NO_SETTINGS, GroupSettings
from measures.topics import TOPIC_EXTENT, TopicPartition, topic_partitions
from measures.what_if.appends import READ
from sharelens.frames.shapes import blank, checked, in_groups, nullable_struct, spark_schema, timed_schema
from state_model.columnar.keys import LOG_PARTITION_KEY
from state_model.columnar.schemas import (
    DELIVERY_HISTORY,
    SHARE_PARTITION_HISTORY,
    SHARE_PARTITION_STATE,
    SHARE_RECORD,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RECORD = pa.schema([SHARE_RECORD.field(name) for name in READ])
"""The columns of decoded records that a what-if reads."""
_SCHEMAS = {
    "states": SHARE_PARTITION_STATE,
    "share_partition_history": SHARE_PARTITION_HISTORY,
    "delivery_history": DELIVERY_HISTORY,
    "headers": TOPIC_BATCH,
    "extents": TOPIC_EXTENT,
    "records": RECORD,
}
"""Columns of each argument; the rows of a group come in structs of the same names."""
_ENVELOPE = pa.schema(
    [*(TOPIC_EXTENT.field(name) for name in LOG_PARTITION_KEY)]
    + [pa.field("place", pa.int64())]
    + [pa.field(name, nullable_struct(schema)) for name, schema in _SCHEMAS.items()]
)


class GroupInputs(StateInputs):
    """The rows of one user partition and one state topic, as measures read them."""

    def __init__(self, tables: Mapping[str, pa.Table], settings: GroupSettings) -> None:
        self._tables = tables
        self.settings = settings

    def states(self) -> pa.Table:
        """SHARE_PARTITION_STATE rows."""
        return self._tables["states"]

    def history(self) -> pa.Table:
        """SHARE_PARTITION_HISTORY rows."""
        return self._tables["share_partition_history"]

    def deliveries(self) -> pa.Table:
        """DELIVERY_HISTORY rows."""
        return self._tables["delivery_history"]

    def records(self) -> pa.Table:
        """RECORD rows."""
        return self._tables["records"]

    def headers(self, begins: Mapping[TopicPartition, int]) -> Iterator[pa.Table]:
        """TOPIC_BATCH rows that reach the offsets or lie above."""
        rows = self._tables["headers"]
        for (topic_id, partition), begin in begins.items():
            here = (pc.field("topic_id") == topic_id) & (pc.field("partition") == partition)
            mine = rows.filter(here & (pc.field("last_offset") >= begin))
            if mine.num_rows:
                yield mine

    def extents(self, partitions: Iterable[TopicPartition]) -> pa.Table:
        """TOPIC_EXTENT rows of those of the user partitions that are there."""
        selected = set(partitions)
        rows = self._tables["extents"]
        return rows.filter(pa.array([place in selected for place in topic_partitions(rows)], pa.bool_()))


def lag(states: "DataFrame", *, headers: "DataFrame | None" = None, extents: "DataFrame | None" = None) -> "DataFrame":
    """How far each share partition is behind: Kafka's own lag (KIP-1226), and what the state batches say.

    Args:
        states: rows of `frames.share_partition_states`, `frames.states_as_of` or gold.share_partition_state.
        headers: TOPIC_BATCH rows of the user topics (bronze.topic_batch); None: no last stable offset is known.
        extents: `topic_id`, `partition`, `log_start_offset`, `end_offset` and `end_offset_source` of user partitions;
            None: no end is known, so there is no lag, and `unknown_reason` says so.

    Returns:
        LAG rows (the columns of gold.lag but cluster_id and run_id), in no order; `topic` is null.

    Raises:
        UsageError: a column is missing or has another type.
    """
    return _measured("lag", "lag", NO_SETTINGS, states=states, headers=headers, extents=extents)


def stalls(
    share_partition_history: "DataFrame",
    delivery_history: "DataFrame",
    *,
    headers: "DataFrame | None" = None,
    extents: "DataFrame | None" = None,
    settings: GroupSettings = NO_SETTINGS,
) -> "DataFrame":
    """The intervals in which a share partition's first incomplete offset stood still although there was work.

    Args:
        share_partition_history: rows of `frames.share_partition_history` or gold.share_partition_history, whole.
        delivery_history: rows of `frames.delivery_history` or gold.delivery_history of the same records.
        headers, extents: as in `lag`; without headers a silent stall and an idle share partition look alike.
        settings: of the groups (`frames.group_settings`); without them no window is known to be full.

    Returns:
        STALL rows (the columns of gold.stall but cluster_id, topic, is_final and run_id), in no order: what lasted a
        minute, and what stands still at the end, whatever its age.

    Raises:
        UsageError: a column is missing or has another type.
    """
    return _of_histories("stall", "stalls", share_partition_history, delivery_history, headers, extents, settings)


def poison_records(
    share_partition_history: "DataFrame",
    delivery_history: "DataFrame",
    *,
    headers: "DataFrame | None" = None,
    settings: GroupSettings = NO_SETTINGS,
) -> "DataFrame":
    """The record offsets that groups archived, or that are ARCHIVING, with the cause if it is known.

    Args:
        share_partition_history, delivery_history: as in `stalls`.
        headers: as in `lag`; without them gaps count as records.
        settings: as in `stalls`; without them the delivery count limit is unknown, and so is the cause at the limit.

    Returns:
        POISON_RECORD rows (the columns of gold.poison_record but cluster_id, topic, is_final and run_id), in no order.

    Raises:
        UsageError: a column is missing or has another type.
    """
    histories = (share_partition_history, delivery_history)
    return _of_histories("poison_record", "poison_records", *histories, headers, settings=settings)


def redelivered_records(share_partition_history: "DataFrame", delivery_history: "DataFrame") -> "DataFrame":
    """The record offsets that were delivered again although an outcome had been logged.

    Args:
        share_partition_history, delivery_history: as in `stalls`.

    Returns:
        REDELIVERED rows (the columns of gold.redelivered_record but cluster_id, topic, is_final and run_id), in no
        order.

    Raises:
        UsageError: a column is missing or has another type.
    """
    return _of_histories("redelivered_record", "redelivered_records", share_partition_history, delivery_history)


def progress(
    share_partition_history: "DataFrame",
    delivery_history: "DataFrame",
    *,
    headers: "DataFrame | None" = None,
    settings: GroupSettings = NO_SETTINGS,
) -> "DataFrame":
    """The first incomplete offset of each share partition, and since which record it is that one.

    Args:
        share_partition_history, delivery_history: as in `stalls`.
        headers: as in `lag`; without them offsets that hold no record are not passed.
        settings: as in `stalls`; with them a group that reads committed records passes those of aborted transactions.

    Returns:
        PROGRESS rows (the columns of gold.progress but cluster_id and run_id), in no order.

    Raises:
        UsageError: a column is missing or has another type.
    """
    return _of_histories("progress", "progress", share_partition_history, delivery_history, headers, settings=settings)


def life(share_partition_history: "DataFrame", delivery_history: "DataFrame") -> "DataFrame":
    """The events in the life of each share partition: creation, resets, deletion, changes of epochs.

    Args:
        share_partition_history, delivery_history: as in `stalls`.

    Returns:
        LIFE rows (the columns of gold.life_event but cluster_id, topic, is_final and run_id), in no order.

    Raises:
        UsageError: a column is missing or has another type.
    """
    return _of_histories("life_event", "life", share_partition_history, delivery_history)


def latency(
    share_partition_history: "DataFrame", delivery_history: "DataFrame", *, headers: "DataFrame | None" = None
) -> "DataFrame":
    """How old records were when they were settled, by hour and outcome.

    Args:
        share_partition_history, delivery_history: as in `stalls`.
        headers: as in `lag`; without them no age is known.

    Returns:
        The columns of gold.latency but cluster_id, topic, is_final and run_id, in no order: one row a block of record
        offsets, whose histograms add up.

    Raises:
        UsageError: a column is missing or has another type.
    """
    return _of_histories("latency", "latency", share_partition_history, delivery_history, headers)


def attempts(
    share_partition_history: "DataFrame", delivery_history: "DataFrame", *, headers: "DataFrame | None" = None
) -> "DataFrame":
    """How many deliveries records took until they were settled, by hour and outcome.

    Args:
        share_partition_history, delivery_history: as in `stalls`.
        headers: as in `lag`; without them archived offsets without a record count as settled.

    Returns:
        The columns of gold.attempts but cluster_id, topic, is_final and run_id, in no order: one row a block of record
        offsets, which add up.

    Raises:
        UsageError: a column is missing or has another type.
    """
    return _of_histories("attempts", "attempts", share_partition_history, delivery_history, headers)


def _of_histories(
    measure: str,
    function: str,
    history: "DataFrame",
    deliveries: "DataFrame",
    headers: "DataFrame | None" = None,
    extents: "DataFrame | None" = None,
    settings: GroupSettings = NO_SETTINGS,
) -> "DataFrame":
    rows = {"share_partition_history": history, "delivery_history": deliveries, "headers": headers, "extents": extents}
    return _measured(measure, function, settings, **rows)


def _measured(measure: str, function: str, settings: GroupSettings, **arguments: "DataFrame | None") -> "DataFrame":
    """The rows of a measure of the catalog, computed for each user partition."""
    rows = MEASURES[measure].rows
    assert rows is not None
    return of_user_partitions(rows, MEASURES[measure].schema, function, settings, **arguments)


def of_user_partitions(
    rows_of: Callable[[GroupInputs], pa.Table],
    schema: pa.Schema,
    function: str,
    settings: GroupSettings,
    **arguments: "DataFrame | None",
) -> "DataFrame":
    """What `rows_of` makes of the rows of each user partition; `function` names it in error messages."""
    timed = timed_schema(schema)
    parts = [_enveloped(rows, name, function) for name, rows in arguments.items() if rows is not None]
    together = parts[0]
    for part in parts[1:]:
        together = together.unionByName(part)

    def compute(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for tables in _by_state_topic(pa.Table.from_batches(list(batches))):
            yield from conform(rows_of(GroupInputs(tables, settings)), timed).to_batches()

    return in_groups(together, LOG_PARTITION_KEY, ["place"], compute, timed)


def _enveloped(rows: "DataFrame", name: str, function: str) -> "DataFrame":
    """Rows of an argument as _ENVELOPE rows; headers come in offset order."""
    own = checked(rows, _SCHEMAS[name], function, name)
    columns = {key: F.col(key) for key in LOG_PARTITION_KEY} | {
        name: F.struct(*own.columns),
        "place": F.col("base_offset") if name == "headers" else F.lit(-1),
    }
    fields = spark_schema(_ENVELOPE).fields
    return own.select(
        *(
            columns.get(field.name, blank(_ENVELOPE.field(field.name).type)).cast(field.dataType).alias(field.name)
            for field in fields
        )
    )


def _by_state_topic(rows: pa.Table) -> Iterator[dict[str, pa.Table]]:
    """The tables of a group, those of each state topic by themselves: a recreated topic begins at offset 0."""
    tables = {}
    for name, schema in _SCHEMAS.items():
        structs = rows.column(name).combine_chunks()
        structs = structs.filter(pc.is_valid(pc.struct_field(structs, "topic_id")))
        columns = {field.name: part for field, part in zip(structs.type, structs.flatten(), strict=True)}
        tables[name] = pa.table({field.name: columns[field.name] for field in schema}).cast(schema)
    topics = {text for some in tables.values() if "log_topic_id" in some.column_names
              for text in some.column("log_topic_id").unique().to_pylist()}  # fmt: skip
    for topic in sorted(topics):
        yield {
            name: some.filter(pc.field("log_topic_id") == topic) if "log_topic_id" in some.column_names else some
            for name, some in tables.items()
        }
