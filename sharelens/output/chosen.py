"""The columns of an answer that --columns names, by heading or by field."""

from collections.abc import Sequence
from dataclasses import replace

from sharelens.output.answers import Answer, Column, Form, Report, Shown, Stream
from sharelens.output.cells import generic_column, generic_columns
from state_model.errors import UsageError


def with_chosen_columns(answer: Answer | Stream | Report, shown: Shown) -> Answer | Stream | Report:
    """The answer with the columns of `shown` alone, in this order; a report keeps the parts that have one of them.

    Raises:
        UsageError: there is no such column.
    """
    if not shown.columns:
        return answer
    parts = list(answer.parts.values()) if isinstance(answer, Report) else [answer]
    _ensure_known(shown.columns, parts)
    if isinstance(answer, Stream):
        return _of_stream(answer, shown.columns, shown.form)
    if isinstance(answer, Answer):
        return _of_answer(answer, shown.columns, shown.form)
    chosen = {title: [name for name in shown.columns if _is_in(part, name)] for title, part in answer.parts.items()}
    named = {title: _of_answer(answer.parts[title], names, shown.form) for title, names in chosen.items() if names}
    return replace(answer, parts=named)


def _of_answer(answer: Answer, names: Sequence[str], form: Form) -> Answer:
    if form is Form.TEXT:
        return replace(answer, columns=_columns(answer, names), digest=None)
    return replace(answer, table=answer.table.select(_places(answer, names)))


def _of_stream(answer: Stream, names: Sequence[str], form: Form) -> Stream:
    if form is Form.TEXT:
        return replace(answer, columns=_columns(answer, names))
    places = _places(answer, names)
    schema = answer.schema.empty_table().select(places).schema
    return replace(answer, schema=schema, batches=(batch.select(places) for batch in answer.batches))


def text_columns(answer: Answer | Stream) -> tuple[Column, ...]:
    """The columns of the text form."""
    return answer.columns or generic_columns(field_names(answer))


def field_names(answer: Answer | Stream) -> list[str]:
    """The fields of a row."""
    schema = answer.table.schema if isinstance(answer, Answer) else answer.schema
    return list(schema.names)


def column_names(answer: Answer | Stream) -> list[str]:
    """The names for --columns: of each text column its heading, and the fields that are no column's own."""
    columns, fields = text_columns(answer), field_names(answer)
    column_fields = {field for column in columns for field in _own_fields(column, fields)[:1]}
    return [
        *(_normal(column.heading) for column in columns),
        *(field for field in fields if field not in column_fields),
    ]


def _ensure_known(names: Sequence[str], parts: Sequence[Answer | Stream]) -> None:
    for name in names:
        if not any(_is_in(part, name) for part in parts):
            there = dict.fromkeys(column for part in parts for column in column_names(part))
            raise UsageError(f"--columns: no column {name!r}; columns: {', '.join(there)}")


def _is_in(answer: Answer | Stream, name: str) -> bool:
    columns, fields = text_columns(answer), field_names(answer)
    names = {_normal(other) for other in (*fields, *(column.heading for column in columns))}
    return _normal(name) in names


def _columns(answer: Answer | Stream, names: Sequence[str]) -> tuple[Column, ...]:
    """The text columns of these names, each once."""
    columns, fields = text_columns(answer), field_names(answer)
    return tuple(dict.fromkeys(_column(columns, fields, name) for name in names))


def _column(columns: Sequence[Column], fields: Sequence[str], name: str) -> Column:
    """The text column whose own field has exactly this name, else the one with the heading, else one for the field."""
    for column in columns:
        if name in _own_fields(column, fields)[:1]:
            return column
    for column in columns:
        if _normal(column.heading) == _normal(name):
            return column
    field = _field(fields, name)
    assert field is not None, "the names are known"
    return next((column for column in columns if field in _own_fields(column, fields)[:1]), generic_column(field))


def _places(answer: Answer | Stream, names: Sequence[str]) -> list[int]:
    """The places of the fields of these names, each once.

    Raises:
        UsageError: a heading shows no field of its own.
    """
    columns, fields = text_columns(answer), field_names(answer)
    places: dict[int, None] = {}
    for name in names:
        shown = _fields(columns, fields, name)
        if not shown:
            raise UsageError(f"--columns: {name} is a column of the text alone; fields: {', '.join(fields)}")
        places |= dict.fromkeys(fields.index(field) for field in shown)
    return list(places)


def _fields(columns: Sequence[Column], fields: Sequence[str], name: str) -> Sequence[str]:
    """The field of the name, else all fields that the column with the heading shows."""
    field = _field(fields, name)
    if field is not None:
        return (field,)
    column = next(column for column in columns if _normal(column.heading) == _normal(name))
    return _own_fields(column, fields)


def _field(fields: Sequence[str], name: str) -> str | None:
    """The field of exactly this name, else the first one that differs in case, `-` and `_` alone."""
    return name if name in fields else next((field for field in fields if _normal(field) == _normal(name)), None)


def _own_fields(column: Column, fields: Sequence[str]) -> tuple[str, ...]:
    """The fields that a column shows, as far as rows have them."""
    names = column.fields or tuple(field for field in fields if _normal(field) == _normal(column.heading))
    return tuple(field for field in names if field in fields)


def _normal(name: str) -> str:
    """The name without differences of case, or of `-` and `_`."""
    return name.strip().lower().replace("-", "_")
