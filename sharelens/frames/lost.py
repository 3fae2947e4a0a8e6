"""What the records of the state log lack: offsets that are missing, and records that can't be decoded."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from sharelens.evidence.decoding import DECODABLE, decode_rows
from sharelens.evidence.losses import DAMAGE_REASONS, GAP, PRUNED, QUARANTINED, losses_of_problems
from sharelens.frames.envelopes import LOSS
from sharelens.frames.logs import state_log_rows
from sharelens.frames.refusals import Argument, once_each
from sharelens.frames.shapes import checked, in_groups, spark_schema, typed_rows
from sharelens.kafka_log.schemas import LOG_RECORD, PROBLEM
from state_model.columnar.keys import LOG_PARTITION_KEY
from state_model.topics import STATE_TOPIC

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PROBLEM_RANGE = pa.schema(
    [PROBLEM.field(name) for name in ("topic", *LOG_PARTITION_KEY, "first_offset", "last_offset", "reason")]
)


def losses(log_records: "DataFrame", *, problems: "DataFrame | None" = None) -> "DataFrame":
    """The ranges of state-log offsets that the records lack, which make states incomplete.

    __share_group_state is neither compacted nor transactional, so every missing offset is lost. Reads its input twice.

    Args:
        log_records: LOG_RECORD rows in any order; other topics' rows are left out.
        problems: rows of `kafka_log` with the option rows=problems, or of bronze.quarantine: they say why offsets are
            missing, and that some are missing behind the last record; None: there are none.

    Returns:
        LOSS rows in no order: `log_topic_id`, `state_partition`, `first_offset`, `last_offset` (inclusive), `reason`
        (pruned: below the first record or the log start; truncated, vanished, quarantined: by the problem; gap:
        nothing explains it; else why a record can't be decoded), and `group_id`, `topic_id`, `partition` where a single
        share partition is touched. A log whose older part is tiered looks pruned.

    Raises:
        UsageError: a column is missing or has another type.
    """
    state_rows = state_log_rows(checked(log_records, LOG_RECORD, "losses", "log_records"))
    place = Window.partitionBy(*LOG_PARTITION_KEY)
    chunks = state_rows.groupBy(*LOG_PARTITION_KEY, "chunk").agg(
        F.min("offset").alias("first"),
        F.max("offset").alias("last"),
        F.max(F.when(F.col("below_log_start"), F.col("offset"))).alias("below"),
    )
    bounds = chunks.select(
        *LOG_PARTITION_KEY,
        "first",
        "last",
        F.lag("last", 1, -1).over(place.orderBy("chunk")).alias("before"),
        F.max("below").over(place).alias("below"),
        F.max("last").over(place).alias("end"),
    )
    missing = bounds.where(F.col("first") > F.col("before") + 1).select(
        *LOG_PARTITION_KEY,
        (F.col("before") + 1).alias("first_offset"),
        (F.col("first") - 1).alias("last_offset"),
        "below",
    )
    in_chunks = in_groups(
        state_rows.select(*DECODABLE.names, "chunk"), [*LOG_PARTITION_KEY, "chunk"], ["offset"], _in_chunk, LOSS
    )
    is_missing = F.col("reason") == ""
    starts = bounds.groupBy(*LOG_PARTITION_KEY).agg(F.max("below").alias("below"), F.max("end").alias("end"))
    renamed = in_chunks.withColumnsRenamed(
        {"topic_id": "lost_topic_id", "partition": "lost_partition"}
    ).withColumnsRenamed({"log_topic_id": "topic_id", "state_partition": "partition"})
    inside = renamed.where(is_missing).join(F.broadcast(starts), LOG_PARTITION_KEY)
    missing = missing.unionByName(inside.select(*LOG_PARTITION_KEY, "first_offset", "last_offset", "below"))
    return _with_reasons(missing, starts, problems).unionByName(in_chunks.where(~is_missing))


def _in_chunk(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """LOSS rows of one chunk: records that can't be decoded, and missing offsets, which have no reason yet ("")."""
    last = None
    for batch in once_each(batches, Argument("losses", "log_records"), [*LOG_PARTITION_KEY, "offset"]):
        rows = typed_rows(batch, DECODABLE)
        offsets = rows.column("offset").to_numpy()
        before = np.append(offsets[0] - 1 if last is None else last, offsets[:-1])
        last = int(offsets[-1])
        place = {
            "log_topic_id": rows.column("topic_id")[0].as_py(),
            "state_partition": rows.column("partition")[0].as_py(),
        }
        lost = [
            {"first_offset": int(before[at]) + 1, "last_offset": int(offsets[at]) - 1, "reason": ""}
            for at in np.flatnonzero(offsets - before > 1)
        ]
        undecodable = losses_of_problems(decode_rows(rows).problems)
        lost += [{name: getattr(loss, name) for name in loss.__slots__} for loss in undecodable]
        yield pa.RecordBatch.from_pylist([place | row for row in lost], schema=LOSS)


def _with_reasons(missing: "DataFrame", starts: "DataFrame", problems: "DataFrame | None") -> "DataFrame":
    """LOSS rows of missing ranges, which come with the last record below the log start, and of those at the end."""
    is_pruned = (F.col("first_offset") == 0) | (F.col("last_offset") <= F.col("below"))
    by_place = F.when(is_pruned, PRUNED).otherwise(GAP)
    reason = by_place
    if problems is not None:
        ranges = checked(problems, _PROBLEM_RANGE, "losses", "problems")
        ranges = ranges.where((F.col("topic") == STATE_TOPIC) & F.col("last_offset").isNotNull())
        ends = ranges.join(F.broadcast(starts), LOG_PARTITION_KEY).where(F.col("last_offset") > F.col("end"))
        ends = ends.groupBy(*LOG_PARTITION_KEY, "below", "end").agg(F.max("last_offset").alias("last_offset"))
        behind = ends.select(*LOG_PARTITION_KEY, (F.col("end") + 1).alias("first_offset"), "last_offset", "below")
        damage = ranges.groupBy(*LOG_PARTITION_KEY).agg(
            F.array_sort(F.collect_list(F.struct("first_offset", "last_offset", "reason"))).alias("damage")
        )
        missing = missing.unionByName(behind).join(F.broadcast(damage), LOG_PARTITION_KEY, "left")
        touching = F.filter(
            "damage",
            lambda damaged: (
                (damaged["first_offset"] <= F.col("last_offset")) & (damaged["last_offset"] >= F.col("first_offset"))
            ),
        )
        first = F.get(touching, 0)["reason"]
        read_reason = F.when(first.isin(*DAMAGE_REASONS), first).otherwise(QUARANTINED)
        reason = F.when(first.isNotNull(), read_reason).otherwise(by_place)
    columns = {"log_topic_id": F.col("topic_id"), "state_partition": F.col("partition"), "reason": reason}
    loss_columns = {name: F.col(name) for name in ("first_offset", "last_offset")} | columns
    fields = spark_schema(LOSS).fields
    return missing.select(
        *(loss_columns.get(field.name, F.lit(None)).cast(field.dataType).alias(field.name) for field in fields)
    )
