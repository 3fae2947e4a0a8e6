"""The metadata log of log directories -> silver.metadata_record, and the histories that follow from it.

The extents in the books are the last commit: a run that is killed before it reads the same offsets again.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from jobs import books, lake_settings
from jobs.ingest import plan
from jobs.ingest.names import NAMES, new_names
from jobs.metadata.reading import Reading, holes_of, missing, take_snapshots
from jobs.quarantine import QUARANTINE, new_problems
from sharelens.evidence.coverage import newest_log_time
from sharelens.evidence.intervals import Interval, difference, union
from sharelens.evidence.log_time import NO_LOG_TIME
from sharelens.evidence.losses import gap_reason
from sharelens.evidence.metadata_commit import committed_end
from sharelens.evidence.metadata_events import MetadataHistory
from sharelens.evidence.metadata_reading import SnapshotFiles, voter_copies
from sharelens.evidence.metadata_rows import RECORD_COLUMNS, changed_topics, needed_for, record_history, voters
from sharelens.evidence.metadata_tables import configuration_rows, topic_rows
from sharelens.evidence.schemas import NAME
from sharelens.kafka_log import reader
from sharelens.kafka_log.layout import LogDirectory
from sharelens.kafka_log.metadata_files import MetadataFiles, metadata_files
from sharelens.lake.lake import Lake
from sharelens.lake.metadata_log import CONTENT, PROBLEM_COLUMNS, RECORDS, Books, books_of, problem_counts, problems_of
from sharelens.lake.parquet import write_rows
from sharelens.lake.tables import TABLES
from sharelens.measures.settings.metadata import group_observations, with_moments_of
from sharelens.measures.settings.observations import METADATA_CONFIGS, news
from state_model.metadata.changes import TOPIC

STAGE = "metadata"
CONFIGURATIONS, TOPICS = "gold.configuration_history", "gold.topic_history"
WRITTEN = (RECORDS, QUARANTINE, CONFIGURATIONS, TOPICS)
Extents = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run took of the metadata log: `run`, numbers of records and problems, and the offsets that it lacks.

    `history`: the metadata over time; None when it is as before.
    """

    run: int
    record_count: int
    problem_count: int
    gaps: Sequence[Interval]
    history: MetadataHistory | None


