"""Names of the lake's tables in Spark's SQL; running it needs a session."""

import pytest

from sharelens.questions.queries.spark_sql import named_tables, with_view_names


@pytest.mark.parametrize(
    ("query", "expected_query", "names"),
    [
        (
            "SELECT * FROM gold.share_partition_state;",
            "SELECT * FROM gold_share_partition_state",
            {"gold.share_partition_state"},
        ),
        ("SELECT 'gold.publication' FROM Silver . NAME", "SELECT 'gold.publication' FROM silver_name", {"silver.name"}),
        ('SELECT "it\\"s gold.publication"', 'SELECT "it\\"s gold.publication"', set()),
        ("SELECT * FROM gold.nothing", "SELECT * FROM gold.nothing", set()),
        ("SELECT * FROM marigold.publication", "SELECT * FROM marigold.publication", set()),
    ],
)
def test_tables_are_found_outside_of_literals(query: str, expected_query: str, names: set[str]) -> None:
    assert with_view_names(query) == expected_query
    assert named_tables(query) == names
