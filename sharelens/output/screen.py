"""The text form on a terminal: the important columns first, and no line wider than the screen."""

import itertools
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TextIO

from sharelens.output.answers import Column, Row, Shown
from sharelens.output.cells import UNKNOWN, table_cell
from sharelens.output.terminal import text_width
from sharelens.output.text import GAP, WIDTH_SAMPLE, aligned, padded, write_table

LEAST_WIDTH = 24
"""A column of text is never narrower than this where its cells are wider: a time in ISO-8601 stays whole."""
SHARE = 3
"""A column of text gets a third of the screen before less important columns have their place."""
LAST_RANK = 1 << 16
NUMBER = re.compile(r"-?[0-9]+([.][0-9]+)?")
Line = Sequence[str]


def screen_width() -> int:
    """Columns of the terminal, or COLUMNS of the environment; 80 where neither is known."""
    return shutil.get_terminal_size().columns


def write_screen(
    rows: Iterator[Row], columns: Sequence[Column], none: str, shown: Shown, out: TextIO, *, table_only: bool = False
) -> None:
    """Writes rows as a table that fits the screen, or vertically (`shown.vertical`, or a single row)."""
    if not shown.columns:
        columns = sorted(columns, key=lambda column: LAST_RANK if column.rank is None else column.rank)
    sample = list(itertools.islice(rows, WIDTH_SAMPLE))
    rows = itertools.chain(sample, rows)
    if not sample:
        out.write(f"{none}\n")
    elif not table_only and (shown.vertical or (len(sample) == 1 and not shown.wide)):
        _write_vertical(rows, columns, out, wide=shown.wide)
    elif shown.wide:
        write_table(rows, columns, none, out)
    else:
        _write_fitting(rows, sample, columns, out, all_columns=bool(shown.columns))


@dataclass(slots=True, kw_only=True)
class Fitted:
    """The columns that fit a screen with their widths, and the headings of the others."""

    width: int
    columns: list[Column] = field(default_factory=list)
    widths: list[int] = field(default_factory=list)
    naturals: list[int] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    @property
    def room(self) -> int:
        """The columns of the screen that one more column may have."""
        return self.width - sum(self.widths) - len(GAP) * len(self.widths)

    @property
    def is_in_full(self) -> bool:
        """Whether no column is left out or narrowed."""
        return not self.left_out and self.widths == self.naturals

    def add(self, column: Column, width: int, natural: int) -> None:
        """Adds a column behind the others."""
        self.columns.append(column)
        self.widths.append(width)
        self.naturals.append(natural)

    def widen(self) -> None:
        """Widens narrowed columns by what is left of the screen, the first of them first."""
        for place, natural in enumerate(self.naturals):
            self.widths[place] += max(0, min(natural - self.widths[place], self.room + len(GAP)))


def fit(columns: Sequence[Column], naturals: Sequence[int], width: int, *, all_columns: bool = False) -> Fitted:
    """The columns that fit into `width`, most important first; the first one, or `all_columns`, in any case.

    `naturals`: the widest cell of each column. Numbers are never narrowed; text may be narrowed to its share of the
    screen. A column without a rank has a place only where all before it have, and where ranked ones are not narrowed.
    """
    fitted = Fitted(width=width)
    has_ranks = any(column.rank is not None for column in columns)
    for column, natural in zip(columns, naturals, strict=True):
        is_extra = has_ranks and column.rank is None and not all_columns
        if is_extra:
            fitted.widen()
        share = fitted.room if is_extra else width // SHARE
        least = max(LEAST_WIDTH, text_width(column.heading))
        need = natural if column.right else min(natural, max(least, min(share, fitted.room)))
        may_stand = column.rank is not None or (fitted.is_in_full if is_extra else not fitted.left_out)
        if (may_stand and need <= fitted.room) or all_columns or not fitted.columns:
            fitted.add(column, need, natural)
        else:
            fitted.left_out.append(column.heading)
    fitted.widen()
    return fitted


