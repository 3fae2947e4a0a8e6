"""Inputs of measures from the evidence of a question: a lake at a cut, or log directories."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from sharelens.evidence.as_of import LogPrefix
from sharelens.evidence.conditions import filter_rows
from sharelens.measures.inputs import RecordInputs
from sharelens.measures.settings.over_time import NO_SETTINGS, GroupSettings
from sharelens.measures.topics.extents import Ints, TopicPartition
from sharelens.measures.topics.headers import SampledBatches
from sharelens.tables.parts import NO_PART, Part
from sharelens.tables.port import RECORDS, Tables
from sharelens.tables.reading import read, read_topic_batches, read_topic_extents
from sharelens.tables.where import Span, Where
from state_model.columnar.schemas import SHARE_RECORD
from state_model.columnar.values import Loss


class EvidenceInputs(RecordInputs):
    """A part of the histories at a cut, with what the evidence has of topics; `window` bounds `records`."""

    def __init__(
        self,
        evidence: Tables,
        cut: LogPrefix,
        part: Part = NO_PART,
        settings: GroupSettings = NO_SETTINGS,
        window: Span | None = None,
    ) -> None:
        self.settings = settings
        self.end_offsets = evidence.settings.end_offsets
        self.as_of_ms = cut.as_of_ms
        self.at_offsets = bool(cut.at_offsets)
        self._evidence, self._cut, self._part, self._window = evidence, cut, part, window or Span()

    def history(self) -> pa.Table:
        """Those of the part."""
        return self._part.history

    def deliveries(self) -> pa.Table:
        """Those of the part."""
        return self._part.deliveries

    def records(self, columns: Sequence[str] = SHARE_RECORD.names) -> pa.Table:
        """Those of the part up to the cut, in the window."""
        records = read(self._evidence, RECORDS, columns, Where(places=self._part.places))
        return filter_rows(filter_rows(records, self._cut.condition()), self._window.expression())

    def headers(self, begins: Mapping[TopicPartition, int]) -> Iterator[pa.Table]:
        """Of all user partitions that the evidence has."""
        return read_topic_batches(self._evidence, begins)

    def extents(self, partitions: Iterable[TopicPartition]) -> pa.Table:
        """Of all user partitions that the evidence has."""
        return read_topic_extents(self._evidence, partitions)

    def sampled(self, offsets: Mapping[TopicPartition, Ints]) -> SampledBatches:
        """Of user partitions that the evidence can sample."""
        return self._evidence.samples.of(offsets)

    def names(self) -> Mapping[str, str]:
        """Of the part's topics at least."""
        return self._evidence.names(self._part.places.column("topic_id").unique().to_pylist())

    def losses(self) -> Mapping[int, Sequence[Loss]]:
        """Of all state partitions."""
        return {part.state_partition: part.losses for part in self._evidence.cover()}
