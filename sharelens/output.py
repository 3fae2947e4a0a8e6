"""The only place that prints: one document on stdout (text, JSON, JSON lines, CSV, YAML), all else on stderr."""

import csv
import itertools
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from math import isfinite
from typing import TYPE_CHECKING, TextIO

from sharelens.terminal import escaped, text_width, visible
from sharelens.times import MILLISECOND, time_text

if TYPE_CHECKING:
    import pyarrow as pa

TEXT_LIMIT = 1000
UNKNOWN = "-"
ROWS_AT_ONCE = 4096
WIDTH_SAMPLE = 1000


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
    """One column of the text form: its heading and the function for a row's cell."""

    heading: str
    cell: Callable[[Row], str]
    right: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """Counts over all rows of an answer: rows, rows that are not complete, topics without a name."""

    rows: int
    incomplete: int
    unnamed_topics: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Rows with their text columns (empty: one for each column of the table), a summary and warnings.

    `all_rows`: counts over all rows, where the table has only the first of them.
    """

    table: "pa.Table"
    columns: tuple[Column, ...] = ()
    summary: str | None = None
    warnings: tuple[str, ...] = ()
    none: str = "nothing found"
    all_rows: RowCounts | None = None

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
    """Several answers in one document: an object in JSON and YAML, titled parts in text. CSV has the first alone."""

    parts: Mapping[str, Answer]
    summary: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Format and limit of an answer; no limit means 1000 rows in text and all rows elsewhere."""

    form: Form = Form.TEXT
    limit: int | None = None

    @property
    def most(self) -> int | None:
        """Largest number of rows to write."""
        if self.limit is None and self.form is Form.TEXT:
            return TEXT_LIMIT
        return self.limit


def say(line: str) -> None:
    """Prints one line on stderr, non-printable characters escaped."""
    sys.stderr.write("".join(letter if letter.isprintable() else escaped(letter) for letter in line) + "\n")


def tell(text: str) -> None:
    """Prints one line on stdout."""
    sys.stdout.write(f"{text}\n")


def name_cell(text: object) -> str:
    """A name as one word of a table: quoted if it is empty or has blanks or quotes."""
    if text is None:
        return UNKNOWN
    shown = visible(str(text))
    blurred = not shown or shown == UNKNOWN or '"' in shown or any(letter.isspace() for letter in shown)
    return '"' + shown.replace('"', '\\"') + '"' if blurred else shown


def known(value: object) -> str:
    """A number as it is; `-` for null and for Kafka's -1."""
    return UNKNOWN if value is None or value == -1 else str(value)


def name_column(heading: str, field: str) -> Column:
    """A column of names."""
    return Column(heading=heading, cell=lambda row: name_cell(row[field]))


def number_column(heading: str, field: str) -> Column:
    """A column of numbers in which null and -1 mean unknown."""
    return Column(heading=heading, cell=lambda row: known(row[field]), right=True)


def time_column(heading: str, field: str) -> Column:
    """A column of epoch milliseconds, written in ISO-8601; 0 and -1 mean unknown."""

    def cell(row: Row) -> str:
        value = row[field]
        return time_text(value) if isinstance(value, int) and value > 0 else UNKNOWN

    return Column(heading=heading, cell=cell)


def heading(field: str) -> str:
    """The heading of a field: upper-case, hyphenated."""
    return visible(field).upper().replace("_", "-")


def rows_of(table: "pa.Table", most: int | None = None) -> Iterator[dict[str, object]]:
    """Rows as dictionaries, a bounded number of them in memory."""
    return _rows_in(table.slice(0, most).to_batches(max_chunksize=ROWS_AT_ONCE))


def plain_rows(table: "pa.Table", most: int | None = None) -> Iterator[dict[str, object]]:
    """Rows with values of JSON types."""
    return _made_plain(rows_of(table, most), table.schema)


def _rows_in(batches: "Iterable[pa.RecordBatch]") -> Iterator[dict[str, object]]:
    for batch in batches:
        for first in range(0, batch.num_rows, ROWS_AT_ONCE):
            yield from batch.slice(first, ROWS_AT_ONCE).to_pylist()


def _made_plain(rows: Iterator[dict[str, object]], schema: "pa.Schema") -> Iterator[dict[str, object]]:
    """Rows with values of JSON types; unchanged where all columns have such types."""
    if all(_is_plain(field.type) for field in schema):
        return rows
    return ({str(name): plain(value) for name, value in row.items()} for row in rows)


def _is_plain(kind: "pa.DataType") -> bool:
    """Whether the Python values of an Arrow type are values of JSON."""
    import pyarrow.types as types

    if types.is_list(kind):
        return _is_plain(kind.value_type)
    if types.is_struct(kind):
        return all(_is_plain(kind.field(index).type) for index in range(kind.num_fields))
    return bool(types.is_integer(kind) or types.is_string(kind) or types.is_boolean(kind) or types.is_null(kind))


