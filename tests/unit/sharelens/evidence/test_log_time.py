"""Log time: monotone, and the same however a log is cut into chunks."""

from itertools import accumulate

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sharelens.evidence.log_time import NO_LOG_TIME, log_time_after, log_times

TIMESTAMPS = st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=12)


@given(TIMESTAMPS)
def test_log_time_is_the_running_maximum_of_record_timestamps(timestamps: list[int]) -> None:
    assert log_times(np.array(timestamps, np.int64)).tolist() == list(accumulate(timestamps, max))


@given(TIMESTAMPS, st.integers(0, 12))
def test_a_log_read_in_two_chunks_has_the_log_times_of_one(timestamps: list[int], cut: int) -> None:
    first = log_times(np.array(timestamps[:cut], np.int64))
    second = log_times(np.array(timestamps[cut:], np.int64), log_time_after(first))
    assert [*first, *second] == log_times(np.array(timestamps, np.int64)).tolist()


def test_no_record_leaves_the_log_time_as_it_was() -> None:
    assert log_time_after(log_times(np.zeros(0, np.int64)), 7) == 7
    assert log_time_after(log_times(np.zeros(0, np.int64))) == NO_LOG_TIME