def run_metadata(lake: Lake, directories: Sequence[LogDirectory], cluster_id: str, ingested: Extents) -> Outcome | None:
    """Reads the new records of the metadata log; None when there is no such log, or nothing new.

    `ingested`: the taken rows of bronze.ingest_extent.
    """
    files = metadata_files(directories)
    if files is None:
        return None
    metadata_extents = [row for row in ingested if row["cluster_id"] == cluster_id and row["content"] == CONTENT]
    earlier_books, ranges = books_of(metadata_extents), missing(files.log, metadata_extents)
    newest_snapshot = max((snapshot.end_offset for snapshot in files.snapshots), default=0)
    if not ranges and newest_snapshot <= earlier_books.end:
        return None
    run = (
        max(*(books.done(lake, name) for name in books.MARKER), *(lake.transaction(t, STAGE) or 0 for t in WRITTEN)) + 1
    )
    fresh = _take(lake, files, cluster_id, earlier_books, ranges)
    is_changed = _commit_records(lake, run, cluster_id, fresh)
    history = None
    if is_changed or earlier_books.committed_end < earlier_books.end:
        topic_ids = _changed_topics(earlier_books, fresh)
        history = _history(lake, cluster_id, fresh, topic_ids)
        _commit_histories(lake, run, cluster_id, history, topic_ids)
        _store_settings(lake, run, cluster_id, history)
    rows = _extent_rows(fresh, metadata_extents, cluster_id, run)
    books.commit(
        lake, books.EXTENT, STAGE, run, write_rows(lake, TABLES[books.EXTENT], books.rows_table(books.EXTENT, rows), {})
    )
    return Outcome(
        run=run,
        record_count=fresh.rows.num_rows,
        problem_count=len(fresh.reading.problems),
        gaps=fresh.gaps,
        history=history,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _News:
    """What a run read: `rows` (METADATA_RECORD) take the place of rows at `ranges` and from offset `tail` on.

    `read`: the offsets of the log in the lake from now on.
    """

    reading: Reading
    rows: pa.Table
    ranges: Sequence[Interval]
    tail: int
    read: Sequence[Interval]
    end: int
    committed_end: int

    @property
    def first_offset(self) -> int:
        """The first offset of the extent."""
        return self.ranges[0][0] if self.ranges else self.end

    @property
    def gaps(self) -> list[Interval]:
        """The offsets of the extent that could not be read."""
        return difference([(self.first_offset, self.end)], self.read)


def _take(lake: Lake, files: MetadataFiles, cluster_id: str, earlier_books: Books, ranges: Sequence[Interval]) -> _News:
    """Reads offset ranges, and the snapshots that the holes of the log need."""
    reading = Reading(log=files.log, newest_ms=_log_time_before(lake, cluster_id, ranges))
    reading.take(ranges)
    has_tail = bool(ranges) and ranges[-1][1] > earlier_books.committed_end
    tail = earlier_books.committed_end if has_tail else earlier_books.end
    log_end = reader.readable_end(files.log, include_uncommitted=True) if has_tail else earlier_books.end
    read = union([*(earlier_books.committed if has_tail else earlier_books.read), *reading.read])
    earlier = _stored(lake, cluster_id, tail)
    undecoded = [
        *earlier.filter(pc.field("undecoded_reason").is_valid()).column("log_offset").to_pylist(),
        *reading.undecoded,
    ]
    snapshots = SnapshotFiles(files=files.snapshots, digest_key=reading.digest_key)
    stored_ends = set(pc.drop_null(pc.unique(earlier.column("snapshot_end_offset"))).to_pylist())
    ends = take_snapshots(reading, snapshots, holes_of(read, undecoded, log_end), log_end, stored_ends)
    rows = reading.rows()
    end = max(log_end, *ends, 0)
    committed = committed_end(
        max(ends, default=0), end, voters(pa.concat_tables([earlier, rows])), voter_copies(files.log)
    )
    if committed < max((file.end_offset for file in files.snapshots), default=0):
        newest = snapshots.newest()
        committed = max(committed, 0 if newest is None else newest.end_offset)
    committed = max(committed, earlier_books.committed_end)
    is_tail = pc.and_(
        pc.is_null(rows.column("snapshot_end_offset")), pc.greater_equal(rows.column("log_offset"), committed)
    )
    at = rows.schema.get_field_index("uncommitted")
    return _News(
        reading=reading,
        rows=rows.set_column(at, rows.schema.field(at), is_tail),
        ranges=ranges,
        tail=tail,
        read=read,
        end=end,
        committed_end=committed,
    )


def _log_time_before(lake: Lake, cluster_id: str, ranges: Sequence[Interval]) -> int:
    """Log time of the records in the lake below the first range."""
    first = ranges[0][0] if ranges else 0
    is_below_first = (pc.field("cluster_id") == cluster_id) & ~_of_snapshot() & (pc.field("log_offset") < first)
    newest = pc.max(lake.snapshot(RECORDS).rows(["log_time_ms"], is_below_first).column("log_time_ms")).as_py()
    return NO_LOG_TIME if newest is None else int(newest)


def _stored(lake: Lake, cluster_id: str, tail: int) -> pa.Table:
    """The control records and those that can't be decoded, of snapshots and of the log below an offset."""
    where = (pc.field("cluster_id") == cluster_id) & (pc.field("is_control") | pc.field("undecoded_reason").is_valid())
    return lake.snapshot(RECORDS).rows(RECORD_COLUMNS, where & (_of_snapshot() | (pc.field("log_offset") < tail)))


def _of_snapshot() -> pc.Expression:
    return pc.field("snapshot_end_offset").is_valid()


def _commit_records(lake: Lake, run: int, cluster_id: str, fresh: _News) -> bool:
    """Commits records and problems; whether any record is new, or gone."""
    problems = new_problems(lake, books.of_cluster(fresh.reading.problem_rows(), cluster_id))
    if problems.num_rows:
        books.commit(lake, QUARANTINE, STAGE, run, write_rows(lake, TABLES[QUARANTINE], problems, {"run_id": run}))
    offset = pc.field("log_offset")
    replaced = offset >= fresh.tail
    for first, end in fresh.ranges:
        replaced |= (offset >= first) & (offset < end)
    kept_files, removes = books.rewritten_without(
        lake, RECORDS, (pc.field("cluster_id") == cluster_id) & ~_of_snapshot() & replaced
    )
    if not fresh.rows.num_rows and not removes:
        return False
    rows = books.of_cluster(fresh.rows, cluster_id).sort_by(
        [(name, "ascending") for name in TABLES[RECORDS].clustering]
    )
    books.commit(
        lake, RECORDS, STAGE, run, [*write_rows(lake, TABLES[RECORDS], rows, {"run_id": run}), *kept_files], removes
    )
    return True


def _changed_topics(earlier_books: Books, fresh: _News) -> pa.Array | None:
    """The topics whose partitions differ by the new records; None: any, where more than the log's end is new."""
    is_end = [first for first, _ in fresh.ranges] == [
        earlier_books.end
    ] and earlier_books.end == earlier_books.committed_end > 0
    return None if not is_end or fresh.gaps or fresh.reading.problems else changed_topics(fresh.rows)


def _history(lake: Lake, cluster_id: str, fresh: _News, topic_ids: pa.Array | None) -> MetadataHistory:
    """The metadata over time by the records of the cluster, of partitions those of some topics (None: of all)."""
    in_cluster = pc.field("cluster_id") == cluster_id
    rows = lake.snapshot(RECORDS).rows(
        RECORD_COLUMNS, in_cluster if topic_ids is None else in_cluster & needed_for(topic_ids)
    )
    problems = lake.snapshot(QUARANTINE).rows(PROBLEM_COLUMNS, problems_of(cluster_id))
    return record_history(rows, fresh.read, committed_end=fresh.committed_end, problems=problem_counts(problems))


def _commit_histories(
    lake: Lake, run: int, cluster_id: str, history: MetadataHistory, topic_ids: pa.Array | None
) -> None:
    """Puts the rows of the cluster, of partitions those of some topics (None: of all), in the place of earlier ones."""
    in_cluster = pc.field("cluster_id") == cluster_id
    of_topics = in_cluster if topic_ids is None else in_cluster & pc.field("topic_id").isin(topic_ids)
    _replace(lake, CONFIGURATIONS, run, in_cluster, books.of_cluster(configuration_rows(history), cluster_id))
    _replace(lake, TOPICS, run, of_topics, books.of_cluster(topic_rows(history), cluster_id))


def _replace(lake: Lake, name: str, run: int, where: pc.Expression, rows: pa.Table) -> None:
    order = [(key, "ascending") for key in ("cluster_id", *TABLES[name].clustering)]
    rows = rows.sort_by(order)
    before = lake.snapshot(name).rows(rows.schema.names, where).sort_by(order)
    if not before.cast(rows.schema).equals(rows):
        kept_files, removes = books.rewritten_without(lake, name, where)
        files = write_rows(lake, TABLES[name], rows, {"run_id": run})
        books.commit(lake, name, STAGE, run, [*files, *kept_files], removes)


def _store_settings(lake: Lake, run: int, cluster_id: str, history: MetadataHistory) -> None:
    """Stores the settings of groups, and names of topics that nothing else names."""
    observed = group_observations(history.validities, history.first_ms) if history.has_beginning else ()
    stored_observations = [
        observation for observation in lake_settings.stored(lake, cluster_id) if observation.kind == METADATA_CONFIGS
    ]
    changes = news(stored_observations, with_moments_of(observed, stored_observations)) if observed else []
    named = set(
        lake.snapshot(NAMES).rows(["topic_id"], pc.field("cluster_id") == cluster_id).column("topic_id").to_pylist()
    )
    names = new_names(lake, books.of_cluster(_name_rows(history, named), cluster_id))
    if changes or names.num_rows:
        lake_settings.store(lake, cluster_id, run, changes, names)


def _name_rows(history: MetadataHistory, named: AbstractSet[str]) -> pa.Table:
    """NAME rows of topics whose ids are not in `named`."""
    rows = [
        {
            "topic_id": row.key[1],
            "topic": row.content["name"],
            "source": CONTENT,
            "valid_from_ms": row.begin.timestamp_ms,
        }
        for row in history.validities
        if row.key[0] == TOPIC and row.key[1] not in named
    ]
    return pa.Table.from_pylist(rows, schema=NAME)


def _extent_rows(fresh: _News, extents: Extents, cluster_id: str, run: int) -> list[dict[str, Any]]:
    """The taken rows of the books."""
    log = replace(fresh.reading.log, committed_end=fresh.committed_end)
    extent = plan.Extent(
        partition=log,
        content=CONTENT,
        ranges=tuple(fresh.ranges),
        from_offset=fresh.first_offset,
        end=fresh.end,
        held_back=0,
        log_end=reader.log_end(log),
        late=False,
        log_time_ms=max(
            (ms for ms in (newest_log_time(extents), fresh.reading.log_time_ms) if ms is not None), default=None
        ),
        covered=(),
    )
    gaps = [
        {
            "first_offset": first,
            "last_offset": end - 1,
            "reason": gap_reason((first, end), fresh.reading.damage, log.copies, log.log_start_offset),
        }
        for first, end in fresh.gaps
    ]
    rows = plan.extent_rows([extent], cluster_id=cluster_id, run=run, until_ms=None, read_until_ms=None)
    size_bytes = pc.sum(fresh.rows.column("size_bytes")).as_py() or 0
    rows[0] |= {"record_count": fresh.rows.num_rows, "size_bytes": size_bytes}
    return [row | {"status": "taken", "gaps": gaps} for row in rows]
