"""Upkeep of a lake: vacuum -> retention and compaction, one commit a table -> publish -> checkpoints.

    published versions | unused files go      | old rows go, small files are joined | the next cut | the log is cut
                                                ^ killed anywhere: the same rows in other files; the next upkeep or
                                                  run goes on from there

Vacuum comes first, so that it frees a full disk before upkeep writes. The cuts of retention, with the states at them,
are committed to the books before a row is dropped: see `jobs.retained`.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from jobs import books, publish, retained
from jobs.decode.stage import SHARE_RECORD
from jobs.errors import JobError
from jobs.measure import bases as measure_base
from jobs.progress import Progress
from jobs.upkeep import book_rows, compaction, retention
from jobs.upkeep.base_states import commit_bases
from jobs.upkeep.compaction import Rewritten
from jobs.upkeep.retention import Dropping
from jobs.writing import writing
from sharelens.evidence.coverage import coverage
from sharelens.lake import durability, gates, scan, vacuum
from sharelens.lake.commit import commit, create_tables
from sharelens.lake.gates import Gate
from sharelens.lake.lake import Lake
from sharelens.lake.parquet import FILE_BYTES, DataFile, partition_values, write_rows
from sharelens.lake.slices import PartitionKey
from sharelens.lake.tables import TABLES, Table
from sharelens.measures.histories.settled import DAY_MS
from sharelens.shell import lake_command
from state_model.topics import UNKNOWN_CLUSTER

STAGE, CUTS = "maintain", "maintain-cuts"
Files = list[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintainOptions:
    """Options of upkeep.

    `retain`: milliseconds by group of tables (`jobs.retained.GROUPS`); others keep all rows; `window_ms`: how far back
    publications and versions stay readable; `now_ms`: the wall clock to go by, null for the real one; `small_bytes`:
    files below it are joined; `tiny_bytes`: a small file above it is joined only with smaller ones of as many bytes;
    `least_commits`: a log is cut where so many commits are older than the window; `run_bytes`: rows that are sorted in
    memory at once.
    """

    lake: Lake
    dry_run: bool
    retain: Mapping[str, int] = field(default_factory=dict)
    window_ms: int = 7 * DAY_MS
    lock_timeout_s: float = 60.0
    now_ms: int | None = None
    update_limit: int = 500
    small_bytes: int = FILE_BYTES // 2
    tiny_bytes: int = FILE_BYTES // 2
    least_commits: int = 1
    run_bytes: int = compaction.RUN_BYTES


@dataclass(slots=True, kw_only=True)
class TableUpkeep:
    """One table before and after: live files and their bytes, its version; the work on it, with its time."""

    table: str
    files_before: int
    bytes_before: int
    version_before: int
    files_after: int = 0
    bytes_after: int = 0
    version_after: int = 0
    rewritten_files: int = 0
    dropped_rows: int = 0
    vacuumed_files: int = 0
    vacuumed_bytes: int = 0
    log_files: int = 0
    seconds: float = 0.0
    expected_files: int = 0
    """In a dry run: files that the rewritten ones would become."""


@dataclass(slots=True, kw_only=True)
class Upkeep:
    """The work that upkeep did, or would do (dry run). `run_id`: of the new publication; null without need for one."""

    tables: list[TableUpkeep] = field(default_factory=list)
    cuts: dict[str, int] = field(default_factory=dict)
    run_id: int | None = None
    closed: tuple[Gate, ...] = ()
    dry_run: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The summary as one JSON document."""
        total = {
            name: sum(getattr(table, name) for table in self.tables)
            for name in TableUpkeep.__slots__
            if name not in ("table", "seconds", "version_before", "version_after", "expected_files")
        }
        return {
            "dry_run": self.dry_run,
            "run_id": self.run_id,
            **total,
            "retained_from_ms": self.cuts,
            "versions": {table.table: table.version_after for table in self.tables},
            "seconds": {table.table: round(table.seconds, 3) for table in self.tables},
            "sharelens_version": books.software_version(),
        }


