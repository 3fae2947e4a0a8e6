"""Measures of recorded logs are those of the pipeline's tables."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from sharelens import frames
from sharelens.lake.scan import open_lake
from sharelens.lake.tables import TABLES
from sharelens.measures.catalog import STAGED
from tests.spark.sharelens.frames.recorded import (
    assert_same,
    cached,
    extents_in,
    extents_of,
    histories_of,
    lake_with_its_settings,
    table_of,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAMES = ("dlq", "edge", "transactions")
FUNCTIONS = {
    "stall": frames.stalls,
    "poison_record": frames.poison_records,
    "redelivered_record": frames.redelivered_records,
    "life_event": frames.life,
    "progress": frames.progress,
    "latency": frames.latency,
    "attempts": frames.attempts,
    "lag": frames.lag,
}
WITH_HEADERS = {"stall", "poison_record", "progress", "latency", "attempts", "lag"}
WITH_EXTENTS = {"stall", "lag"}


def test_every_measure_of_the_catalog_has_its_function() -> None:
    assert FUNCTIONS.keys() == STAGED.keys()


@pytest.fixture(scope="module")
def inputs(spark: "SparkSession") -> "dict[str, DataFrame]":
    """The histories, states, headers and extents of some lakes."""
    states = table_of(NAMES, "gold.share_partition_state")
    extents = pa.concat_tables([extents_of(name) for name in NAMES])
    return cached(spark, {**histories_of(NAMES), "states": states, "extents": extents})


@pytest.fixture(scope="module")
def lake_with_settings() -> Path:
    """The lake of the recorded log `dlq` with the settings of its groups."""
    return lake_with_its_settings("dlq")


@pytest.mark.parametrize("measure", ["stall", "poison_record"])
def test_settings_decide_as_in_the_lake(measure: str, spark: "SparkSession", lake_with_settings: Path) -> None:
    lake = open_lake(lake_with_settings)
    rows = [
        spark.createDataFrame(lake.scan(name))
        for name in ("gold.share_partition_history", "gold.delivery_history", "bronze.topic_batch", "bronze.setting")
    ]
    settings = frames.group_settings(rows[3])
    expected = lake.scan(STAGED[measure].table)
    extra_frames = {"extents": spark.createDataFrame(extents_in(lake_with_settings))} if measure in WITH_EXTENTS else {}
    computed = FUNCTIONS[measure](*rows[:2], headers=rows[2], settings=settings, **extra_frames)
    names = [name for name in computed.columns if name in expected.column_names]
    order = [name for name in TABLES[STAGED[measure].table].key if name in names]
    assert_same(computed.select(*names), expected.select(names), *order)
    if measure == "poison_record":
        assert set(expected.column("cause").to_pylist()) == {"rejected", "delivery_limit"}


def plain(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """The columns that both sides have, but the names of topics."""
    return rows.select([name for name in rows.column_names if name in names and name != "topic"])


@pytest.mark.parametrize("measure", FUNCTIONS)
def test_a_measure_gives_the_rows_of_the_lake(measure: str, inputs: "dict[str, DataFrame]") -> None:
    table = STAGED[measure].table
    assert table is not None
    extra_frames = {name: inputs[name] for name in ("headers",) if measure in WITH_HEADERS}
    extra_frames |= {name: inputs[name] for name in ("extents",) if measure in WITH_EXTENTS}
    if measure == "lag":
        rows = frames.lag(inputs["states"], **extra_frames)
    else:
        rows = FUNCTIONS[measure](inputs["history"], inputs["deliveries"], **extra_frames)
    expected = plain(table_of(NAMES, table), rows.columns)
    order = [name for name in TABLES[table].key if name in expected.column_names]
    assert_same(rows.select(*expected.column_names), expected, *order)
