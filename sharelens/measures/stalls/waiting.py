"""The offsets that share partitions wait for, by their states."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from sharelens.measures.lag import ACKNOWLEDGED, ARCHIVED, progress_of
from sharelens.measures.topics.extents import TopicPartition, topic_partitions
from sharelens.measures.topics.headers import ABORTED
from sharelens.measures.topics.kept_samples import NoRecord

STATES = ["topic_id", "partition", "start_offset", "state_batches"]
"""The columns of SHARE_PARTITION_STATE that `waiting_offsets` reads."""


def waiting_offsets(
    states: pa.Table, no_records: Mapping[TopicPartition, Collection[NoRecord]]
) -> dict[TopicPartition, set[int]]:
    """The first incomplete offsets, below the end or at it, of share partitions by their states (STATES).

    A share partition has two where aborted records come first: they wait if its group reads uncommitted records.
    """
    unknown = np.full(states.num_rows, -1, np.int64)
    firsts = progress_of(states, unknown, unknown).first_incomplete.tolist()
    batches = states.column("state_batches")
    waiting: dict[TopicPartition, set[int]] = {}
    for row, (place, offset) in enumerate(zip(topic_partitions(states), firsts, strict=True)):
        if offset >= 0:
            ranges = no_records.get(place, ())
            offsets = {offset} if not ranges else _firsts_behind(offset, batches[row].as_py(), ranges)
            waiting.setdefault(place, set()).update(offsets)
    return waiting


def _firsts_behind(offset: int, batches: Sequence[Mapping[str, int]], ranges: Collection[NoRecord]) -> set[int]:
    """The first waiting offsets behind an offset, under read_uncommitted and under read_committed."""
    uncommitted = [each for each in ranges if each.reason != ABORTED]
    return {_first_behind(offset, batches, passed_ranges) for passed_ranges in (uncommitted, ranges)}


def _first_behind(offset: int, batches: Iterable[Mapping[str, int]], ranges: Iterable[NoRecord]) -> int:
    """The first offset from this one on that is in no terminal batch and in no range without records."""
    done = [
        (batch["first_offset"], batch["last_offset"])
        for batch in batches
        if batch["delivery_state"] in (ACKNOWLEDGED, ARCHIVED)
    ]
    for first, last in sorted([*done, *((each.first_offset, each.last_offset) for each in ranges)]):
        if first > offset:
            break
        offset = max(offset, last + 1)
    return offset
