"""Samples of user topics that a lake keeps: times of waiting records, and offsets without a record.

    start offset 100 | 100-104 acknowledged | 105 COMMIT | 106 nobody was given
    kept: no record at 105; the time of the batch that holds 106

Only what is said of first incomplete offsets is kept: one batch for each of them, and those without a record before it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sharelens.measures.topics.extents import TopicPartition


class Time(NamedTuple):
    """Max timestamp of a batch, and its timestamp type."""

    max_timestamp_ms: int
    timestamp_type: str


class NoRecord(NamedTuple):
    """A range of offsets without a record for a group (NO_RECORD)."""

    first_offset: int
    last_offset: int
    reason: str


class Line(NamedTuple):
    """A kept sample as text: a user partition, a range without a record, or the time of an offset.

    `name`: the partition, with `:FIRST-LAST` or `:OFFSET` behind it; `value`: the time; `origin`: the timestamp type or
    the reason.
    """

    topic_id: str
    name: str
    value: str | None = None
    origin: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptSamples:
    """Times by offset, and ranges without records, by user partition; `partitions`: those that could be read."""

    partitions: "frozenset[TopicPartition]" = frozenset()
    times: "Mapping[TopicPartition, Mapping[int, Time]]" = field(default_factory=dict)
    no_records: "Mapping[TopicPartition, frozenset[NoRecord]]" = field(default_factory=dict)

    @classmethod
    def of_lines(cls, lines: Iterable[tuple[str, str, str | None, str | None]]) -> "KeptSamples":
        """The samples that `lines` has written as text."""
        partitions: set[TopicPartition] = set()
        times: dict[TopicPartition, dict[int, Time]] = {}
        no_records: dict[TopicPartition, set[NoRecord]] = {}
        for topic_id, name, value, origin in lines:
            number, _, offsets = name.partition(":")
            place = (topic_id, int(number))
            first, _, last = offsets.partition("-")
            if last:
                no_records.setdefault(place, set()).add(NoRecord(int(first), int(last), origin or ""))
            elif first:
                times.setdefault(place, {})[int(first)] = Time(int(value or 0), origin or "")
            else:
                partitions.add(place)
        return cls(
            partitions=frozenset(partitions),
            times=times,
            no_records={place: frozenset(ranges) for place, ranges in no_records.items()},
        )

    def lines(self) -> Iterator[Line]:
        """A line for each partition, time and range."""
        for topic_id, partition in self.partitions:
            yield Line(topic_id, str(partition))
        for (topic_id, partition), times in self.times.items():
            for offset, (time_ms, clock) in times.items():
                yield Line(topic_id, f"{partition}:{offset}", str(time_ms), clock)
        for (topic_id, partition), ranges in self.no_records.items():
            for first, last, reason in ranges:
                yield Line(topic_id, f"{partition}:{first}-{last}", None, reason)

    def needed(
        self,
        waiting: "Mapping[TopicPartition, Collection[int]]",
        begins: "Mapping[TopicPartition, int]",
        partitions: "frozenset[TopicPartition]",
    ) -> "KeptSamples":
        """The times of offsets that wait, and the ranges that end at or above the lowest start offset (`begins`)."""
        times = {
            place: {offset: time for offset, time in time_by_offset.items() if offset in waiting.get(place, ())}
            for place, time_by_offset in self.times.items()
        }
        ranges = {
            place: frozenset(each for each in partition_ranges if place in begins and each.last_offset >= begins[place])
            for place, partition_ranges in self.no_records.items()
        }
        return KeptSamples(
            partitions=partitions & begins.keys(),
            times={place: time_by_offset for place, time_by_offset in times.items() if time_by_offset},
            no_records={place: partition_ranges for place, partition_ranges in ranges.items() if partition_ranges},
        )


NO_KEPT_SAMPLES = KeptSamples()


def changed_partitions(earlier: KeptSamples, now: KeptSamples) -> "set[TopicPartition]":
    """The user partitions whose kept samples differ."""
    places = {*earlier.times, *now.times, *earlier.no_records, *now.no_records}
    return {
        place
        for place in places
        if earlier.times.get(place) != now.times.get(place)
        or earlier.no_records.get(place) != now.no_records.get(place)
    }


def lowest_new_ranges(earlier: KeptSamples, now: KeptSamples) -> "dict[TopicPartition, int]":
    """By user partition the first offset of the ranges that were not kept before."""
    new = {
        place: partition_ranges - earlier.no_records.get(place, frozenset())
        for place, partition_ranges in now.no_records.items()
    }
    return {
        place: min(each.first_offset for each in partition_ranges)
        for place, partition_ranges in new.items()
        if partition_ranges
    }
