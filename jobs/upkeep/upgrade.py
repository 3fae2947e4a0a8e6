"""Upgrade: an older lake becomes one of this version, in place, killed wherever it may be.

    books | other tables, one commit each | decode, replay, measure as after --rebuild | publication
    ^ which stages are derived anew stands in a property of the books until the last of them is done

The versions that the last publication names are not touched, and gold.publication gets its new schema version in the
commit that brings the new cut: until then the sharelens that wrote the lake answers from it, and this one refuses it.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from jobs import books, publish
from jobs.errors import JobError
from jobs.options import RunOptions
from jobs.progress import Progress
from jobs.run import Pipeline
from jobs.upkeep.upgrade_plan import FILLED, STAGES, Kind, Need, derived_from, earliest, look
from lake import delta, gates, lock, scan
from lake.lake import Lake
from lake.parquet import DataFile, ParquetSink
from lake.tables import TABLES
from state_model.topics import UNKNOWN_CLUSTER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STAGE = "upgrade"
PENDING = "sharelens.upgrade"
"""Property of the books: the stage from which on an upgrade that began derives the lake anew."""
BATCH_ROWS = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeOptions:
    """What to upgrade. `dry_run`: only look; `in_process_bytes`: as in RunOptions."""

    lake: Lake
    dry_run: bool
    lock_timeout_s: float = 60.0
    in_process_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgraded:
    """What an upgrade found and did; `stage`: derived anew from it on; `run_id`: run of the new cut (None: none)."""

    needs: list[Need]
    stage: str | None
    dry_run: bool
    run_id: int | None = None
    summary: dict[str, Any] = field(default_factory=dict)

    @property
    def is_needed(self) -> bool:
        """Whether there was something to do."""
        return self.stage is not None or any(need.kind is not Kind.NOTHING for need in self.needs)


def upgrade(
    options: UpgradeOptions, session: Callable[[], "SparkSession"], progress: Progress | None = None
) -> Upgraded:
    """Says what a lake needs to be one of this version, and does it unless `dry_run`.

    Raises:
        LakeError: no lake there.
        LakeVersionError: of a newer or unknown version.
        LakeLockedError: a run holds it.
        JobError: a closed gate keeps back what an upgrade would publish.
    """
    if options.dry_run:
        return _looked_at(options.lake, dry_run=True)
    look(options.lake)  # refuses before anything is written
    os.umask(0o077)
    with lock.hold(options.lake, options.lock_timeout_s) as held:
        found = _looked_at(options.lake, dry_run=False)
        if not found.is_needed:
            return found
        _refuse_closed_gates(options.lake)
        _bring_tables(options.lake, found)
        stages = ("ingest", "decode", "replay", "measure")
        local = options.in_process_bytes
        asked = RunOptions(lake=options.lake, stages=stages, rebuild=found.stage, in_process_bytes=local)
        summary = Pipeline(asked, session, progress or Progress(), held).go()
        if found.stage is not None:
            _alter(options.lake, books.EXTENT, {PENDING: None})
        run = _publish(options.lake, summary.cluster_id)
    return Upgraded(needs=found.needs, stage=found.stage, dry_run=False, run_id=run, summary=summary.as_dict())


def _looked_at(lake: Lake, *, dry_run: bool) -> Upgraded:
    needs = look(lake)
    return Upgraded(needs=needs, stage=earliest([_pending(lake), derived_from(needs)]), dry_run=dry_run)


def _pending(lake: Lake) -> str | None:
    """The stage that an upgrade that was killed was to derive the lake from; None when none was."""
    told = delta.snapshot(delta.table_path(lake, books.EXTENT)).configuration.get(PENDING)
    return told if told in STAGES else None


def _refuse_closed_gates(lake: Lake) -> None:
    """Refuses what would publish versions that a gate keeps back.

    An upgrade that was killed goes on: it was allowed to begin, and what is not published is its own.
    """
    if _pending(lake) is not None or not lake.exists(gates.RESULTS):
        return
    closed = gates.closed(lake, any_schema=True)
    published = publish.published_versions(lake)
    versions = {name: number for name, number in publish.current_versions(lake).items() if number >= 0}
    if closed and any(published.get(name) != number for name, number in versions.items()):
        raise JobError(
            f"{lake} holds what was not published behind closed gates: {gates.closed_text(closed)}; "
            "mend and publish it with the sharelens that wrote it, then upgrade"
        )


def _bring_tables(lake: Lake, found: Upgraded) -> None:
    """Gives every table but the publications its new shape: the books first, which keep what is still to be derived."""
    needs = {need.table: need for need in found.needs}
    if found.stage is not None or needs[books.EXTENT].kind is not Kind.NOTHING:
        _bring(lake, needs[books.EXTENT], {} if found.stage is None else {PENDING: found.stage})
    for name, need in needs.items():
        if name not in (books.EXTENT, scan.PUBLICATION) and need.kind is not Kind.NOTHING:
            _bring(lake, need, {})


def _bring(lake: Lake, need: Need, properties: dict[str, str | None]) -> None:
    """One table, in one commit."""
    adds: list[DataFile] = []
    removes: list[str] = []
    match need.kind:
        case Kind.CREATED:
            create(lake, TABLES[need.table])
            return
        case Kind.REWRITTEN:
            adds, removes = _rewritten(lake, need.table)
        case Kind.DERIVED if not need.readable:
            removes = _files(lake, need.table)
    _alter(lake, need.table, properties, adds, removes)


def _alter(
    lake: Lake,
    name: str,
    properties: dict[str, str | None],
    adds: list[DataFile] | None = None,
    removes: list[str] | None = None,
) -> None:
    path = delta.table_path(lake, name)
    delta.commit(
        path,
        operation=STAGE,
        txn=(STAGE, delta.latest_version(path) + 1),
        adds=adds or (),
        removes=removes or (),
        alteration=delta.altered(path, TABLES[name], properties),
    )


def _files(lake: Lake, name: str) -> list[str]:
    return lake.snapshot(name).paths


def _rewritten(lake: Lake, name: str) -> tuple[list[DataFile], list[str]]:
    """New files with all rows in the columns of this version, in their order, and the files they replace."""
    table, filled = TABLES[name], FILLED.get(name, {})
    wanted = pa.schema([column for column in table.schema if column.name not in filled])
    with ParquetSink(lake, table, constants=filled) as sink:
        for fragment in scan.dataset_at(lake, name, any_schema=True).get_fragments():
            for batch in fragment.to_batches(schema=table.schema, columns=wanted.names, batch_size=BATCH_ROWS):
                sink.write(pa.Table.from_batches([batch]))
    return sink.files, _files(lake, name)


def _publish(lake: Lake, cluster_id: str | None) -> int | None:
    """The new cut and the schema version of gold.publication, in one commit; the run of the cut.

    A lake in which no run has written anything gets no cut.
    """
    need = {need.table: need for need in look(lake)}[scan.PUBLICATION]
    run = publish.next_run(lake)
    if need.kind is Kind.CREATED:
        create(lake, TABLES[scan.PUBLICATION])
    if run == 0:
        _bring(lake, need, {})
        return None
    adds, removes = _rewritten(lake, scan.PUBLICATION) if need.kind is Kind.REWRITTEN else ([], [])
    path = delta.table_path(lake, scan.PUBLICATION)
    delta.commit(
        path,
        operation=STAGE,
        txn=("publish", run),
        adds=[*adds, *publish.cut_files(lake, run, cluster_id or UNKNOWN_CLUSTER, books.software_version())],
        removes=removes,
        alteration=delta.altered(path, TABLES[scan.PUBLICATION], {}),
    )
    return run
