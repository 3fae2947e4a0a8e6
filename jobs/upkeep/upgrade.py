"""Brings an older lake to this version: a new lake beside it, which takes its place once it is published.

    LAKE/bronze, silver, gold            the old lake: older software answers from it until the new one is published
    LAKE/.upgrade/bronze, silver, gold   the new one: files of the old one by reference, and derived tables
    LAKE/.upgrade/.complete              the new one is published: folder by folder it takes the place of the old one
    LAKE/.older/bronze, silver, gold     the old one, until it is removed

It reads the lake alone: bronze is the only copy of records that Kafka has pruned. After a kill, the next one resumes.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from jobs import books, publish, retained
from jobs.errors import JobError
from jobs.measure import group_histories
from jobs.options import RunOptions
from jobs.progress import Progress
from jobs.run import Pipeline
from jobs.upkeep.exchange import OLDER, exchange, is_complete
from jobs.upkeep.upgrade_plan import FILLED, Kind, Need, derived_from, look
from jobs.writing import Writer
from sharelens.evidence.undecoded_groups import DECODED_FROM_RUN
from sharelens.lake import crash_points, durability, gates, lock
from sharelens.lake.commit import create_tables, write
from sharelens.lake.lake import Lake
from sharelens.lake.parquet import DataFile, ParquetSink, partition_values, statistics
from sharelens.lake.scan import UPGRADE, UPGRADE_COMPLETE
from sharelens.lake.tables import TABLES
from sharelens.lake.view_columns import OLD_NAMES
from state_model.topics import UNKNOWN_CLUSTER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCH_ROWS = 1 << 16
APPLICATIONS = (
    *(*books.MARKER, "measure-step", "letter-causes", "check", "maintain", "maintain-cuts"),
    DECODED_FROM_RUN,
)
"""The applications whose transactions are carried over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeOptions:
    """What to upgrade. `dry_run`: only look; `in_process_bytes`: as in RunOptions."""

    lake: Lake
    dry_run: bool
    lock_timeout_s: float = 60.0
    in_process_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgraded:
    """The result of an upgrade; `stage`: the first one that derives tables again; `run_id`: of the new cut, or None."""

    needs: list[Need]
    stage: str | None
    dry_run: bool
    run_id: int | None = None
    summary: dict[str, Any] = field(default_factory=dict)

    @property
    def is_needed(self) -> bool:
        """Whether the lake needs an upgrade."""
        return any(need.kind is not Kind.UNCHANGED for need in self.needs)


def upgrade(
    options: UpgradeOptions, session: Callable[[], "SparkSession"], progress: Progress | None = None
) -> Upgraded:
    """Upgrades a lake to this version, and returns the work; with `dry_run` it only returns the work to do.

    Raises:
        LakeError: no lake there, or its logs can't be read.
        LakeVersionError: of a newer or unknown version.
        LakeLockedError: a run holds it.
        JobError: a closed gate forbids the publication.
    """
    lake = options.lake
    if options.dry_run:
        return _looked_at(lake, dry_run=True)
    os.umask(0o077)
    if not is_complete(lake):
        _looked_at(lake, dry_run=False)  # a folder without a lake, or with a newer one, gets no lock
    with lock.hold(lake, options.lock_timeout_s) as writer_lock:
        if is_complete(lake):  # also where the upgrade that it waited for was killed
            exchange(lake)
        lake.forget()  # what others committed while it waited decides what is needed
        looked_at = _looked_at(lake, dry_run=False)
        needs, stage = looked_at.needs, looked_at.stage
        lake.storage.remove_folder(OLDER)
        if not looked_at.is_needed:
            lake.storage.remove_folder(UPGRADE)
            return looked_at
        _refuse_closed_gates(lake)
        new = Lake(lake.storage.folder(UPGRADE).root)
        new.lease = lake.lease
        _carry(lake, new, needs)
        goes_on = books.done(new, "ingest-plan") > books.done(lake, "ingest-plan")
        run_options = RunOptions(
            lake=new,
            stages=("ingest", "decode", "replay", "measure", "audit"),
            rebuild=None if goes_on else stage,
            in_process_bytes=options.in_process_bytes,
        )
        writer = Writer(lock=writer_lock, set_aside=())
        summary = Pipeline(run_options, session, progress or Progress(), writer).go()
        run = _publish(lake, new, summary.cluster_id)
        durability.sync(new)
        new.storage.create(UPGRADE_COMPLETE).close()
        lake.storage.sync([UPGRADE, f"{UPGRADE}/{UPGRADE_COMPLETE}", "."])
        exchange(lake)
    lake.forget()
    return Upgraded(needs=needs, stage=stage, dry_run=False, run_id=run, summary=summary.as_dict())


