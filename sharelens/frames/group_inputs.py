"""The rows of one user partition as the inputs of measures: how they come together, and how a measure reads them.

A group of Spark has rows of one schema: each row carries one row of one argument, in the struct of the argument's name.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from sharelens.frames.envelopes import LOSS
from sharelens.frames.moments import RANGE_KEY
from sharelens.frames.refusals import Argument, refuse_duplicates, refuse_other_ids
from sharelens.frames.shapes import checked, in_envelope, in_groups, nullable_struct, timed_schema, together
from sharelens.kafka_log.schemas import TOPIC_BATCH
from sharelens.lake.parquet import conform
from sharelens.measures.inputs import RecordInputs, StateInputs
from sharelens.measures.settings.over_time import GroupSettings
from sharelens.measures.topics.extents import TOPIC_EXTENT, TopicPartition, topic_partitions
from sharelens.measures.what_if.appends import READ
from state_model.columnar.keys import FULL_PLACE_KEY, LOG_PARTITION_KEY, STATE_PARTITION_KEY
from state_model.columnar.schemas import DELIVERY_HISTORY, SHARE_PARTITION_HISTORY, SHARE_PARTITION_STATE, SHARE_RECORD
from state_model.columnar.values import Loss

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RECORD = pa.schema([SHARE_RECORD.field(name) for name in READ])
"""The columns of decoded records that a what-if and the cost read."""
LOSS_ORDER = ("first_offset", "last_offset", "reason")
NAMED_BY_LOSS = {name: f"{name}_of_loss" for name in LOG_PARTITION_KEY}
LOST = pa.schema([*LOSS, *(LOSS.field(name).with_name(renamed) for name, renamed in NAMED_BY_LOSS.items())])
"""LOSS rows, once for each user partition of their state partition; what a loss itself names is `_of_loss`."""
_SCHEMAS = {
    "states": SHARE_PARTITION_STATE,
    "share_partition_history": SHARE_PARTITION_HISTORY,
    "delivery_history": DELIVERY_HISTORY,
    "headers": TOPIC_BATCH,
    "extents": TOPIC_EXTENT,
    "records": RECORD,
    "losses": LOST,
}
"""Columns of each argument; the rows of a group come in structs of the same names."""
_OPTIONAL = frozenset({"headers", "extents", "losses"})
_RECORD_KEY = (*STATE_PARTITION_KEY, "log_offset")
_KEYS = {
    "states": FULL_PLACE_KEY,
    "share_partition_history": _RECORD_KEY,
    "delivery_history": RANGE_KEY,
    "headers": (*LOG_PARTITION_KEY, "base_offset"),
    "extents": LOG_PARTITION_KEY,
    "records": _RECORD_KEY,
}
"""What names a row of an argument. A record of the state log is about one share partition."""
_ENVELOPE = pa.schema(
    [*(TOPIC_EXTENT.field(name) for name in LOG_PARTITION_KEY)]
    + [pa.field("place", pa.int64())]
    + [pa.field(name, nullable_struct(schema)) for name, schema in _SCHEMAS.items()]
)


class GroupInputs(StateInputs, RecordInputs):
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

    def records(self, columns: Sequence[str] = RECORD.names) -> pa.Table:
        """RECORD rows."""
        return self._tables["records"].select(columns)

    def losses(self) -> Mapping[int, Sequence[Loss]]:
        """Ranges of the log without records, by state partition, in the order of the log."""
        losses: dict[int, list[Loss]] = {}
        rows = self._tables["losses"]
        for row in rows.sort_by([(name, "ascending") for name in LOSS_ORDER]).to_pylist():
            named = {name: row[renamed] for name, renamed in NAMED_BY_LOSS.items()}
            loss = Loss(**{name: row[name] for name in (*LOSS_ORDER, "group_id")}, **named)
            losses.setdefault(row["state_partition"], []).append(loss)
        return losses

    def headers(self, begins: Mapping[TopicPartition, int]) -> Iterator[pa.Table]:
        """TOPIC_BATCH rows that reach the offsets or lie above."""
        rows = self._tables["headers"]
        for (topic_id, partition), begin in begins.items():
            in_partition = (pc.field("topic_id") == topic_id) & (pc.field("partition") == partition)
            partition_headers = rows.filter(in_partition & (pc.field("last_offset") >= begin))
            if partition_headers.num_rows:
                yield partition_headers

    def extents(self, partitions: Iterable[TopicPartition]) -> pa.Table:
        """TOPIC_EXTENT rows of those of the user partitions that are there."""
        selected = set(partitions)
        rows = self._tables["extents"]
        return rows.filter(pa.array([place in selected for place in topic_partitions(rows)], pa.bool_()))


def of_user_partitions(
    rows_of: Callable[[GroupInputs], pa.Table],
    schema: pa.Schema,
    function: str,
    settings: GroupSettings,
    **arguments: "DataFrame | None",
) -> "DataFrame":
    """What `rows_of` makes of the rows of each user partition; `function` names it in error messages."""
    timed = timed_schema(schema)
    frames = {name: rows for name, rows in arguments.items() if rows is not None or name not in _OPTIONAL}
    rows = together(_enveloped(rows, name, function) for name, rows in frames.items())

    def compute(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for tables in _by_state_topic(_tables_of(pa.Table.from_batches(list(batches)), function)):
            yield from conform(rows_of(GroupInputs(tables, settings)), timed).to_batches()

    return in_groups(rows, LOG_PARTITION_KEY, ["place"], compute, timed)


def _enveloped(rows: "DataFrame | None", name: str, function: str) -> "DataFrame":
    """Rows of an argument as _ENVELOPE rows; headers come in offset order."""
    checked_rows = checked(rows, _SCHEMAS[name], function, name)
    columns = {key: F.col(key) for key in LOG_PARTITION_KEY} | {
        name: F.struct(*checked_rows.columns),
        "place": F.col("base_offset") if name == "headers" else F.lit(-1),
    }
    return in_envelope(checked_rows, columns, _ENVELOPE)


def _tables_of(rows: pa.Table, function: str) -> dict[str, pa.Table]:
    """The tables of a group by argument. Raises UsageError as `refusals` says."""
    tables = {}
    for name, schema in _SCHEMAS.items():
        structs = rows.column(name).combine_chunks()
        structs = structs.filter(pc.is_valid(pc.struct_field(structs, "topic_id")))
        columns = {field.name: part for field, part in zip(structs.type, structs.flatten(), strict=True)}
        tables[name] = pa.table({field.name: columns[field.name] for field in schema}).cast(schema)
        if tables[name].num_rows and name in _KEYS:
            refuse_other_ids(tables[name], Argument(function, name), _KEYS[name])
            refuse_duplicates(tables[name], Argument(function, name), _KEYS[name])
    return tables


def _by_state_topic(tables: Mapping[str, pa.Table]) -> Iterator[dict[str, pa.Table]]:
    """The tables of each state topic by themselves: a recreated topic begins at offset 0."""
    topics = {text for table in tables.values() if "log_topic_id" in table.column_names
              for text in table.column("log_topic_id").unique().to_pylist()}  # fmt: skip
    for topic in sorted(topics):
        yield {
            name: table.filter(pc.field("log_topic_id") == topic) if "log_topic_id" in table.column_names else table
            for name, table in tables.items()
        }


def of_each_user_partition(losses: "DataFrame", history: "DataFrame", function: str) -> "DataFrame":
    """LOST rows: a loss touches every user partition that has share partitions in its state partition."""
    loss_rows = checked(losses, LOSS, function, "losses").withColumnsRenamed(NAMED_BY_LOSS)
    places = checked(history, SHARE_PARTITION_HISTORY, function, "share_partition_history")
    places = places.select(*STATE_PARTITION_KEY, *LOG_PARTITION_KEY).distinct()
    return loss_rows.join(places, STATE_PARTITION_KEY)
