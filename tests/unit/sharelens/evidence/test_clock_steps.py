"""Steps of the clock behind record timestamps."""

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from sharelens.evidence.clock_steps import LATE_RECORD, STEP_MS, ClockStep, clock_steps, late_records, steps_around
from sharelens.evidence.log_time import log_times
from tests.logs.log_rows import log_rows

MINUTES = st.lists(st.integers(0, 6), min_size=1, max_size=10)


def records(timestamps: list[int]) -> pa.RecordBatch:
    rows = log_rows([b"k"] * len(timestamps), [b"v"] * len(timestamps))
    index = rows.schema.get_field_index("timestamp_ms")
    return rows.set_column(index, rows.schema.field(index), pa.array(timestamps, pa.int64()))


def late(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=LATE_RECORD)


def test_a_step_begins_where_timestamps_fall_over_a_minute_behind() -> None:
    stamps = [1_000_000, 1_000_000 - STEP_MS, 1_000_000 - STEP_MS - 1, 900_000, 1_000_001, 5]
    rows = records(stamps)
    steps = clock_steps(pa.Table.from_batches([rows]), log_times(stamps)).to_pylist()
    assert [(step["log_offset"], step["timestamp_ms"], step["log_time_ms"]) for step in steps] == [
        (102, stamps[2], 1_000_000),
        (105, 5, 1_000_001),
    ]


def test_a_timestamp_at_the_edge_of_the_numbers_is_no_step_of_a_log_that_begins_there() -> None:
    rows = records([-(1 << 63), -(1 << 63)])
    assert clock_steps(pa.Table.from_batches([rows]), log_times(rows.column("timestamp_ms").to_numpy())).num_rows == 0


@given(MINUTES, st.integers(0, 6), st.integers(0, 10))
def test_the_records_that_are_late_tell_as_much_as_all_records(minutes: list[int], moment: int, cut: int) -> None:
    stamps = [minute * STEP_MS + number for number, minute in enumerate(minutes)]
    times = log_times(stamps)
    rows = records(stamps)
    all_records = pa.table(
        [pa.repeat(pa.scalar(3, pa.int32()), len(stamps)), rows.column("offset"), stamps, times], schema=LATE_RECORD
    )
    parts = [late_records(rows.slice(0, cut), times[:cut]), late_records(rows.slice(cut), times[cut:])]
    moment_ms = moment * STEP_MS
    assert steps_around(pa.concat_tables(parts), moment_ms) == steps_around(all_records, moment_ms)


def test_a_step_names_the_last_record_that_is_over_a_minute_late_and_the_largest_distance() -> None:
    rows = late(
        {"state_partition": 1, "log_offset": 4, "timestamp_ms": 10, "log_time_ms": 100_000},
        {"state_partition": 1, "log_offset": 6, "timestamp_ms": 20, "log_time_ms": 90_000},
        {"state_partition": 1, "log_offset": 9, "timestamp_ms": 50_000, "log_time_ms": 100_000},
        {"state_partition": 2, "log_offset": 5, "timestamp_ms": 60_000, "log_time_ms": 200_000},
    )
    assert steps_around(rows, 50_000) == [ClockStep(state_partition=1, last_offset=6, ahead_ms=99_990)]
    assert steps_around(rows, 10) == [ClockStep(state_partition=1, last_offset=4, ahead_ms=99_990)]
    assert steps_around(rows, 9) == []


def test_late_records_of_no_chunk_are_none() -> None:
    assert late_records(records([]), np.zeros(0, np.int64)).equals(LATE_RECORD.empty_table())
