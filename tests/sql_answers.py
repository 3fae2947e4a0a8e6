"""Answers of SQL as tables."""

from collections.abc import Mapping

import pyarrow as pa

from sharelens.lake.scan import Cut
from sharelens.questions.queries.sql import sql


def answer_of(lake: Cut, query: str, parameters: Mapping[str, str | int | None] | None = None) -> pa.Table:
    """All rows that DuckDB gives for a query."""
    with sql(lake, query, parameters) as answer:
        return answer.read_all().table
