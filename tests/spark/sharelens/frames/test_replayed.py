"""Chunks that tasks replay at the same time give one replay."""

from typing import TYPE_CHECKING

import pyarrow as pa

from sharelens import frames
from sharelens.frames.envelopes import CHUNK_BITS
from sharelens.frames.shapes import spark_schema
from state_model.columnar.replay import replay_records
from state_model.columnar.schemas import SHARE_RECORD
from tests.logs.replay_logs import parsed, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG = """
    0 snapshot start=0 0-4 available 1
    1 snapshot start=0
    0 update 0-1 available 1, 2 unknown(5) 1
    1 other
    0 update 0-1 acknowledged 1
    1 update 0 acknowledged 1
    0 snapshot start=0 snapshot=2 0-4 acknowledged 1
    1 update 1 acknowledged 1
"""


def test_a_mark_of_unknown_states_goes_on_in_the_next_chunk(spark: "SparkSession") -> None:
    offsets = [number // 4 * (1 << CHUNK_BITS) + number for number in range(8)]
    at = SHARE_RECORD.get_field_index("log_offset")
    records = table(parsed(LOG)).set_column(at, SHARE_RECORD.field(at), pa.array(offsets))
    frame = spark.createDataFrame(records.to_pylist(), spark_schema(SHARE_RECORD))
    expected = replay_records(records).history.select(["log_offset", "record_type", "completeness_reason"])
    assert expected.column("completeness_reason").to_pylist() == [
        None,
        None,
        *["unknown_state"] * 4,
        None,
        "unknown_state",
    ]
    history = frame.transform(frames.share_partition_history).select(expected.column_names).toArrow()
    assert history.sort_by("log_offset").to_pylist() == expected.to_pylist()
