"""The forms for programs: JSON, JSON lines, CSV and YAML."""

import csv
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from sharelens.output.answers import Form, Row
from sharelens.output.terminal import visible
from sharelens.output.values import ROWS_AT_ONCE, made_plain

if TYPE_CHECKING:
    import pyarrow as pa


def write_rows(rows: Iterator[dict[str, object]], schema: "pa.Schema", form: Form, out: TextIO) -> None:
    """Writes rows as one document (JSON on one line, YAML), a line each (JSON lines) or a table (CSV), row by row."""
    rows = made_plain(rows, schema)
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


def json_text(value: object) -> str:
    """One line of JSON in ASCII, so that names can't control a terminal."""
    return json.dumps(value, allow_nan=False)


def yaml_text(value: object) -> str:
    """A YAML document in the order of the fields."""
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return str(yaml.dump(value, Dumper=dumper, sort_keys=False, default_flow_style=False))


def _write_json(rows: Iterable[Row], out: TextIO) -> None:
    """One line, so that the last line of stdout is the answer; row by row, so that memory is bounded."""
    separator = "["
    for row in rows:
        out.write(separator + json_text(row))
        separator = ", "
    out.write("[]\n" if separator == "[" else "]\n")


def _write_yaml(rows: Iterator[dict[str, object]], out: TextIO) -> None:
    first = True
    while row_batch := list(itertools.islice(rows, ROWS_AT_ONCE)):
        out.write(yaml_text(row_batch))
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
