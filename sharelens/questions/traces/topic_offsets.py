"""The content of a user topic at one offset, by the batch headers of the evidence."""

from sharelens.measures.topics.headers import ABSENT
from sharelens.measures.topics.offset_kinds import kind_of_offset
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_topic_batches, read_topic_extents

PRUNED, BEYOND_END = "pruned", "beyond_end"


def topic_end(evidence: Tables, topic_id: str, partition: int) -> int | None:
    """The offset behind the last record of a topic partition; None: the evidence doesn't say it."""
    extents = read_topic_extents(evidence, [(topic_id, partition)]).to_pylist()
    return None if not extents else extents[0]["end_offset"]


def what_offset_holds(evidence: Tables, topic_id: str, partition: int, offset: int) -> str | None:
    """A word of sharelens.measures.topics.offset_kinds, PRUNED or BEYOND_END; None when the evidence has nothing of the
    partition.

    PRUNED: below the log start offset, and no batch holds it any more.
    """
    place = (topic_id, partition)
    extents = read_topic_extents(evidence, [place]).to_pylist()
    if not extents:
        return None
    kind = kind_of_offset(offset, read_topic_batches(evidence, {place: offset}))
    start, end = extents[0]["log_start_offset"], extents[0]["end_offset"]
    if kind in (None, ABSENT) and start is not None and offset < start:
        return PRUNED
    if kind is None and end is not None and offset >= end:
        return BEYOND_END
    return ABSENT if kind is None and end is not None else kind
