"""A lake: a URI with storage options, and one delta-rs handle a table, which only the driver opens."""

import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sharelens.lake.commit_log import CommitLog
from sharelens.lake.errors import LakeError, LakeVersionError
from sharelens.lake.file_rows import FileRows
from sharelens.lake.locations import resolve
from sharelens.lake.snapshot import Snapshot, files_of
from sharelens.lake.storage import Entry, Storage
from sharelens.lake.tables import SCHEMA_VERSION, TABLES
from sharelens.lake.transactions import LOG, Transactions, commit_path
from sharelens.shell import lake_command

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from sharelens.lake.lease import Lease

SCHEMA_VERSION_PROPERTY = "sharelens.schemaVersion"
FIRST_TABLE = "bronze.ingest_extent"
"""The table that makes a folder a lake."""
VERSION_NUMBER = re.compile("[1-9][0-9]{0,8}")
LOG_ENTRY = re.compile(r"([0-9]{20})\.(json|checkpoint\..*parquet|checkpoint\.parquet)")


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeView:
    """A lake as tasks see it: the folders to write files to, and the snapshots from the driver to read."""

    storage: Storage
    snapshots: Mapping[str, Snapshot]

    def table_storage(self, table: str) -> Storage:
        """The folder of table `layer.name`."""
        return self.storage.folder(*table.split(".", 1))

    def snapshot(self, table: str) -> Snapshot:
        """A table as it was when the driver planned the task."""
        return self.snapshots[table]


