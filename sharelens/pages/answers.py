"""Questions as pages ask them: the same command, parsed by the same parser, its answer as tables with links."""

import contextlib
import io
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from sharelens.cli.app import COMMANDS
from sharelens.cli.asking import Inquiry, inquiry, with_what_it_lacks
from sharelens.cli.failures import failure
from sharelens.output import Answer, Report, Stream, show
from sharelens.output.chosen import with_chosen_columns
from sharelens.output.values import plain_rows
from sharelens.pages.links import href
from sharelens.question_table.asking import Surface
from sharelens.question_table.table import question_of
from sharelens.report.answer_sheets import answer_sheets
from sharelens.report.model import Sheet
from sharelens.report.pictures import Picture, picture_of
from sharelens.tables.opening import open_evidence
from state_model.errors import SharelensError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

ROWS, MOST_ROWS = 200, 5000
"""Rows of a page: without --limit, and at most."""
MOST_BYTES = 256 << 20
"""Largest document to save."""


class PageError(SharelensError):
    """Raised when a question has no answer, with one line; `is_usage`: what was asked is wrong, not the evidence."""

    def __init__(self, line: str, *, is_usage: bool = False) -> None:
        super().__init__(line)
        self.line, self.is_usage = line, is_usage

    def __reduce__(self) -> tuple[Callable[..., "PageError"], tuple[str]]:
        return partial(PageError, is_usage=self.is_usage), (self.line,)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageAnswer:
    """An answer as a page shows it. `remarks`: what a command prints on stderr, one a line.

    `picture`: what its rows look like; None: there is no picture of them.
    """

    sheets: Sequence[Sheet]
    headline: str | None = None
    summary: Sequence[str] = ()
    remarks: Sequence[str] = ()
    picture: Picture | None = None


def page_answer(
    question: str, words: Sequence[str], without: frozenset[str] = frozenset(), title: str = ""
) -> PageAnswer:
    """The answer to a command line; `without`: headings of columns that the page says elsewhere.

    `title`: of its table; empty: the summary of the question.

    Raises:
        PageError: there is none.
    """
    remarks = io.StringIO()
    with inquiry_of(question, words, remarks) as asking:
        limit = asking.shown.limit or ROWS
        if limit > MOST_ROWS:
            raise UsageError(f"--limit: a page shows at most {MOST_ROWS:,} rows; JSON and CSV have all of them")
        with asking.answer(Surface(row_limit=limit, is_text=True)) as answer:
            return _page(question, with_chosen_columns(answer, asking.shown), _Cut(limit, without, title), remarks)


def rows(question: str, words: Sequence[str]) -> dict[str, list[dict[str, object]]]:
    """At most MOST_ROWS rows of each part of an answer, by the part's name; empty: the answer is one table.

    Raises:
        PageError: there is no answer.
    """
    with inquiry_of(question, words, io.StringIO()) as asking, asking.answer(Surface(row_limit=MOST_ROWS)) as answer:
        if isinstance(answer, Stream):
            answer, _ = first_rows(answer, MOST_ROWS)
        parts = answer.parts if isinstance(answer, Report) else {"": answer}
        return {name: list(plain_rows(part.table, MOST_ROWS)) for name, part in parts.items()}


def document(question: str, words: Sequence[str], form: str, place: Path) -> None:
    """Writes what the command prints on stdout to a new file.

    Raises:
        PageError: there is no answer, or it is larger than MOST_BYTES.
    """
    with (
        os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file,
        inquiry_of(question, [*words, f"--output={form}"], io.StringIO()) as asking,
    ):
        surface = Surface(row_limit=asking.shown.row_limit, is_text=form == "text")
        with asking.answer(surface) as answer, contextlib.redirect_stdout(_Bounded(file)):
            show(with_what_it_lacks(answer) if isinstance(answer, Answer) else answer, asking.shown)


