"""The moment up to which log directories were read: until then, a log without records means an idle cluster.

Kafka writes its checkpoint files every few seconds (ReplicaManager: `replica.high.watermark.checkpoint.interval.ms`,
5 s), whether or not a record came. So their newest time says until when a copy knows its broker, and that of a
directory in use is the present.
"""

from collections.abc import Callable, Iterable, Sequence

from sharelens.kafka_log.layout import LogDirectory
from sharelens.kafka_log.reader import LogEnd
from sharelens.kafka_log.union import LogPartition
from state_model.topics import OFFSETS_TOPIC, STATE_TOPIC

IN_USE_MS = 15_000
"""A checkpoint file that is younger belongs to a directory that a broker writes: three times Kafka's interval."""
LOST_TIME_MS = 60_000
"""Segments that were all written so much later than their newest records say have lost their times in a copy."""


def read_until(
    directories: Sequence[LogDirectory],
    partitions: Sequence[LogPartition],
    log_end: Callable[[LogPartition], LogEnd],
    clock_ms: int,
) -> int | None:
    """Until when the directories were read (epoch ms); None where the times of their files do not say it.

    Args:
        directories: the log directories.
        partitions: the logs in them.
        log_end: the end of one of these logs.
        clock_ms: the present.
    """
    written_ms = [directory.checkpoint_ms for directory in directories if directory.checkpoint_ms is not None]
    if not written_ms or _lost_times(_ends(partitions, log_end)):
        return None
    newest = max(written_ms)
    return clock_ms if newest >= clock_ms - IN_USE_MS else newest


def _ends(
    partitions: Sequence[LogPartition], log_end: Callable[[LogPartition], LogEnd]
) -> Sequence[tuple[LogPartition, LogEnd]]:
    """The ends of the state logs, or, where these have no record, of those of the group coordinator."""
    for topic in (STATE_TOPIC, OFFSETS_TOPIC):
        ends = [(partition, log_end(partition)) for partition in partitions if partition.topic == topic]
        if any(end.newest_ms is not None for _, end in ends):
            return ends
    return []


def _lost_times(ends: Iterable[tuple[LogPartition, LogEnd]]) -> bool:
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