class Lake:
    """The tables of a lake. Pickled, it is its address alone: handles stay in the process that opened them.

    A process that was forked from one that used delta-rs must not use it: tasks read through snapshots.
    """

    def __init__(self, uri: str | os.PathLike[str]) -> None:
        self.uri = os.fspath(uri)
        self.storage = resolve(uri)
        self.lease: Lease | None = None
        """The lease under which this process writes to a lake in an object store (`sharelens.lake.lease`)."""
        self.unsynced: dict[str, int] = {}
        """By table the first version that the disk may not have yet (`sharelens.lake.durability`)."""
        self.last_hold: int | None = None
        """The time (ns) of the lock's file, or the lease's token, when this object released it; None: never."""
        self._is_held = False
        self._current: set[str] = set()
        """Tables whose handles are at the newest version while this object has the lake's lock."""
        self.least_versions: dict[str, int] = {}
        """By table a version that is known to exist: a listing of a store without it is stale."""
        self.extent_rows = FileRows()
        """Rows of FIRST_TABLE, the books, which each stage of a run reads."""
        self._handles: dict[str, DeltaTable] = {}
        self._at_versions: dict[str, DeltaTable] = {}
        """Handles at the version that was last named, while this object has the lake's lock."""
        self._snapshots: dict[str, Snapshot] = {}
        self._snapshots_lock = threading.Lock()
        """Questions read parts of the histories in threads."""
        self._transactions: dict[str, Transactions] = {}
        self._commit_logs: dict[str, CommitLog] = {}
        self._names: dict[str, frozenset[str]] = {}
        self._versions: dict[str, int] = {}
        self._process = os.getpid()

    def __reduce__(self) -> tuple[Any, ...]:
        return Lake, (self.uri,)

    def __str__(self) -> str:
        return self.uri

    def table_storage(self, table: str) -> Storage:
        """The folder of table `layer.name`."""
        return self.storage.folder(*table.split(".", 1))

    def exists(self, table: str) -> bool:
        """Whether there is such a table: a log with a commit or a checkpoint."""
        if self.storage.is_local and table not in self._current:
            return self._has_first(table) or any(LOG_ENTRY.fullmatch(entry.name) for entry in self.log(table))
        return table in self._handles or self._is_listed(*table.split(".", 1))

    def _has_first(self, table: str) -> bool:
        """Whether a table has the version of its handle, or the first one: a name costs less than a listing."""
        handle = self._handles.get(table)
        path = commit_path(0 if handle is None else int(handle.version()))
        return self.table_storage(table).stat(path) is not None

    def _is_listed(self, layer: str, name: str) -> bool:
        """Whether a store has a table: one request for all tables of a layer, as each object of a store is whole.

        Others may create tables meanwhile, but not under our lease.
        """
        if name not in self._names.get(layer, ()) and (self.lease is None or layer not in self._names):
            self._names[layer] = frozenset(self.storage.folder(layer).names())
        return name in self._names[layer]

    def log(self, table: str) -> list[Entry]:
        """The files of a table's log, in no order; [] without a table."""
        return self.table_storage(table).files(LOG)

    def is_lake(self) -> bool:
        """Whether the folder holds a lake's tables, published or not."""
        return self.exists(FIRST_TABLE)

    def handle(self, table: str) -> "DeltaTable":
        """The delta-rs table, at its newest version.

        Raises:
            LakeError: there is no such table, or its log can't be read.
        """
        with self._readable(table):
            handle = self._handles.get(table)
            if handle is None:
                handle = self._open(table)
                self._ensure_fresh(table, int(handle.version()))
                self._handles[table] = handle
            elif self._may_be_newer(table, int(handle.version())):
                handle.update_incremental()
            if self._is_held:
                self._current.add(table)
            return handle

    def hold(self, *, is_held: bool) -> None:
        """Notes that this object has the lock of a lake on a path, or has no longer: under it nobody else commits."""
        self._is_held = is_held
        self._current.clear()
        self._versions.clear()
        self._at_versions.clear()

    def created(self, table: str, handle: "DeltaTable") -> None:
        """Keeps the handle of a table that was just created: it has no files and no transactions."""
        self._handles[table] = handle
        self._snapshots[table] = Snapshot(
            table=table,
            version=int(handle.version()),
            schema_version=self._schema_version(table, handle.metadata().configuration),
            storage=self.table_storage(table),
            files=(),
        )
        self._transactions[table] = Transactions(version=int(handle.version()), read_from=0)
        self.unsynced[table] = 0

    def created_in_store(self, table: str) -> None:
        """Notes a table that was just created in a store; its log is read when the table is first used."""
        layer, name = table.split(".", 1)
        self._names[layer] = self._names.get(layer, frozenset()) | {name}
        self._versions[table] = 0

    def committed(self, table: str, version: int, transactions: Mapping[str, int]) -> None:
        """Notes the transactions of a version that was just committed on top of the one before."""
        self.unsynced.setdefault(table, version)
        table_transactions = self._transactions.get(table)
        if table_transactions is not None and table_transactions.version == version - 1:
            self._transactions[table] = table_transactions.followed_by(transactions)

    def forget(self, tables: Iterable[str] | None = None) -> None:
        """Closes the handles of tables (None: of all): files of the logs were renamed or removed under them."""
        for table in list(self._handles) if tables is None else tables:
            for table_cache in (self._handles, self._at_versions, self._snapshots, self._transactions, self._versions):
                table_cache.pop(table, None)
            self._current.discard(table)
        if tables is None:
            for every in (self._at_versions, self._snapshots, self._transactions, self._versions, self._commit_logs):
                every.clear()
            self._current.clear()
            self._names.clear()
            self.least_versions.clear()

    def commit_log(self, table: str) -> CommitLog:
        """The commits and checkpoints of a table up to its newest version; what a listing of a store has."""
        table_log = self._commit_logs.get(table)
        if table_log is None or not self.storage.is_local:
            table_log = self._commit_logs[table] = CommitLog.of_entries(self.log(table), table_log)
        table_log.follow(self.table_storage(table), self.version(table))
        return table_log

    def removed_since(self, table: str, version: int) -> set[str]:
        """The data files that versions after one have removed from a table."""
        log, newest = self.commit_log(table), self.version(table)
        with self._readable(table):
            return log.removed_after(self.table_storage(table), version, newest)

    def version(self, table: str) -> int:
        """The newest version; -1 when there is no table."""
        if not self.exists(table):
            return -1
        if table in self._handles:
            return int(self.handle(table).version())
        return self._listed_version(table)

    def _listed_version(self, table: str) -> int:
        """The newest version by the names in the log: one listing, where delta-rs reads the commits too."""
        if table not in self._versions or not (self._is_held or self.lease is not None):
            entries = (LOG_ENTRY.fullmatch(file.name) for file in self.log(table))
            self._versions[table] = max((int(entry[1]) for entry in entries if entry), default=-1)
            self._ensure_fresh(table, self._versions[table])
        return self._versions[table]

    def _ensure_fresh(self, table: str, version: int) -> None:
        """Refuses to rest on a listing of a store that lacks a version of a table.

        Raises:
            LakeError: the newest version that is listed is older than one that is known to exist.
        """
        least = self.least_versions.get(table, -1)
        if version < least and not self.storage.is_local:
            raise LakeError(
                f"{table} in {self}: the store lists versions up to {version}, and version {least} was committed; its "
                "listings are stale: run again later, on a store that is consistent"
            )

    def transaction(self, table: str, application: str, version: int | None = None) -> int | None:
        """The newest version committed for an application up to a version (None: the newest) of a table, or None."""
        if not self.exists(table):
            return None
        with self._readable(table):
            by_name = version is None and self.storage.is_local  # in a store a listing is one request more
            at = self.version(table) if by_name else int(self._at(table, version).version())
            table_transactions = self._transactions.get(table)
            if table_transactions is None or table_transactions.version != at:
                table_transactions = Transactions(version=at)
                if version is None:
                    self._transactions[table] = table_transactions
            return table_transactions.newest_of(
                application, self.table_storage(table), lambda: self._at(table, version)
            )

    def schema(self, table: str, version: int | None = None) -> pa.Schema:
        """The columns of a table by its log, not by `sharelens.lake.tables`."""
        with self._readable(table):
            return pa.schema(self._at(table, version).schema().to_arrow())

    def snapshot(self, table: str, version: int | None = None, *, any_schema: bool = False) -> Snapshot:
        """A version (None: the newest) of a table. `any_schema`: whichever schema version it was written with.

        Raises:
            LakeError: there is no such table or version, or its log can't be read.
            LakeVersionError: it was written with another schema version.
        """
        with self._snapshots_lock, self._readable(table):
            handle = self._at(table, version)
            table_snapshot = self._snapshots.get(table)
            if table_snapshot is None or table_snapshot.version != handle.version():
                table_snapshot = self._snapshot_of(table, handle)
                if version is None:
                    self._snapshots[table] = table_snapshot
        if not any_schema:
            self._check_version(table_snapshot)
        return table_snapshot

    def view(self, tables: Iterable[str] = TABLES) -> LakeView:
        """The newest snapshots of tables for tasks, which must not use delta-rs."""
        return LakeView(storage=self.storage, snapshots={table: self.snapshot(table) for table in tables})

    def write_checkpoint(self, table: str, version: int) -> None:
        """Writes the checkpoint of a version beside its commit."""
        with self._readable(table):
            self._at(table, version).create_checkpoint()

    def updated(self, table: str) -> int:
        """The handle at the table's newest version, after a commit of this process."""
        with self._readable(table):
            handle = self._handles[table]
            handle.update_incremental()
            return int(handle.version())

    def ensure_writable(self) -> None:
        """Refuses a commit after another process has taken the lease over.

        Raises:
            LakeLockedError: it was taken over.
        """
        if self.lease is not None:
            self.lease.ensure_held()

    def ensure_local(self) -> None:
        """Refuses a lake in an object store for Spark, which opens only paths here.

        Raises:
            LakeError: it lies in an object store.
        """
        if not self.storage.is_local:
            raise LakeError(f"{self}: Spark opens no object store here; use `sharelens sql`, DuckDB, Polars or pandas")

    def _may_be_newer(self, table: str, version: int) -> bool:
        """Whether a table may have a newer version.

        On a local disk, two file names are cheaper than delta-rs; nobody else commits under our lease.
        """
        if not self.storage.is_local:
            return self.lease is None
        if table in self._current:
            return False
        storage = self.table_storage(table)
        return storage.stat(commit_path(version + 1)) is not None or storage.stat(commit_path(version)) is None

    def _at(self, table: str, version: int | None) -> "DeltaTable":
        if version is None:
            return self.handle(table)
        for handle in (self._handles.get(table), self._at_versions.get(table)):
            if handle is not None and handle.version() == version:
                return handle
        handle = self._open(table, version)
        if self._is_held:
            self._at_versions[table] = handle
        return handle

    def _open(self, table: str, version: int | None = None) -> "DeltaTable":
        if os.getpid() != self._process:
            raise RuntimeError("delta-rs can't be used in a forked process: read through a snapshot of the driver")
        from deltalake import DeltaTable

        storage = self.table_storage(table)
        return DeltaTable(storage.root, version=version, storage_options=storage.delta_options())

    @contextmanager
    def _readable(self, table: str) -> Iterator[None]:
        """The error for an unreadable Delta log of a table."""
        from deltalake.exceptions import DeltaError, TableNotFoundError

        try:
            yield
        except TableNotFoundError as error:
            command = lake_command("run", self, "--log-dir", "DIR")
            raise LakeError(f"{self}: there is no table {table}; write it with `{command}`") from error
        except (DeltaError, OSError, ValueError) as error:
            explained = self.storage.explained(error)
            if explained is not None:
                raise explained from None
            reason = (str(error).strip().splitlines() or ["no reason"])[0]
            raise LakeError(
                f"{table} in {self}: its {LOG} can't be read ({reason}); ask again if upkeep may have removed the "
                "version that was read, run again if a run was cut off, else put the folder back from a copy"
            ) from error

    def _snapshot_of(self, table: str, handle: "DeltaTable") -> Snapshot:
        files = files_of(handle.get_add_actions(flatten=True))
        before = self._snapshots.get(table)
        conditions = {} if before is None else before.conditions
        paths = (str(file["path"]) for file in files)
        return Snapshot(
            table=table,
            version=int(handle.version()),
            schema_version=self._schema_version(table, handle.metadata().configuration),
            storage=self.table_storage(table),
            files=files,
            conditions={path: conditions[path] for path in paths if path in conditions},
            earlier=None if before is None else before.known_footers,
        )

    def _schema_version(self, table: str, properties: Mapping[str, str]) -> int:
        written = properties.get(SCHEMA_VERSION_PROPERTY)
        if written is None or VERSION_NUMBER.fullmatch(written) is None:
            shown = "none" if written is None else repr(written[:40])
            raise LakeVersionError(
                f"{table} in {self} is no table of sharelens: its schema version is {shown}; "
                "give the folder that `sharelens run --lake` wrote"
            )
        if int(written) > SCHEMA_VERSION:
            raise LakeVersionError(
                f"{table} in {self} has schema version {int(written)}, this sharelens reads {SCHEMA_VERSION}; "
                "use a sharelens as new as the one that wrote it"
            )
        return int(written)

    def _check_version(self, snapshot: Snapshot) -> None:
        if snapshot.schema_version < SCHEMA_VERSION:
            raise LakeVersionError(
                f"{snapshot.table} in {self} has schema version {snapshot.schema_version}, this sharelens reads "
                f"{SCHEMA_VERSION}; see what it needs with `{lake_command('upgrade', self, '--dry-run')}`"
            )


LakeReader = Lake | LakeView
"""The source of snapshots: the lake in the driver, a view of it in a task."""
