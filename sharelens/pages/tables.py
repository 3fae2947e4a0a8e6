"""Pages of a lake's tables: which there are, the columns of one with their comments, and its first rows."""

import io
from collections.abc import Sequence
from dataclasses import dataclass

from sharelens.lake.scan import open_lake
from sharelens.output import Answer, Row
from sharelens.pages.address import Session, path
from sharelens.pages.answers import PageAnswer, first_rows, inquiry_of
from sharelens.questions.queries.definitions import table_named
from sharelens.questions.queries.sql import sql
from sharelens.questions.queries.tables import table_columns, tables
from sharelens.report.answer_sheets import answer_sheets
from sharelens.shell import shell_line

ROWS_SHOWN = 20
PLACE = ("--lake", "--storage-option")
LISTING, COLUMNS, ROWS = "Tables of the lake", "Columns", "First rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePart:
    """A part of a page about tables, and the command with the same answer; `table`: empty in the list of all."""

    title: str
    table: str
    command_line: str


def table_parts(session: Session, table: str = "") -> Sequence[TablePart]:
    """The parts of the page of all tables, or of one."""
    place = [f"{option}={text}" for option in PLACE for text in session.texts.get(option, ())]

    def part(title: str, *words: str) -> TablePart:
        return TablePart(title=title, table=table, command_line=shell_line(["sharelens", *words]))

    if not table:
        return [part(LISTING, "tables", *place)]
    return [part(COLUMNS, "tables", table), part(ROWS, "sql", *place, _query(table))]


def table_answer(words: Sequence[str], part: TablePart) -> PageAnswer:
    """The answer of a part; `words`: of the source.

    Raises:
        PageError: there is no such lake or table, or it can't be read.
    """
    with inquiry_of("status", words, io.StringIO()) as asking:
        if part.title == COLUMNS:
            return _page(part, table_columns(part.table))
        lake = open_lake(asking.named_arguments["source"].lake)
        if not part.table:
            return _page(part, tables(lake))
        with sql(lake, _query(part.table), row_limit=ROWS_SHOWN) as stream:
            return _page(part, first_rows(stream, ROWS_SHOWN)[0])


def _query(table: str) -> str:
    """The query of a table's first rows. Raises UsageError: there is no such table."""
    return f"SELECT * FROM {table_named(table).name} LIMIT {ROWS_SHOWN}"  # noqa: S608 - a name of TABLES


def _page(part: TablePart, answer: Answer) -> PageAnswer:
    sheets = answer_sheets(
        answer, name=part.title.lower().replace(" ", "-"), caption=part.title, row_limit=answer.table.num_rows,
        href=None if part.table else _href,
    )  # fmt: skip
    return PageAnswer(sheets=sheets)


def _href(row: Row, field: str) -> str | None:
    return path("tables", str(row["table"])) if field == "table" else None
