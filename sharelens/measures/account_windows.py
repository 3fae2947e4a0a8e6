"""The offsets of each user partition that an account covers, and where they end.

    lowest start offset of any group         end of the topic
    |<-------------- window ---------------->|

Without evidence of the topic the window ends above all offsets that the state log names.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.topics.extents import TopicPartition, topic_partitions
from sharelens.measures.topics.headers import begins_of
from sharelens.measures.topics.topic_log import TopicLog, TopicLogs

FROM_STATE_LOG = "state_log"
FROM_TOPIC = "topic"
Reaches = Mapping[TopicPartition, tuple[int, int]]
"""By user partition the lowest start offset, and the first offset above all that the state log names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """The window of each user partition, and what says where it ends (FROM_TOPIC or FROM_STATE_LOG).

    `without_topic`: the evidence lacks their topic; `beyond`: the state log names offsets at or above the end.
    """

    logs: Mapping[TopicPartition, TopicLog]
    sources: Mapping[TopicPartition, str]
    without_topic: Sequence[TopicPartition]
    beyond: Sequence[TopicPartition]


def reaches_of(histories: Iterable[tuple[pa.Table, pa.Table]]) -> dict[TopicPartition, tuple[int, int]]:
    """The reaches of pairs of SHARE_PARTITION_HISTORY and DELIVERY_HISTORY rows.

    User partitions without any start offset are left out.
    """
    begins: dict[TopicPartition, int] = {}
    ends: dict[TopicPartition, int] = {}
    for history, deliveries in histories:
        for place, begin in begins_of(history).items():
            begins[place] = min(begin, begins.get(place, begin))
        for place, end in _ends_of(history, deliveries).items():
            ends[place] = max(end, ends.get(place, end))
    return {place: (begin, ends.get(place, begin)) for place, begin in begins.items()}


def _ends_of(history: pa.Table, deliveries: pa.Table) -> dict[TopicPartition, int]:
    key = ["topic_id", "partition"]
    above = pc.add(deliveries.column("last_offset"), 1)
    parts = [
        deliveries.select(key).append_column("end", above),
        history.select(key).append_column("end", history.column("start_offset")),
    ]
    rows = pa.concat_tables(parts).unify_dictionaries().group_by(key).aggregate([("end", "max")])
    return {
        place: max(0, end or 0)
        for place, end in zip(topic_partitions(rows), rows.column("end_max").to_pylist(), strict=True)
    }


def windows_of(
    reaches: Reaches,
    headers: Callable[[Mapping[TopicPartition, int]], Iterable[pa.Table]],
    extents: Callable[[Iterable[TopicPartition]], pa.Table],
    *,
    from_ms: int | None = None,
    to_ms: int | None = None,
    from_offset: int | None = None,
    to_offset: int | None = None,
) -> Windows:
    """The windows of user partitions; `headers` and `extents` are those of `sharelens.measures.inputs.Inputs`.

    `from_ms` to `to_offset`: batch timestamps and record offsets, both half-open; None puts no bound.
    """
    begins = {place: begin for place, (begin, _) in reaches.items()}
    folded = TopicLogs(from_ms, to_ms)
    for batches in headers(begins):
        folded.take(batches)
    extent_by_partition = {(row["topic_id"], row["partition"]): row for row in extents(begins).to_pylist()}
    logs: dict[TopicPartition, TopicLog] = {}
    beyond = []
    for place, (begin, reached) in sorted(reaches.items()):
        extent = extent_by_partition.get(place, {})
        log_start, end = extent.get("log_start_offset"), extent.get("end_offset")
        if end is not None and to_offset is None and to_ms is None and reached > end:
            beyond.append(place)
        first = begin if log_start is None else log_start
        first = first if from_offset is None else from_offset
        end = reached if end is None else end
        end = end if to_offset is None else min(end, to_offset)
        log = folded.log(place, first=first, end=max(first, end), log_start=log_start, looked_from=begin)
        if log is not None:
            logs[place] = log
    return Windows(
        logs=logs,
        sources={place: FROM_TOPIC if place in extent_by_partition else FROM_STATE_LOG for place in reaches},
        without_topic=sorted(reaches.keys() - extent_by_partition.keys()),
        beyond=beyond,
    )