def maintain(options: MaintainOptions, progress: Progress | None = None) -> Upkeep:
    """Keeps a lake small and fast, under its lock.

    With closed gates it does no work and lists the gates (`closed`).

    Raises:
        JobError: the lake has unpublished versions.
        LakeError: no lake there, or no publication yet.
        LakeLockedError: somebody else writes.
    """
    lake = options.lake
    scan.ensure_lake(lake)
    with writing(lake, options.lock_timeout_s):
        scan.open_lake(lake)
        closed = gates.closed(lake)
        if closed:
            return Upkeep(closed=closed, dry_run=options.dry_run)
        if not options.dry_run:
            create_tables(lake)
        _ensure_published(lake)
        return _Work(options, progress or Progress()).go()


def _ensure_published(lake: Lake) -> None:
    """Refuses a lake with unpublished versions, except those of a killed upkeep, which have the same rows.

    Raises:
        JobError: a stage wrote to a table since the last publication.
    """
    published = publish.published_versions(lake)
    for name, newest in publish.current_versions(lake).items():
        version = published.get(name, 0)
        if newest > version and any(
            lake.transaction(name, stage) != lake.transaction(name, stage, version) for stage in books.MARKER
        ):
            raise JobError(
                f"{name} in {lake} has unpublished versions; "
                f"finish with `{lake_command('run', lake, '--log-dir', 'DIR')}`, then again"
            )


