"""The extents that a run reads: the union of the copies, less the offsets in the lake. Reads only headers.

Plans count offsets, never file positions, so that rolled, compacted, copied and late files need no special case.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jobs import books
from jobs.errors import ClusterMismatchError, IntervalHoleError
from jobs.ingest.superseding import Compare, supersede
from sharelens.evidence.coverage import Coverage, coverage
from sharelens.evidence.intervals import Interval, difference, union
from sharelens.evidence.log_time import NO_LOG_TIME
from sharelens.kafka_log import reader
from sharelens.kafka_log.bounds import highest_committed_end, log_start
from sharelens.kafka_log.errors import LogDirectoryError
from sharelens.kafka_log.layout import LogDirectory, PartitionDirectory, scan_log_directory
from sharelens.kafka_log.leader_epochs import LeaderEpoch, below
from sharelens.kafka_log.reader import NO_BATCH, LogEnd, joined_end
from sharelens.kafka_log.union import LogPartition, unite
from state_model.topics import OFFSETS_TOPIC, STATE_TOPIC, UNKNOWN_CLUSTER


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """The extent that this run takes of one partition: it reads `ranges`, and the books get [from_offset, end).

    `late`: a range lies below offsets that an earlier run ingested, or replaces uncommitted rows: derived tables
    start over for the partition. `log_time_ms`: running maximum of record timestamps before the first range.
    `covered`: what the lake covered before. `superseded_from`: this run's rows replace earlier ones from that offset.
    `leader_epochs`: of the records that the lake keeps.
    """

    partition: LogPartition
    content: str
    ranges: tuple[Interval, ...]
    from_offset: int
    end: int
    held_back: int
    log_end: LogEnd
    late: bool
    log_time_ms: int | None
    covered: tuple[Interval, ...]
    superseded_from: int | None = None
    leader_epochs: tuple[LeaderEpoch, ...] = ()


def scan_directories(uris: Sequence[str], *, include_deleted: bool) -> list[LogDirectory]:
    """Every directory of the run; the errors of `scan_log_directory` pass through."""
    return [scan_log_directory(uri, include_deleted=include_deleted) for uri in uris]


def cluster_of(directories: Sequence[LogDirectory], named: str | None, known_clusters: Iterable[str]) -> str:
    """The cluster id of a run; `directories` name one at most (`sharelens.kafka_log.union.unite` refuses more).

    Raises:
        ClusterMismatchError: an id that contradicts --cluster-id, or no id at all while the lake already holds a
            named cluster.
    """
    uris_by_cluster = {d.cluster_id: d.uri for d in directories if d.cluster_id is not None}
    directory_cluster = next(iter(uris_by_cluster), None)
    if directory_cluster is not None and named is not None and directory_cluster != named:
        raise ClusterMismatchError(
            f"--cluster-id {named}, but {uris_by_cluster[directory_cluster]} is of cluster {directory_cluster}; "
            "leave the option out"
        )
    cluster = directory_cluster or named
    lake_ids = sorted(set(known_clusters) - {UNKNOWN_CLUSTER})
    if cluster is None and lake_ids:
        raise ClusterMismatchError(
            f"no meta.properties in {directories[0].uri} and the lake holds {', '.join(lake_ids)}; say --cluster-id"
        )
    return cluster or UNKNOWN_CLUSTER


def plan(
    partitions: Sequence[LogPartition],
    ingested: Sequence[dict[str, Any]],
    *,
    content: str,
    include_uncommitted: bool,
    until_ms: int | None = None,
    lowest: dict[tuple[str, int], int] | None = None,
    compare: Compare | None = None,
) -> list[Extent]:
    """The extents of a run, one a partition that has something new.

    `ingested`: rows of bronze.ingest_extent with the same content and cluster; `lowest`: the offset of each (topic id,
    partition) below which no header is needed; `compare` compares a new copy with the lake.
    """
    groups = {key[1:]: rows for key, rows in books.by_partition(ingested).items()}
    result = []
    for partition in partitions:
        rows = groups.get((partition.topic_id, partition.partition), [])
        floor = (lowest or {}).get((partition.topic_id, partition.partition), 0)
        extent = plan_partition(partition, rows, content, include_uncommitted, until_ms, floor, compare)
        if extent is not None:
            result.append(extent)
    return result


def plan_partition(
    partition: LogPartition,
    rows: Sequence[dict[str, Any]],
    content: str,
    include_uncommitted: bool,
    until_ms: int | None,
    floor: int,
    compare: Compare | None,
) -> Extent | None:
    """The new extent of one partition; None without news."""
    prior = coverage(rows)
    seen_end = max((row["end_offset_exclusive"] for row in rows), default=0)
    committed_end = _committed_end(partition, rows)
    partition = replace(partition, committed_end=committed_end)
    ends = [reader.copy_end(copy, committed_end) if copy.segments else NO_BATCH for copy in partition.copies]
    offered = {
        copy.uri: _offered(copy, copy_end.end.readable(committed_end, include_uncommitted=include_uncommitted), floor)
        for copy, copy_end in zip(partition.copies, ends, strict=True)
    }
    end = max((interval[1] for interval in offered.values()), default=0)
    if until_ms is not None:
        end = _end_until(partition, rows, prior, union(offered.values()), until_ms)
    unread = [copy for copy in partition.copies if copy.source_id not in prior.requested] if rows else []
    offered = {uri: (first, min(last, end)) for uri, (first, last) in offered.items()}
    superseded_from, offered = supersede(partition, prior, unread, offered, compare)
    if superseded_from is not None:
        prior = prior.below(superseded_from)
    ranges = union(
        interval for copy in partition.copies for interval in prior.missing_from(copy.source_id, offered[copy.uri])
    )
    if not ranges and not unread and not _has_other_ends(partition, rows, until_ms):
        if rows or until_ms is not None or partition.topic == OFFSETS_TOPIC:
            return None
        return _only_its_end(partition, content, joined_end(ends), include_uncommitted)
    begin = ranges[0][0] if ranges else prior.end
    log_end = joined_end(ends)
    return Extent(
        partition=partition,
        content=content,
        ranges=tuple(ranges),
        from_offset=min(begin, max(prior.end, floor)),
        end=ranges[-1][1] if ranges else begin,
        held_back=max(0, log_end.end_offset - end) if until_ms is None and not include_uncommitted else 0,
        log_end=log_end,
        late=begin < seen_end and bool(ranges or unread),
        log_time_ms=prior.log_time_ms,
        covered=tuple(prior.covered),
        superseded_from=superseded_from,
        leader_epochs=prior.leader_epochs,
    )


def _only_its_end(partition: LogPartition, content: str, log_end: LogEnd, include_uncommitted: bool) -> Extent:
    """An extent without records, which notes the end of a partition: of a user topic that every group has read to the
    end, of a topic without dead letters, or of a state partition without a committed record.
    """
    end = log_end.readable(partition.committed_end, include_uncommitted=include_uncommitted)
    return Extent(
        partition=partition,
        content=content,
        ranges=(),
        from_offset=end,
        end=end,
        held_back=max(0, log_end.end_offset - end),
        log_end=log_end,
        late=False,
        log_time_ms=None if partition.topic == STATE_TOPIC else log_end.newest_ms,
        covered=(),
    )


def _end_until(
    partition: LogPartition,
    rows: Sequence[dict[str, Any]],
    prior: Coverage,
    offered: Sequence[Interval],
    until_ms: int,
) -> int:
    """Where the prefix with log time < `until_ms` ends (exclusive offset).

    Raises:
        IntervalHoleError: the copies lack offsets of the state log right behind the prefix in the lake, or inside the
            interval: it is unknown to which interval the missing records belong.
    """
    end = offered[-1][1] if offered else 0
    if end <= prior.end:
        return end
    begin = max(prior.end, offered[0][0])
    before = NO_LOG_TIME if prior.log_time_ms is None else prior.log_time_ms
    end, _ = reader.log_time_end(partition, begin, end, before, until_ms)
    covered = before >= until_ms or any((row["until_ms"] or NO_LOG_TIME) >= until_ms for row in rows)
    missing = difference([(prior.end, end)], offered) if rows and not covered and partition.topic == STATE_TOPIC else []
    if missing:
        first, last = missing[0]
        raise IntervalHoleError(
            f"{partition.topic}-{partition.partition} @ {first}: no given directory holds the records {first} to "
            f"{last - 1}, which follow what the lake covers, so nothing tells whether they lie before --until; give a "
            "copy that has them, or run once without --until: that takes what there is and records the gap"
        )
    return end


def _has_other_ends(partition: LogPartition, rows: Sequence[dict[str, Any]], until_ms: int | None) -> bool:
    """Whether a state partition's beginning is news (Kafka prunes it), or its end, which an interval does not tell."""
    if partition.topic != STATE_TOPIC or not rows:
        return False
    if until_ms is None and max(rows, key=lambda row: int(row["run_id"]))["until_ms"] is not None:
        return True
    log_starts = [(row["log_start_offset"], row["log_start_known"]) for row in rows]
    return log_start([*log_starts, (partition.log_start_offset, partition.log_start_known)]) != log_start(log_starts)