def plain(value: object) -> object:
    """A value of a JSON type: times in ISO-8601, bytes in hex, NaN and infinity as null."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if isfinite(value) else None
        case Decimal():
            return int(value) if value == value.to_integral_value() else str(value)
        case bytes():
            return value.hex()
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case timedelta():
            return value / MILLISECOND
        case dict():
            return {str(name): plain(part) for name, part in value.items()}
        case list() | tuple():
            return [plain(part) for part in value]
        case _:
            return str(value)


def show(answer: Answer | Stream | Report, shown: Shown) -> None:
    """Writes an answer to stdout in the form of `shown`; warnings (and the summary, unless in text) to stderr."""
    if isinstance(answer, Report):
        _show_report(answer, shown)
    elif isinstance(answer, Stream):
        _show_stream(answer, shown)
    else:
        _show_rows(answer, shown)
    for warning in answer.warnings() if isinstance(answer, Stream) else answer.warnings:
        say(f"warning: {warning}")
    for line in (answer.summary or "").splitlines():
        if shown.form is Form.TEXT:
            tell(line)
        else:
            say(line)


def _show_rows(answer: Answer, shown: Shown) -> None:
    rows = rows_of(answer.table, shown.most)
    columns = answer.columns or generic_columns(answer.table.column_names)
    _write_rows(rows, answer.table.schema, columns, answer.none, shown.form)
    _say_more(_left_off(answer.row_count, shown.most), shown.form)


def _show_stream(answer: Stream, shown: Shown) -> None:
    """Writes the rows of a stream; reads one more row than it writes, to know whether there are more."""
    rows = _rows_in(answer.batches)
    columns = answer.columns or generic_columns(answer.schema.names)
    _write_rows(itertools.islice(rows, shown.most), answer.schema, columns, answer.none, shown.form)
    more = shown.most is not None and next(rows, None) is not None
    _say_more(f"... more rows; a --limit above {shown.most} shows them" if more else "", shown.form)


def _say_more(line: str, form: Form) -> None:
    if line and form is Form.TEXT:
        tell(line)
    elif line:
        say(line)


def _write_rows(
    rows: Iterator[dict[str, object]], schema: "pa.Schema", columns: Sequence[Column], none: str, form: Form
) -> None:
    out = sys.stdout
    if form is Form.TEXT:
        _write_text(rows, columns, none, out)
        return
    rows = _made_plain(rows, schema)
    match form:
        case Form.JSON:
            _write_json(rows, out)
        case Form.JSONL:
            for row in rows:
                out.write(json_text(row) + "\n")
        case Form.CSV:
            _write_csv(rows, schema.names, out)
        case Form.YAML:
            _write_yaml(rows, out)


def _show_report(report: Report, shown: Shown) -> None:
    out = sys.stdout
    match shown.form:
        case Form.TEXT:
            for title, part in report.parts.items():
                out.write(title.upper().replace("_", " ") + "\n")
                _show_rows(part, shown)
                out.write("\n")
        case Form.CSV:
            _show_rows(next(iter(report.parts.values())), shown)
        case form:
            document = {title: list(plain_rows(part.table, shown.most)) for title, part in report.parts.items()}
            if form is Form.YAML:
                out.write(yaml_text(document))
            else:
                out.write(json_text(document) + "\n")


def _left_off(rows: int, most: int | None) -> str:
    if most is None or rows <= most:
        return ""
    return f"... {rows - most} more rows; --limit {rows} shows them all"


def json_text(value: object) -> str:
    """One line of JSON in ASCII, so that names can't control a terminal."""
    return json.dumps(value, allow_nan=False)


def yaml_text(value: object) -> str:
    """A YAML document in the order of the fields."""
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return str(yaml.dump(value, Dumper=dumper, sort_keys=False, default_flow_style=False))


def _write_json(rows: Iterable[Row], out: TextIO) -> None:
    first = True
    for row in rows:
        out.write("[\n " if first else ",\n ")
        out.write(json_text(row))
        first = False
    out.write("[]\n" if first else "\n]\n")


def _write_yaml(rows: Iterator[dict[str, object]], out: TextIO) -> None:
    first = True
    while some := list(itertools.islice(rows, ROWS_AT_ONCE)):
        out.write(yaml_text(some))
        first = False
    if first:
        out.write("[]\n")


def _write_csv(rows: Iterable[Row], names: Sequence[str], out: TextIO) -> None:
    """CSV with unchanged values in a file or a pipe; on a terminal control characters are escaped."""
    escape: Callable[[object], object] = _escaped_text if out.isatty() else lambda cell: cell
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([escape(name) for name in names])
    for row in rows:
        writer.writerow([escape(_csv_cell(value)) for value in row.values()])


def _escaped_text(cell: object) -> object:
    return visible(cell) if isinstance(cell, str) else cell


def _csv_cell(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value) if isinstance(value, list | dict) else value


def _write_text(rows: Iterator[dict[str, object]], columns: Sequence[Column], none: str, out: TextIO) -> None:
    """Aligned columns; the first thousand rows set the widths, so that memory is bounded."""
    lines = ([column.cell(row) for column in columns] for row in rows)
    sample = list(itertools.islice(lines, WIDTH_SAMPLE))
    if not sample:
        out.write(f"{none}\n")
        return
    titles = [column.heading for column in columns]
    widths = [max(map(text_width, cells)) for cells in zip(titles, *sample, strict=True)]
    for line in itertools.chain([titles], sample, lines):
        out.write(_aligned(line, widths, columns) + "\n")


def generic_columns(names: Iterable[str]) -> tuple[Column, ...]:
    """A text column for each field, with values of JSON types."""
    return tuple(_generic_column(name) for name in names)


def _generic_column(name: str) -> Column:
    def cell(row: Row) -> str:
        value = plain(row[name])
        if value is None:
            return UNKNOWN
        return visible(value if isinstance(value, str) else json.dumps(value))

    return Column(heading=heading(name), cell=cell)


def _aligned(cells: Sequence[str], widths: Sequence[int], columns: Sequence[Column]) -> str:
    padded = []
    for cell, width, column in zip(cells, widths, columns, strict=True):
        blanks = " " * (width - text_width(cell))
        padded.append(blanks + cell if column.right else cell + blanks)
    return "  ".join(padded).rstrip()
