"""Commits through delta-rs: files that were already written become part of a table in one atomic step.

The caller holds the lake's lock. delta-rs accepts a used transaction again from a fresh handle, rebases a stale handle
silently, and accepts an unknown removed path or another schema: all of it is checked here.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow as pa

from sharelens.groups.schemas import CONSUMER_MEMBER_VALUES
from sharelens.lake import crash_points
from sharelens.lake.errors import LakeError
from sharelens.lake.lake import SCHEMA_VERSION_PROPERTY, Lake
from sharelens.lake.object_storage import ObjectStorage
from sharelens.lake.parquet import DataFile
from sharelens.lake.tables import TABLES, Table
from sharelens.lake.transactions import commit_path, paths_in, transactions_of
from state_model.threads import map_in_threads

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction, RemoveAction

CHECKPOINT_EVERY = 20
NO_MARKS: Mapping[str, int] = {}
CREATE_THREADS = 4
FENCE_TRIES = 4
LEASE_APPLICATION = "lease"
"""The application of the transactions that hold a lease's token."""
LATER_COLUMNS = {
    "gold.publication": frozenset({"contents"}),
    "silver.group_record": frozenset({"regular_expression"}),
    "gold.member_history": frozenset(column.name for column in CONSUMER_MEMBER_VALUES),
}
"""By table nullable columns that the log of an older one may lack; `upgrade` shows them to other readers."""


def required_columns(name: str) -> list[pa.Field]:
    """The columns of a table that its log has, whichever version of sharelens created it."""
    later = LATER_COLUMNS.get(name, frozenset())
    return [column for column in TABLES[name].schema if column.name not in later]


def create_tables(lake: Lake) -> None:
    """Creates every table that is not there yet."""
    missing = [table for table in TABLES.values() if not lake.exists(table.name)]
    map_in_threads(lambda table: create(lake, table), missing, CREATE_THREADS)


def create(lake: Lake, table: Table) -> None:
    """Creates a table at version 0, unless it exists."""
    if lake.exists(table.name):
        return
    storage = lake.table_storage(table.name)
    storage.make()
    lake.ensure_writable()
    with _one_line(lake, table.name, 0):
        if not isinstance(storage, ObjectStorage):
            lake.created(table.name, _create_at(storage.root, table))
            return
        with TemporaryDirectory(prefix="table-") as folder:  # delta-rs would read a log in a store three times
            _create_at(folder, table)
            first = (Path(folder) / commit_path(0)).read_bytes()
    if storage.replace(commit_path(0), first, None) is None:
        raise _other_writer(lake, table.name, 0)
    lake.created_in_store(table.name)


def _create_at(folder: str, table: Table) -> "DeltaTable":
    """A new table in a folder of this machine."""
    from deltalake import DeltaTable

    configuration = {
        "delta.checkpointInterval": str(CHECKPOINT_EVERY),
        "delta.dataSkippingNumIndexedCols": "-1",
        "delta.parquet.compression.codec": "zstd",
        SCHEMA_VERSION_PROPERTY: str(table.version),
    }
    if table.append_only:
        configuration["delta.appendOnly"] = "true"
    return DeltaTable.create(
        folder,
        table.schema,
        partition_by=list(table.partition_by) or None,
        name=table.name,
        description=table.comment,
        configuration=configuration,
        raise_if_key_not_exists=False,
    )


def commit(
    lake: Lake,
    name: str,
    *,
    stage: str,
    run: int,
    adds: Sequence[DataFile] = (),
    removes: Sequence[str] = (),
    data_change: bool = True,
    marks: Mapping[str, int] = NO_MARKS,
) -> int:
    """Commits added and removed files of a stage of a run; the new table version.

    `marks`: versions of further applications, which the commit has beside that of the stage.

    A (stage, run) that the table already has is skipped: the current version is returned. Without `data_change`
    the files hold the same rows as before, and readers of changes may pass over the commit.

    Raises:
        LakeError: another writer committed, in spite of the lock; a removed file is not live; the schema is not ours.
    """
    point = f"commit:{name}:{stage}"
    crash_points.passing(f"{point}:before")
    if (lake.transaction(name, stage) or -1) >= run:
        return lake.version(name)
    version = write(lake, name, {stage: run, **marks}, adds=adds, removes=removes, data_change=data_change)
    crash_points.passing(f"{point}:after")
    return version


