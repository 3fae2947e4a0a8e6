"""The work that an older lake needs: the schema of each table, compared with the one of this version.

Shapes are compared, not version numbers alone, so that an upgrade that was killed half-way is understood, too.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any

from jobs import books
from sharelens.lake import gates, scan
from sharelens.lake.errors import LakeVersionError
from sharelens.lake.lake import Lake
from sharelens.lake.snapshot import Snapshot
from sharelens.lake.tables import SCHEMA_VERSION, TABLES, Table
from sharelens.lake.view_columns import OLD_NAMES

STAGES = ("decode", "replay", "measure", "audit")
REPLAYED = ("gold.share_partition_state", "gold.share_partition_history", "gold.delivery_history")
FROM_METADATA_LOG = ("silver.metadata_record", "gold.configuration_history", "gold.topic_history")
NOT_DERIVED = (
    *("silver.name", *FROM_METADATA_LOG, "gold.share_partition_base", "gold.measure_base"),
    *(gates.RESULTS, scan.PUBLICATION),
)
"""Tables behind bronze whose rows do not follow from bronze alone."""
FILLED_BY_LATER_RUNS = (*NOT_DERIVED, "silver.dlq_record")
"""Tables that stay empty in an upgraded lake without them: an older version took no dead letters, no metadata log."""
FILLED: dict[str, dict[str, Any]] = {
    "bronze.ingest_extent": {"log_start_known": False},
}
"""The value of a column that an older version did not have: the weaker of the answers."""
DERIVED_ANEW = {1: "decode"}
"""By version the first stage that derives tables again, because the meaning of columns changed since."""


class Kind(StrEnum):
    """The work on a table; the value is its text for people."""

    UNCHANGED = "nothing"
    VERSION = "new version number"
    COLUMNS = "new columns, empty in old rows"
    RENAMED = "renamed columns"
    REWRITTEN = "rewritten"
    DERIVED = "derived anew"
    CREATED = "created"


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """The work on one table.

    `written`: its schema version (None: there is no such table); `detail`: which columns; `readable`: its rows can be
    read under the schema of this version, once columns have its names; `is_renamed`: some have older ones (OLD_NAMES).
    """

    table: str
    written: int | None
    kind: Kind
    detail: str = ""
    readable: bool = True
    is_renamed: bool = False
    rows: int = 0
    size_bytes: int = 0


def stage_of(table: str) -> str | None:
    """The stage that derives a table from the layer below it; None when its rows come from elsewhere."""
    if table in NOT_DERIVED or table.startswith("bronze."):
        return None
    if table in REPLAYED:
        return "replay"
    if table in books.AUDITED:
        return "audit"
    return "decode" if table.startswith("silver.") else "measure"


def earliest(stages: Iterable[str | None]) -> str | None:
    """The first stage of the pipeline among some; None for none."""
    named = [stage for stage in stages if stage in STAGES]
    return min(named, key=STAGES.index, default=None)


def look(lake: Lake) -> list[Need]:
    """The work on every table, in the order of execution: the books first, publications last.

    Raises:
        LakeError: not a lake.
        LakeVersionError: of a newer or unknown version, or in a shape that nothing leads on from.
    """
    scan.ensure_lake(lake)
    names = ["bronze.ingest_extent", *(name for name in TABLES if name != "bronze.ingest_extent")]
    names.sort(key=lambda name: name == scan.PUBLICATION)
    written = {name: _opened(lake, name) for name in names}  # a version that is not known is refused before any shape
    return [_need(lake, TABLES[name], snapshot) for name, snapshot in written.items()]


def derived_from(needs: Iterable[Need]) -> str | None:
    """The first stage that derives tables again; None for none."""
    stages = []
    for need in needs:
        if need.kind is Kind.DERIVED or (need.kind is Kind.CREATED and need.table not in FILLED_BY_LATER_RUNS):
            stages.append(stage_of(need.table))
        if need.written is not None and need.written < SCHEMA_VERSION:
            stages.append(DERIVED_ANEW.get(need.written))
    return earliest(stages)


def _opened(lake: Lake, name: str) -> Snapshot | None:
    return lake.snapshot(name, any_schema=True) if lake.exists(name) else None


def _need(lake: Lake, table: Table, opened: Snapshot | None) -> Need:
    if opened is None:
        return Need(table=table.name, written=None, kind=Kind.CREATED)
    columns = _columns(lake.handle(table.name).schema().to_json())
    renamed = {old: new for old, new in OLD_NAMES.get(table.name, {}).items() if old in columns}
    present = {renamed.get(name, name): column for name, column in columns.items()}
    kind, detail, readable = _difference(lake, table, opened.schema_version, present)
    if renamed and kind in (Kind.UNCHANGED, Kind.VERSION):
        kind = Kind.RENAMED
    return Need(
        table=table.name,
        written=opened.schema_version,
        kind=kind,
        detail="; ".join([*filter(None, [detail]), *(f"renames {old} to {new}" for old, new in renamed.items())]),
        readable=readable,
        is_renamed=bool(renamed),
        rows=0 if kind is Kind.UNCHANGED else opened.record_count,
        size_bytes=0 if kind is Kind.UNCHANGED else opened.size_bytes,
    )


def _difference(lake: Lake, table: Table, written: int, present: dict[str, tuple[str, bool]]) -> tuple[Kind, str, bool]:
    """The kind of work from the table's columns to those of this version, its text, and whether its rows are readable.

    A column that rows lack may be null in tables that are not derived; derived tables are derived again, with values.
    `present`: the table's columns under their names of this version.
    """
    declared = _declared_columns(table)
    added = [name for name in declared if name not in present]
    dropped = [name for name in present if name not in declared]
    changed = [name for name in declared if name in present and not _holds(declared[name], present[name])]
    moved = tuple(lake.handle(table.name).metadata().partition_columns) != table.partition_by
    detail = _change_text(adds=added, drops=dropped, changes=changed, partitions=table.partition_by if moved else ())
    needed = [name for name in added if not declared[name][1]]
    readable = not (dropped or changed or moved or needed)
    if readable and not added:
        return (Kind.UNCHANGED if written == SCHEMA_VERSION and present == declared else Kind.VERSION), "", True
    if stage_of(table.name) is not None:
        return Kind.DERIVED, detail, readable
    if readable:
        return Kind.COLUMNS, detail, True
    unknown = [name for name in needed if name not in FILLED.get(table.name, {})]
    if unknown or changed or moved:
        raise LakeVersionError(
            f"{table.name} in {lake} has schema version {written} and other columns ({detail}) that nothing leads on "
            "from; write a new lake from the logs with `sharelens run`"
        )
    return Kind.REWRITTEN, detail, False


@cache
def _declared_columns(table: Table) -> dict[str, tuple[str, bool]]:
    """The columns of a table of this version."""
    from deltalake import Schema

    return _columns(Schema.from_arrow(table.schema).to_json())


def _columns(schema_text: str) -> dict[str, tuple[str, bool]]:
    """Type and nullability of each column, without comments."""
    fields = json.loads(schema_text)["fields"]
    return {field["name"]: (_bare(field["type"]), field["nullable"]) for field in fields}


def _bare(kind: Any) -> str:
    """A type as text, without the comments inside it."""
    if isinstance(kind, dict):
        return json.dumps({name: _bare(value) for name, value in kind.items() if name != "metadata"}, sort_keys=True)
    return json.dumps([_bare(item) for item in kind] if isinstance(kind, list) else kind)


def _holds(declared: tuple[str, bool], present: tuple[str, bool]) -> bool:
    """Whether all values of a column of `present` are values of one of `declared`."""
    return declared[0] == present[0] and (declared[1] or not present[1])


def _change_text(**columns: Iterable[str]) -> str:
    parts = [f"{verb} {', '.join(names)}" for verb, names in columns.items() if names]
    return "; ".join(parts)
