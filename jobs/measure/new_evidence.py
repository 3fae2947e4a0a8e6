"""What of the evidence about a task's share partitions is new since a run."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jobs.measure.reading import Flags, Ints, StateTopic
from sharelens.lake import user_topics
from sharelens.measures.histories.numbers import Histories
from sharelens.measures.lag_over_time import FirstArrival
from sharelens.measures.ranges.places import codes_in
from sharelens.measures.topics.extents import BATCH_COLUMNS, TopicPartition, runs, topic_partitions
from sharelens.measures.topics.headers import news_from
from state_model.columnar.codes import ABOVE_ALL, ints

REPEATED = ["start_offset", "delivery_complete_count", "state_epoch", "leader_epoch", "life_log_offset"]


def new_headers(
    topic: StateTopic,
    books: pa.Table,
    lowest_offsets: Mapping[TopicPartition, int],
    partitions: Sequence[TopicPartition],
    before: int,
) -> tuple[Ints, Ints]:
    """For each of some user partitions the lowest record offset that batch headers of runs after `before` describe, and
    the time from which on they may change its end; ABOVE_ALL for none.

    `books`: those of user partitions (`sharelens.lake.user_topics`); `lowest_offsets`: where each begins to matter.
    """
    lowest_of: dict[TopicPartition, int] = {}
    arrivals: dict[TopicPartition, FirstArrival] = {}
    if lowest_offsets:
        is_header_extent = (pc.field("content") == "topic_batch") & (pc.field("status") == "taken")
        later = is_header_extent & (pc.field("run_id") > before)
        new = set(topic_partitions(topic.scan("bronze.ingest_extent", ["topic_id", "partition"], later)))
        begins = {place: first for place, first in lowest_offsets.items() if place in new}
        for batches in user_topics.batches(topic.scan, books, begins, [*BATCH_COLUMNS, "run_id"]):
            for partition_batches in runs(batches) if batches.num_rows else ():
                (place,) = topic_partitions(partition_batches.slice(0, 1))
                is_new = partition_batches.column("run_id").to_numpy() > before
                lowest = news_from(partition_batches, is_new)
                if lowest is not None:
                    lowest_of[place] = lowest
                arrivals.setdefault(place, FirstArrival()).take(partition_batches, is_new)
    times = {place: arrival.time_ms for place, arrival in arrivals.items()}
    first_offsets, first_times = (
        np.array([values.get(place, ABOVE_ALL) for place in partitions], np.int64) for values in (lowest_of, times)
    )
    return first_offsets, first_times


def repeats(histories: Histories) -> Flags:
    """Which records are snapshots that repeat the scalars of the record before, as the job of cold snapshots writes.

    With no new range they are no evidence about any record.
    """
    rows = histories.history
    kinds = codes_in(rows.column("record_type"), pa.array(["snapshot", "tombstone"]))
    result: Flags = kinds == 0
    result[1:] &= kinds[:-1] != 1
    for name in REPEATED:
        values = ints(rows, name)
        result[1:] &= values[1:] == values[:-1]
    marks = rows.column("completeness").combine_chunks().indices.to_numpy()
    result[1:] &= marks[1:] == marks[:-1]
    result[histories.first_rows] = False
    return result
