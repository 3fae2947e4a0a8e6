"""Orders by integer columns against NumPy's, and rows as columns."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_model.columnar import ordering
from state_model.columnar.ordering import by_column, order_by

LEAST, LARGEST = -(1 << 63), (1 << 63) - 1
NUMBERS = st.sampled_from([0, 1, -1, 2_047, 2_048, LEAST, LARGEST]) | st.integers(LEAST, LARGEST) | st.integers(0, 5)


@given(st.integers(1, 3).flatmap(lambda width: st.lists(st.tuples(*[NUMBERS] * width), min_size=1, max_size=40)))
def test_the_order_is_stable_and_the_first_column_decides_first(rows):
    columns = [np.array(column, np.int64) for column in zip(*rows, strict=True)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordering, "FEW_ROWS", 0)
        patch.setattr(ordering, "LOADING_ROWS", 0)
        order = order_by(*columns)
    assert order.tolist() == sorted(range(len(rows)), key=lambda row: rows[row])


def test_no_rows_have_an_order():
    assert order_by(np.empty(0, np.int64)).tolist() == []


def test_many_rows_are_ordered_as_few_are():
    random = np.random.default_rng(1)
    columns = random.integers(0, 20, 10_000), random.integers(-(1 << 62), 1 << 62, 10_000) >> 40
    assert order_by(*columns).tolist() == np.lexsort(columns[::-1]).tolist()


def test_columns_of_arrow_need_no_code_of_their_own(monkeypatch):
    monkeypatch.setattr(ordering, "LOADING_ROWS", 0)
    column = np.arange(10_000)[::-1]
    order_by(column)
    compiled = len(ordering._ordered._compiled.signatures)
    order_by(pa.array(column).to_numpy())
    order_by(column.astype(np.int32))
    assert len(ordering._ordered._compiled.signatures) == compiled


def test_rows_become_columns_in_an_order():
    assert by_column(np.array([[1, 2], [3, 4], [5, 6]]), np.array([2, 0])).tolist() == [[5, 1], [6, 2]]