def held_back(partitions: Sequence[LogPartition], ingested: Sequence[dict[str, Any]], extents: Sequence[Extent]) -> int:
    """The number of offsets at or above the high watermark in partitions without an extent of this run."""
    spoken_of = {(extent.partition.topic_id, extent.partition.partition) for extent in extents}
    groups = {key[1:]: rows for key, rows in books.by_partition(ingested).items()}
    count = 0
    for partition in partitions:
        rows = groups.get((partition.topic_id, partition.partition), [])
        committed_end = _committed_end(partition, rows)
        if committed_end is None or (partition.topic_id, partition.partition) in spoken_of:
            continue
        lake_end = max((row["end_offset_exclusive"] for row in rows), default=0)
        count += max(0, reader.readable_end(partition, include_uncommitted=True) - max(committed_end, lake_end))
    return count


def _committed_end(partition: LogPartition, rows: Sequence[dict[str, Any]]) -> int | None:
    """The high watermark: the maximum over the copies at hand and those that were read before."""
    if partition.committed_end is None:
        return None
    return highest_committed_end([partition.committed_end, *(row["committed_end"] for row in rows)])


def _offered(copy: PartitionDirectory, end: int, floor: int) -> Interval:
    """The offsets that one copy can give, which can be read up to `end` (exclusive)."""
    if not copy.segments:
        return (0, 0)
    begin = max(copy.segments[0].base_offset, floor)
    return (begin, max(begin, end))


