"""A table is the same from every source: from log directories, and from a lake that runs made of them."""

from collections.abc import Iterator

import pyarrow as pa
import pytest

from sharelens.evidence.as_of import DELIVERY_ORDER, LogPrefix
from sharelens.measures.topics.extents import TopicPartition
from sharelens.source.request import Source
from sharelens.tables.opening import open_evidence
from sharelens.tables.port import (
    BATCHES,
    DELIVERIES,
    HISTORY,
    LETTER_PARTITIONS,
    LETTERS,
    OFFSET_COMMITS,
    PLACES,
    RECORDS,
    SCHEMAS,
    SHARE_PARTITIONS,
    STATES,
    TOPIC_EXTENTS,
    Tables,
)
from sharelens.tables.reading import read, read_group_records, read_share_partitions, read_states
from sharelens.tables.where import ALL_ROWS, Keys, Order, Where
from state_model.columnar.keys import PLACE_KEY, SHARE_PARTITION_KEY
from tests.datasets import dataset, kinds_first
from tests.processes.in_process import recorded_lake

BY_PLACE = [(name, "ascending") for name in PLACE_KEY]
ORDERS = {
    DELIVERIES: DELIVERY_ORDER,
    STATES: BY_PLACE,
    PLACES: BY_PLACE,
    SHARE_PARTITIONS: [(name, "ascending") for name in SHARE_PARTITION_KEY],
}
"""The orders in which tables are compared whose scans have none."""
COLUMNS = {PLACES: PLACE_KEY}
"""The columns that are compared; the counts of places are estimates."""


def begins_of(tables: Tables) -> dict[TopicPartition, int]:
    """Each user partition with its smallest start offset."""
    states = read_states(tables, Keys()).select(["topic_id", "partition", "start_offset"])
    rows = [row for row in states.to_pylist() if row["start_offset"] >= 0]
    ordered = sorted(rows, key=lambda row: -row["start_offset"])
    return {(row["topic_id"], row["partition"]): row["start_offset"] for row in ordered}


def conditions_of(tables: Tables, table: str) -> Iterator[Where]:
    """The conditions under which a table is compared: all rows, one group, and moments of the past."""
    group = read_share_partitions(tables).sort_by("group_id").column("group_id")[0].as_py()
    of_group = Keys(groups=frozenset([group]))
    if table in (BATCHES, TOPIC_EXTENTS):
        yield Where(user_partitions=begins_of(tables))
        return
    if table == OFFSET_COMMITS:
        yield Where(keys=Keys(groups=frozenset(read_group_records(tables).column("group_id").to_pylist())))
        return
    yield ALL_ROWS
    if table in (LETTERS, LETTER_PARTITIONS, SHARE_PARTITIONS):
        return
    yield Where(keys=of_group)
    if table in (HISTORY, DELIVERIES, STATES):
        cover = tables.cover()
        middle_ms = (min(part.first_ms or 0 for part in cover) + max(part.last_ms or 0 for part in cover)) // 2
        for cut in (LogPrefix(as_of_ms=middle_ms), LogPrefix(at_offsets={part.state_partition: 10 for part in cover})):
            yield Where(cut=cut)
            yield Where(keys=of_group, cut=cut)


def rows_of(tables: Tables, table: str, where: Where) -> pa.Table:
    rows = read(tables, table, COLUMNS.get(table), where, Order.LOG if table in (RECORDS, HISTORY) else Order.ANY)
    return rows.sort_by(ORDERS[table]) if table in ORDERS else rows


@pytest.mark.one_in(6)
@pytest.mark.parametrize("table", SCHEMAS)
@pytest.mark.parametrize("name", kinds_first())
def test_lake_and_log_directory_have_the_same_rows(name: str, table: str) -> None:
    straight = open_evidence(Source(log_dirs=(str(dataset(name) / "logs"),)))
    lake = open_evidence(Source(lake=str(recorded_lake(name))))
    for where in conditions_of(straight, table):
        ours, lakes = (rows_of(tables, table, where) for tables in (straight, lake))
        assert lakes.equals(ours), where
        some_rows = where is ALL_ROWS and table not in (LETTERS, LETTER_PARTITIONS)
        assert ours.num_rows > 0 or not some_rows


@pytest.mark.parametrize("source", ["log directories", "lake"])
def test_some_columns_of_some_places_are_a_part_of_the_table(source: str) -> None:
    sources = {
        "log directories": Source(log_dirs=(str(dataset("basic") / "logs"),)),
        "lake": Source(lake=str(recorded_lake("basic"))),
    }
    tables = open_evidence(sources[source])
    places = read(tables, PLACES).sort_by(BY_PLACE).slice(1, 1)
    records = read(tables, RECORDS)
    (place,) = places.select(PLACE_KEY).to_pylist()
    offsets = sorted(
        row["log_offset"] for row in records.to_pylist() if {name: row[name] for name in PLACE_KEY} == place
    )
    some_rows = read(tables, RECORDS, [*PLACE_KEY, "log_offset"], Where(places=places))
    assert some_rows.column_names == [*PLACE_KEY, "log_offset"]
    assert sorted(some_rows.column("log_offset").to_pylist()) == offsets != []


def test_ranges_that_ended_after_the_cut_are_open_there() -> None:
    tables = open_evidence(Source(log_dirs=(str(dataset("basic") / "logs"),)))
    cut = LogPrefix(at_offsets={part.state_partition: 20 for part in tables.cover()})
    rows = read(tables, DELIVERIES, where=Where(cut=cut))
    still = rows.filter(rows.column("is_open"))
    assert 0 < still.num_rows < rows.num_rows
    lists = read_states(tables, Keys(), cut).column("state_batches").to_pylist()
    assert still.num_rows == sum(map(len, lists))
