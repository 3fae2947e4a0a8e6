"""The text form in a pipe or a file: every column in full, whatever the terminal, but for long names."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

from sharelens.output.answers import Column, Row
from sharelens.output.cells import table_cell
from sharelens.output.terminal import text_width

WIDTH_SAMPLE = 1000
"""The first rows, which set the widths, so that memory is bounded."""
GAP = "  "


def write_table(rows: Iterator[Row], columns: Sequence[Column], none: str, out: TextIO) -> None:
    """Aligned columns; `none` where there is no row."""
    lines = ([table_cell(column, row) for column in columns] for row in rows)
    sample = list(itertools.islice(lines, WIDTH_SAMPLE))
    if not sample:
        out.write(f"{none}\n")
        return
    titles = [column.heading for column in columns]
    widths = [max(map(text_width, cells)) for cells in zip(titles, *sample, strict=True)]
    for line in itertools.chain([titles], sample, lines):
        out.write(aligned(line, widths, columns) + "\n")


def write_vertical(rows: Iterable[Row], columns: Sequence[Column], none: str, out: TextIO) -> None:
    """A line `name  value` a column for each row, a blank line between rows; `none` where there is no row."""
    room = max(text_width(column.heading) for column in columns)
    empty = True
    for row in rows:
        out.write("" if empty else "\n")
        for column in columns:
            out.write(f"{padded(column.heading, room)}{GAP}{column.cell(row)}\n")
        empty = False
    if empty:
        out.write(f"{none}\n")


def aligned(cells: Sequence[str], widths: Sequence[int], columns: Sequence[Column]) -> str:
    """The line of a row, without blanks at its end."""
    parts = [
        padded(cell, width, right=column.right) for cell, width, column in zip(cells, widths, columns, strict=True)
    ]
    return GAP.join(parts).rstrip()


def padded(cell: str, width: int, *, right: bool = False) -> str:
    """The cell with blanks behind it, or before it."""
    blanks = " " * (width - text_width(cell))
    return blanks + cell if right else cell + blanks