def extent_rows(
    extents: Sequence[Extent], *, cluster_id: str, run: int, until_ms: int | None, read_until_ms: int | None
) -> list[dict[str, Any]]:
    """Planned rows of bronze.ingest_extent: one a copy of each extent."""
    stamp = {"until_ms": until_ms, "read_until_ms": read_until_ms, **books.stamp()}
    rows = []
    for extent in extents:
        for copy in extent.partition.copies:
            row = {
                "cluster_id": cluster_id,
                "run_id": run,
                "status": "planned",
                "source_id": copy.source_id,
                "node_id": None if copy.node_id is None else str(copy.node_id),
                "source_uri": copy.uri,
                "topic": extent.partition.topic,
                "topic_id": extent.partition.topic_id,
                "partition": extent.partition.partition,
                "content": extent.content,
                "from_offset": extent.from_offset,
                "end_offset_exclusive": extent.end,
                "log_start_offset": extent.partition.log_start_offset,
                "log_start_known": extent.partition.log_start_known,
                "committed_end": extent.partition.committed_end,
                "held_back": extent.held_back,
                "unreadable_bytes": extent.log_end.unreadable_bytes,
                "gaps": [],
                "rebuild": extent.late,
                "superseded_from": extent.superseded_from,
                "leader_epochs": _new_leader_epochs(copy, extent),
                "record_count": 0,
                "size_bytes": 0,
                "sha256": None,
                "log_time_ms": extent.log_time_ms,
                **stamp,
            }
            rows.append(row)
    return rows


def _new_leader_epochs(copy: PartitionDirectory, extent: Extent) -> list[dict[str, int]]:
    start_by_epoch = dict(extent.leader_epochs)
    return [
        {"leader_epoch": epoch, "start_offset": start}
        for epoch, start in below(copy.leader_epochs, extent.end)
        if start < start_by_epoch.get(epoch, extent.end)
    ]


