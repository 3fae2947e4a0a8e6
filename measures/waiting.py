"""The offsets that share partitions wait for, by their states, and what is kept of the batches that hold them."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from measures.headers import NO_RECORD, OFFSET_TIME, SampledBatches
from measures.kept_samples import KeptSamples, NoRecord, Time
from measures.lag import ACKNOWLEDGED, ARCHIVED, progress_of
from measures.topics import Ints, TopicPartition, topic_partitions

STATES = ["topic_id", "partition", "start_offset", "state_batches"]
"""The columns of SHARE_PARTITION_STATE that `waiting_offsets` reads."""


def waiting_offsets(
    states: pa.Table, no_records: Mapping[TopicPartition, Collection[NoRecord]]
) -> dict[TopicPartition, set[int]]:
    """The first incomplete offsets, below the end or at it, of share partitions by their states (STATES)."""
    unknown = np.full(states.num_rows, -1, np.int64)
    firsts = progress_of(states, unknown, unknown).first_incomplete.tolist()
    batches = states.column("state_batches")
    waiting: dict[TopicPartition, set[int]] = {}
    for row, (place, offset) in enumerate(zip(topic_partitions(states), firsts, strict=True)):
        if offset >= 0:
            ranges = no_records.get(place, ())
            first = _first_behind(offset, batches[row].as_py(), ranges) if ranges else offset
            waiting.setdefault(place, set()).add(first)
    return waiting


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


def batches_of(kept: KeptSamples, offsets: Mapping[TopicPartition, Ints]) -> SampledBatches:
    """What is kept of ascending offsets: their times, and the ranges without records around the others."""
    times, no_records = [], []
    for place, some in offsets.items():
        known, ranges = kept.times.get(place, {}), kept.no_records.get(place, ())
        if not known and not ranges:
            continue
        times += [(*place, offset, *known[offset]) for offset in some.tolist() if offset in known]
        no_records += [
            (*place, *each)
            for each in sorted(ranges)
            if np.searchsorted(some, each.first_offset) < np.searchsorted(some, each.last_offset, "right")
        ]
    return sampled_batches(times, no_records)


def with_batches(kept: KeptSamples, batches: SampledBatches) -> KeptSamples:
    """What is kept, and what further batches say."""
    times = {place: dict(known) for place, known in kept.times.items()}
    for topic_id, partition, offset, *time in _rows(batches.times):
        times.setdefault((topic_id, partition), {})[offset] = Time(*time)
    no_records = dict(kept.no_records)
    for topic_id, partition, *row in _rows(batches.no_records):
        place = (topic_id, partition)
        no_records[place] = no_records.get(place, frozenset()) | {NoRecord(*row)}
    return KeptSamples(partitions=kept.partitions, times=times, no_records=no_records)


def _rows(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def sampled_batches(times: Iterable[tuple[object, ...]], no_records: Iterable[tuple[object, ...]]) -> SampledBatches:
    """From rows of OFFSET_TIME and of NO_RECORD."""
    return SampledBatches(times=_table(times, OFFSET_TIME), no_records=_table(no_records, NO_RECORD))


def _table(rows: Iterable[tuple[object, ...]], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)
