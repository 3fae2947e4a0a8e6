"""Evidence from a lake: the tables of the newest published cut, conditions pushed into the scan."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property, partial
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.as_of import (
    DELIVERY_ORDER,
    LogPrefix,
    delivery_history_as_of,
    mark_below_log_start,
    mark_losses,
    states_as_of,
)
from sharelens.evidence.clock_steps import LATE_RECORD, ClockStep, steps_around
from sharelens.evidence.conditions import all_of, filter_rows
from sharelens.evidence.losses import losses_up_to
from sharelens.kafka_log.dead_letter_records import DLQ_RECORD
from sharelens.kafka_log.schemas import TOPIC_BATCH
from sharelens.lake import bounded_scan, dlq_partitions, user_topics
from sharelens.lake.bounded_scan import Choice
from sharelens.lake.scan import Cut as PublishedCut
from sharelens.lake.scan import open_lake
from sharelens.lake.settings_rows import COLUMNS, observations_of
from sharelens.lake.settings_rows import TABLE as SETTINGS
from sharelens.lake.tables import TABLES
from sharelens.measures.headers import SampledBatches
from sharelens.measures.observed_settings import Settings
from sharelens.measures.places import Ints, Places
from sharelens.measures.sampled_batches import batches_of
from sharelens.measures.topics import TopicPartition
from sharelens.questions import dlq_filter, lake_places
from sharelens.questions.dlq_filter import DeadLetterFilter
from sharelens.questions.evidence import COUNTED, GroupLogCover, Keys, Span, StatePartitionCover, counted_places
from sharelens.questions.lake_clusters import choose_cluster
from sharelens.questions.lake_cover import state_partition_covers
from sharelens.questions.lake_metadata import LakeMetadata
from sharelens.questions.lake_places import near_places, newest_of_places, numbered_rows, with_record_counts
from sharelens.questions.lake_rows import LakeRows
from sharelens.questions.lake_settings import LakeSettings
from sharelens.questions.misplaced import placed_states
from sharelens.questions.without_cluster import WithoutCluster
from sharelens.settings.files import NO_SETTINGS_FILES, SettingsFiles
from state_model.columnar import schemas
from state_model.columnar.keys import LOG_ORDER, PLACE_KEY, SHARE_PARTITION_KEY
from state_model.columnar.values import Loss

HISTORY, DELIVERY = "gold.share_partition_history", "gold.delivery_history"
PROGRESS, STATE = "gold.progress", "gold.share_partition_state"
"""Tables with a row of each place: the share partitions that are not misplaced, and those that live."""


class LakeEvidence(WithoutCluster):
    """One cluster of a lake at its published cut."""

    is_in_memory = False

    def __init__(
        self, lake: PublishedCut, cluster_id: str | None, settings_files: SettingsFiles = NO_SETTINGS_FILES
    ) -> None:
        """`settings_files`: those of the command line."""
        self.lake = lake
        self._settings_files = settings_files
        self.cluster = choose_cluster(lake, cluster_id)
        self.rows = LakeRows(lake, self.cluster)
        self.metadata = LakeMetadata(lake, self.cluster)
        self._placed: tuple[Keys, pa.Table] | None = None
        self._within: tuple[Keys, pc.Expression | None] | None = None

    @property
    def place(self) -> str:
        """The lake's folder."""
        return f"lake {self.lake.lake}"

    @property
    def cluster_id(self) -> str | None:
        """The cluster that was chosen, or the only one."""
        return self.cluster

    @property
    def settings(self) -> Settings:
        """Those of the command line, before those that runs stored."""
        return self.lake_settings.answering

    @property
    def measured_settings(self) -> Settings:
        """Those that runs stored."""
        return self.lake_settings.measured

    @cached_property
    def lake_settings(self) -> LakeSettings:
        """Those that runs stored, and those of the command line."""
        return LakeSettings(observations_of(self.rows.scan(SETTINGS, COLUMNS)), self._settings_files)

    def names(self, topic_ids: Iterable[str]) -> Mapping[str, str]:
        """All names of silver.name."""
        return self._names

    def topic_ids(self, name: str) -> Sequence[str]:
        """Ids by silver.name."""
        return [topic_id for topic_id, topic_name in self._names.items() if topic_name == name]

    def topic_id_now(self, name: str) -> str | None:
        """The one that was read last, by bronze.ingest_extent."""
        ids = self.topic_ids(name)
        return ids[0] if len(ids) == 1 else user_topics.newest_topic(self.rows.scan, ids)

    @cached_property
    def _names(self) -> dict[str, str]:
        return user_topics.names(self.rows.scan, pc.scalar(True)) | dict(self._settings_files.topic_names)

    def share_partitions(self) -> pa.Table:
        """Those of `places`."""
        return self.places(Keys()).group_by(SHARE_PARTITION_KEY).aggregate([])

    def _where(self, keys: Keys, *conditions: pc.Expression | None) -> pc.Expression | None:
        """The condition for rows of share partitions, with the state partitions that have any: files go by these."""
        if self._within is None or self._within[0] != keys:
            self._within = keys, self._state_partitions_of(keys)
        return all_of(keys.expression(), self._within[1], *conditions)

    def _state_partitions_of(self, keys: Keys) -> pc.Expression | None:
        """The condition on state_partition by gold.progress, which has a row of each place; None where it has none.

        Row groups of the histories hold one state partition and many share partitions.
        """
        if keys == Keys() or PROGRESS not in self.lake.versions:
            return None
        names = ["state_partition"]
        tables = [self.rows.scan(table, names, keys.expression()) for table in (PROGRESS, STATE)]
        numbers = pc.unique(pa.concat_tables(tables).column("state_partition")).sort()
        if len(numbers) == 0:
            return None
        column = pc.field("state_partition")
        within: pc.Expression = (column >= numbers[0]) & (column <= numbers[-1])
        return within if len(numbers) == 1 else within & column.isin(numbers)

    def places(self, keys: Keys) -> pa.Table:
        """By the rows that runs keep of each place; kept for the next question about the same share partitions."""
        if self._placed is None or self._placed[0] != keys:
            self._placed = keys, self._places(keys)
        return self._placed[1]

    def _places(self, keys: Keys) -> pa.Table:
        history = self.lake.dataset(HISTORY)
        if PROGRESS not in self.lake.versions or history is None:
            return counted_places(self.rows.stream(HISTORY, COUNTED, self._where(keys, self.rows.of_log(HISTORY))))
        tables = (PROGRESS, STATE)
        every = newest_of_places(self.rows.scan(table, COUNTED, self.rows.of_log(table)) for table in tables)
        places = filter_rows(every, keys.expression())
        unsure = places.filter(pc.less(pc.fill_null(places.column("start_offset"), -1), 0))
        if unsure.num_rows:  # an earlier life may have had a start offset
            rows = self.rows.rows_of_places(HISTORY, COUNTED, Places(keys=unsure), None)
            counted = counted_places(part for _, part in rows)
            places = newest_of_places([places, counted])
        return with_record_counts(places, every, bounded_scan.row_counts(history, "state_partition"))

    def histories(self, places: pa.Table, prefix: LogPrefix) -> tuple[pa.Table, pa.Table]:
        """Rows of the two histories, row groups of other places left out by their statistics."""
        history = self.rows.of_places(HISTORY, schemas.SHARE_PARTITION_HISTORY.names, places, prefix.condition())
        begin_condition = prefix.begin_condition()
        deliveries = self.rows.of_places(DELIVERY, schemas.DELIVERY_HISTORY.names, places, begin_condition)
        return history.sort_by(LOG_ORDER).cast(schemas.SHARE_PARTITION_HISTORY), delivery_history_as_of(
            deliveries, prefix
        )

    def history_of_places(self, places: Places, columns: Sequence[str]) -> Iterator[tuple[Ints, pa.Table]]:
        """These columns, PLACE_KEY and LOG_ORDER's among them, of the rows of some places, with the place of each row.

        In bounded tables, in log order.
        """
        schema = pa.schema([schemas.SHARE_PARTITION_HISTORY.field(name) for name in columns])
        for rows in self.rows.in_log_order(HISTORY, schema, near_places(places.keys)):
            yield numbered_rows(places, rows)

    def deliveries_of_places(self, places: Places, columns: Sequence[str]) -> Iterator[tuple[Ints, pa.Table]]:
        """These columns, PLACE_KEY's among them, of the DELIVERY_HISTORY rows of some places, in any order."""
        return self.rows.rows_of_places(DELIVERY, list(columns), places, None)

    def deliveries_around(self, places: pa.Table, around: pc.Expression) -> pa.Table:
        """DELIVERY_HISTORY rows of some places that meet a condition on their record offsets."""
        rows = self.rows.of_places(DELIVERY, schemas.DELIVERY_HISTORY.names, places, around)
        return rows.cast(schemas.DELIVERY_HISTORY)

    def has_deliveries(self, places: pa.Table) -> bool:
        """Whether any of some places has a row in gold.delivery_history."""
        return any(len(numbers) for numbers, _ in self.deliveries_of_places(Places(keys=places), PLACE_KEY))

    def records_of(self, places: pa.Table, columns: Sequence[str]) -> pa.Table:
        """Rows of silver.share_record."""
        rows = self.rows.of_places("silver.share_record", list(columns), places, None)
        return rows.cast(pa.schema([schemas.SHARE_RECORD.field(name) for name in columns]))

    def each_record(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Row group by row group of silver.share_record."""
        yield schemas.SHARE_RECORD.empty_table().select(columns)
        of_log = self.rows.of_log("silver.share_record")
        for rows in self.rows.stream("silver.share_record", list(columns), of_log):
            yield rows.cast(pa.schema([schemas.SHARE_RECORD.field(name) for name in columns]))

    def measured_stream(
        self, table: str, schema: pa.Schema, keys: Keys, where: pc.Expression | None = None
    ) -> Iterator[pa.Table] | None:
        """Rows of the table, where the cut has it, row group by row group."""
        if table not in self.lake.versions:
            return None
        where = all_of(keys.expression(), where)
        if "log_topic_id" in TABLES[table].schema.names:
            where = all_of(where, self.rows.of_log(table))
        rows = self.rows.stream(table, schema.names, where)
        return (part.cast(schema) for part in itertools.chain([schema.empty_table()], rows))

    def records(self, keys: Keys, span: Span) -> Iterator[pa.Table]:
        """Rows of silver.share_record."""
        where = self._where(keys, span.expression())
        return self.rows.in_log_order("silver.share_record", schemas.SHARE_RECORD, where)

    def states(self, keys: Keys, prefix: LogPrefix) -> pa.Table:
        """gold.share_partition_state; for a prefix, the state after it from the two histories."""
        return placed_states(lambda chosen: self._states(chosen, prefix), keys)

    def _states(self, keys: Keys, prefix: LogPrefix) -> pa.Table:
        if prefix.is_whole:
            states = self.rows.newest(self.rows.scan(STATE, schemas.SHARE_PARTITION_STATE.names, keys.expression()))
            states = states.cast(schemas.SHARE_PARTITION_STATE)
        else:
            history = self.rows.scan(
                HISTORY, schemas.SHARE_PARTITION_HISTORY.names, self._where(keys, prefix.condition())
            )
            still_open = self._where(keys, prefix.open_condition())
            ranges = self.rows.scan(DELIVERY, schemas.DELIVERY_HISTORY.names, still_open)
            states = states_as_of(self.rows.newest(history), self.rows.newest(ranges))
            states = mark_losses(states, self._losses_in(prefix))
        return mark_below_log_start(states, {part.state_partition: part.log_start_offset for part in self.cover()})

    def _losses_in(self, prefix: LogPrefix) -> dict[int, list[Loss]]:
        """Losses that begin in the prefix, by state partition."""
        ends = self._prefix_ends(prefix)
        return {
            part.state_partition: losses_up_to(part.losses, ends.get(part.state_partition))
            for part in self.cover()
            if part.losses
        }

    def _prefix_ends(self, prefix: LogPrefix) -> Mapping[int, int]:
        """The last log offset of the prefix in each state partition that it cuts and that has losses."""
        if prefix.as_of_ms is None:
            return prefix.at_offsets
        touched = pa.array([part.state_partition for part in self.cover() if part.losses], pa.int32())
        if len(touched) == 0:
            return {}
        condition = (pc.field("log_time_ms") <= prefix.as_of_ms) & pc.field("state_partition").isin(touched)
        rows = self.rows.scan(HISTORY, ["log_topic_id", "state_partition", "log_offset"], condition)
        newest = self.rows.newest(rows).group_by("state_partition").aggregate([("log_offset", "max")])
        ends: dict[int, int] = dict.fromkeys(touched.to_pylist(), -1)
        ends |= zip(newest["state_partition"].to_pylist(), newest["log_offset_max"].to_pylist(), strict=True)
        return ends

    def history(self, keys: Keys) -> pa.Table:
        """Rows of gold.share_partition_history."""
        rows = self.rows.scan(HISTORY, schemas.SHARE_PARTITION_HISTORY.names, self._where(keys))
        return self.rows.newest(rows).sort_by(LOG_ORDER).cast(schemas.SHARE_PARTITION_HISTORY)

    def history_in_parts(self, keys: Keys, columns: Sequence[str], choice: Choice | None = None) -> Iterator[pa.Table]:
        """Rows of gold.share_partition_history."""
        schema = pa.schema([schemas.SHARE_PARTITION_HISTORY.field(name) for name in columns])
        return self.rows.in_log_order(HISTORY, schema, self._where(keys), choice)

    def delivery(self, keys: Keys, offset: int) -> pa.Table:
        """Rows of gold.delivery_history around one record offset."""
        around = (pc.field("first_offset") <= offset) & (pc.field("last_offset") >= offset)
        rows = self.rows.scan(DELIVERY, schemas.DELIVERY_HISTORY.names, self._where(keys, around))
        return self.rows.newest(rows).cast(schemas.DELIVERY_HISTORY)

    def deliveries(self, keys: Keys, prefix: LogPrefix) -> pa.Table:
        """Rows of gold.delivery_history."""
        begin_condition = prefix.begin_condition()
        rows = self.rows.scan(DELIVERY, schemas.DELIVERY_HISTORY.names, self._where(keys, begin_condition))
        return delivery_history_as_of(self.rows.newest(rows), prefix).sort_by(DELIVERY_ORDER)

    def topic_batches(self, begins: Mapping[TopicPartition, int]) -> Iterator[pa.Table]:
        """Rows of bronze.topic_batch."""
        for rows in user_topics.batches(self.rows.scan, self._topic_books, begins, TOPIC_BATCH.names):
            yield rows.cast(TOPIC_BATCH)

    def topic_extents(self, partitions: Iterable[TopicPartition]) -> pa.Table:
        """From bronze.ingest_extent."""
        return user_topics.extents(self._topic_books, partitions)

    @cached_property
    def _topic_books(self) -> pa.Table:
        return user_topics.books(self.rows.scan)

    def sampled(self, offsets: Mapping[TopicPartition, Ints]) -> SampledBatches:
        """From what runs kept of a cluster's batches."""
        return batches_of(self.settings.samples, offsets)

    def sampled_partitions(self) -> Set[TopicPartition]:
        """Those that the newest run from a cluster could read."""
        return self.settings.samples.partitions

    def group_records(self, groups: frozenset[str] | None = None) -> pa.Table:
        """Rows of silver.group_record."""
        return lake_places.group_records(self.rows.scan, groups)

    def group_log_covers(self) -> Mapping[int, GroupLogCover]:
        """By bronze.log_record and bronze.ingest_extent."""
        return lake_places.group_log_covers(self.rows.scan)

    def offset_commits(self, groups: frozenset[str]) -> pa.Table:
        """Rows of bronze.log_record."""
        return lake_places.offset_commits(self.rows.scan, groups)

    def dead_letters(self, letter_filter: DeadLetterFilter) -> pa.Table:
        """Rows of silver.dlq_record."""
        rows = self.rows.scan("silver.dlq_record", DLQ_RECORD.names, letter_filter.expression())
        return dlq_filter.in_order([rows.cast(DLQ_RECORD)])

    def dead_letter_partitions(self) -> pa.Table:
        """From bronze.ingest_extent, and of logs that were cut from silver.dlq_record."""
        return self._dead_letter_partitions

    @cached_property
    def _dead_letter_partitions(self) -> pa.Table:
        read_letters = partial(self.rows.stream, "silver.dlq_record", dlq_partitions.LETTERS_READ)
        extents = self.rows.scan("bronze.ingest_extent", None).to_pylist()
        return dlq_partitions.partitions_in_books(extents, read_letters)

    def cover(self) -> Sequence[StatePartitionCover]:
        """The published range of each state partition, with its gaps and quarantine counts."""
        return self._cover

    @cached_property
    def _cover(self) -> tuple[StatePartitionCover, ...]:
        extents, problems = (self.rows.of_state_topic(table) for table in ("bronze.ingest_extent", "bronze.quarantine"))
        return state_partition_covers(self.lake, self.rows.published, extents, problems)

    def read_until_ms(self) -> int | None:
        """By the newest extents; a run that read no new record of a cluster may have seen newer records that wait."""
        times = self.rows.scan("bronze.ingest_extent", ["read_until_ms"]).column("read_until_ms")
        known_times = (pc.max(times).as_py(), self.lake_settings.sampled_ms)
        return max((moment for moment in known_times if moment is not None), default=None)

    def clock_steps(self, moment_ms: int) -> Sequence[ClockStep]:
        """Records of a later log time whose own time lies at or before the moment."""
        condition = (pc.field("log_time_ms") > moment_ms) & (pc.field("timestamp_ms") <= moment_ms)
        columns = ["log_topic_id", *LATE_RECORD.names]
        return steps_around(self.rows.newest(self.rows.scan(HISTORY, columns, condition)), moment_ms)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        return None


def open_lake_evidence(path: str, cluster_id: str | None, settings_files: SettingsFiles | None = None) -> LakeEvidence:
    """Opens the newest published cut of a lake; `settings_files`: those of the command line."""
    return LakeEvidence(open_lake(path), cluster_id, settings_files or NO_SETTINGS_FILES)
