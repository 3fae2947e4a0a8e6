"""The text form of an answer as a table of a page."""

from collections.abc import Callable, Collection

from sharelens.output import Answer, Column, Row
from sharelens.output.chosen import text_columns
from sharelens.report.model import Cell, Head, Sheet


def _leads_nowhere(_: Row, __: Column) -> None:
    return None


def answer_sheet(
    answer: Answer,
    *,
    name: str,
    caption: str,
    row_limit: int,
    command_: str | None = None,
    without: Collection[str] = (),
    href: Callable[[Row, Column], str | None] = _leads_nowhere,
) -> Sheet:
    """The first rows of an answer in its text columns, but for those with a heading in `without`.

    `href`: the address behind a cell of a row; None: there is none.
    """
    columns = [column for column in text_columns(answer) if column.heading not in without]
    limit = row_limit if answer.is_limited else answer.table.num_rows
    return Sheet(
        name=name,
        caption=caption,
        heads=[Head(label=column.heading.replace("-", " ").capitalize(), number=column.right) for column in columns],
        rows=[
            [
                Cell(text=column.cell(row), is_whole=column.heading.endswith("TIME"), href=href(row, column))
                for column in columns
            ]
            for row in answer.table.slice(0, limit).to_pylist()
        ],
        left_off=max(0, answer.row_count - limit),
        command=command_,
        empty=answer.none,
    )
