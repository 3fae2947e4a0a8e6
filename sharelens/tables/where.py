"""Conditions that select rows of a table, as values, so that every source can look inside them."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, auto

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.as_of import WHOLE_LOG, LogPrefix
from sharelens.evidence.conditions import all_of
from sharelens.lake.bounded_scan import Choice
from sharelens.measures.topics.extents import TopicPartition
from sharelens.tables.dlq_filter import ALL_LETTERS, DeadLetterFilter


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The share partitions that a question is about; None puts no condition. Topics are ids with their partitions."""

    groups: frozenset[str] | None = None
    topics: Mapping[str, frozenset[int] | None] | None = None
    partitions: frozenset[int] | None = None

    def expression(self) -> pc.Expression | None:
        """The condition on the columns group_id, topic_id and partition; None when there is no condition."""
        parts: list[pc.Expression] = []
        if self.groups is not None:
            parts.append(pc.field("group_id").isin(pa.array(sorted(self.groups), pa.string())))
        if self.topics is not None:
            parts.append(self._topic_condition(self.topics))
        if self.partitions is not None:
            parts.append(pc.field("partition").isin(pa.array(sorted(self.partitions), pa.int32())))
        return all_of(*parts)

    @staticmethod
    def _topic_condition(topics: Mapping[str, frozenset[int] | None]) -> pc.Expression:
        whole_topics = sorted(topic for topic, partitions in topics.items() if partitions is None)
        condition = pc.field("topic_id").isin(pa.array(whole_topics, pa.string()))
        for topic, partitions in sorted(topics.items()):
            if partitions is not None:
                numbers = pa.array(sorted(partitions), pa.int32())
                condition |= (pc.field("topic_id") == topic) & pc.field("partition").isin(numbers)
        return condition

    @property
    def only(self) -> tuple[str, str, int] | None:
        """(group, topic id, partition) when exactly one share partition is meant."""
        if self.groups is None or self.topics is None or len(self.groups) != 1 or len(self.topics) != 1:
            return None
        (group,), ((topic, named),) = self.groups, self.topics.items()
        numbers = named if self.partitions is None else self.partitions if named is None else named & self.partitions
        return (group, topic, next(iter(numbers))) if numbers is not None and len(numbers) == 1 else None


ALL_KEYS = Keys()


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Conditions on records: log times and log offsets, half-open, and state partitions; None puts no condition."""

    from_ms: int | None = None
    to_ms: int | None = None
    from_offset: int | None = None
    to_offset: int | None = None
    state_partitions: frozenset[int] | None = None

    def expression(self, time: str = "log_time_ms") -> pc.Expression | None:
        """The condition on the column of the time, log_offset and state_partition; None when there is none."""
        parts: list[pc.Expression] = []
        if self.from_ms is not None:
            parts.append(pc.field(time) >= self.from_ms)
        if self.to_ms is not None:
            parts.append(pc.field(time) < self.to_ms)
        if self.from_offset is not None:
            parts.append(pc.field("log_offset") >= self.from_offset)
        if self.to_offset is not None:
            parts.append(pc.field("log_offset") < self.to_offset)
        if self.state_partitions is not None:
            parts.append(pc.field("state_partition").isin(pa.array(sorted(self.state_partitions), pa.int32())))
        return all_of(*parts)


WHOLE_SPAN = Span()


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Selects rows of a table; a part that a table has no columns for puts no condition on it.

    Args:
        keys: share partitions, or groups alone.
        places: share partitions in state partitions (PLACE_KEY) instead of `keys`.
        span: log times, log offsets and state partitions.
        cut: the moment; rows are as they stood then, so what ended later is open.
        offsets: record offsets; ranges that cover one of them.
        user_partitions: user partitions by (topic id, partition), each with the lowest offset that a row must reach.
        letters: the headers of dead letters.
        columns: a further condition on columns of the table; of deliveries, as they stand at the end of the evidence.
        choice: which row groups have to be read, for sources with row groups.
    """

    keys: Keys = ALL_KEYS
    places: pa.Table | None = None
    span: Span = WHOLE_SPAN
    cut: LogPrefix = WHOLE_LOG
    offsets: tuple[int, ...] | None = None
    user_partitions: Mapping[TopicPartition, int] | None = None
    letters: DeadLetterFilter = ALL_LETTERS
    columns: pc.Expression | None = None
    choice: Choice | None = None

    def expression(self) -> pc.Expression | None:
        """The condition of keys, span, record offsets and columns; None when there is none."""
        return all_of(self.keys.expression(), self.span.expression(), self.around(), self.columns)

    def around(self) -> pc.Expression | None:
        """The condition on the columns first_offset and last_offset of `offsets`; None when there is none."""
        if self.offsets is None:
            return None
        condition = pc.scalar(False)
        for offset in self.offsets:
            condition |= (pc.field("first_offset") <= offset) & (pc.field("last_offset") >= offset)
        return condition


ALL_ROWS = Where()


class Order(StrEnum):
    """The order of the rows of a scan."""

    ANY = auto()
    LOG = auto()
    """By (state_partition, log_offset)."""
