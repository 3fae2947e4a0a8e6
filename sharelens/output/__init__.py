"""Answers and how they are written: `show` prints one document on stdout (text, JSON, JSON lines, CSV, YAML).

`answers`: rows with columns, and their form. `cells`: text columns. `text`, `screen`, `forms`: text in a pipe, text on
a terminal, and the forms for programs. `chosen`: --columns. `writing`: the only place that prints.
"""

from sharelens.output.answers import (
    TEXT_LIMIT,
    Answer,
    Column,
    FindingCounts,
    Form,
    Report,
    Row,
    RowCounts,
    Shown,
    Stream,
)
from sharelens.output.cells import (
    UNKNOWN,
    by_importance,
    generic_columns,
    heading,
    name_cell,
    name_column,
    number_column,
    number_text,
    shortened,
    table_name,
    text_column,
    time_column,
)
from sharelens.output.forms import json_text, yaml_text
from sharelens.output.values import plain, plain_rows, rows_of
from sharelens.output.writing import say, say_warnings, show, tell

__all__ = [
    "TEXT_LIMIT",
    "UNKNOWN",
    "Answer",
    "Column",
    "FindingCounts",
    "Form",
    "Report",
    "Row",
    "RowCounts",
    "Shown",
    "Stream",
    "by_importance",
    "generic_columns",
    "heading",
    "json_text",
    "name_cell",
    "name_column",
    "number_column",
    "number_text",
    "plain",
    "plain_rows",
    "rows_of",
    "say",
    "say_warnings",
    "shortened",
    "show",
    "table_name",
    "tell",
    "text_column",
    "time_column",
    "yaml_text",
]
