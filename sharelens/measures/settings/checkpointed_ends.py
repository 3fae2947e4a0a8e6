"""Ends and log start offsets of user topics whose folders a copy lacks, by the checkpoints that it has."""

from collections.abc import Mapping, Sequence

from sharelens.kafka_log.layout import LogDirectory
from sharelens.measures.settings.observations import END_OFFSETS, INTERNAL, LOG_STARTS, Entry, Observation


def checkpointed_ends(directories: Sequence[LogDirectory]) -> tuple[Observation, ...]:
    """At most one observation each of END_OFFSETS and LOG_STARTS, at the time of the newest checkpoint (0: unknown).

    A broker writes the high watermarks of all its replicas every few seconds (ReplicaManager), so that they are a lower
    bound of the ends; log start offsets of those that begin above their first segment (LogManager). Where several
    brokers have a partition the highest counts.
    """
    from_ms = max((directory.checkpoint_ms or 0 for directory in directories), default=0)
    ends = _without_folders(directories, [directory.high_watermarks for directory in directories])
    starts = _without_folders(directories, [directory.log_starts for directory in directories])
    return tuple(
        Observation(kind=kind, from_ms=from_ms, entries=entries)
        for kind, entries in ((END_OFFSETS, ends), (LOG_STARTS, starts))
        if entries
    )


def _without_folders(
    directories: Sequence[LogDirectory], checkpoints: Sequence[Mapping[tuple[str, int], int]]
) -> tuple[Entry, ...]:
    """Sorted entries of the user partitions that have no folder."""
    there = {(part.topic, part.partition) for directory in directories for part in directory.partitions}
    offsets: dict[tuple[str, int], int] = {}
    for checkpoint in checkpoints:
        for place, offset in checkpoint.items():
            if place not in there and not place[0].startswith(INTERNAL):
                offsets[place] = max(offset, offsets.get(place, 0))
    return tuple(sorted(Entry(topic, str(partition), str(offset)) for (topic, partition), offset in offsets.items()))
