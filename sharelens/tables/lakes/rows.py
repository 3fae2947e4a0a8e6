"""Rows of the tables of a lake's published cut that are of one cluster."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.conditions import all_of, with_value
from sharelens.evidence.incarnations import newest_incarnation
from sharelens.lake import bounded_scan
from sharelens.lake.bounded_scan import Choice
from sharelens.lake.scan import Cut as PublishedCut
from sharelens.lake.scan import readable_files
from sharelens.lake.tables import TABLES
from sharelens.measures.ranges.places import Ints, Places
from sharelens.tables.lakes.clusters import evidence_rows
from sharelens.tables.lakes.places import near_places
from sharelens.tables.places import numbered_rows
from state_model.columnar.keys import LOG_ORDER
from state_model.topics import STATE_TOPIC
from state_model.uuids import ZERO_UUID


class LakeRows:
    """Reads rows of one cluster; where a table has several incarnations of the state topic, those of the newest."""

    def __init__(self, lake: PublishedCut, cluster: str) -> None:
        self._lake = lake
        self._cluster = cluster

    @property
    def log_topic_id(self) -> str:
        """Id of the newest incarnation of the state topic; the zero uuid without a state log."""
        return str(self.published[0]["log_topic_id"]) if self.published else ZERO_UUID

    def of_log(self, table: str) -> pc.Expression | None:
        """The condition for rows of the newest incarnation of the state topic; None where the table has no others."""
        return self._is(table, "log_topic_id", self.log_topic_id)

    def _is(self, table: str, column: str, value: str) -> pc.Expression | None:
        snapshot = self._lake.snapshot(table)
        if snapshot is not None and snapshot.has_only(column, value):
            return None
        condition: pc.Expression = pc.field(column) == value
        return condition

    @cached_property
    def published(self) -> list[dict[str, Any]]:
        """Rows of the publication's evidence: this cluster, newest incarnation of the state topic."""
        rows = [row for row in evidence_rows(self._lake) if row["cluster_id"] == self._cluster]
        newest = newest_incarnation((row["log_topic_id"], row["log_time_ms"]) for row in rows)
        return [row for row in rows if row["log_topic_id"] == newest]

    def scan(self, table: str, columns: list[str] | None, condition: pc.Expression | None = None) -> pa.Table:
        """Columns (None: all) of the rows that meet a condition, as one table."""
        schema = TABLES[table].schema
        kinds = schema if columns is None else pa.schema([schema.field(name) for name in columns])
        return pa.concat_tables([kinds.empty_table(), *self.stream(table, kinds.names, condition)])

    def stream(self, table: str, columns: list[str], where: pc.Expression | None) -> Iterator[pa.Table]:
        """Rows of the cluster in bounded tables."""
        dataset = self._lake.dataset(table)
        if dataset is None:
            return
        condition = all_of(self._is(table, "cluster_id", self._cluster), where)
        kinds = pa.schema([TABLES[table].schema.field(name) for name in columns])
        with readable_files(self._lake.lake, self._lake.snapshot(table)):
            for rows in bounded_scan.tables(dataset, columns, condition):
                yield rows.cast(kinds)

    def in_log_order(
        self, table: str, schema: pa.Schema, where: pc.Expression | None, choice: Choice | None = None
    ) -> Iterator[pa.Table]:
        """Rows of the newest incarnation of the state topic by (state_partition, log_offset), in bounded tables."""
        dataset = self._lake.dataset(table)
        if dataset is None:
            return
        condition = all_of(self._is(table, "cluster_id", self._cluster), self.of_log(table), where)
        order = [name for name, _ in LOG_ORDER]
        with readable_files(self._lake.lake, self._lake.snapshot(table)):
            for rows in bounded_scan.tables_in_order(dataset, order, schema.names, condition, choice):
                yield rows.cast(schema)

    def of_places(self, table: str, names: list[str], places: pa.Table, where: pc.Expression | None) -> pa.Table:
        """Columns of the rows of some places (PLACE_KEY), as one table."""
        schema = pa.schema([TABLES[table].schema.field(name) for name in names])
        rows = self.rows_of_places(table, names, Places(keys=places), where)
        return pa.concat_tables([schema.empty_table(), *(part for _, part in rows)])

    def rows_of_places(
        self, table: str, names: list[str], places: Places, where: pc.Expression | None
    ) -> Iterator[tuple[Ints, pa.Table]]:
        """Rows of some places in bounded tables, with the place of each row; row groups of others are left out."""
        if places.count == 0:
            return
        for rows in self.stream(table, names, all_of(near_places(places.keys), self.of_log(table), where)):
            yield numbered_rows(places, rows)

    def of_state_topic(self, table: str) -> pa.Table:
        """Bronze rows about the newest incarnation of the state topic."""
        condition = (pc.field("topic") == STATE_TOPIC) & (pc.field("topic_id") == self.log_topic_id)
        return self.scan(table, None, condition)

    def newest(self, rows: pa.Table) -> pa.Table:
        """Only rows of the newest incarnation of the state topic."""
        return with_value(rows, "log_topic_id", self.log_topic_id)
