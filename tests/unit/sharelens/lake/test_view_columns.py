"""What views add to the tables: a topic's name beside every topic id, and older names of columns."""

import pytest

from sharelens.lake.tables import TABLES
from sharelens.lake.view_columns import OLD_NAMES, view_query, view_schema


@pytest.mark.parametrize("name", TABLES)
def test_a_view_has_the_columns_of_its_table_and_a_topic_wherever_there_is_a_topic_id(name: str) -> None:
    names = view_schema(TABLES[name]).names
    assert [column for column in names if column in TABLES[name].schema.names] == TABLES[name].schema.names
    assert len(set(names)) == len(names)
    assert ("topic" in names) or ("topic_id" not in names)


@pytest.mark.parametrize("name", OLD_NAMES)
def test_an_older_name_is_a_name_no_more_and_stands_for_one_of_the_same_type(name: str) -> None:
    schema, of_view = TABLES[name].schema, view_schema(TABLES[name])
    for old, new in OLD_NAMES[name].items():
        assert old not in schema.names
        assert of_view.field(old).type == schema.field(new).type


def test_no_table_of_ranges_names_its_first_offset_otherwise() -> None:
    of_batches = ("bronze.topic_batch", "gold.audit_record")
    for name, table in TABLES.items():
        names = set(table.schema.names)
        if name not in of_batches and "last_offset" in names:
            assert "first_offset" in names, name
        assert not names & {"life", "earlier_life"}, name


def test_rows_of_names_are_read_where_a_name_is_added_alone() -> None:
    assert "silver_name" not in view_query(TABLES["gold.stall"], "stall", "silver_name")
    assert "silver_name" in view_query(TABLES["gold.delivery_history"], "delivery_history", "silver_name")