def _natural_width(column: Column, sample: Sequence[Row], width: int) -> int:
    """The widest cell of a column; no more rows are looked at once one is as wide as the screen."""
    widest = text_width(column.heading)
    for row in sample:
        if widest >= width:
            break
        widest = max(widest, text_width(_cell(column, row, width)))
    return widest


def _write_fitting(
    rows: Iterator[Row], sample: Sequence[Row], columns: Sequence[Column], out: TextIO, *, all_columns: bool
) -> None:
    width = screen_width()
    naturals = [_natural_width(column, sample, width) for column in columns]
    fitted = fit(columns, naturals, width, all_columns=all_columns)
    out.write(aligned([column.heading for column in fitted.columns], fitted.widths, fitted.columns) + "\n")
    lines = (
        [_narrowed(column, row, room) for column, room in zip(fitted.columns, fitted.widths, strict=True)]
        for row in rows
    )
    for line in without_repeats(lines, fitted.columns):
        for part in _folded_line(line, fitted):
            out.write(aligned(part, fitted.widths, fitted.columns) + "\n")
    if fitted.left_out:
        for part in prose(f"left out: {', '.join(fitted.left_out)}; --wide shows all columns"):
            out.write(f"{part}\n")


def _folded_line(line: Line, fitted: Fitted) -> Iterator[Line]:
    """The lines of a row: sentences continue below themselves."""
    parts = [
        folded(cell, room) if column.folds else [cell]
        for cell, column, room in zip(line, fitted.columns, fitted.widths, strict=True)
    ]
    return map(list, itertools.zip_longest(*parts, fillvalue=""))


def without_repeats(lines: Iterable[Line], columns: Sequence[Column]) -> Iterator[Line]:
    """The lines with leading names left blank that the line above has too; numbers and the last cell always stand."""
    before: Line = ()
    for line in lines:
        triples = zip(line[:-1], before, columns, strict=False)
        same = sum(1 for _ in itertools.takewhile(lambda triple: _is_repeated(*triple), triples))
        yield [*itertools.repeat("", same), *line[same:]]
        before = line


def _is_repeated(cell: str, above: str, column: Column) -> bool:
    """Whether a cell is the name above once more; the number of a partition is a name."""
    is_name = column.heading.endswith("PARTITION") or NUMBER.fullmatch(cell) is None
    return is_name and cell == above and cell != UNKNOWN


def _cell(column: Column, row: Row, width: int) -> str:
    return table_cell(column, row) if column.short is None else column.short(row, width)


def _narrowed(column: Column, row: Row, width: int) -> str:
    """The cell in the width of its column; a number that is wider stays whole."""
    cell = _cell(column, row, width)
    return cell if column.right or column.folds or text_width(cell) <= width else cut(cell, width)


def cut(text: str, width: int) -> str:
    """The beginning of the text in `width` columns, with an ellipsis at its end."""
    widths = itertools.takewhile(lambda total: total < width, itertools.accumulate(map(text_width, text)))
    return text[: sum(1 for _ in widths)].rstrip() + "…"


def _write_vertical(rows: Iterable[Row], columns: Sequence[Column], out: TextIO, *, wide: bool) -> None:
    """A line `name  value` a column for each row; a long value continues below itself, unless `wide`."""
    room = max(text_width(column.heading) for column in columns)
    width = max(LEAST_WIDTH, screen_width() - room - len(GAP))
    for number, row in enumerate(rows):
        out.write("\n" if number else "")
        for column in columns:
            first, *other_lines = [column.cell(row)] if wide else folded(column.cell(row), width)
            out.write(f"{padded(column.heading, room)}{GAP}{first}\n")
            for part in other_lines:
                out.write(f"{' ' * room}{GAP}{part}\n")


def prose(text: str) -> list[str]:
    """A line as lines that fit the screen, parted at blanks."""
    return folded(text, screen_width())


def folded(text: str, width: int) -> list[str]:
    """The text in lines of at most `width` columns, parted at blanks where there are some."""
    if text_width(text) <= width:
        return [text]
    from rich.console import Console
    from rich.text import Text

    return [line.plain.rstrip() for line in Text(text).wrap(Console(width=width), width, overflow="fold")]
