"""Cuts and the rows that they keep."""

import pyarrow as pa
import pytest

from sharelens.questions.evidence import Cut, kept, with_value

ROWS = pa.table(
    {
        "state_partition": pa.array([0, 0, 1, 1, 2], pa.int32()),
        "log_offset": pa.array([4, 5, 4, 5, 9], pa.int64()),
        "log_time_ms": pa.array([10, 20, 10, 20, 30], pa.int64()),
    }
)


@pytest.mark.parametrize("cut", [Cut(), Cut(as_of_ms=15), Cut(at_offsets={0: 4}), Cut(at_offsets={0: 4, 1: -1, 7: 2})])
def test_a_cut_keeps_of_each_state_partition_what_it_keeps_within_it(cut: Cut) -> None:
    parts = [with_value(ROWS, "state_partition", number) for number in range(3)]
    within = pa.concat_tables(kept(part, cut.within(number).expression()) for number, part in enumerate(parts))
    assert within.equals(kept(ROWS, cut.expression()))


def test_within_a_state_partition_that_is_not_cut_everything_is_kept() -> None:
    assert Cut(at_offsets={0: 4}).within(1).whole
