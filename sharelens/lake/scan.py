"""Reading a lake: tables at the versions of the published cut, filters pushed into the scan. No names become SQL."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sharelens.lake.durability import ensure_whole
from sharelens.lake.errors import LakeError
from sharelens.lake.lake import Lake
from sharelens.lake.snapshot import Snapshot
from sharelens.lake.tables import TABLES
from sharelens.lake.transactions import LOG
from sharelens.shell import lake_command

PUBLICATION = "gold.publication"
UNLISTED = (PUBLICATION, "gold.quality_result")
"""Tables that no cut lists: they are read as they are now."""
UPGRADE, UPGRADE_COMPLETE = ".upgrade", ".complete"
"""The folder of the lake that an upgrade writes beside this one, and its mark: it takes the place of this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A published set of versions. `versions`: table name -> Delta version; `publication`: the row of the cut."""

    lake: Lake
    versions: dict[str, int]
    publication: dict[str, object]
    _snapshots: dict[str, Snapshot] = field(default_factory=dict, init=False, repr=False, compare=False)

    def snapshot(self, table: str) -> Snapshot | None:
        """The table at the cut; None when the cut has no such table."""
        version = self.versions.get(table)
        if version is None:
            return None
        if table not in self._snapshots:
            ensure_whole(self.lake, table, version)
            snapshot = self.lake.snapshot(table, version)
            _ensure_published(snapshot, contents_of(self.publication).get(table), self.lake)
            self._snapshots[table] = snapshot
        return self._snapshots[table]

    def transaction(self, table: str, application: str) -> int | None:
        """The newest version that an application committed to the table up to the cut; None: none."""
        version = self.versions.get(table)
        return None if version is None else self.lake.transaction(table, application, version)

    def dataset(self, table: str) -> ds.Dataset | None:
        """The table at the cut as an Arrow dataset with file statistics; None when the cut has no such table."""
        snapshot = self.snapshot(table)
        return None if snapshot is None else snapshot.dataset()

    def scan(self, table: str, columns: list[str] | None = None, where: pc.Expression | None = None) -> pa.Table:
        """Rows of a table at the cut, with the types of `sharelens.lake.tables`; empty when the cut has no such
        table."""
        schema = TABLES[table].schema
        selected = schema if columns is None else pa.schema([schema.field(name) for name in columns])
        dataset = self.dataset(table)
        if dataset is None:
            return selected.empty_table()
        with readable_files(self.lake, self.snapshot(table)):
            return dataset.to_table(columns=selected.names, filter=where).cast(selected)


def open_lake(lake: Lake | str | os.PathLike[str]) -> Cut:
    """Opens the newest published cut of a lake, or of the one that a path or URI names.

    Raises:
        LakeError: no such folder, not a lake, no publication yet, or unreadable.
        LakeVersionError: written by a version with other schemas.
    """
    lake = lake if isinstance(lake, Lake) else Lake(lake)
    ensure_lake(lake)
    if lake.exists(PUBLICATION):
        ensure_whole(lake, PUBLICATION)
        published = lake.snapshot(PUBLICATION)
        with readable_files(lake, published):
            rows = published.rows()
    else:
        rows = TABLES[PUBLICATION].schema.empty_table()
    if rows.num_rows == 0:
        command = lake_command("run", lake, "--log-dir", "DIR")
        raise LakeError(f"{lake}: nothing was published yet; finish with `{command}`")
    newest = rows.sort_by([("run_id", "descending")]).slice(0, 1).to_pylist()[0]
    cut = Cut(lake=lake, versions=versions_of(newest), publication=newest)
    cut.snapshot("gold.share_partition_state")  # refuses a lake of another version before any query
    return cut


@contextmanager
def readable_files(lake: Lake, snapshot: Snapshot | None) -> Iterator[None]:
    """LakeError in place of Arrow's errors where a data file of a table is missing or damaged; it names the file."""
    try:
        yield
    except (pa.ArrowInvalid, OSError) as error:
        is_of_file = not isinstance(error, OSError) or error.errno is None or isinstance(error, FileNotFoundError)
        if snapshot is None or not is_of_file:
            raise
        file = _damaged_file(snapshot)
        named = "" if file is None else f" {file}"
        raise LakeError(
            f"{snapshot.table} in {lake}: the data file{named} can't be read ({str(error).splitlines()[0]}); ask again "
            "if upkeep may have removed it, else put the folder back from a copy"
        ) from error


def _damaged_file(snapshot: Snapshot) -> str | None:
    """The first live file that can't be read to its end; None where all can."""
    for fragment in snapshot.dataset().get_fragments():
        try:
            for _ in fragment.to_batches(batch_readahead=0, fragment_readahead=0):
                pass
        except (pa.ArrowInvalid, OSError):
            return str(fragment.path)
    return None


def versions_of(publication: Mapping[str, Any]) -> dict[str, int]:
    """The version of each table that a row of gold.publication lists."""
    return {entry["table"]: entry["version"] for entry in publication["tables"]}


def contents_of(publication: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The content of each table (`Snapshot.content`) that a row of gold.publication lists; empty in older cuts."""
    return {entry["table"]: entry for entry in publication.get("contents") or ()}


def _ensure_published(snapshot: Snapshot, published: dict[str, Any] | None, lake: Lake) -> None:
    """Refuses a version with other files than were published: a lost or changed commit, which delta-rs can't notice."""
    if published is None or snapshot.content == published:
        return
    raise LakeError(
        f"{snapshot.table} in {lake}: its version {snapshot.version} (files: {len(snapshot.files)}, rows: "
        f"{snapshot.record_count}) is not the published one (files: {published['files']}, rows: {published['rows']}): "
        f"its {LOG} was changed, or lost commits; put the folder back from a copy, or make a new lake from the logs"
    )


def ensure_lake(lake: Lake) -> None:
    """Refuses a folder that is no lake.

    Raises:
        LakeError: no such folder, or one without a lake's tables.
    """
    if not lake.storage.exists():
        raise LakeError(f"{lake} is not a directory; give the folder that `sharelens run --lake` wrote")
    if lake.storage.stat(f"{UPGRADE}/{UPGRADE_COMPLETE}") is not None:
        command = lake_command("upgrade", lake, "--execute")
        raise LakeError(f"{lake}: an upgrade was cut off; finish it with `{command}`")
    if not lake.is_lake():
        raise LakeError(
            f"{lake} holds no lake (no bronze/ingest_extent); give the folder that `sharelens run --lake` wrote"
        )
