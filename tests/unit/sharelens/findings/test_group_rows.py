"""Rows of share partitions as one row a group."""

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from sharelens.findings.group_rows import of_each, worst_of_groups
from state_model.columnar.keys import SHARE_PARTITION_KEY

ROWS = pa.schema(
    [
        ("group_id", pa.string()),
        ("topic_id", pa.string()),
        ("partition", pa.int32()),
        ("duration_ms", pa.int64()),
        ("behind", pa.int64()),
    ]
)
Row = dict[str, Any]


def rows() -> st.SearchStrategy[list[Row]]:
    numbers = st.one_of(st.none(), st.integers(0, 3))
    row = st.fixed_dictionaries(
        {
            "group_id": st.sampled_from("gh"),
            "topic_id": st.sampled_from("tu"),
            "partition": st.integers(0, 2),
            "duration_ms": numbers,
            "behind": numbers,
        }
    )
    return st.lists(row, max_size=12)


def comes_at(value: int | None, *, descending: bool) -> tuple[bool, int]:
    return value is None, 0 if value is None else -value if descending else value


@given(rows(), st.booleans(), st.booleans())
def test_the_worst_row_of_each_group_is_the_first_in_order(
    row_list: list[Row], is_longest_first: bool, is_most_first: bool
) -> None:
    order = [
        ("duration_ms", "descending" if is_longest_first else "ascending"),
        ("behind", "descending" if is_most_first else "ascending"),
    ]
    in_order = sorted(
        row_list,
        key=lambda row: (
            comes_at(row["duration_ms"], descending=is_longest_first),
            comes_at(row["behind"], descending=is_most_first),
            *(row[name] for name in SHARE_PARTITION_KEY),
        ),
    )
    expected: dict[str, Row] = {}
    for row in in_order:
        expected.setdefault(row["group_id"], row)
    for group, row in expected.items():
        of_group = {tuple(each[name] for name in SHARE_PARTITION_KEY) for each in row_list if each["group_id"] == group}
        row["share_partitions"] = len(of_group)
    table = pa.Table.from_pylist(row_list, schema=ROWS)
    assert list(worst_of_groups(table, order)) == list(expected.values())


@given(rows())
def test_a_number_is_computed_once_for_each_text(row_list: list[Row]) -> None:
    computed_texts: list[str] = []

    def number_of(text: str) -> int:
        computed_texts.append(text)
        return ord(text)

    numbers = of_each(pa.Table.from_pylist(row_list, schema=ROWS), "topic_id", number_of)
    assert numbers.tolist() == [ord(row["topic_id"]) for row in row_list]
    assert sorted(computed_texts) == sorted({row["topic_id"] for row in row_list})
