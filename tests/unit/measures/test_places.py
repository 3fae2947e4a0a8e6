"""Share partitions as places: every row has the place of its key, whichever way it is looked up."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from measures import places
from measures.places import Places

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


def known(rows: list[Row]) -> Places:
    return Places(keys=table(sorted(set(rows), key=lambda row: (row[0].encode(), row[1].encode(), *row[2:]))))


@pytest.mark.parametrize("most_cells", [places.MOST_CELLS, 12, 4, 0])
@given(st.lists(ROW, max_size=12), st.lists(ROW, max_size=12))
def test_a_row_has_the_place_of_its_key(most_cells: int, keys: list[Row], rows: list[Row]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(places, "MOST_CELLS", most_cells)
        known_places = known(keys)
        order = [tuple(row.values()) for row in known_places.keys.to_pylist()]
        expected = [order.index(row) if row in order else -1 for row in rows]
        assert known_places.of(table(rows)).tolist() == expected
        coded = pa.schema([*CODED, *list(SCHEMA)[2:]])
        assert known_places.of(table(rows).cast(coded)).tolist() == expected
