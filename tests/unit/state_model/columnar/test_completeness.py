"""A log has all its records from the one on behind its last gap."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from state_model.columnar.completeness import Completeness


@given(st.sets(st.integers(0, 12)), st.sets(st.integers(0, 12)))
def test_a_log_is_whole_with_a_record_at_every_offset(offsets: set[int], cuts: set[int]) -> None:
    reader = Completeness()
    for part in np.split(np.array(sorted(offsets), np.int64), sorted(cuts)):
        reader.take(pa.chunked_array([pa.array(part)]))
    assert reader.is_whole == (offsets == set(range(len(offsets))))
