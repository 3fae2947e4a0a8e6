"""The content of a user topic at one offset, by the batch headers of the evidence."""

from sharelens.measures.headers import ABSENT
from sharelens.measures.offset_kinds import kind_of_offset
from sharelens.questions.evidence import Evidence

PRUNED, BEYOND_END = "pruned", "beyond_end"


def what_offset_holds(evidence: Evidence, topic_id: str, partition: int, offset: int) -> str | None:
    """A word of sharelens.measures.offset_kinds, PRUNED or BEYOND_END; None when the evidence has nothing of the
    partition.

    PRUNED: below the log start offset, and no batch holds it any more.
    """
    place = (topic_id, partition)
    extents = evidence.topic_extents([place]).to_pylist()
    if not extents:
        return None
    kind = kind_of_offset(offset, evidence.topic_batches({place: offset}))
    start, end = extents[0]["log_start_offset"], extents[0]["end_offset"]
    if kind in (None, ABSENT) and start is not None and offset < start:
        return PRUNED
    if kind is None and end is not None and offset >= end:
        return BEYOND_END
    return ABSENT if kind is None and end is not None else kind