def _looked_at(lake: Lake, *, dry_run: bool) -> Upgraded:
    """The work that the lake needs, before any of it is done."""
    needs = look(lake)
    return Upgraded(needs=needs, stage=derived_from(needs), dry_run=dry_run)


def _refuse_closed_gates(lake: Lake) -> None:
    """Refuses a lake with closed gates, because an upgrade publishes."""
    if not lake.exists(gates.RESULTS):
        return
    closed = gates.closed(lake, any_schema=True)
    published = publish.published_versions(lake)
    versions = {name: number for name, number in publish.current_versions(lake).items() if number >= 0}
    if closed and any(published.get(name) != number for name, number in versions.items()):
        raise JobError(
            f"{lake} has unpublished versions behind closed gates: {gates.closed_text(closed)}; "
            "remove the cause and publish with the sharelens that wrote it, then upgrade"
        )


def _carry(lake: Lake, new: Lake, needs: list[Need]) -> None:
    """Makes the tables of the new lake, each with the rows of the old one that it can read, in one commit."""
    new.storage.make()
    create_tables(new)
    for need in needs:
        if need.written is None or new.version(need.table) > 0 or _is_recomputed(new, need.table):
            continue
        crash_points.passing(f"carry:{need.table}:before")
        transactions = {
            application: run
            for application in APPLICATIONS
            if (run := lake.transaction(need.table, application)) is not None
        }
        if need.table == publish.PUBLICATION:
            files = _publications(lake, new)
        elif need.kind is Kind.REWRITTEN or (need.readable and need.is_renamed):
            files = _rewritten(lake, new, need.table)
        elif need.readable:
            files = [_linked(lake, new, need.table, path) for path in _paths(lake, need.table)]
        else:
            files = []
        write(new, need.table, transactions, adds=files)
    durability.sync(new)


def _is_recomputed(new: Lake, table: str) -> bool:
    """Whether a table has rows of groups, whose marks changed since; not where retention dropped records of them.

    The books of the new lake are there.
    """
    return table in group_histories.TABLE_OF.values() and not retained.cuts(new, retained.SILVER)


def _paths(lake: Lake, name: str) -> list[str]:
    return lake.snapshot(name, any_schema=True).paths


def _linked(lake: Lake, new: Lake, name: str, path: str) -> DataFile:
    """A data file of the old lake as one of the new: a second name for it, or a copy where the disk knows none."""
    storage = new.table_storage(name)
    storage.take(lake.table_storage(name), path)
    values = partition_values(path)
    schema = pa.schema([column for column in TABLES[name].schema if column.name not in values])
    footer = pq.read_metadata(path, filesystem=storage.file_system())
    return DataFile(
        path=path,
        size_bytes=storage.file_system().get_file_info(path).size,
        stats=statistics(footer, schema),
        partition_values=values,
    )


def _rewritten(lake: Lake, new: Lake, name: str) -> list[DataFile]:
    """New files with all rows, in their order, in the columns of this version, under their names of this version."""
    table, filled = TABLES[name], FILLED.get(name, {})
    old_names = {new_name: old for old, new_name in OLD_NAMES.get(name, {}).items()}
    files: list[DataFile] = []
    for fragment in lake.snapshot(name, any_schema=True).dataset().get_fragments():
        values = partition_values(fragment.path)
        columns = {
            old_names.get(field.name, field.name): field.name
            for field in table.schema
            if field.name not in filled and field.name not in values
        }
        schema = pa.schema([table.schema.field(new_name).with_name(old) for old, new_name in columns.items()])
        with ParquetSink(new, table, constants=filled, partition_values=values) as sink:
            for batch in fragment.to_batches(schema=schema, columns=list(columns), batch_size=BATCH_ROWS):
                sink.write(pa.Table.from_batches([batch]).rename_columns(list(columns.values())))
        files += sink.files
    return files


def _publications(lake: Lake, new: Lake) -> list[DataFile]:
    """The publications so far, without the versions of tables that no longer exist."""
    table = TABLES[publish.PUBLICATION]
    rows = lake.snapshot(table.name, any_schema=True).dataset().to_table().cast(table.schema)
    at = table.schema.get_field_index("tables")
    gone = pa.array([[]] * rows.num_rows, table.schema.field(at).type)
    with ParquetSink(new, table, constants={}) as sink:
        sink.write(rows.set_column(at, table.schema.field(at), gone))
    return sink.files


def _publish(lake: Lake, new: Lake, cluster_id: str | None) -> int | None:
    """Publishes the new lake, and returns the run of its cut; None for a lake without a run."""
    if not publish.is_current(new):
        run = publish.next_run(new)
        if run == 0:
            return None
        publish.publish(new, run, cluster_id or UNKNOWN_CLUSTER, books.software_version())
    return books.done(new, "publish") or None
