"""Share partitions as places: every row has the place of its key, whichever way it is looked up."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.measures.ranges import places
from sharelens.measures.ranges.places import Places
from state_model.columnar.codes import ABOVE_ALL

SCHEMA = pa.schema(
    [
        ("group_id", pa.string()),
        ("topic_id", pa.string()),
        ("partition", pa.int32()),
        ("state_partition", pa.int32()),
    ]
)
CODED = pa.schema([field.with_type(pa.dictionary(pa.int32(), pa.string())) for field in list(SCHEMA)[:2]])
ROW = st.tuples(
    st.sampled_from(["a", "b", "c", "ä"]),
    st.sampled_from(["s", "t", "u"]),
    st.sampled_from([0, 1, 2, 7, (1 << 31) - 1, -1]),
    st.integers(0, 2),
)
Row = tuple[str, str, int, int]


def table(rows: list[Row]) -> pa.Table:
    return pa.table([list(column) for column in zip(*rows, strict=True)] or [[]] * 4, schema=SCHEMA)


def places_of(rows: list[Row]) -> Places:
    return Places(keys=table(sorted(set(rows), key=lambda row: (row[0].encode(), row[1].encode(), *row[2:]))))


@pytest.mark.parametrize("most_cells", [places.MOST_CELLS, 12, 4, 0])
@given(st.lists(ROW, max_size=12), st.lists(ROW, max_size=12))
def test_a_row_has_the_place_of_its_key(most_cells: int, keys: list[Row], rows: list[Row]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(places, "MOST_CELLS", most_cells)
        known_places = places_of(keys)
        order = [tuple(row.values()) for row in known_places.keys.to_pylist()]
        expected = [order.index(row) if row in order else -1 for row in rows]
        assert known_places.of(table(rows)).tolist() == expected
        coded = pa.schema([*CODED, *list(SCHEMA)[2:]])
        assert known_places.of(table(rows).cast(coded)).tolist() == expected


@given(st.dictionaries(ROW, st.none() | st.integers(0, 9)), st.lists(ROW))
def test_values_by_place_say_where_a_row_or_its_value_is_missing(
    by_key: dict[Row, int | None], keys: list[Row]
) -> None:
    known_places = places_of(keys)
    rows = table(list(by_key)).append_column("number", pa.array(list(by_key.values()), pa.int64()))
    order = [tuple(row.values()) for row in known_places.keys.to_pylist()]
    expected = [-1 if key not in by_key else -2 if by_key[key] is None else by_key[key] for key in order]
    assert known_places.values(rows, "number", null=-2, missing=-1).tolist() == expected


def test_the_lowest_value_of_a_place_without_values_is_above_all() -> None:
    known_places = places_of([("a", "t", number, 0) for number in range(3)])
    assert known_places.lowest(np.array([2, 0, 2]), np.array([7, 5, 4])).tolist() == [5, ABOVE_ALL, 4]
