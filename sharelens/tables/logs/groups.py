"""Records of the group coordinator's log, from log directories."""

from collections.abc import Callable, Iterable

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.group_decoding import decode_groups, topic_names
from sharelens.evidence.offset_commit_rows import COMMIT_COLUMNS, offset_commit_or_marker, without_other_markers
from sharelens.evidence.reading import read_whole
from sharelens.evidence.schemas import GROUP_RECORD
from sharelens.groups.initialized import LISTING_TYPES
from sharelens.groups.replay import in_log_order
from sharelens.groups.whole_logs import marked
from sharelens.kafka_log import reader
from sharelens.kafka_log.schemas import LOG_RECORD
from sharelens.kafka_log.union import LogPartition
from sharelens.tables.cover import GroupLogCover
from sharelens.tables.limits import size_text, too_much
from sharelens.tables.logs.state import size_bytes
from state_model.columnar.completeness import Completeness
from state_model.schema import CLASSIC_STRING
from state_model.topics import OFFSETS_TOPIC


def read_group_names(partition: LogPartition, *, include_uncommitted: bool) -> dict[str, str]:
    """Topic names by id from one partition of __consumer_offsets; records that can't be decoded hold none."""
    names: dict[str, str] = {}
    for chunk in read_whole(partition, include_uncommitted=include_uncommitted):
        names.update(topic_names(pa.Table.from_batches([chunk.records])))
    return names


def _read_rows(
    partition: LogPartition, choose: Callable[[pa.Table], pa.Table], *, include_uncommitted: bool
) -> pa.Table:
    """What `choose` makes of the LOG_RECORD rows of a partition, in offset order, with IS_LOG_WHOLE."""
    completeness, tables = Completeness(), [choose(LOG_RECORD.empty_table())]
    for chunk in read_whole(partition, include_uncommitted=include_uncommitted):
        rows = pa.Table.from_batches([chunk.records])
        completeness.take(rows.column("offset"))
        tables.append(choose(rows))
    return marked(pa.concat_tables(tables), is_whole=completeness.is_whole)


def _key_names(groups: Iterable[str]) -> pc.Expression:
    """The condition for LOG_RECORD rows whose key, behind its type, begins with one of the groups."""
    condition = pc.scalar(False)
    for group in sorted(groups):
        name = CLASSIC_STRING.write(group)
        condition |= pc.equal(pc.binary_slice(pc.field("key"), 2, 2 + len(name)), name)
    return condition


def group_logs(partitions: Iterable[LogPartition], max_bytes: int) -> list[LogPartition]:
    """The partitions of __consumer_offsets among partitions.

    Raises:
        TooMuchError: they are larger than `max_bytes`.
    """
    logs = [partition for partition in partitions if partition.topic == OFFSETS_TOPIC]
    size = sum(size_bytes(partition) for partition in logs)
    if size > max_bytes:
        raise too_much(f"{size_text(size)} of {OFFSETS_TOPIC} would have to be read")
    return logs


def group_log_covers(logs: Iterable[LogPartition], *, include_uncommitted: bool) -> dict[int, GroupLogCover]:
    """The first and the newest time of the batches of each log that can be read, and how many offsets can not."""
    covers = {}
    for log in logs:
        log_end = reader.log_end(log)
        end = log_end.readable(log.committed_end, include_uncommitted=include_uncommitted)
        times = _batch_times(log, end, None if end < log_end.end_offset else log_end.newest_ms)
        if times is not None:
            covers[log.partition] = GroupLogCover(*times, held_back=log_end.end_offset - end)
    return covers


def _batch_times(log: LogPartition, end: int, newest_ms: int | None) -> tuple[int, int] | None:
    """The first and the newest time of the batches below an offset; all are read where the newest is not known yet."""
    times: tuple[int, int] | None = None
    for batches in reader.scan_batches(log, log.log_start_offset, end):
        if batches.num_rows == 0:
            continue
        first_ms, last_ms = times or (batches["base_timestamp_ms"][0].as_py(), 0)
        if newest_ms is not None:
            return first_ms, newest_ms
        times = first_ms, max(last_ms, pc.max(batches["max_timestamp_ms"]).as_py())
    return times


def read_records_of_groups(
    partitions: Iterable[LogPartition], groups: frozenset[str] | None, include_uncommitted: bool
) -> pa.Table:
    """GROUP_RECORD rows of these groups (None: all) with IS_LOG_WHOLE, by (partition, log offset).

    What can't be decoded is left out.
    """

    def records(rows: pa.Table) -> pa.Table:
        return decode_groups(rows if groups is None else rows.filter(_key_names(groups))).records

    tables = [_read_rows(part, records, include_uncommitted=include_uncommitted) for part in partitions]
    return in_log_order(pa.concat_tables([marked(GROUP_RECORD.empty_table(), is_whole=False), *tables]))


def read_listings(partitions: Iterable[LogPartition], include_uncommitted: bool) -> pa.Table:
    """GROUP_RECORD rows that say which share partitions groups have (LISTING_TYPES), by (partition, log offset)."""
    begins = pa.array([kind.to_bytes(2, "big") for kind in LISTING_TYPES])
    tables = [GROUP_RECORD.empty_table()]
    for partition in partitions:
        for chunk in read_whole(partition, include_uncommitted=include_uncommitted):
            rows = pa.Table.from_batches([chunk.records])
            is_listing = pc.is_in(pc.binary_slice(rows.column("key"), 0, 2), value_set=begins)
            tables.append(decode_groups(rows.filter(is_listing)).records)
    return in_log_order(pa.concat_tables(tables))


def read_offset_commits(
    partitions: Iterable[LogPartition], groups: frozenset[str], include_uncommitted: bool
) -> pa.Table:
    """COMMIT_COLUMNS of the groups' offset commits and of transaction markers with IS_LOG_WHOLE, in log order."""

    def commits(rows: pa.Table) -> pa.Table:
        return rows.select(COMMIT_COLUMNS).filter(offset_commit_or_marker(groups))

    tables = [_read_rows(part, commits, include_uncommitted=include_uncommitted) for part in partitions]
    tables.append(marked(LOG_RECORD.empty_table().select(COMMIT_COLUMNS), is_whole=False))
    return without_other_markers(pa.concat_tables(tables))