def resumed(planned: Sequence[dict[str, Any]], ingested: Sequence[dict[str, Any]]) -> list[Extent]:
    """The extents of a run that was killed, from its planned rows; directories are listed again.

    A directory that is gone has vanished: its offsets are a gap until it or another copy comes back.
    """
    parents = sorted({row["source_uri"].rsplit("/", 1)[0] for row in planned})
    partitions = {(p.topic_id, p.partition): p for p in unite([there for uri in parents for there in _if_there(uri)])}
    result = []
    for (_, topic_id, number), rows in books.by_partition(planned).items():
        row = rows[0]
        uris = {r["source_uri"] for r in rows}
        partition = partitions.get((topic_id, number)) or _vanished(row)
        partition = replace(
            partition,
            copies=tuple(copy for copy in partition.copies if copy.uri in uris),
            log_start_offset=row["log_start_offset"],
            committed_end=row["committed_end"],
        )
        place = ("cluster_id", "topic_id", "partition", "content")
        before = [r for r in ingested if all(r[name] == row[name] for name in place)]
        result.append(_extent_of(row, partition, before, {r["source_id"] for r in rows}))
    return result


def _if_there(uri: str) -> list[LogDirectory]:
    try:
        return [scan_log_directory(uri, include_deleted=True)]
    except LogDirectoryError:  # the directories of this run were listed before
        return []


def _extent_of(
    row: dict[str, Any], partition: LogPartition, before: Sequence[dict[str, Any]], sources: set[str]
) -> Extent:
    """An extent as it was planned: its requested offsets, less those covered before."""
    prior = coverage(before)
    if row["superseded_from"] is not None:
        prior = prior.below(row["superseded_from"])
    requested_range = (row["from_offset"], row["end_offset_exclusive"])
    ranges = union(interval for source in sources for interval in prior.missing_from(source, requested_range))
    return Extent(
        partition=partition,
        content=row["content"],
        ranges=tuple(ranges),
        from_offset=requested_range[0],
        end=requested_range[1],
        held_back=row["held_back"],
        log_end=reader.log_end(partition),
        late=row["rebuild"],
        log_time_ms=prior.log_time_ms,
        covered=tuple(prior.covered),
        superseded_from=row["superseded_from"],
    )


def _vanished(row: dict[str, Any]) -> LogPartition:
    """A planned partition whose directories are gone."""
    return LogPartition(
        topic=row["topic"],
        topic_id=row["topic_id"],
        partition=row["partition"],
        copies=(),
        log_start_offset=row["log_start_offset"],
        committed_end=row["committed_end"],
    )


def rebuild_rows(
    ingested: Sequence[dict[str, Any]], first_stage: str, *, run: int, until_ms: int | None
) -> list[dict[str, Any]]:
    """Planned rows without records, for which `first_stage` (of decode, replay, measure, audit) starts over."""
    rows = []
    for group in books.by_partition(ingested).values():
        row = max(group, key=lambda r: r["run_id"])
        end = max(r["end_offset_exclusive"] for r in group)
        change = {
            "run_id": run,
            "status": "planned",
            "source_id": f"rebuild {first_stage}",
            "content": "log_record" if first_stage == "decode" else first_stage,
            "from_offset": end,
            "end_offset_exclusive": end,
            "held_back": 0,
            "gaps": [],
            "rebuild": True,
            "superseded_from": None,
            "leader_epochs": [],
            "record_count": 0,
            "size_bytes": 0,
            "sha256": None,
            "until_ms": until_ms,
            "read_until_ms": None,
        }
        rows.append({**row, **change, **books.stamp()})
    return rows


def weight(extent: Extent, first: int, end: int) -> int:
    """Bytes of log for the offsets [first, end), by the average of the largest copy."""
    segments = max(
        (copy.segments for copy in extent.partition.copies if copy.segments), key=lambda s: sum(x.size_bytes for x in s)
    )
    total = sum(segment.size_bytes for segment in segments)
    begin = segments[0].base_offset
    offset_count = max(1, max(end, extent.log_end.end_offset) - begin)
    return max(1, total * (end - first) // offset_count)
