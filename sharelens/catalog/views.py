"""The views over a lake that other engines register: each table at the published cut, and histories at a moment."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from sharelens.lake.gates import RESULTS
from sharelens.lake.scan import PUBLICATION, Cut
from sharelens.lake.snapshot import Snapshot
from sharelens.lake.tables import TABLES, Table
from sharelens.lake.view_columns import NAMED_TABLES, NAMES, view_schema
from sharelens.questions.queries.definitions import table_named
from state_model.errors import UsageError

BEGIN, END, IS_OPEN = "valid_from_ms", "valid_to_ms", "is_open"
NOW, AS_OF = "_now", "_as_of"
MOMENT = "moment"
"""The parameter of the functions whose names end in AS_OF."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A table as other engines see it.

    `snapshot`: the version to read; None: the cut has no such table, so the view has no rows.
    `newest_run`: the largest run_id of its rows; None: all rows. `names`: of silver.name, where the view has a column
    `topic` that the table lacks; None: the cut has no names.
    """

    table: Table
    prefix: str
    snapshot: Snapshot | None
    newest_run: int | None = None
    names: Snapshot | None = None

    @property
    def schema(self) -> pa.Schema:
        """Its columns."""
        return view_schema(self.table)

    @property
    def schema_name(self) -> str:
        """The schema of the catalog: the layer behind the prefix."""
        return self.prefix + self.table.name.partition(".")[0]

    @property
    def name(self) -> str:
        """Name inside the schema."""
        return self.table.name.partition(".")[2]

    @property
    def qualified(self) -> str:
        """schema.name"""
        return f"{self.schema_name}.{self.name}"

    @property
    def is_history(self) -> bool:
        """Whether its rows are valid from a moment to another one, so that it has NOW and AS_OF."""
        return {BEGIN, END} <= set(self.table.schema.names)

    @property
    def condition(self) -> str | None:
        """SQL of every engine: which rows of the version belong to the cut."""
        return None if self.newest_run is None else f"run_id <= {self.newest_run}"

    @property
    def now_condition(self) -> str:
        """SQL of every engine: rows that are valid at the end of the cut; a partition column spares files."""
        return IS_OPEN if IS_OPEN in self.table.schema.names else f"{END} IS NULL"


def views(lake: Cut, name: str | None = None, prefix: str = "") -> list[View]:
    """The views of all tables, or of one, at the published cut.

    The publications end with the cut's own; the results of checks are read at their newest version, as everywhere.

    Args:
        lake: the cut.
        name: the only table, as layer.table; None: all.
        prefix: the beginning of each schema's name, of letters, digits and `_`.

    Raises:
        UsageError: no such table, or a prefix that is no identifier.
    """
    if prefix and not (prefix.isidentifier() and prefix.isascii()):
        raise UsageError(
            f"--schema-prefix: {prefix!r} is not made of letters, digits and _; type --schema-prefix lake_"
        )
    tables = TABLES.values() if name is None else [table_named(name)]
    return [_view(lake, table, prefix) for table in tables]


def _view(lake: Cut, table: Table, prefix: str) -> View:
    snapshot = lake.snapshot(table.name)
    newest_run = None
    if snapshot is None and table.name in (PUBLICATION, RESULTS) and lake.lake.exists(table.name):
        snapshot = lake.lake.snapshot(table.name)
        newest_run = int(str(lake.publication["run_id"])) if table.name == PUBLICATION else None
    names = lake.snapshot(NAMES) if table.name in NAMED_TABLES else None
    return View(table=table, prefix=prefix, snapshot=snapshot, newest_run=newest_run, names=names)


def as_of_condition(moment_ms: str) -> str:
    """SQL of every engine: rows that are valid at a moment, an expression in epoch milliseconds.

    A row is valid from `valid_from_ms`, inclusive, to `valid_to_ms`, exclusive (`sharelens.evidence.as_of`).
    """
    return f"{BEGIN} <= {moment_ms} AND ({END} IS NULL OR {END} > {moment_ms})"


def type_name(kind: pa.DataType, names: Mapping[pa.DataType, str], array: str, struct: Callable[[str], str]) -> str:
    """A column type in an engine's SQL, from its names of plain types.

    Args:
        kind: the type.
        names: by plain type its name.
        array: the form of a list, with `{}` for the elements' type.
        struct: the form of a struct, from its fields as `name type`, separated by commas.
    """
    if pa.types.is_list(kind):
        return array.format(type_name(kind.value_type, names, array, struct))
    if pa.types.is_struct(kind):
        return struct(", ".join(f'"{field.name}" {type_name(field.type, names, array, struct)}' for field in kind))
    return names[kind]


def literal(text: str) -> str:
    """A string literal of standard SQL."""
    return "'" + text.replace("'", "''") + "'"
