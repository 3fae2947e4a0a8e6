"""Tables of a lake: those of the newest published cut, conditions pushed into the scan."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.as_of import (
    LogPrefix,
    delivery_history_as_of,
    mark_below_log_start,
    mark_losses,
    states_as_of,
)
from sharelens.evidence.clock_steps import LATE_RECORD, ClockStep, steps_around
from sharelens.evidence.conditions import all_of, filter_rows
from sharelens.evidence.losses import losses_up_to
from sharelens.evidence.undecoded_groups import (
    DECODED_FROM_RUN,
    undecoded_consumer_records,
    without_consumer_groups,
)
from sharelens.kafka_log.dead_letter_records import DLQ_RECORD
from sharelens.lake import bounded_scan, dlq_partitions, user_topics
from sharelens.lake.scan import Cut as PublishedCut
from sharelens.lake.settings_rows import COLUMNS, observations_of
from sharelens.lake.settings_rows import TABLE as SETTINGS
from sharelens.lake.tables import TABLES
from sharelens.measures.catalog import EXTENTS, KEPT_MEASURES
from sharelens.measures.catalog import SETTINGS as SETTINGS_READ
from sharelens.measures.ranges.places import Places
from sharelens.measures.settings.observations import Settings
from sharelens.settings.files import NO_SETTINGS_FILES, SettingsFiles
from sharelens.tables import dlq_filter
from sharelens.tables.audits import AuditedEvidence
from sharelens.tables.cover import GroupLogCover, StatePartitionCover
from sharelens.tables.lakes import places as lake_places
from sharelens.tables.lakes.clusters import choose_cluster
from sharelens.tables.lakes.cover import state_partition_covers
from sharelens.tables.lakes.metadata import LakeMetadata
from sharelens.tables.lakes.missing import missing_of_lake
from sharelens.tables.lakes.places import near_places, newest_of_places, with_record_counts
from sharelens.tables.lakes.published import PublishedLake
from sharelens.tables.lakes.rows import LakeRows
from sharelens.tables.lakes.settings import LakeSettings
from sharelens.tables.limits import PART_RECORDS
from sharelens.tables.misplaced import placed_states
from sharelens.tables.missing import MissingEvidence
from sharelens.tables.parts import Part, Parts, parts_of
from sharelens.tables.places import COUNTED, counted_places, of_places
from sharelens.tables.port import (
    BATCHES,
    DELIVERIES,
    GROUP_RECORDS,
    HISTORY,
    LETTER_PARTITIONS,
    LETTERS,
    OFFSET_COMMITS,
    PLACES,
    RECORDS,
    SHARE_PARTITIONS,
    STATES,
    TOPIC_EXTENTS,
    RunningCluster,
    schema_of,
)
from sharelens.tables.samples import KeptBatches
from sharelens.tables.where import ALL_KEYS, ALL_ROWS, Keys, Order, Where
from state_model.columnar import schemas
from state_model.columnar.keys import LOG_ORDER, PLACE_KEY, SHARE_PARTITION_KEY
from state_model.columnar.values import Loss

PROGRESS = "gold.progress"
"""With `gold.share_partition_state` it has a row of each place: of those not misplaced, and of those that live."""
Scan = Callable[[Where, Sequence[str], Order], Iterable[pa.Table]]
OF_SETTINGS = frozenset(measure.table for measure in KEPT_MEASURES.values() if SETTINGS_READ in measure.inputs)
OF_END_OFFSETS = frozenset(measure.table for measure in KEPT_MEASURES.values() if EXTENTS in measure.inputs)
"""Measures that depend on settings of groups, and on end offsets that a file names."""


class LakeTables:
    """The tables of one cluster of a lake at its published cut."""

    cluster: RunningCluster | None = None
    part_records = PART_RECORDS

    def __init__(
        self, lake: PublishedCut, cluster_id: str | None, settings_files: SettingsFiles = NO_SETTINGS_FILES
    ) -> None:
        """`settings_files`: those of the command line."""
        self._lake = lake
        self._settings_files = settings_files
        self.cluster_id: str = choose_cluster(lake, cluster_id)
        self.origin = self.publications = PublishedLake(lake=lake, cluster=self.cluster_id)
        self.rows = LakeRows(lake, self.cluster_id)
        self.metadata = LakeMetadata(lake, self.cluster_id)
        self._placed: tuple[Keys, pa.Table] | None = None
        self._within: tuple[Keys, pc.Expression | None] | None = None
        self._scans: Mapping[str, Scan] = {
            RECORDS: partial(self._of_state_log, RECORDS),
            HISTORY: partial(self._of_state_log, HISTORY),
            DELIVERIES: self._deliveries,
            STATES: lambda where, *_: [placed_states(lambda keys: self._states(keys, where.cut), where.keys)],
            GROUP_RECORDS: lambda where, *_: [self._group_records(where.keys.groups)],
            OFFSET_COMMITS: lambda where, *_: [
                lake_places.offset_commits(self.rows.scan, where.keys.groups or frozenset())
            ],
            BATCHES: lambda where, columns, _: user_topics.batches(
                self.rows.scan, self._topic_books, where.user_partitions or {}, list(columns)
            ),
            LETTERS: self._letters,
            SHARE_PARTITIONS: lambda *_: [self._places(ALL_KEYS).group_by(SHARE_PARTITION_KEY).aggregate([])],
            PLACES: lambda where, *_: [self._places(where.keys)],
            TOPIC_EXTENTS: lambda where, *_: [user_topics.extents(self._topic_books, where.user_partitions or {})],
            LETTER_PARTITIONS: lambda *_: [self._letter_partitions],
        }

    def scan(
        self, table: str, columns: Sequence[str] | None = None, where: Where = ALL_ROWS, order: Order = Order.ANY
    ) -> Iterator[pa.Table]:
        """Rows of the published cut, row group by row group; row groups and files are left out by their statistics.

        Raises:
            LakeError: a data file can't be read.
        """
        schema = schema_of(table, columns)
        names = list(schema.names if where.places is None else dict.fromkeys([*schema.names, *PLACE_KEY]))
        scan: Scan = self._scans.get(table) or partial(self._measured, table)
        yield schema.empty_table()
        for rows in scan(where, names, order):
            chosen = rows if where.places is None else of_places(rows, where.places)
            yield chosen.select(schema.names).cast(schema)

    def stored(self, table: str) -> bool:
        """Whether the cut has the table, computed with the settings and end offsets that answers take."""
        if table not in self._lake.versions:
            return False
        answering, measured = self.settings, self.lake_settings.measured
        same_ends = answering.end_offsets == measured.end_offsets or table not in OF_END_OFFSETS
        return same_ends and (answering.groups == measured.groups or table not in OF_SETTINGS)

    def audited(self, where: Where) -> AuditedEvidence:
        """The findings that runs stored."""
        from sharelens.tables.lakes.audit import LakeAudit

        return LakeAudit(self.origin, self.lake_settings, self.metadata, self.rows, where.span)

    @property
    def place(self) -> str:
        """The lake's folder."""
        return f"lake {self._lake.lake}"

    @property
    def settings(self) -> Settings:
        """Those of the command line, before those that runs stored."""
        return self.lake_settings.answering

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

    def _where(self, keys: Keys, *conditions: pc.Expression | None) -> pc.Expression | None:
        """The condition for rows of share partitions, with the state partitions that have any: files go by these."""
        if self._within is None or self._within[0] != keys:
            self._within = keys, self._state_partitions_of(keys)
        return all_of(keys.expression(), self._within[1], *conditions)

    def _state_partitions_of(self, keys: Keys) -> pc.Expression | None:
        """The condition on state_partition by gold.progress, which has a row of each place; None where it has none.

        Row groups of the histories hold one state partition and many share partitions.
        """
        if keys == Keys() or PROGRESS not in self._lake.versions:
            return None
        names = ["state_partition"]
        tables = [self.rows.scan(table, names, keys.expression()) for table in (PROGRESS, STATES)]
        numbers = pc.unique(pa.concat_tables(tables).column("state_partition")).sort()
        if len(numbers) == 0:
            return None
        column = pc.field("state_partition")
        within: pc.Expression = (column >= numbers[0]) & (column <= numbers[-1])
        return within if len(numbers) == 1 else within & column.isin(numbers)

    def _places(self, keys: Keys) -> pa.Table:
        """By the rows that runs keep of each place; kept for the next scan of the same share partitions."""
        if self._placed is None or self._placed[0] != keys:
            self._placed = keys, self._counted(keys)
        return self._placed[1]

    def _counted(self, keys: Keys) -> pa.Table:
        history = self._lake.dataset(HISTORY)
        if PROGRESS not in self._lake.versions or history is None:
            return counted_places(self.rows.stream(HISTORY, COUNTED, self._where(keys, self.rows.of_log(HISTORY))))
        tables = (PROGRESS, STATES)
        every = newest_of_places(self.rows.scan(table, COUNTED, self.rows.of_log(table)) for table in tables)
        places = filter_rows(every, keys.expression())
        unsure = places.filter(pc.less(pc.fill_null(places.column("start_offset"), -1), 0))
        if unsure.num_rows:  # an earlier life may have had a start offset
            rows = self.rows.rows_of_places(HISTORY, COUNTED, Places(keys=unsure), None)
            counted = counted_places(part for _, part in rows)
            places = newest_of_places([places, counted])
        return with_record_counts(places, every, bounded_scan.row_counts(history, "state_partition"))

    def histories(self, places: pa.Table, cut: LogPrefix) -> Parts:
        """Parts of the two histories, row groups of other places left out by their statistics."""
        return parts_of(places, self.part_records, lambda of_part: self.read_part(of_part, cut))

    def read_part(self, places: pa.Table, prefix: LogPrefix) -> Part:
        """The part of some places."""
        history = self.rows.of_places(HISTORY, schemas.SHARE_PARTITION_HISTORY.names, places, prefix.condition())
        begin_condition = prefix.begin_condition()
        deliveries = self.rows.of_places(DELIVERIES, schemas.DELIVERY_HISTORY.names, places, begin_condition)
        history = history.sort_by(LOG_ORDER).cast(schemas.SHARE_PARTITION_HISTORY)
        return Part(places=places, history=history, deliveries=delivery_history_as_of(deliveries, prefix))

    def _of_state_log(self, table: str, where: Where, columns: Sequence[str], order: Order) -> Iterator[pa.Table]:
        """Rows of the state log, in its order where `order` is LOG; of other places too."""
        condition = all_of(self._near(where), where.cut.condition(), where.span.expression(), where.columns)
        if order == Order.LOG:
            return self.rows.in_log_order(table, schema_of(table, columns), condition, where.choice)
        return self.rows.stream(table, list(columns), all_of(self.rows.of_log(table), condition))

    def _near(self, where: Where) -> pc.Expression | None:
        """A condition that the share partitions or places meet, and few others."""
        return self._where(where.keys) if where.places is None else near_places(where.places)

    def _deliveries(self, where: Where, columns: Sequence[str], _: Order) -> Iterable[pa.Table]:
        """Ranges of delivery history as they stood at the cut; of whole logs as they are read."""
        condition = all_of(self._near(where), where.cut.begin_condition(), where.around(), where.columns)
        if where.cut.is_whole:
            return self.rows.stream(DELIVERIES, list(columns), all_of(self.rows.of_log(DELIVERIES), condition))
        rows = self.rows.newest(self.rows.scan(DELIVERIES, schemas.DELIVERY_HISTORY.names, condition))
        return [delivery_history_as_of(rows, where.cut)]

    def _measured(self, table: str, where: Where, columns: Sequence[str], _: Order) -> Iterator[pa.Table]:
        """Rows of a measure; none where no run took it."""
        of_log = self.rows.of_log(table) if "log_topic_id" in TABLES[table].schema.names else None
        return self.rows.stream(table, list(columns), all_of(where.keys.expression(), where.columns, of_log))

    def _states(self, keys: Keys, prefix: LogPrefix) -> pa.Table:
        if prefix.is_whole:
            states = self.rows.newest(self.rows.scan(STATES, schemas.SHARE_PARTITION_STATE.names, keys.expression()))
            states = states.cast(schemas.SHARE_PARTITION_STATE)
        else:
            history = self.rows.scan(
                HISTORY, schemas.SHARE_PARTITION_HISTORY.names, self._where(keys, prefix.condition())
            )
            still_open = self._where(keys, prefix.open_condition())
            ranges = self.rows.scan(DELIVERIES, schemas.DELIVERY_HISTORY.names, still_open)
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

    @cached_property
    def _topic_books(self) -> pa.Table:
        return user_topics.books(self.rows.scan)

    @property
    def samples(self) -> KeptBatches:
        """What runs kept of a cluster's batches."""
        return KeptBatches(self.settings.samples)

    def _group_records(self, groups: frozenset[str] | None) -> pa.Table:
        """Without those of consumer groups, where some of them were not decoded."""
        rows = lake_places.group_records(self.rows.scan, groups)
        return without_consumer_groups(rows) if self.undecoded_group_records else rows

    @cached_property
    def undecoded_group_records(self) -> int:
        """By the run from which on decode knew them, and the keys of earlier records."""
        return undecoded_consumer_records(self.rows.scan, self._lake.transaction(GROUP_RECORDS, DECODED_FROM_RUN))

    def group_log_covers(self) -> Mapping[int, GroupLogCover]:
        """By bronze.log_record and bronze.ingest_extent."""
        return lake_places.group_log_covers(self.rows.scan)

    def _letters(self, where: Where, *_: object) -> list[pa.Table]:
        rows = self.rows.scan(LETTERS, DLQ_RECORD.names, where.letters.expression())
        return [dlq_filter.in_order([rows.cast(DLQ_RECORD)])]

    @cached_property
    def _letter_partitions(self) -> pa.Table:
        """From bronze.ingest_extent, and of logs that were cut from silver.dlq_record."""
        read_letters = partial(self.rows.stream, LETTERS, dlq_partitions.LETTERS_READ)
        extents = self.rows.scan("bronze.ingest_extent", None).to_pylist()
        return dlq_partitions.partitions_in_books(extents, read_letters)

    def cover(self) -> Sequence[StatePartitionCover]:
        """The published range of each state partition, with its gaps and quarantine counts."""
        return self._cover

    @cached_property
    def _cover(self) -> tuple[StatePartitionCover, ...]:
        extents, problems = (self.rows.of_state_topic(table) for table in ("bronze.ingest_extent", "bronze.quarantine"))
        return state_partition_covers(self._lake, self.rows.published, extents, problems)

    @cached_property
    def missing(self) -> MissingEvidence:
        """By silver.group_record and gold.topic_history."""
        places = None if PROGRESS in self._lake.versions else self._places(ALL_KEYS)
        return missing_of_lake(self.rows.scan, self.cover(), places)

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
