"""What questions ask of the batch headers of user topics: offsets without records, times of offsets, ends."""

import numpy as np
import pyarrow as pa

from measures.headers import NoRecords, OffsetTimes
from measures.topics import TopicPartition
from sharelens.questions.evidence import Cut, Evidence
from sharelens.questions.lag import ends_at

CREATE_TIME = "create_time"


def no_records(evidence: Evidence, begins: dict[TopicPartition, int]) -> NoRecords:
    """The offsets without records from each beginning on."""
    found = NoRecords()
    for batches in evidence.topic_batches(begins):
        found.take(batches)
    return found


def offset_times(evidence: Evidence, wanted: dict[TopicPartition, np.ndarray]) -> pa.Table:
    """OFFSET_TIME rows of offsets."""
    found = OffsetTimes(wanted)
    for batches in evidence.topic_batches({place: int(offsets[0]) for place, offsets in wanted.items()}):
        found.take(batches)
    return found.table()


def known_ends(
    evidence: Evidence, begins: dict[TopicPartition, int], cut: Cut
) -> dict[TopicPartition, tuple[int, str]]:
    """End offsets at the cut and what tells them; at an earlier moment maybe the producers' clocks (create_time)."""
    found: dict[TopicPartition, tuple[int, str]] = {}
    for row in ends_at(evidence, begins, cut).to_pylist():
        place = (row["topic_id"], row["partition"])
        if row["end_offset"] is not None:
            found[place] = (row["end_offset"], row["end_offset_source"])
        elif row["end_offset_inferred"] is not None:
            found[place] = (row["end_offset_inferred"], CREATE_TIME)
    return found
