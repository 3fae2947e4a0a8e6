"""What the state partitions cost their coordinators, as DataFrames.

records.transform(frames.pruning)
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from sharelens.frames.refusals import Argument, refuse_other_ids
from sharelens.frames.shapes import checked, in_groups, typed_rows
from sharelens.lake.parquet import conform
from sharelens.measures.cost import FREEABLE, KINDS, PRUNING_READ, prune_points
from sharelens.measures.schemas import PRUNING
from state_model.columnar.keys import FULL_PLACE_KEY, STATE_PARTITION_KEY
from state_model.columnar.schemas import SHARE_RECORD

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_READ = pa.schema([SHARE_RECORD.field(name) for name in PRUNING_READ])


def pruning(share_records: "DataFrame") -> "DataFrame":
    """How far Kafka can prune each state partition, what that frees, and which share partition holds it up.

    Args:
        share_records: SHARE_RECORD rows (`frames.share_records`, silver.share_record) of whole state partitions; read
            twice, because what can be freed depends on the newest snapshots of all share partitions.

    Returns:
        PRUNING rows (`sharelens cost --state-partitions`, without cluster_id and marks of completeness), in no order.

    Raises:
        UsageError: a column is missing or has another type.
    """
    records = checked(share_records, _READ, "pruning", "share_records")
    kinds = records.groupBy(*FULL_PLACE_KEY, "record_type").agg(
        F.count(F.lit(1)).alias("records"),
        F.sum(F.col("record_bytes").cast("long")).alias("record_bytes"),
        F.max("log_offset").alias("log_offset"),
        F.max("log_time_ms").alias("log_time_ms"),
    )

    def points_of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = pa.concat_tables([typed_rows(batch, KINDS) for batch in batches])
        refuse_other_ids(rows, Argument("pruning", "share_records"), FULL_PLACE_KEY)
        points = prune_points(rows)
        yield from conform(points, PRUNING).to_batches()

    points = in_groups(kinds, STATE_PARTITION_KEY, [], points_of, PRUNING).drop(*FREEABLE)
    ends = F.broadcast(points.select(*STATE_PARTITION_KEY, "prune_log_offset"))
    is_freeable = (F.col("log_offset") < F.col("prune_log_offset")) & ~F.col("below_log_start")
    sums = (F.count(F.lit(1)), F.sum(F.col("record_bytes").cast("long")))
    freeable = records.join(ends, STATE_PARTITION_KEY).where(is_freeable)
    totals = (total.alias(name) for total, name in zip(sums, FREEABLE, strict=True))
    free = freeable.groupBy(*STATE_PARTITION_KEY).agg(*totals)
    return points.join(F.broadcast(free), STATE_PARTITION_KEY, "left").na.fill(0, list(FREEABLE)).select(*PRUNING.names)