class _Work:
    """One upkeep of a lake; the caller has the lock."""

    def __init__(self, options: MaintainOptions, progress: Progress) -> None:
        self._options = options
        self._lake = options.lake
        self._progress = progress
        self._now_ms = books.now_ms() if options.now_ms is None else options.now_ms
        self._published = publish.published_versions(self._lake)
        self._named = publish.oldest_versions_since(self._lake, self._now_ms - options.window_ms)
        done = [books.done(self._lake, stage) for stage in books.MARKER]
        self._run = max(*done, *(self._lake.transaction(name, STAGE) or 0 for name in TABLES)) + 1
        moments = retention.moments(self._lake, options.retain, self._now_ms)
        self._moments = {group: by_cluster for group, by_cluster in moments.items() if by_cluster}

    def go(self) -> Upkeep:
        """Does the work that the options name, table by table."""
        names = [name for name in TABLES if self._lake.exists(name)]
        done = {name: self._before(name) for name in names}
        result = Upkeep(tables=list(done.values()), dry_run=self._options.dry_run)
        result.cuts = {group: max(moments.values()) for group, moments in self._moments.items()}
        self._each("vacuum", done, self._vacuum)
        droppings = self._droppings()
        self._write_cuts(droppings)
        self._each("compact", done, partial(self._rewrite, droppings))
        if not self._options.dry_run and not publish.is_current(self._lake):
            cluster_id = publish.published_cluster(self._lake) or UNKNOWN_CLUSTER
            publish.publish(self._lake, self._run, cluster_id, books.software_version())
            result.run_id = self._run
        self._each("cut logs", done, self._cut_log)
        self._lake.forget(table.table for table in result.tables if table.log_files)
        if self._options.dry_run and any(
            table.rewritten_files for table in result.tables if table.table != scan.PUBLICATION
        ):
            done[scan.PUBLICATION].files_after += 1  # the new cut
        return result

    def _each(self, step: str, tables: dict[str, TableUpkeep], work: Callable[[TableUpkeep], None]) -> None:
        """Does one kind of work to every table, and adds the time it took."""
        for number, table in enumerate(tables.values()):
            self._progress.at(step, number, len(tables))
            begun = time.monotonic()
            work(table)
            table.seconds += time.monotonic() - begun
        self._progress.at(step, len(tables), len(tables))

    def _before(self, name: str) -> TableUpkeep:
        snapshot = self._lake.snapshot(name)
        return TableUpkeep(
            table=name,
            files_before=len(snapshot.files),
            bytes_before=snapshot.size_bytes,
            version_before=snapshot.version,
        )

    def _floor(self, name: str) -> int:
        """The oldest version that stays readable."""
        since_ms = self._now_ms - self._options.window_ms
        return vacuum.floor_of(self._lake, name, since_ms=since_ms, oldest_named=self._named.get(name))

    def _vacuum(self, table: TableUpkeep) -> None:
        removed = vacuum.remove_files(
            self._lake,
            table.table,
            self._floor(table.table),
            now_ms=self._now_ms,
            dry_run=self._options.dry_run,
        )
        table.vacuumed_files, table.vacuumed_bytes = removed.files, removed.size_bytes

    def _cut_log(self, table: TableUpkeep) -> None:
        """Cuts the log of a table, and completes its TableUpkeep."""
        name, dry_run = table.table, self._options.dry_run
        floor = self._floor(name)
        oldest = self._lake.commit_log(name).oldest
        if floor - oldest < self._options.least_commits:
            floor = oldest
        if not dry_run:
            vacuum.checkpoint(self._lake, name, floor)
            durability.sync(self._lake)
        table.log_files = vacuum.remove_log(self._lake, name, floor, dry_run=dry_run).log_files
        after = self._lake.snapshot(name)
        table.files_after, table.bytes_after, table.version_after = len(after.files), after.size_bytes, after.version
        if dry_run:
            table.files_after += table.expected_files - table.rewritten_files

    def _droppings(self) -> dict[str, Dropping]:
        """The rows to drop from each table with retention."""
        result: dict[str, Dropping] = {}
        for group, moments in self._moments.items():
            before = retained.cuts(self._lake, group) if group in retention.CUT_BY else {}
            if group == retained.HISTORY:  # rows to drop from one of the histories depend on the other
                result |= retention.histories(self._lake, moments, before)
                continue
            for name, rule in retention.RULES.items():
                if rule.group == group:
                    result[name] = retention.dropping(self._lake, name, moments, before)
        return result

    def _write_cuts(self, droppings: dict[str, Dropping]) -> None:
        """Commits the new cuts of retention to the books, after the states at these cuts."""
        rows: list[dict[str, Any]] = []
        ends: dict[PartitionKey, int] = {}
        ingested = books.by_partition(books.extents(self._lake, pc.field("status") == "taken"))
        for group, tables in retention.CUT_BY.items():
            before = retained.cuts(self._lake, group)
            for name in tables:
                cuts = {} if name not in droppings else droppings[name].cuts
                moved = {key: end for key, end in cuts.items() if key not in before or end > before[key].offset}
                moved = {key: end for key, end in moved.items() if _begin(ingested[key]) < end}
                rows += [self._cut_row(group, ingested[key], end) for key, end in sorted(moved.items())]
                ends |= moved if name == SHARE_RECORD else {}
        if self._options.dry_run:
            return
        passed = droppings[retention.RANGES].passed if retention.RANGES in droppings else None
        if passed is not None:
            measure_base.commit_rows(self._lake, CUTS, self._run, passed.rows)
        if rows:
            commit_bases(self._lake, STAGE, self._run, ends, self._options.update_limit)
            files = write_rows(self._lake, TABLES[books.EXTENT], books.rows_table(books.EXTENT, rows), {})
            books.commit(self._lake, books.EXTENT, CUTS, self._run, files)

    def _cut_row(self, group: str, ingested: list[dict[str, Any]], end: int) -> dict[str, Any]:
        """A row of the books with the cut of a log partition: its offset and log time."""
        row = max(ingested, key=lambda row: int(row["run_id"]))
        change = {
            "run_id": self._run,
            "status": retained.DROPPED,
            "source_id": f"retention {group}",
            "content": group,
            "from_offset": _begin(ingested),
            "end_offset_exclusive": end,
            "held_back": 0,
            "gaps": [],
            "rebuild": False,
            "superseded_from": None,
            "leader_epochs": [],
            "record_count": 0,
            "size_bytes": 0,
            "sha256": None,
            "until_ms": None,
            "log_time_ms": self._moments[group][row["cluster_id"]],
        }
        return {**row, **change, **books.stamp()}

    def _rewrite(self, droppings: dict[str, Dropping], table: TableUpkeep) -> None:
        """Joins the small files of a table, and rows of the books, and leaves the old rows out, in one commit."""
        dropping = droppings.get(table.table)
        adds: list[DataFile] = []
        removes: list[str] = []
        for values, files in _by_partition(self._lake.snapshot(table.table).files):
            chosen = self._worth_rewriting(TABLES[table.table], values, files, dropping)
            paths = [path for group in chosen for path in group]
            removes += paths
            keep = _all if dropping is None or not _concerns(dropping, values) else dropping.keep
            if self._options.dry_run:
                groups = compaction.row_groups(self._lake, TABLES[table.table], paths, values)
                dropped = 0 if keep is _all else sum(rows.num_rows - keep(rows).num_rows for rows in groups)
                table.dropped_rows += dropped
                table.expected_files += _expected_files(paths, files, dropped)
                continue
            for done in self._rewritten(TABLES[table.table], values, chosen, keep):
                adds += done.files
                table.dropped_rows += done.dropped
        table.rewritten_files = len(removes)
        if removes and not self._options.dry_run:
            commit(
                self._lake,
                table.table,
                stage=STAGE,
                run=self._run,
                adds=adds,
                removes=removes,
                data_change=table.dropped_rows > 0 or table.table == books.EXTENT,
            )

    def _rewritten(
        self, table: Table, values: dict[str, str], chosen: Sequence[Sequence[str]], keep: compaction.Keep
    ) -> Iterator[Rewritten]:
        """Rewrites groups of files of one partition of a table; the books in one, because rows are joined, too."""
        if table.name == books.EXTENT and chosen:
            yield book_rows.rewrite(self._lake, [path for group in chosen for path in group], keep)
            return
        for group in chosen:
            yield compaction.rewrite(self._lake, table, group, values, keep, self._options.run_bytes)

    def _worth_rewriting(
        self, table: Table, values: dict[str, str], files: Files, dropping: Dropping | None
    ) -> list[list[str]]:
        """The files of one partition of a table that hold old rows, or are small and have neighbours, in groups."""
        sizes = {str(file["path"]): int(file["size_bytes"]) for file in files}
        small = compaction.worth_joining(sizes, self._options.small_bytes, self._options.tiny_bytes)
        old = self._old(table, values, files, dropping)
        chosen = compaction.neighbours(table, (file for file in files if str(file["path"]) in {*small, *old}))
        return [group for group in chosen if len(group) > 1 or group[0] in old]

    def _old(self, table: Table, values: dict[str, str], files: Files, dropping: Dropping | None) -> set[str]:
        """Paths of files of one partition of a table with rows that retention drops."""
        if dropping is None or not _concerns(dropping, values):
            return set()
        result = set()
        for path in (str(file["path"]) for file in files if dropping.may_hold(file)):
            groups = compaction.row_groups(self._lake, table, [path], values, dropping.columns)
            if any(pc.any(dropping.gone(rows)).as_py() for rows in groups):
                result.add(path)
        return result


