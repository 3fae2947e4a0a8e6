"""The rows of a small table as Python values: data files never change, so each is read and converted once."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sharelens.lake.snapshot import Snapshot

_NUMBER = "_number"


class FileRows:
    """Rows of one table by data file, for the versions of a table that a process reads one after the other.

    Files that are no longer live are dropped, so that it holds about the rows of one version.
    """

    def __init__(self) -> None:
        self._version: int | None = None
        self._files: dict[str, tuple[pa.Table, list[dict[str, Any]]]] = {}
        self._table = pa.table({})
        self._rows: list[dict[str, Any]] = []

    def select(self, snapshot: Snapshot, where: pc.Expression | None = None) -> list[dict[str, Any]]:
        """The rows of a version that meet a condition on flat columns, in the order of its files; each a dictionary of
        its own.

        Lists within a row are shared between calls: don't change them.
        """
        if self._version != snapshot.version:
            self._take(snapshot)
        if where is None:
            return [dict(row) for row in self._rows]
        return [dict(self._rows[number]) for number in self._table.filter(where).column(_NUMBER).to_pylist()]

    def _take(self, snapshot: Snapshot) -> None:
        self._files = {path: self._files.get(path) or _read(snapshot, path) for path in snapshot.paths}
        self._rows = [row for _, rows in self._files.values() for row in rows]
        flat = [field.name for field in snapshot.schema if not pa.types.is_nested(field.type)]
        tables = [snapshot.schema.empty_table(), *(table for table, _ in self._files.values())]
        table = pa.concat_tables([table.select(flat) for table in tables]).combine_chunks()
        self._table = table.append_column(_NUMBER, pa.array(range(len(self._rows)), pa.int64()))
        self._version = snapshot.version


def _read(snapshot: Snapshot, path: str) -> tuple[pa.Table, list[dict[str, Any]]]:
    system = snapshot.storage.file_system()
    table = ds.dataset(path, schema=snapshot.schema, format="parquet", filesystem=system).to_table()
    return table, table.to_pylist()
