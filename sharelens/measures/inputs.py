"""The input of measures: the evidence about some share partitions, as pyarrow Tables.

A lake, log directories and a group of rows of a DataFrame implement `Inputs`; every measure
(`sharelens.measures.catalog`) is a
function of it. All tables are of one cluster, one state topic and one cut of the log.

    class OfGroup(Inputs):
        def history(self): return ...       # the share partitions' SHARE_PARTITION_HISTORY rows
        def deliveries(self): return ...    # their DELIVERY_HISTORY rows

That is enough for life events and redeliveries. Headers of user topics add gaps, ages and ends of partitions.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar, cast

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.histories.numbers import Histories
from sharelens.measures.ranges.steps import Ints
from sharelens.measures.settings.over_time import NO_SETTINGS, GroupSettings
from sharelens.measures.topics.extents import (
    BATCH_COLUMNS,
    TOPIC_END,
    TOPIC_EXTENT,
    EndsFromHeaders,
    TopicPartition,
)
from sharelens.measures.topics.file_ends import FROM_FILE, EndOffsets, ends_by_id, with_end_offsets
from sharelens.measures.topics.headers import NO_SAMPLES, NoRecords, OffsetTimes, SampledBatches, begins_of
from state_model.columnar.schemas import SHARE_RECORD
from state_model.columnar.values import Loss

CREATE_TIME = "create_time"
Result = TypeVar("Result")


class Inputs(ABC):
    """The evidence about some share partitions. Methods that a source does not implement return no rows."""

    settings: GroupSettings = NO_SETTINGS
    """Settings of groups, as far as configuration files name them."""
    end_offsets: EndOffsets = MappingProxyType({})
    """End offsets from a file; at the end of the evidence they raise its ends."""
    as_of_ms: int | None = None
    """Log time of the cut; None for the end of the evidence."""
    at_offsets: bool = False
    """Whether the cut is at offsets of the state log, which name no moment."""

    @abstractmethod
    def history(self) -> pa.Table:
        """SHARE_PARTITION_HISTORY rows in any order, from `earlier` on. Text columns may be dictionary-encoded."""

    @abstractmethod
    def deliveries(self) -> pa.Table:
        """DELIVERY_HISTORY rows in any order; a range that ends after the cut is open."""

    def histories(self) -> Histories:
        """Scalar and delivery history in order; computed once, for all measures."""
        return self.once("histories", lambda: Histories.of(self.history(), self.deliveries()))

    def earlier(self) -> pa.Table | None:
        """PROGRESS rows of share partitions whose `history` does not begin with their first record."""
        return None

    def headers(self, begins: Mapping[TopicPartition, int]) -> Iterator[pa.Table]:
        """TOPIC_BATCH rows that reach the offsets or lie above, by user partition in offset order, in parts."""
        return iter(())

    def extents(self, partitions: Iterable[TopicPartition]) -> pa.Table:
        """TOPIC_EXTENT rows of the user partitions in the evidence."""
        return TOPIC_EXTENT.empty_table()

    def sampled(self, offsets: Mapping[TopicPartition, Ints]) -> SampledBatches:
        """Times and missing records of ascending offsets, read from a cluster for user partitions without headers."""
        return NO_SAMPLES

    def lowest_offsets(self) -> Mapping[TopicPartition, int]:
        """The offset from which on each user partition matters: its lowest start offset."""
        return self.once("lowest offsets", lambda: begins_of(self.history()))

    def no_records(self) -> NoRecords:
        """The offsets that hold no record, from `lowest_offsets` on."""
        return self.once("no records", lambda: NoRecords.of(self.headers(self.lowest_offsets())))

    def losses(self) -> Mapping[int, Sequence[Loss]]:
        """Ranges of the log without records, by state partition."""
        return {}

    def names(self) -> Mapping[str, str]:
        """Topic names by id, as far as known."""
        return {}

    def once(self, name: str, make: Callable[[], Result]) -> Result:
        """The value of `make`, computed at the first call; several measures share it."""
        memo = self.__dict__.setdefault("_memo", {})
        if name not in memo:
            memo[name] = make()
        return cast(Result, memo[name])


class StateInputs(Inputs):
    """Inputs with states, which lag reads: of a lake, of a group of rows."""

    @abstractmethod
    def states(self) -> pa.Table:
        """SHARE_PARTITION_STATE rows of the live share partitions at the cut."""


class RecordInputs(Inputs):
    """Inputs with records, which cost reads: of a question."""

    @abstractmethod
    def records(self, columns: Sequence[str] = SHARE_RECORD.names) -> pa.Table:
        """SHARE_RECORD rows up to the cut, some columns of them; those of PLACE_KEY and of cuts are always there."""


def offset_times(
    inputs: Inputs, offsets: dict[TopicPartition, Ints], lasting: Mapping[TopicPartition, Ints]
) -> pa.Table:
    """OFFSET_TIME rows of ascending offsets; `lasting`: those that are incomplete at the cut, which may be sampled."""
    times = OffsetTimes(offsets)
    for batches in inputs.headers({place: int(partition_offsets[0]) for place, partition_offsets in offsets.items()}):
        times.take(batches)
    return pa.concat_tables([times.table(), inputs.sampled(lasting).times])


def topic_ends(inputs: Inputs, begins: Mapping[TopicPartition, int]) -> pa.Table:
    """TOPIC_END rows of user partitions at the cut; none is known at offsets of the state log.

    An end from a file is that of the topic in `begins` with its name: leave out topics that were deleted before.
    """
    extents = inputs.extents(begins)
    if inputs.at_offsets:
        return pa.Table.from_pylist(extents.select(["topic_id", "partition"]).to_pylist(), schema=TOPIC_END)
    folded = EndsFromHeaders(inputs.as_of_ms)
    for batches in inputs.headers(begins):
        folded.take(batches.select(BATCH_COLUMNS))
    ends = folded.ends(extents)
    if inputs.as_of_ms is None and inputs.end_offsets:
        ends = with_end_offsets(ends, inputs.end_offsets, inputs.names(), partitions=begins, only_higher=True)
    return ends


def known_ends(inputs: Inputs, begins: Mapping[TopicPartition, int]) -> dict[TopicPartition, tuple[int, str]]:
    """End offsets at the cut with their source; at an earlier moment perhaps the producers' clocks (create_time).

    Of `begins` the same is true as in `topic_ends`.
    """
    is_whole = inputs.as_of_ms is None and not inputs.at_offsets
    if is_whole:
        rows = inputs.extents(begins)
        rows = rows.append_column("end_offset_inferred", pa.nulls(rows.num_rows, pa.int64()))
    else:
        rows = topic_ends(inputs, begins)
    ends: dict[TopicPartition, tuple[int, str]] = {}
    rows = rows.filter(pc.is_valid(pc.coalesce(rows.column("end_offset"), rows.column("end_offset_inferred"))))
    for row in rows.to_pylist():
        place = (row["topic_id"], row["partition"])
        if row["end_offset"] is not None:
            ends[place] = (row["end_offset"], row["end_offset_source"])
        else:
            ends[place] = (row["end_offset_inferred"], CREATE_TIME)
    if is_whole and inputs.end_offsets:
        for place, offset in ends_by_id(inputs.end_offsets, inputs.names(), begins).items():
            if offset > ends.get(place, (-1, ""))[0]:
                ends[place] = (offset, FROM_FILE)
    return ends
