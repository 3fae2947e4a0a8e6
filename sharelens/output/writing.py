"""The only place that prints: one document on stdout, all else on stderr."""

import itertools
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from sharelens.output.answers import Answer, Column, Form, Report, Row, Shown, Stream
from sharelens.output.chosen import text_columns, with_chosen_columns
from sharelens.output.forms import json_text, write_rows, yaml_text
from sharelens.output.terminal import escaped
from sharelens.output.text import write_table, write_vertical
from sharelens.output.values import plain_rows, rows_in, rows_of

if TYPE_CHECKING:
    import pyarrow as pa


def say(line: str) -> None:
    """Prints one line on stderr, non-printable characters escaped."""
    sys.stderr.write("".join(letter if letter.isprintable() else escaped(letter) for letter in line) + "\n")


def say_warnings(warnings: Iterable[str]) -> None:
    """Prints warnings on stderr, one a line; on a terminal in lines that fit it."""
    for warning in warnings:
        for line in _fitting(f"warning: {warning}", sys.stderr):
            say(line)


def tell(text: str) -> None:
    """Prints one line on stdout."""
    sys.stdout.write(f"{text}\n")


def show(answer: Answer | Stream | Report, shown: Shown) -> None:
    """Writes an answer to stdout in the form of `shown`; warnings (and the summary, unless in text) to stderr.

    What goes to stderr comes before a document of data, which is the last line where somebody reads both streams as
    one (Airflow's BashOperator); of a stream it is known behind the last row alone.

    Raises:
        UsageError: the answer has no column of a name in `shown.columns`.
    """
    answer = with_chosen_columns(answer, shown)
    if isinstance(answer, Stream):
        _show_stream(answer, shown)
        sys.stdout.flush()
        _remark(answer.warnings(), answer.summary, shown)
        return
    is_text = shown.form is Form.TEXT
    if not is_text:
        _remark(answer.warnings, answer.summary, shown)
    if isinstance(answer, Report):
        _show_report(answer, shown)
    else:
        _show_rows(answer, shown)
    if is_text:
        _remark(answer.warnings, answer.summary, shown)


def _remark(warnings: Iterable[str], summary: str | None, shown: Shown) -> None:
    say_warnings(warnings)
    for line in (summary or "").splitlines():
        _close(line, shown.form)


def _show_rows(answer: Answer, shown: Shown) -> None:
    if answer.digest is not None and shown.form is Form.TEXT and answer.digest.table.num_rows:
        _show_digest(answer.digest, shown)
    row_limit = shown.row_limit if answer.is_limited else None
    rows = rows_of(answer.table, row_limit)
    left_off, is_text = _left_off(answer.row_count, row_limit), shown.form is Form.TEXT
    _close("" if is_text else left_off, shown.form)
    _write_rows(rows, answer.table.schema, text_columns(answer), answer.none, shown)
    _close(left_off if is_text else "", shown.form)


def _show_digest(digest: Answer, shown: Shown) -> None:
    """A table above the rows, and a blank line; without the options for the rows."""
    shown = Shown(wide=shown.wide)
    _write_text(rows_of(digest.table), text_columns(digest), digest.none, shown, table_only=True)
    remaining_rows = digest.row_count - digest.table.num_rows
    _close(f"... {remaining_rows} more" if remaining_rows else "", Form.TEXT)
    tell("")


def _show_stream(answer: Stream, shown: Shown) -> None:
    """Writes the rows of a stream; reads one more row than it writes, to know whether there are more."""
    rows = rows_in(answer.batches)
    _write_rows(itertools.islice(rows, shown.row_limit), answer.schema, text_columns(answer), answer.none, shown)
    has_more = shown.row_limit is not None and next(rows, None) is not None
    _close(f"... more rows; a --limit above {shown.row_limit} shows them" if has_more else "", shown.form)


def _show_report(report: Report, shown: Shown) -> None:
    out = sys.stdout
    match shown.form:
        case Form.TEXT:
            if report.headline is not None:
                for line in _fitting(report.headline, out):
                    tell(line)
                tell("")
            for title, part in report.parts.items():
                out.write(title.upper().replace("_", " ") + "\n")
                _show_rows(part, shown)
                out.write("\n")
        case Form.CSV:
            _show_rows(next(iter(report.parts.values())), shown)
        case form:
            document: dict[str, object] = {} if report.headline is None else {"verdict": report.headline}
            for title, part in report.parts.items():
                document[title] = list(plain_rows(part.table, shown.row_limit if part.is_limited else None))
            if form is Form.YAML:
                out.write(yaml_text(document))
            else:
                out.write(json_text(document) + "\n")


def _write_rows(
    rows: Iterator[dict[str, object]], schema: "pa.Schema", columns: Sequence[Column], none: str, shown: Shown
) -> None:
    if shown.form is Form.TEXT:
        _write_text(rows, columns, none, shown)
    else:
        write_rows(rows, schema, shown.form, sys.stdout)


def _write_text(
    rows: Iterator[Row], columns: Sequence[Column], none: str, shown: Shown, *, table_only: bool = False
) -> None:
    out = sys.stdout
    if out.isatty():
        from sharelens.output.screen import write_screen

        write_screen(rows, columns, none, shown, out, table_only=table_only)
    elif shown.vertical:
        write_vertical(rows, columns, none, out)
    else:
        write_table(rows, columns, none, out)


def _close(line: str, form: Form) -> None:
    """Writes a line about the answer: in text below its rows, else on stderr."""
    if not line:
        return
    write, stream = (tell, sys.stdout) if form is Form.TEXT else (say, sys.stderr)
    for part in _fitting(line, stream):
        write(part)


def _fitting(line: str, stream: TextIO) -> list[str]:
    """The line, on a terminal in parts that fit it."""
    if not stream.isatty():
        return [line]
    from sharelens.output.screen import prose

    return prose(line)


def _left_off(rows: int, row_limit: int | None) -> str:
    if row_limit is None or rows <= row_limit:
        return ""
    return f"... {rows - row_limit} more rows; --limit {rows} shows them all"
