"""Every measure has an entry: a function, inputs that are tables, a schema with a comment for each column."""

import pyarrow as pa
import pytest

from sharelens.groups import schemas as group_schemas
from sharelens.lake.tables import TABLES
from sharelens.measures import schemas
from sharelens.measures.catalog import MEASURES, OF_TABLE, STAGED, Measure
from sharelens.measures.dlq import schemas as dlq_schemas
from sharelens.measures.figures import FIGURES, counted, total
from sharelens.measures.latency import schemas as latency_schemas
from state_model.columnar.schemas import comment

PARTS = {"ATTEMPTS", "LATENCY", "AGE", "MEASURE_BASE", "REBALANCES"}
"""Schemas of sums, of ranges and of bounds, which are no measures of their own."""


@pytest.mark.parametrize("name", MEASURES)
def test_an_entry_says_what_it_is(name: str) -> None:
    measure = MEASURES[name]
    assert callable(measure.pure_function)
    assert measure.description
    assert measure.population
    assert set(measure.inputs) <= TABLES.keys()
    assert all(comment(field) for field in measure.schema)


def test_the_rows_of_a_table_have_the_columns_of_its_measure() -> None:
    for measure in MEASURES.values():
        if isinstance(measure, Measure):
            assert set(measure.schema.names) <= set(TABLES[measure.table].schema.names), measure.table


def test_every_schema_of_a_measure_has_an_entry() -> None:
    named = {
        name: schema
        for module in (schemas, group_schemas, latency_schemas, dlq_schemas)
        for name, schema in vars(module).items()
        if isinstance(schema, pa.Schema) and name not in PARTS
    }
    assert len(named) > 15
    entries = [measure.schema for measure in MEASURES.values()]
    assert [name for name, schema in named.items() if not any(schema is entry for entry in entries)] == []


def test_the_measure_stage_writes_the_tables_that_hold_share_partitions() -> None:
    assert {measure.table for measure in STAGED.values()} < OF_TABLE.keys()
    assert "gold.group_history" not in OF_TABLE
    assert OF_TABLE["gold.dlq_reconciliation"] not in STAGED.values()


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_counts_columns_of_its_measure(name: str) -> None:
    figure = FIGURES[name]
    rows = MEASURES[figure.measure].schema.empty_table()
    assert counted(name, rows).column_names == [*rows.column_names, "records"]
    assert total(name, rows) == 0


def test_archived_records_are_no_gaps_and_not_near_the_limit() -> None:
    rows = pa.table({"first_offset": [0, 5, 9], "last_offset": [3, 5, 9], "cause": ["unknown", "gap", None]})
    assert total("archived_records", rows) == 4
