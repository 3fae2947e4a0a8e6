"""Reading a lake: tables at the versions of the published cut, filters pushed into the scan. No names become SQL."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from lake import delta
from lake.datasets import dataset_of
from lake.errors import LakeError, LakeVersionError
from lake.tables import SCHEMA_VERSION, TABLES

PUBLICATION = "gold.publication"
UNLISTED = (PUBLICATION, "gold.quality_result")
"""Tables that no cut lists: they are read as they are now."""
VERSION_NUMBER = re.compile("[1-9][0-9]{0,8}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lake:
    """A lake opened at one cut. `versions`: table name -> Delta version; `publication`: the row of the cut."""

    path: Path
    versions: dict[str, int]
    publication: dict[str, object]

    def dataset(self, table: str) -> ds.Dataset | None:
        """The table at the cut as an Arrow dataset with file statistics; None when the cut has no such table."""
        version = self.versions.get(table)
        return None if version is None else dataset_at(self.path, table, version)

    def scan(self, table: str, columns: list[str] | None = None, where: pc.Expression | None = None) -> pa.Table:
        """Rows of a table at the cut, with the types of `lake.tables`; empty when the cut has no such table."""
        schema = TABLES[table].schema
        wanted = schema if columns is None else pa.schema([schema.field(name) for name in columns])
        found = self.dataset(table)
        if found is None:
            return wanted.empty_table()
        return found.to_table(columns=wanted.names, filter=where).cast(wanted)


def dataset_at(
    lake: Path, table: str, version: int | None = None, coded: Sequence[str] = (), *, any_schema: bool = False
) -> ds.Dataset:
    """A table at a version (None: the newest) as an Arrow dataset; the text columns `coded` as dictionaries.

    `any_schema`: whichever schema version it was written with; columns that it lacks read as null.
    """
    commit = delta.commit_at(delta.table_path(lake, table), version)
    if commit.identity is None:
        return _opened(lake, table, version, coded, any_schema=any_schema)
    return _kept(lake, table, commit, tuple(coded), any_schema=any_schema)


def rows_at(
    lake: Path, table: str, columns: Sequence[str] | None = None, where: pc.Expression | None = None
) -> pa.Table:
    """Rows of a table as it is now, published or not. Of one without files nothing but the log is looked at."""
    path, schema = delta.table_path(lake, table), TABLES[table].schema
    if delta.exists(path) and not delta.snapshot(path).files:
        check_version(lake, table)
        return schema.empty_table() if columns is None else schema.empty_table().select(columns)
    return dataset_at(lake, table).to_table(columns=None if columns is None else list(columns), filter=where)


@lru_cache(maxsize=64)
def _kept(lake: Path, table: str, commit: delta.Commit, coded: tuple[str, ...], *, any_schema: bool) -> ds.Dataset:
    """`dataset_at` while the commit is the same: opening a table costs more with every file it has."""
    return _opened(lake, table, commit.version, coded, any_schema=any_schema)


def _opened(lake: Path, table: str, version: int | None, coded: Sequence[str], *, any_schema: bool) -> ds.Dataset:
    path = delta.table_path(lake, table)
    if not any_schema:
        check_version(lake, table, version)
    return dataset_of(path, TABLES[table].schema, delta.live_files(path, version), coded)


def check_version(lake: Path, table: str, version: int | None = None) -> None:
    """Refuses a table whose schema this version of sharelens doesn't know.

    Raises:
        LakeVersionError: it was written with another schema version.
    """
    written = schema_version(lake, table, version)
    if written < SCHEMA_VERSION:
        raise LakeVersionError(
            f"{table} in {lake} has schema version {written}, this sharelens reads {SCHEMA_VERSION}; "
            f"see what it needs with `sharelens upgrade --lake {lake} --dry-run`"
        )


def schema_version(lake: Path, table: str, version: int | None = None) -> int:
    """The schema version that a table was written with.

    Raises:
        LakeVersionError: it names none, or a newer one than this sharelens knows.
    """
    configuration = delta.snapshot(delta.table_path(lake, table), version).configuration
    written = configuration.get(delta.SCHEMA_VERSION_PROPERTY)
    if written is None or VERSION_NUMBER.fullmatch(written) is None:
        told = "none" if written is None else repr(written[:40])
        raise LakeVersionError(
            f"{table} in {lake} is no table of sharelens: its schema version is {told}; "
            "give the folder that `sharelens run --lake` wrote"
        )
    if int(written) > SCHEMA_VERSION:
        raise LakeVersionError(
            f"{table} in {lake} has schema version {int(written)}, this sharelens reads {SCHEMA_VERSION}; "
            "use a sharelens as new as the one that wrote it"
        )
    return int(written)


def is_lake(path: Path) -> bool:
    """Whether the folder holds a lake's tables (published or not)."""
    return delta.exists(delta.table_path(path, "bronze.ingest_extent"))


def open_lake(path: Path) -> Lake:
    """Opens the newest published cut.

    Raises:
        LakeError: no such folder, not a lake, nothing published yet, or unreadable.
        LakeVersionError: written by a version with other schemas.
    """
    if not path.is_dir():
        raise LakeError(f"{path} is not a directory; give the folder that `sharelens run --lake` wrote")
    if not is_lake(path):
        raise LakeError(
            f"{path} holds no lake (no bronze/ingest_extent); give the folder that `sharelens run --lake` wrote"
        )
    if delta.exists(delta.table_path(path, PUBLICATION)):
        rows = dataset_at(path, PUBLICATION).to_table()
    else:
        rows = TABLES[PUBLICATION].schema.empty_table()
    if rows.num_rows == 0:
        raise LakeError(f"{path}: nothing was published yet; finish with `sharelens run --lake {path}`")
    newest = rows.sort_by([("run_id", "descending")]).slice(0, 1).to_pylist()[0]
    versions = {entry["table"]: entry["version"] for entry in newest["tables"]}
    lake = Lake(path=path, versions=versions, publication=newest)
    for table in ("gold.share_partition_state",):
        if table in versions:
            dataset_at(path, table, versions[table])
    return lake
