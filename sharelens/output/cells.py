"""Cells and columns of the text form."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from sharelens.output.answers import Column, Row
from sharelens.output.terminal import cut_in_the_middle, text_width, visible
from sharelens.output.values import plain
from sharelens.parameters.times import time_text

UNKNOWN = "-"
Item = TypeVar("Item")
NAME_FIELDS = frozenset(
    {
        *("group_id", "topic", "topic_id", "dlq_topic", "log_topic", "resource", "subtopology_id"),
        *("member_id", "client_id", "client_host", "process_id"),
    }
)
"""Fields with names that users and their clients choose, of any length."""
WIDEST_NAME = 100
"""Columns that a name has in a table: the client ids of Kafka Streams fit, which end in a uuid and a thread's name."""


def name_cell(text: object) -> str:
    """A name as one word of a table: quoted if it is empty or has blanks or quotes."""
    if text is None:
        return UNKNOWN
    shown = visible(str(text))
    blurred = not shown or shown == UNKNOWN or '"' in shown or any(letter.isspace() for letter in shown)
    return '"' + shown.replace('"', '\\"') + '"' if blurred else shown


def table_name(text: object) -> str:
    """A name of a list in a cell, of at most WIDEST_NAME columns."""
    return cut_in_the_middle(name_cell(text), WIDEST_NAME)


def table_cell(column: Column, row: Row) -> str:
    """The cell in a table, where a name does not widen the column beyond WIDEST_NAME: its middle is left out."""
    cell = column.cell(row)
    return cut_in_the_middle(cell, WIDEST_NAME) if column.fields and column.fields[0] in NAME_FIELDS else cell


def number_text(value: object) -> str:
    """A number as it is; `-` for null and for Kafka's -1."""
    return UNKNOWN if value is None or value == -1 else str(value)


def name_column(heading: str, field: str) -> Column:
    """A column of names."""
    return Column(heading=heading, cell=lambda row: name_cell(row[field]), fields=(field,))


def number_column(heading: str, field: str) -> Column:
    """A column of numbers in which null and -1 mean unknown."""
    return Column(heading=heading, cell=lambda row: number_text(row[field]), right=True, fields=(field,))


def time_column(heading: str, field: str) -> Column:
    """A column of epoch milliseconds, written in ISO-8601; 0 and -1 mean unknown."""

    def cell(row: Row) -> str:
        value = row[field]
        return time_text(value) if isinstance(value, int) and value > 0 else UNKNOWN

    return Column(heading=heading, cell=cell, fields=(field,))


def text_column(heading: str, field: str) -> Column:
    """A column of sentences; null and empty are unknown."""
    return Column(heading=heading, cell=lambda row: str(row[field] or UNKNOWN), fields=(field,), folds=True)


def shortened(items: Sequence[Item], text: Callable[[Item], str], width: int) -> str:
    """The first items with commas between them, in `width` columns, and how many more there are."""
    shown = ""
    for number, item in enumerate(items):
        longer = f"{shown}, {text(item)}" if shown else text(item)
        remaining_count = len(items) - number - 1
        if text_width(longer) + (len(f", … {remaining_count} more") if remaining_count else 0) > width:
            return f"{shown}, … {remaining_count + 1} more" if shown else f"{len(items)} in all"
        shown = longer
    return shown or UNKNOWN


def by_importance(columns: Iterable[Column], headings: str) -> tuple[Column, ...]:
    """The columns in their own order, with ranks: the order of `headings`, parted by blanks; some may be absent."""
    ranks = {heading: rank for rank, heading in enumerate(headings.split())}
    return tuple(replace(column, rank=ranks.get(column.heading)) for column in columns)


def generic_columns(names: Iterable[str]) -> tuple[Column, ...]:
    """A text column for each field, with values of JSON types."""
    return tuple(generic_column(name) for name in names)


def generic_column(name: str) -> Column:
    """The text column of a field, with values of JSON types."""

    def cell(row: Row) -> str:
        value = plain(row[name])
        if value is None:
            return UNKNOWN
        return visible(value if isinstance(value, str) else json.dumps(value))

    return Column(heading=heading(name), cell=cell, fields=(name,))


def heading(field: str) -> str:
    """The heading of a field: upper-case, hyphenated."""
    return visible(field).upper().replace("_", "-")