def write(
    lake: Lake,
    name: str,
    transactions: Mapping[str, int],
    *,
    adds: Sequence[DataFile] = (),
    removes: Sequence[str] = (),
    data_change: bool = True,
) -> int:
    """Commits files with the versions of some applications, without a look at earlier ones; the new table version.

    Raises:
        LakeError: as `commit`.
    """
    from deltalake.transaction import AddAction, RemoveAction

    before = lake.snapshot(name)
    _check(lake, name, set(removes).difference(before.paths))
    storage = lake.table_storage(name)
    storage.sync(sorted({os.path.dirname(file.path) for file in adds}))
    now_ms = time.time_ns() // 1_000_000
    actions: list[AddAction | RemoveAction] = [
        AddAction(
            path=file.path,
            size=file.size_bytes,
            partition_values=file.partition_values,
            modification_time=now_ms,
            data_change=data_change,
            stats=json.dumps(file.stats, ensure_ascii=False),
        )
        for file in adds
    ]
    actions += [RemoveAction(path, data_change, now_ms) for path in removes]
    _commit(lake, name, before.version, actions, transactions)
    lake.committed(name, before.version + 1, transactions)
    return before.version + 1


def fence(lake: Lake, token: int) -> None:
    """Commits the token of a lease that was taken over, and nothing else, to every table.

    The process that had the lease before can create the version behind the last one that it has seen, and no other: now
    that version is taken, or its last commit came before, as one of a run that was killed.

    Raises:
        LakeError: other writers go on to commit.
    """
    for name in TABLES:
        for tries_left in reversed(range(FENCE_TRIES)):
            if not lake.exists(name):
                break
            try:
                _commit(lake, name, int(lake.handle(name).version()), [], {LEASE_APPLICATION: token})
                break
            except LakeError:
                if not tries_left:
                    raise
                lake.updated(name)


def _commit(
    lake: Lake,
    name: str,
    version: int,
    actions: "Sequence[AddAction | RemoveAction]",
    transactions: Mapping[str, int],
) -> None:
    """Commits actions on top of a version, which is the newest one that the handle of the table has seen."""
    from deltalake import CommitProperties, PostCommitHookProperties, Transaction
    from deltalake.exceptions import CommitFailedError

    handle = lake.handle(name)
    lake.ensure_writable()  # nothing behind it looks for a newer version: a fence makes the commit fail
    with _one_line(lake, name, version + 1):
        try:
            handle.create_write_transaction(
                list(actions),
                mode="append",
                schema=handle.schema(),
                commit_properties=CommitProperties(
                    app_transactions=[Transaction(application, run) for application, run in transactions.items()],
                    custom_metadata={"userMetadata": ", ".join(f"{name} {run}" for name, run in transactions.items())},
                    max_commit_retries=0,
                ),
                post_commithook_properties=PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=False),
            )
        except CommitFailedError:
            if not _took_place(lake, name, version + 1, actions, transactions):
                raise
    if lake.updated(name) != version + 1:
        raise _other_writer(lake, name, version + 1)


def _took_place(
    lake: Lake,
    name: str,
    version: int,
    actions: "Sequence[AddAction | RemoveAction]",
    transactions: Mapping[str, int],
) -> bool:
    """Whether a commit that was refused took place all the same: its answer was lost, and the client repeated it."""
    try:
        commit = lake.table_storage(name).read(commit_path(version))
    except FileNotFoundError:
        return False
    paths = {action.path for action in actions}
    return transactions_of(commit) == transactions and paths_in(commit, "add", "remove") == paths


def _check(lake: Lake, name: str, unknown: set[str]) -> None:
    """Refuses a removed file that is not live, and a foreign schema; delta-rs would accept both."""
    if unknown:
        raise LakeError(f"{name} in {lake}: {sorted(unknown)[0]} is no live file of the table; run again")
    columns = lake.schema(name)
    may_lack = LATER_COLUMNS.get(name, frozenset()).difference(columns.names)
    expected = pa.schema([column for column in TABLES[name].schema if column.name not in may_lack])
    if not columns.equals(expected, check_metadata=False):
        raise LakeError(
            f"{name} in {lake}: another writer has changed its columns; put the table back as it was, or make a new "
            "lake from the logs"
        )


def _other_writer(lake: Lake, name: str, version: int) -> LakeError:
    return LakeError(f"{name} in {lake}: version {version} was committed by another writer; run again")


@contextmanager
def _one_line(lake: Lake, name: str, version: int) -> Iterator[None]:
    """Writes the log for its owner alone, and turns errors of delta-rs into one line."""
    from deltalake.exceptions import CommitFailedError, DeltaError

    mask = os.umask(0o077)
    try:
        yield
    except CommitFailedError as error:
        raise _other_writer(lake, name, version) from error
    except (DeltaError, OSError) as error:
        explained = lake.table_storage(name).explained(error)
        if explained is not None:
            raise explained from error
        reason = (str(error).strip().splitlines() or ["no reason"])[0]
        raise LakeError(f"{name} in {lake}: version {version} can't be committed: {reason}") from error
    finally:
        os.umask(mask)
