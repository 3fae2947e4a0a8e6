"""Layouts: the columns of the text form, derived from the schema of an answer's rows, with the exceptions as data."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sharelens.output.answers import Column, Row
from sharelens.output.cells import (
    UNKNOWN,
    by_importance,
    heading,
    name_cell,
    name_column,
    number_column,
    number_text,
    text_column,
    time_column,
)
from state_model.columnar.schemas import is_moment

if TYPE_CHECKING:
    import pyarrow as pa

HIDDEN = frozenset({"cluster_id", "log_topic_id", "topic_id", "completeness_reason"})
"""Fields without a column of their own unless a layout names them."""
HEADINGS: Mapping[str, str] = {
    "client_host": "HOST",
    "cluster_id": "CLUSTER",
    "first_incomplete_offset": "FIRST-INCOMPLETE",
    "group_id": "GROUP",
    "group_type": "TYPE",
    "life_log_offset": "LIFE",
    "member_count": "#MEMBERS",
    "member_id": "MEMBER",
    "process_id": "PROCESS",
    "run_id": "RUN",
    "subtopology_id": "SUBTOPOLOGY",
}
"""Words of Kafka's tools, and short ones, in place of a field's name in capitals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The rows of an answer, and where their text form differs from what their schema says.

    By the schema each field is a column: its name in capitals is the heading (`_ms` of a moment left out), its type
    decides the cell. A topic without a name shows its id, a mark of completeness its reason.

    `schema`: of the rows, with a comment for each field; an answer may have fewer fields, never others. `fields`: the
    fields with a column, in the order of the columns; empty: all but HIDDEN. `headings`: other headings, by field.
    `cells`: columns that are no plain value of one field, each in the place of its first field. `sentences`: fields
    that fold on a terminal. `important`: headings, the most important first. `varies`: which fields an answer has, or
    which have a column, where that depends on the request or on the rows.
    """

    schema: "pa.Schema"
    fields: str = ""
    headings: Mapping[str, str] = field(default_factory=dict)
    cells: tuple[Column, ...] = ()
    sentences: str = ""
    important: str = ""
    varies: str = ""

    def columns(self, names: Container[str] | None = None, *other_cells: Column) -> tuple[Column, ...]:
        """The columns of the fields in `names` (None: of all); `other_cells` replace those of the layout."""
        cells = {column.fields[0]: column for column in (*self.cells, *other_cells)}
        chosen = self.fields.split() or [name for name in self.schema.names if name not in HIDDEN]
        columns = (cells.get(name) or self._column(name) for name in chosen if names is None or name in names)
        return by_importance(columns, self.important)

    def _column(self, name: str) -> Column:
        """The column that the schema gives a field."""
        title, kind = self.headings.get(name) or self._heading(name), str(self.schema.field(name).type)
        if name == "completeness" and "completeness_reason" in self.schema.names:
            return Column(heading=title, cell=_completeness_cell, fields=(name, "completeness_reason"))
        if name == "topic" and "topic_id" in self.schema.names:
            return Column(heading=title, cell=_topic_cell, fields=(name,))
        if name in self.sentences.split():
            return text_column(title, name)
        if is_moment(name):
            return time_column(title, name)
        if kind == "double":
            return ratio_column(title, name)
        return number_column(title, name) if kind.startswith("int") else name_column(title, name)

    def _heading(self, name: str) -> str:
        """The heading of a field; offsets beside a state partition are those of the state log."""
        if name in HEADINGS:
            return HEADINGS[name]
        title = heading(name.removesuffix("_ms") if is_moment(name) else name)
        is_of_state_log = "state_partition" in self.schema.names and title.endswith("LOG-OFFSET")
        return title.replace("LOG-OFFSET", "STATE-LOG-OFFSET") if is_of_state_log else title


def ratio_column(heading: str, field: str, decimals: int = 2) -> Column:
    """A column of numbers with a fraction."""

    def cell(row: Row) -> str:
        value = row[field]
        return f"{value:.{decimals}f}" if isinstance(value, float) else UNKNOWN

    return Column(heading=heading, cell=cell, right=True, fields=(field,))


def _topic_cell(row: Row) -> str:
    """The topic's name, or its id where the name is unknown."""
    return name_cell(row["topic_id"] if row["topic"] is None else row["topic"])


def _completeness_cell(row: Row) -> str:
    """`complete`, or the mark with its reason behind a colon."""
    reason = row["completeness_reason"]
    return number_text(row["completeness"]) if reason is None else f"{row['completeness']}:{reason}"
