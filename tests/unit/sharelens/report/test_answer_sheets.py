"""Answers as tables of a page: hints, keys to sort by, marks, links, and the columns that paper has no room for."""

import pyarrow as pa

from sharelens.output import Answer, RowCounts
from sharelens.output.layouts import Layout
from sharelens.report.answer_sheets import COLUMNS_PRINTED, answer_sheets
from sharelens.report.model import Sheet
from state_model.columnar.schemas import column

SCHEMA = pa.schema(
    [
        column("group_id", pa.string(), "group"),
        column("standing_still", pa.int64(), "share partitions with a stall that lasts"),
        column("until_ms", pa.int64(), "when it ended"),
        column("completeness", pa.string(), "complete or not"),
    ]
)
ROWS = [
    {"group_id": "a", "standing_still": 1200, "until_ms": None, "completeness": "complete"},
    {"group_id": "b", "standing_still": 0, "until_ms": 1000, "completeness": "incomplete"},
    {"group_id": "c", "standing_still": None, "until_ms": 2000, "completeness": None},
]


def answer(rows: int = 3) -> Answer:
    counts = RowCounts(rows=rows, incomplete=1, unnamed_topics=0)
    return Answer(table=pa.Table.from_pylist(ROWS, SCHEMA), columns=Layout(schema=SCHEMA).columns(), all_rows=counts)


def sheet(**options: object) -> Sheet:
    (only,) = answer_sheets(answer(), name="a", caption="A", **{"row_limit": 10, **options})  # type: ignore[arg-type]
    return only


def test_a_heading_explains_itself_by_the_comment_of_its_column() -> None:
    assert [head.hint for head in sheet().heads] == [
        "group", "share partitions with a stall that lasts", "when it ended", "complete or not",
    ]  # fmt: skip


def test_figures_sort_by_their_values_and_unknown_ones_below_all() -> None:
    assert [row[1].sort for row in sheet().rows] == [1200, 0, -1]
    assert [row[0].sort for row in sheet().rows] == [None] * 3


def test_what_is_wrong_or_incomplete_has_a_mark() -> None:
    assert [[cell.mark for cell in row[1:]] for row in sheet().rows] == [
        ["wrong", "wrong", None],
        [None, None, "watch"],
        [None, None, None],
    ]


def test_links_come_from_the_row_and_the_first_field() -> None:
    links = [cell.href for cell in sheet(href=lambda row, field: f"{row['group_id']}/{field}").rows[0]]
    assert links == ["a/group_id", "a/standing_still", "a/until_ms", "a/completeness"]
    assert {cell.href for row in sheet().rows for cell in row} == {None}


def test_rows_that_are_not_shown_are_counted_over_all_rows() -> None:
    assert (len(sheet(row_limit=2).rows), sheet(row_limit=2).left_off) == (2, 1)
    (of_more,) = answer_sheets(answer(7), name="a", caption="A", row_limit=3)
    assert of_more.left_off == 4


def test_columns_can_be_left_out_by_their_heading() -> None:
    assert [head.label for head in sheet(without=["GROUP"]).heads] == ["Standing still", "Until", "Completeness"]


def test_paper_has_the_most_important_columns_alone() -> None:
    names = [f"field_{letter}" for letter in "abcdefghijkl"]
    schema = pa.schema([column(name, pa.int64(), name) for name in names])
    ranked = Layout(schema=schema, important=" ".join(f"FIELD-{letter}" for letter in "LKJIHGFEDCBA"))
    for layout, printed in ((ranked, names[-COLUMNS_PRINTED:]), (Layout(schema=schema), names)):
        table = pa.Table.from_pylist([dict.fromkeys(names, 1)], schema)
        (only,) = answer_sheets(Answer(table=table, columns=layout.columns()), name="a", caption="A", row_limit=1)
        assert [name for place, name in enumerate(names) if place not in only.unprinted] == printed


def test_a_digest_stands_above_the_rows_with_a_name_of_its_own() -> None:
    digest = Answer(table=pa.table({"kind": ["retry"]}))
    sheets = answer_sheets(Answer(table=answer().table, digest=digest), name="a", caption="A", row_limit=1)
    assert [(sheet.name, sheet.caption, len(sheet.rows)) for sheet in sheets] == [
        ("a-counts", "A: counts", 1),
        ("a", "A", 1),
    ]
