"""Answers as data: rows with their text columns, and the form in which they are written."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from state_model.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

TEXT_LIMIT = 1000


class Form(Enum):
    """The format of an answer."""

    TEXT = "text"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    YAML = "yaml"


Row = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of the text form: its heading and the function for a row's cell.

    `fields`: the fields of a row that the cell shows, the column's own first; empty: the field named like the heading.
    `rank`: the place of the column on a terminal, the most important at 0; None: behind all columns that have a rank.
    `short`: the cell in at most so many columns of a terminal; None: the cell is cut off there.
    `folds`: a sentence, which continues below itself on a terminal instead of being cut off.
    """

    heading: str
    cell: Callable[[Row], str]
    right: bool = False
    fields: tuple[str, ...] = ()
    rank: int | None = None
    short: Callable[[Row, int], str] | None = None
    folds: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """Counts over all rows of an answer: rows, rows that are not complete, topics without a name."""

    rows: int
    incomplete: int
    unnamed_topics: int


def _no_sums() -> "pa.Table":
    import pyarrow as pa

    return pa.table({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Rows with their text columns (empty: one for each column of the table), a summary and warnings.

    `all_rows`: counts over all rows, where the table has only the first of them.
    `sums`: figures over all rows by share partition and what the question tells apart, for surfaces that add them up;
    without a column where a question has none. `digest`: a small table above the rows; the text form alone has it.
    `is_limited`: whether --limit counts for it.
    """

    table: "pa.Table"
    columns: tuple[Column, ...] = ()
    summary: str | None = None
    warnings: tuple[str, ...] = ()
    none: str = "nothing found"
    all_rows: RowCounts | None = None
    sums: "pa.Table" = field(default_factory=_no_sums)
    digest: "Answer | None" = None
    is_limited: bool = True

    @property
    def row_count(self) -> int:
        """The number of all rows."""
        return int(self.table.num_rows) if self.all_rows is None else self.all_rows.rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """An answer whose rows come in bounded batches, so that only the written rows are computed.

    `batches` are of `schema`. `warnings` is called once the last row is written; the rest is as in `Answer`.
    """

    schema: "pa.Schema"
    batches: Iterator["pa.RecordBatch"]
    columns: tuple[Column, ...] = ()
    summary: str | None = None
    warnings: Callable[[], Sequence[str]] = tuple
    none: str = "nothing found"

    def read_all(self) -> Answer:
        """The answer with all rows in memory."""
        import pyarrow as pa

        table = pa.Table.from_batches(list(self.batches), schema=self.schema)
        warnings = tuple(self.warnings())
        return Answer(table=table, columns=self.columns, summary=self.summary, warnings=warnings, none=self.none)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Several answers in one document: an object in JSON and YAML, titled parts in text. CSV has the first alone.

    `headline`: the first line of the text, and `verdict` of the object.
    """

    parts: Mapping[str, Answer]
    headline: str | None = None
    summary: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingCounts:
    """How many findings an answer has, and how many subjects it could not judge."""

    count: int
    unjudged: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Format and limit of an answer; no limit means 1000 rows in text and all rows elsewhere.

    `columns`: names of the columns to write, in this order; empty: all. `wide`: all columns, also where they are wider
    than the terminal. `vertical`: a line a column for each row.
    """

    form: Form = Form.TEXT
    limit: int | None = None
    columns: tuple[str, ...] = ()
    wide: bool = False
    vertical: bool = False

    @property
    def row_limit(self) -> int | None:
        """Largest number of rows to write."""
        if self.limit is None and self.form is Form.TEXT:
            return TEXT_LIMIT
        return self.limit


def shown(*, output: str, limit: int | None, columns: tuple[str, ...] | None, wide: bool, vertical: bool) -> Shown:
    """The format of an answer as options say it.

    Raises:
        UsageError: `wide` or `vertical` where the format is not text.
    """
    form = Form(output)
    if (wide or vertical) and form is not Form.TEXT:
        raise UsageError(f"--wide and --vertical go with --output text, not {output}; leave them out")
    return Shown(form=form, limit=limit, columns=columns or (), wide=wide, vertical=vertical)
