"""Single batches of user topics: `sharelens.measures.topics.kept_samples` as tables for measures, and back."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from sharelens.measures.topics.extents import Ints, TopicPartition
from sharelens.measures.topics.headers import NO_RECORD, OFFSET_TIME, SampledBatches
from sharelens.measures.topics.kept_samples import KeptSamples, NoRecord, Time


def batches_of(kept_samples: KeptSamples, offsets: Mapping[TopicPartition, Ints]) -> SampledBatches:
    """Kept times of ascending offsets, and the kept ranges without records that hold some of them."""
    times, no_records = [], []
    for place, partition_offsets in offsets.items():
        time_by_offset, ranges = kept_samples.times.get(place, {}), kept_samples.no_records.get(place, ())
        if not time_by_offset and not ranges:
            continue
        times += [
            (*place, offset, *time_by_offset[offset])
            for offset in partition_offsets.tolist()
            if offset in time_by_offset
        ]
        no_records += [
            (*place, *each)
            for each in sorted(ranges)
            if np.searchsorted(partition_offsets, each.first_offset)
            < np.searchsorted(partition_offsets, each.last_offset, "right")
        ]
    return sampled_batches(times, no_records)


def with_batches(kept_samples: KeptSamples, batches: SampledBatches) -> KeptSamples:
    """The kept samples, extended by further batches."""
    times = {place: dict(time_by_offset) for place, time_by_offset in kept_samples.times.items()}
    for topic_id, partition, offset, *time in _rows(batches.times):
        times.setdefault((topic_id, partition), {})[offset] = Time(*time)
    no_records = dict(kept_samples.no_records)
    for topic_id, partition, *row in _rows(batches.no_records):
        place = (topic_id, partition)
        no_records[place] = no_records.get(place, frozenset()) | {NoRecord(*row)}
    return KeptSamples(partitions=kept_samples.partitions, times=times, no_records=no_records)


def _rows(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def sampled_batches(times: Iterable[tuple[object, ...]], no_records: Iterable[tuple[object, ...]]) -> SampledBatches:
    """From rows of OFFSET_TIME and of NO_RECORD."""
    return SampledBatches(times=_table(times, OFFSET_TIME), no_records=_table(no_records, NO_RECORD))


def _table(rows: Iterable[tuple[object, ...]], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)