def ensure_evidence(question: str, words: Sequence[str]) -> None:
    """Opens the source of a command line and closes it.

    Raises:
        PageError: it can't be opened.
    """
    with inquiry_of(question, words, io.StringIO()) as asking:
        reads = dict[str, Any](question_of(question).reads.value)
        with open_evidence(replace(asking.named_arguments["source"], **reads)):
            pass


@contextlib.contextmanager
def inquiry_of(question: str, words: Sequence[str], remarks: TextIO) -> Iterator[Inquiry]:
    """The question with the values of the words; `remarks` gets the lines of stderr.

    Raises:
        PageError: in the place of each error of the block.
    """
    try:
        with (
            contextlib.redirect_stderr(remarks),
            COMMANDS[question].make_context(f"sharelens {question}", list(words)) as context,
        ):
            yield inquiry(question_of(question), dict(context.params))
    except PageError:
        raise
    except click.exceptions.Exit as done:
        raise PageError(f"{question}: nothing to show (exit code {done.exit_code})", is_usage=True) from done
    except Exception as error:
        is_usage = isinstance(error, UsageError | click.UsageError)
        raise PageError(failure(error).line, is_usage=is_usage) from error


@dataclass(frozen=True, slots=True)
class _Cut:
    """What a page shows of an answer: so many rows, not the columns with these headings, under a title."""

    rows: int
    without: frozenset[str]
    title: str


def _page(question: str, answer: Answer | Report | Stream, cut: _Cut, remarks: io.StringIO) -> PageAnswer:
    lines_of_stderr = _lines(remarks)
    if isinstance(answer, Report):
        sheets = [
            sheet
            for title, each in answer.parts.items()
            for sheet in _sheets(each, cut, title.replace("_", " ").capitalize())
        ]
        lines = (answer.summary or "").splitlines()
        return PageAnswer(
            sheets=sheets, headline=answer.headline, summary=lines, remarks=(*lines_of_stderr, *answer.warnings)
        )
    has_more = False
    if isinstance(answer, Stream):
        answer, has_more = first_rows(answer, cut.rows)
    answer = with_what_it_lacks(answer)
    has_all_rows = not has_more and answer.row_count == answer.table.num_rows
    return PageAnswer(
        picture=picture_of(question, answer.table) if has_all_rows else None,
        sheets=_sheets(answer, cut, cut.title or question_of(question).summary.rstrip(".")),
        summary=(*(["There are more rows."] if has_more else []), *(answer.summary or "").splitlines()),
        remarks=(*lines_of_stderr, *answer.warnings),
    )


def first_rows(stream: Stream, limit: int) -> tuple[Answer, bool]:
    """The first rows of a stream, and whether it has more; only the batches that have them are read."""

    def first_batches() -> "Iterator[pa.RecordBatch]":
        rows = 0
        for batch in stream.batches:
            yield batch.slice(0, limit + 1 - rows)
            rows += batch.num_rows
            if rows > limit:
                return

    answer = replace(stream, batches=first_batches()).read_all()
    return replace(answer, table=answer.table.slice(0, limit)), answer.table.num_rows > limit


def _sheets(answer: Answer, cut: _Cut, caption: str) -> list[Sheet]:
    name = f"{cut.title} {caption}".strip().lower().replace(" ", "-")  # titles are those of one part of a page each
    return answer_sheets(answer, name=name, caption=caption, row_limit=cut.rows, without=cut.without, href=href)


def _lines(remarks: io.StringIO) -> list[str]:
    return list(dict.fromkeys(remarks.getvalue().splitlines()))


class _Bounded(io.TextIOBase):
    """A text file that refuses to grow beyond MOST_BYTES."""

    def __init__(self, file: TextIO) -> None:
        self._file, self._written = file, 0

    def write(self, text: str) -> int:
        """Writes text. Raises PageError beyond the bound."""
        self._written += len(text)
        if self._written > MOST_BYTES:
            raise PageError(
                f"the document is larger than {MOST_BYTES >> 20} MiB: give --limit, or use the command line"
            )
        return self._file.write(text)