def _all(rows: pa.Table) -> pa.Table:
    return rows


def _concerns(dropping: Dropping, values: dict[str, str]) -> bool:
    """Whether retention may drop rows of a partition of the table."""
    return isinstance(dropping.rule, retention.ByLog) or dropping.rule.partition_values.items() <= values.items()


def _begin(ingested: list[dict[str, Any]]) -> int:
    """The first covered offset of a log partition; 0 without any."""
    covered = coverage(ingested).covered
    return covered[0][0] if covered else 0


def _by_partition(files: Iterable[Mapping[str, Any]]) -> list[tuple[dict[str, str], Files]]:
    """The files with the partition values that their folders name."""
    groups: dict[str, Files] = {}
    for file in files:
        groups.setdefault(str(file["path"]).rpartition("/")[0], []).append(file)
    return [
        (partition_values(f"{folder}/"), files_of_partition) for folder, files_of_partition in sorted(groups.items())
    ]


def _expected_files(paths: Sequence[str], files: Files, dropped: int) -> int:
    """Files that some files of one partition become: one for each FILE_BYTES; none if all rows are dropped."""
    chosen = [file for file in files if file["path"] in set(paths)]
    if dropped and dropped == sum(int(file["num_records"]) for file in chosen):
        return 0
    return -(-sum(int(file["size_bytes"]) for file in chosen) // FILE_BYTES)
