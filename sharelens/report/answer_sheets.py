"""The text form of an answer as tables of a page: for the report and for the explorer."""

from collections.abc import Callable, Collection, Mapping, Sequence

import pyarrow as pa

from sharelens.findings.finding import ERROR, WARNING
from sharelens.measures.dlq.schemas import DUPLICATE, MISSING, UNEXPECTED
from sharelens.output import Answer, Column, Row
from sharelens.output.chosen import text_columns
from sharelens.questions.answers.completeness import COMPLETE
from sharelens.report.model import Cell, Head, Sheet
from state_model.columnar.schemas import comment

RECORD_OFFSETS = ("record_offset", "offset", "first_offset", "first_incomplete_offset")
"""Fields with the offset of a record of a user topic."""
COLUMNS_PRINTED = 8
"""The most important columns of a table, which fit on paper."""
WRONG, WATCH = "wrong", "watch"
MARK_OF_VALUE: Mapping[str, Mapping[object, str]] = {
    "severity": {ERROR: WRONG, WARNING: WATCH},
    "status": {MISSING: WRONG, UNEXPECTED: WATCH, DUPLICATE: WATCH},
    "until_ms": {None: WRONG},
    "event": dict.fromkeys(
        ("stall_began", "deleted", "group_deleted", "recreated", "reset", "start_offset_went_back"), WRONG
    ),
}
"""By field the values whose cells have a coloured mark."""
MARK_OF_COUNT: Mapping[str, str] = {
    **dict.fromkeys(("standing_still", "tasks_without_owner"), WRONG),
    **dict.fromkeys(("gap_offsets", "quarantined", "archived_recently", "missing_share_partitions"), WATCH),
}
"""Counts whose cells have a mark where they are not 0."""


def answer_sheets(
    answer: Answer,
    *,
    name: str,
    caption: str,
    row_limit: int,
    command: str | None = None,
    without: Collection[str] = (),
    href: Callable[[Row, str], str | None] | None = None,
) -> list[Sheet]:
    """The first rows of an answer in its text columns, below its digest where it has one.

    `command`: the command line that shows all rows. `without`: headings of columns to leave out. `href`: the address
    behind the cell of a row whose first field has a name; None: there is none.
    """

    def sheet(table: Answer, name: str, caption: str) -> Sheet:
        columns = [column for column in text_columns(table) if column.heading not in without]
        minor = _minor(columns)
        limit = row_limit if table.is_limited else table.table.num_rows
        return Sheet(
            name=name,
            caption=caption,
            heads=[_head(column, table.table.schema, is_minor=column in minor) for column in columns],
            rows=[
                [_cell(row, column, href and href(row, _first_field(column))) for column in columns]
                for row in table.table.slice(0, limit).to_pylist()
            ],
            left_off=max(0, table.row_count - limit),
            command=command,
            empty=table.none,
            tools=True,
        )

    has_digest = answer.digest is not None and answer.digest.table.num_rows > 0
    digests = [sheet(answer.digest, f"{name}-counts", f"{caption}: counts")] if answer.digest and has_digest else []
    return [*digests, sheet(answer, name, caption)]


def _first_field(column: Column) -> str:
    return column.fields[0] if column.fields else column.heading.lower().replace("-", "_")


def _minor(columns: Sequence[Column]) -> Collection[Column]:
    """The columns that paper has no room for: all but the most important ones, where a layout ranks them."""
    ranked = [column for column in columns if column.rank is not None]
    if not ranked:
        return ()
    printed = sorted(ranked, key=lambda column: column.rank or 0)[:COLUMNS_PRINTED]
    return [column for column in columns if column not in printed]


def _head(column: Column, schema: pa.Schema, *, is_minor: bool) -> Head:
    field = _first_field(column)
    return Head(
        label=column.heading.replace("-", " ").capitalize(),
        number=column.right,
        hint=(comment(schema.field(field)) or None) if field in schema.names else None,
        is_minor=is_minor,
    )


def _cell(row: Row, column: Column, href: str | None) -> Cell:
    field = _first_field(column)
    value = row.get(field)
    return Cell(
        text=column.cell(row),
        sort=value if isinstance(value, int | float) else -1 if column.right else None,
        href=href,
        is_whole=column.heading.endswith("TIME") or field.endswith("_ms"),
        mark=_mark(field, value),
    )


def _mark(field: str, value: object) -> str | None:
    if field == "completeness":
        return None if value in (COMPLETE, None) else WATCH
    if field in MARK_OF_COUNT:
        return MARK_OF_COUNT[field] if value else None
    values = MARK_OF_VALUE.get(field)
    return values.get(value) if values and (value is None or isinstance(value, str)) else None
