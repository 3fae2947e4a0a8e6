"""Inputs of measures from a lake: the histories of a task's share partitions, whole or from the reach on."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jobs.lake_settings import stored_settings
from jobs.measure.bases import Bases, bases
from jobs.measure.new_evidence import new_headers, repeats
from jobs.measure.reading import DELIVERY, END, HISTORY, PLACE, STATE, Flags, Ints, Limit, Reader, Task
from sharelens.lake import user_topics
from sharelens.lake.tables import TABLES
from sharelens.measures.histories.numbers import (
    DELIVERY_COLUMNS,
    HISTORY_COLUMNS,
    RANGE_FIRST,
    RANGE_FROM,
    RANGE_STATE,
    RANGE_TO,
    Histories,
)
from sharelens.measures.inputs import StateInputs
from sharelens.measures.lag_over_time import MINUTE_MS, minutes_of
from sharelens.measures.ranges.places import Places, codes_in
from sharelens.measures.settings.observations import Settings
from sharelens.measures.stalls.incomplete import PAST_COLUMNS
from sharelens.measures.stalls.progress import goes_on, reads_from
from sharelens.measures.topics.extents import BATCH_COLUMNS, TopicPartition, topic_partitions
from sharelens.measures.topics.headers import NoRecords, SampledBatches
from sharelens.measures.topics.kept_samples import lowest_new_ranges
from sharelens.measures.topics.sampled_batches import batches_of
from state_model.columnar import schemas
from state_model.columnar.codes import ABOVE_ALL, BELOW_ALL, ints
from state_model.columnar.keys import FULL_PLACE_KEY, PLACE_KEY, SHARE_PARTITION_ORDER
from state_model.share_records import DeliveryState

PROGRESS = "gold.progress"
HEADER_COLUMNS = [*BATCH_COLUMNS, "base_timestamp_ms"]
PROGRESS_COLUMNS = [
    "start_offset", "first_incomplete_offset", "highest_earlier_offset", *PAST_COLUMNS,
    "read_from_log_offset", "log_offset", "log_time_ms", "completeness", "completeness_reason",
]  # fmt: skip
DONE = (DeliveryState.ACKNOWLEDGED, DeliveryState.ARCHIVED)
SNAPSHOT = pa.array(["snapshot"])
FIRST_STRETCH = 1 << 10
"""Log offsets that are looked through at first for the record before another one."""


class LakeInputs:
    """Inputs of a task's share partitions from a lake, and the offsets up to which earlier runs measured them.

    Arrays with one entry a place are in the order of `places`. Misplaced share partitions have no rows. Text of the
    histories is dictionary-encoded.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.topic = task.topic
        keys = task.keys.sort_by([(name, "ascending") for name in PLACE_KEY]).combine_chunks()
        self.places = Places(keys=keys.select(PLACE_KEY))
        self._all_new: Flags = keys.column("whole").to_numpy(zero_copy_only=False).astype(np.bool_)
        self.lake = Reader(task.topic, self.places, keys.column("upto").to_numpy())

    @cached_property
    def progress(self) -> pa.Table:
        """PROGRESS rows of the places that resume; places that are measured whole have none."""
        names = [*PLACE_KEY, *PROGRESS_COLUMNS]
        if self._all_new.all():
            return pa.schema([TABLES[PROGRESS].schema.field(name) for name in names]).empty_table()
        rows = self.lake.rows(PROGRESS, names)
        at = self.places.of(rows)
        return rows.filter(pa.array(goes_on(rows, self._new_batches_from[at]) & ~self._all_new[at]))

    @cached_property
    def is_whole(self) -> Flags:
        """Which places are measured whole: all their rows are replaced."""
        result = np.ones(self.places.count, np.bool_)
        result[self.places.of(self.progress)] = False
        return result

    def progress_values(self, name: str, otherwise: int) -> Ints:
        """A column of the progress, one entry a place; `otherwise` where it is null or the place is measured whole."""
        return self.places.values(self.progress, name, null=otherwise, missing=otherwise)

    @cached_property
    def measured_to(self) -> Ints:
        """The last log offset that earlier runs measured; BELOW_ALL where a place is measured whole."""
        return self.progress_values("log_offset", BELOW_ALL)

    @cached_property
    def read_from(self) -> Ints:
        """The log offset from which on measures about the log need the records; BELOW_ALL: all."""
        at = self.places.of(self.progress)
        result = np.full(self.places.count, BELOW_ALL, np.int64)
        result[at] = reads_from(self.progress, self._new_batches_from[at])
        return result

    @cached_property
    def _new_batches_from(self) -> Ints:
        """The lowest record offset that new headers or samples describe, for each place; ABOVE_ALL for none."""
        return np.minimum(self.new_headers_from, self.new_samples_from)

    @cached_property
    def recent(self) -> Histories:
        """The records from `read_from` on, and the ranges that were part of a state behind it."""
        return self._histories(self._history(("log_offset", self.read_from)), self._recent_deliveries)

    @cached_property
    def _recent_deliveries(self) -> pa.Table:
        return self._deliveries((END, self.read_from + 1))

    def _histories(self, history: pa.Table, deliveries: pa.Table) -> Histories:
        """Rows with PLACE in order, by the numbers of `places`."""
        topic = pa.repeat(pa.scalar(self.topic.log_topic_id, pa.string()), self.places.count)
        keys = self.places.keys.append_column("log_topic_id", topic).select(FULL_PLACE_KEY)
        numbers = [rows.column(PLACE).to_numpy() for rows in (history, deliveries)]
        return Histories.in_places(history, deliveries, numbers, keys)

    def _history(self, *least: Limit, upper_limit: Limit | None = None) -> pa.Table:
        return self.placed(self.lake.rows(HISTORY, [*HISTORY_COLUMNS, PLACE], *least, upper_limit=upper_limit))

    def _deliveries(self, *least: Limit, upper_limit: Limit | None = None) -> pa.Table:
        return self.placed(self.lake.rows(DELIVERY, [*DELIVERY_COLUMNS, PLACE], *least, upper_limit=upper_limit))

    def from_record(self) -> "View":
        """The recent rows."""
        return View(self, self.recent, self._recent_deliveries, self.progress)

    def by_offset(self, offsets: Ints) -> "View":
        """Ranges that reach a record offset, given for each place, or lie above it, and the records from the first one
        that they name on.

        And from the one before, if the first is a snapshot: it may show outcomes of records that the evidence lacks,
        which the completeness of the record before tells.
        """
        new = self._recent_deliveries
        old = self._deliveries(("last_offset", offsets), upper_limit=(END, self.read_from))
        late = new.column("last_offset").to_numpy() >= offsets[new.column(PLACE).to_numpy()]
        deliveries = pa.concat_tables([old, new.filter(pa.array(late))]).combine_chunks()
        began = (deliveries.column(name).to_numpy() for name in (PLACE, "valid_from_log_offset"))
        first = np.where(offsets == BELOW_ALL, BELOW_ALL, self.places.lowest(*began))
        history = self.recent.history
        named = history.filter(pa.array(history.column("log_offset").to_numpy() >= first[self.recent.place]))
        old = self._history(("log_offset", first), upper_limit=("log_offset", self.read_from - 1))
        history = pa.concat_tables([old, named])
        is_first = history.column("log_offset").to_numpy() == first[history.column(PLACE).to_numpy()]
        shown = history.filter(pa.array(is_first & (codes_in(history.column("record_type"), SNAPSHOT) == 0)))
        history = pa.concat_tables([history, self._records_before(shown)]).combine_chunks()
        return View(self, self._histories(history, deliveries), deliveries)

    def by_moment(self, since_ms: Ints) -> "View":
        """The records from the last one before a minute of the grid on, given for each place."""
        recent = self.recent
        first_ms = self.places.lowest(recent.place, recent.history.column("log_time_ms").to_numpy())
        # The recent records begin with the last measured one, or earlier: enough, unless a header leads further back.
        is_late = (since_ms < minutes_of(first_ms)) & (since_ms < ABOVE_ALL)
        begins = np.where(is_late, np.maximum(since_ms - MINUTE_MS, BELOW_ALL) + 1, ABOVE_ALL)
        if not (is_late & ~self.is_whole).any():
            return View(self, recent, self._recent_deliveries)
        older = self._history(("log_time_ms", begins), upper_limit=("log_offset", self.read_from - 1))
        history = pa.concat_tables([older, recent.history])
        lowest = self.places.lowest(history.column(PLACE).to_numpy(), history.column("log_offset").to_numpy())
        at = history.column(PLACE).to_numpy()
        is_first = is_late[at] & (history.column("log_offset").to_numpy() == lowest[at])
        before = self._records_before(history.filter(pa.array(is_first)))
        history = pa.concat_tables([history, before]).combine_chunks()
        return View(self, self._histories(history, self._recent_deliveries), self._recent_deliveries)

    def _records_before(self, rows: pa.Table) -> pa.Table:
        """Of each row of the history the one before of its share partition, if there is one.

        Read in stretches of the log, each longer than the one behind it.
        """
        ends = np.zeros(self.places.count, np.int64)
        ends[rows.column(PLACE).to_numpy()] = rows.column("log_offset").to_numpy()
        result, length = rows.slice(0, 0), FIRST_STRETCH
        while (ends > 0).any():
            begins = np.where(ends > 0, ends - length, ABOVE_ALL)
            part = Reader(self.topic, self.places, ends - 1).rows(
                HISTORY, [*HISTORY_COLUMNS, PLACE], ("log_offset", begins)
            )
            newest_first = self.placed(part).sort_by([("log_offset", "descending")])
            at, newest = np.unique(newest_first.column(PLACE).to_numpy(), return_index=True)
            result = pa.concat_tables([result, newest_first.take(pa.array(newest))])
            ends[at] = 0
            ends, length = np.maximum(ends - length, 0), length << 3
        return result

    @cached_property
    def reach(self) -> Ints:
        """The lowest record offset, for each place, that new evidence can affect; ABOVE_ALL for none.

        BELOW_ALL where a place is measured whole.
        """
        if self.is_whole.all():
            return np.full(self.places.count, BELOW_ALL, np.int64)
        recent = self.recent
        ranges, at = recent.ranges, recent.place_of_range
        new = ranges[:, RANGE_FROM] > self.measured_to[at]
        by_range = self.places.lowest(at[new], ranges[new, RANGE_FIRST])
        rows, at = recent.history, recent.place
        start = ints(rows, "start_offset", ABOVE_ALL)
        # A start offset that is not known any more (-1) lies below all that it had passed.
        lower = (start >= 0) | (self.progress_values("start_offset", ABOVE_ALL)[at] >= 0)
        new = (rows.column("log_offset").to_numpy() > self.measured_to[at]) & lower & ~repeats(recent)
        result = np.minimum.reduce([self.new_headers_from, by_range, self.places.lowest(at[new], start[new])])
        return np.where(self.is_whole, BELOW_ALL, result)

    @cached_property
    def reach_of_open(self) -> Ints:
        """The reach for open offsets: `reach`, lowered to ranges that ended without a successor.

        The start offset passed them, or the share partition was deleted.
        """
        if self.is_whole.all():
            return self.reach
        ranges, at = self.recent.ranges, self.recent.place_of_range
        was_open = ~np.isin(ranges[:, RANGE_STATE], DONE)
        gone = was_open & (ranges[:, RANGE_TO] > self.measured_to[at])
        return np.minimum(self.reach, self.places.lowest(at[gone], ranges[gone, RANGE_FIRST]))

    @cached_property
    def passed_before(self) -> Ints:
        """Below this record offset rows were final after the run before; BELOW_ALL: none was."""
        return start_offsets(self.places, self.progress)

    def rows_from(self, table: str, columns: list[str], offsets: Ints) -> pa.Table:
        """Rows of a measure by record offset that may reach an offset: all open ones, and final ones from it on."""
        is_open = self.lake.rows(table, columns, final=False)
        late = np.where(offsets < self.passed_before, offsets, ABOVE_ALL)
        if (late == ABOVE_ALL).all():
            return is_open
        return pa.concat_tables([is_open, self.lake.rows(table, columns, ("last_offset", late), final=True)])

    @cached_property
    def settings(self) -> Settings:
        """The settings that the lake keeps."""
        return stored_settings(self.topic.lake, self.topic.cluster_id)

    @cached_property
    def base(self) -> Bases:
        """The bounds below which rows are never recomputed, because retention has cut their histories."""
        return bases(self.topic.lake, self.topic.cluster_id, self.topic.log_topic_id)

    @cached_property
    def lowest_offsets(self) -> dict[TopicPartition, int]:
        """The lowest start offset of each user partition of the places."""
        if self.topic_books.num_rows == 0:
            return {}
        of_topics = pc.field("topic_id").isin(pc.unique(self.places.keys.column("topic_id")))
        rows = self.topic.scan("silver.topic_start", ["topic_id", "partition", "start_offset"], of_topics)
        lowest = rows.group_by(["topic_id", "partition"]).aggregate([("start_offset", "min")])
        return dict(zip(topic_partitions(lowest), lowest.column("start_offset_min").to_pylist(), strict=True))

    @cached_property
    def new_headers_from(self) -> Ints:
        """The lowest record offset that new batch headers describe, for each place; ABOVE_ALL for none."""
        return self._new_headers[0]

    @cached_property
    def new_headers_from_ms(self) -> Ints:
        """The time from which on new batch headers may change the end of the user partition, for each place; ABOVE_ALL
        for none.
        """
        return self._new_headers[1]

    @cached_property
    def _new_headers(self) -> tuple[Ints, Ints]:
        partitions = topic_partitions(self.places.keys)
        return new_headers(self.topic, self.topic_books, self.lowest_offsets, partitions, self.task.before)

    @cached_property
    def new_samples_from(self) -> Ints:
        """The lowest record offset that new sampled batches say to hold no record, for each place; ABOVE_ALL: none."""
        if not self.settings.samples.no_records:
            return np.full(self.places.count, ABOVE_ALL, np.int64)
        earlier = stored_settings(self.topic.lake, self.topic.cluster_id, self.task.before)
        lowest = lowest_new_ranges(earlier.samples, self.settings.samples)
        return np.array([lowest.get(place, ABOVE_ALL) for place in topic_partitions(self.places.keys)], np.int64)

    def headers(self, begins: Mapping[TopicPartition, int]) -> Iterator[pa.Table]:
        """HEADER_COLUMNS rows of bronze.topic_batch that reach the offsets or lie above."""
        return user_topics.batches(self.topic.scan, self.topic_books, begins, HEADER_COLUMNS)

    @cached_property
    def no_records(self) -> NoRecords:
        """The offsets that hold no record, from `lowest_offsets` on."""
        return NoRecords.of(self.headers(self.lowest_offsets))

    @cached_property
    def topic_books(self) -> pa.Table:
        """The books of user partitions (`sharelens.lake.user_topics`)."""
        return user_topics.books(self.topic.scan)

    @cached_property
    def names(self) -> Mapping[str, str]:
        """Topic names by id, the newest."""
        topics = pc.unique(self.places.keys.column("topic_id"))
        return user_topics.names(self.topic.scan, pc.field("topic_id").isin(topics))

    @cached_property
    def _misplaced(self) -> Flags:
        """Whether each place is misplaced: its share partition belongs to another state partition."""
        rows = self.lake.rows(STATE, [*PLACE_KEY, "misplaced"])
        result = np.zeros(self.places.count, np.bool_)
        result[self.places.of(rows)] = rows.column("misplaced").to_numpy(zero_copy_only=False)
        return result

    def placed(self, rows: pa.Table) -> pa.Table:
        """The rows, with PLACE, that are not misplaced, with the state topic's id."""
        if self._misplaced.any():
            rows = rows.filter(pa.array(~self._misplaced[rows.column(PLACE).to_numpy()]))
        if "log_topic_id" in rows.column_names:
            return rows
        topic = pa.DictionaryArray.from_arrays(np.zeros(rows.num_rows, np.int32), [self.topic.log_topic_id])
        return rows.append_column("log_topic_id", topic)

    def history_parts(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Columns of the whole history and PLACE_KEY, in bounded tables."""
        names = [*dict.fromkeys([*columns, *PLACE_KEY, PLACE])]
        return (self.placed(rows) for rows in self.lake.parts(HISTORY, names))


class View(StateInputs):
    """Some rows of the histories; `earlier`: where runs before measured to, if these rows go on from there."""

    def __init__(
        self, source: LakeInputs, histories: Histories, deliveries: pa.Table, earlier: pa.Table | None = None
    ) -> None:
        self.source = source
        self.settings = source.settings.groups
        self.end_offsets = source.settings.end_offsets
        self._histories, self._deliveries, self._earlier = histories, deliveries, earlier

    def history(self) -> pa.Table:
        """The records that the view was made with."""
        return self._histories.history

    def deliveries(self) -> pa.Table:
        """The ranges that the view was made with."""
        return self._deliveries

    def histories(self) -> Histories:
        """Both, in order."""
        return self._histories

    def earlier(self) -> pa.Table | None:
        """Where the runs before measured to."""
        return self._earlier

    def states(self) -> pa.Table:
        """Live share partitions, none of them misplaced, by SHARE_PARTITION_KEY."""
        rows = self.source.lake.rows(STATE, schemas.PLACED_STATE.names, coded=False)
        rows = rows.filter(pc.invert(rows.column("misplaced")))
        return rows.select(schemas.SHARE_PARTITION_STATE.names).sort_by(SHARE_PARTITION_ORDER)

    def headers(self, begins: Mapping[TopicPartition, int]) -> Iterator[pa.Table]:
        """HEADER_COLUMNS rows of bronze.topic_batch."""
        return self.source.headers(begins)

    def extents(self, partitions: Iterable[TopicPartition]) -> pa.Table:
        """From the books."""
        return user_topics.extents(self.source.topic_books, partitions)

    def sampled(self, offsets: Mapping[TopicPartition, Ints]) -> SampledBatches:
        """From what the lake keeps of a running cluster's batches."""
        return batches_of(self.source.settings.samples, offsets)

    def lowest_offsets(self) -> Mapping[TopicPartition, int]:
        """From silver.topic_start."""
        return self.source.lowest_offsets

    def no_records(self) -> NoRecords:
        """Read once for all views."""
        return self.source.no_records

    def names(self) -> Mapping[str, str]:
        """From silver.name."""
        return self.source.names


def start_offsets(places: Places, progress: pa.Table) -> Ints:
    """The start offset of each place by PROGRESS rows; all offsets lie below that of a deleted one.

    None lies below one that is not known.
    """
    return places.values(progress, "start_offset", null=ABOVE_ALL, missing=BELOW_ALL)
