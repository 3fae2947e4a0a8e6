"""The moment up to which log directories were read: until then, a log without records means an idle cluster.

Kafka writes its checkpoint files every few seconds (ReplicaManager: `replica.high.watermark.checkpoint.interval.ms`,
5 s), whether or not a record came. So their newest time says until when a copy knows its broker, and that of a
directory in use is the present. Where a copy has lost the times of its files, the metadata log is the clock: the active
controller appends a record every half second (`metadata.max.idle.interval.ms`), a NO_OP record where nothing happens.
"""

from collections.abc import Callable, Iterable, Sequence

from sharelens.kafka_log.layout import LogDirectory
from sharelens.kafka_log.reader import LogEnd
from sharelens.kafka_log.union import LogPartition
from state_model.topics import METADATA_TOPIC, OFFSETS_TOPIC, STATE_TOPIC

IN_USE_MS = 15_000
"""A checkpoint file that is younger belongs to a directory that a broker writes: three times Kafka's interval."""
LOST_TIME_MS = 60_000
"""Segments that were all written so much later than their newest records say have lost their times in a copy."""
METADATA_DELAY_MS = 1_000
"""A metadata log that ends so much earlier than the other logs was copied before them: twice Kafka's interval."""

Ends = Sequence[tuple[LogPartition, LogEnd]]


def read_until(
    directories: Sequence[LogDirectory],
    partitions: Sequence[LogPartition],
    log_end: Callable[[LogPartition], LogEnd],
    clock_ms: int,
) -> int | None:
    """Until when the directories were read (epoch ms): by the times of their files, else by the metadata log.

    None where neither says it.

    Args:
        directories: the log directories.
        partitions: the logs in them.
        log_end: the end of one of these logs.
        clock_ms: the present.
    """
    written_ms = [directory.checkpoint_ms for directory in directories if directory.checkpoint_ms is not None]
    ends = _ends(partitions, log_end)
    if not written_ms or _has_late_segments(ends) or _has_late_folders(partitions, ends):
        return _metadata_time(partitions, log_end, ends)
    newest = max(written_ms)
    return clock_ms if newest >= clock_ms - IN_USE_MS else newest


def _ends(partitions: Sequence[LogPartition], log_end: Callable[[LogPartition], LogEnd]) -> Ends:
    """The ends of the state logs, or, where these have no record, of those of the group coordinator."""
    for topic in (STATE_TOPIC, OFFSETS_TOPIC):
        ends = [(partition, log_end(partition)) for partition in partitions if partition.topic == topic]
        if any(end.newest_ms is not None for _, end in ends):
            return ends
    return []


def _newest_record(ends: Iterable[tuple[LogPartition, LogEnd]]) -> int | None:
    return max((end.newest_ms for _, end in ends if end.newest_ms is not None), default=None)


def _has_late_segments(ends: Ends) -> bool:
    """Whether no segment bears the time of its last append; logs without records have none to lose."""
    delays = [
        segment.modified_ms - end.newest_ms
        for partition, end in ends
        if end.newest_ms is not None
        for copy in partition.copies
        for segment in copy.segments
        if segment.modified_ms is not None and segment.size_bytes
    ]
    return bool(delays) and min(delays) > LOST_TIME_MS


def _has_late_folders(partitions: Sequence[LogPartition], ends: Ends) -> bool:
    """Whether every partition.metadata is newer than all records: a broker writes it before the first record."""
    created_ms = [copy.created_ms for log in partitions for copy in log.copies if copy.created_ms is not None]
    newest_ms = _newest_record(ends)
    return bool(created_ms) and newest_ms is not None and min(created_ms) > newest_ms


def _metadata_time(
    partitions: Sequence[LogPartition], log_end: Callable[[LogPartition], LogEnd], ends: Ends
) -> int | None:
    """The time of the newest record of the metadata log; None without one, or where it ends before the other logs."""
    newest_ms = _newest_record((log, log_end(log)) for log in partitions if log.topic == METADATA_TOPIC)
    if newest_ms is None or newest_ms < (_newest_record(ends) or 0) - METADATA_DELAY_MS:
        return None
    return newest_ms
