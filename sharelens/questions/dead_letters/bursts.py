"""Runs of dead letters of one group, topic and cause without a long pause."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.questions.answers.shape import CLUSTER_ID, MARKS
from state_model.columnar.schemas import column

BURST = pa.schema(
    [
        CLUSTER_ID,
        column("group_id", pa.string(), "share group"),
        column("topic", pa.string(), "topic of the records, as the dead letters name it"),
        column("cause", pa.string(), "cause by the dead letters; null = unknown"),
        column("first_ms", pa.int64(), "time of the first dead letter (a broker's clock)"),
        column("last_ms", pa.int64(), "time of the last dead letter"),
        column("dead_letters", pa.int64(), "dead letters"),
        column("records", pa.int64(), "different records among them"),
        column("partitions", pa.int64(), "partitions of these records"),
        column("rate_per_second", pa.float64(), "dead letters per second; null = all have one time"),
        *MARKS,
    ]
)
BURST_KEY = ("group_id", "topic", "cause")


def bursts_of(letters: pa.Table, gap_ms: int) -> pa.Table:
    """The columns of BURST but cluster_id, the largest burst first."""
    order = [(name, "ascending") for name in (*BURST_KEY, "timestamp_ms")]
    rows = letters.sort_by(order).combine_chunks()
    stamps = rows.column("timestamp_ms").to_numpy()
    turns = np.diff(stamps) > gap_ms
    for name in BURST_KEY:
        codes = pc.fill_null(rows.column(name), "").dictionary_encode().combine_chunks().indices.to_numpy()
        turns |= np.diff(codes) != 0
    number = np.concatenate([[0], np.cumsum(turns)])[: rows.num_rows]
    rows = rows.append_column("burst", pa.array(number, pa.int64()))
    place = pc.binary_join_element_wise(
        rows.column("partition").cast(pa.string()), rows.column("offset").cast(pa.string()), "@"
    )
    rows = rows.append_column("place", place)
    bursts = rows.group_by(["burst", *BURST_KEY], use_threads=False).aggregate(
        [
            ("timestamp_ms", "min"),
            ("timestamp_ms", "max"),
            ("timestamp_ms", "count"),
            ("place", "count_distinct"),
            ("partition", "count_distinct"),
            ("uncommitted", "any"),
        ]
    )
    lasted = pc.subtract(bursts.column("timestamp_ms_max"), bursts.column("timestamp_ms_min")).cast(pa.float64())
    seconds = pc.if_else(pc.greater(lasted, 0.0), pc.divide(lasted, 1000.0), pa.scalar(None, pa.float64()))
    uncommitted = bursts.column("uncommitted_any")
    columns = {name: bursts.column(name) for name in BURST_KEY} | {
        "first_ms": bursts.column("timestamp_ms_min"),
        "last_ms": bursts.column("timestamp_ms_max"),
        "dead_letters": bursts.column("timestamp_ms_count"),
        "records": bursts.column("place_count_distinct"),
        "partitions": bursts.column("partition_count_distinct"),
        "rate_per_second": pc.divide(bursts.column("timestamp_ms_count").cast(pa.float64()), seconds),
        "completeness": pc.if_else(uncommitted, "uncommitted", "complete"),
        "completeness_reason": pc.if_else(uncommitted, "uncommitted", pa.scalar(None, pa.string())),
    }
    ranking = [("dead_letters", "descending"), ("first_ms", "ascending")]
    return pa.table(columns).sort_by([*ranking, *((name, "ascending") for name in BURST_KEY)])
