"""End offsets of user topics whose folders a copy lacks, by the checkpoint of the high watermarks that it has."""

from collections.abc import Sequence

from sharelens.kafka_log.layout import LogDirectory
from sharelens.measures.settings.observations import END_OFFSETS, INTERNAL, Entry, Observation


def checkpointed_ends(directories: Sequence[LogDirectory]) -> tuple[Observation, ...]:
    """At most one observation, of END_OFFSETS, at the time of the newest checkpoint file (0: unknown).

    A broker writes the high watermarks of all its replicas every few seconds (ReplicaManager), so that they are a lower
    bound of the ends. Where several brokers have a partition the highest counts.
    """
    there = {(part.topic, part.partition) for directory in directories for part in directory.partitions}
    ends: dict[tuple[str, int], int] = {}
    for directory in directories:
        for place, offset in directory.high_watermarks.items():
            if place not in there and not place[0].startswith(INTERNAL):
                ends[place] = max(offset, ends.get(place, 0))
    if not ends:
        return ()
    entries = sorted(Entry(topic, str(partition), str(offset)) for (topic, partition), offset in ends.items())
    from_ms = max((directory.checkpoint_ms or 0 for directory in directories), default=0)
    return (Observation(kind=END_OFFSETS, from_ms=from_ms, entries=tuple(entries)),)
