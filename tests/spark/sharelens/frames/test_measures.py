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
from sharelens.source.request import Source
from sharelens.tables.opening import open_evidence
from sharelens.tables.reading import read_dead_letter_partitions
from state_model.errors import UsageError
from tests.depths import in_soak
from tests.processes.in_process import recorded_lake
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
    "lag_over_time": frames.lag_over_time,
}
WITH_HEADERS = {"stall", "poison_record", "progress", "latency", "attempts", "lag", "lag_over_time"}
WITH_EXTENTS = {"stall", "lag"}
WITH_LETTERS = {"poison_record"}
LETTERS = ("dead_letters", "topic_names", "searched")


def test_every_measure_of_the_catalog_has_its_function() -> None:
    assert FUNCTIONS.keys() == STAGED.keys()


@pytest.fixture(scope="module")
def inputs(spark: "SparkSession") -> "dict[str, DataFrame]":
    """The histories, states, headers and extents of some lakes."""
    states = table_of(NAMES, "gold.share_partition_state")
    extents = pa.concat_tables([extents_of(name) for name in NAMES])
    letters = letters_in(recorded_lake("dlq"))
    return cached(spark, {**histories_of(NAMES), **letters, "states": states, "extents": extents})


def letters_in(path: Path) -> dict[str, pa.Table]:
    """The dead letters of a lake, as `poison_records` takes them."""
    lake = open_lake(path)
    with open_evidence(Source(lake=str(path))) as evidence:
        searched = read_dead_letter_partitions(evidence)
    names = lake.scan("silver.name", ["topic_id", "topic"])
    return {"dead_letters": lake.scan("silver.dlq_record"), "topic_names": names, "searched": searched}


@pytest.fixture(scope="module")
def lake_with_settings() -> Path:
    """The lake of the recorded log `dlq` with the settings of its groups."""
    return lake_with_its_settings("dlq")


@pytest.mark.soak
@pytest.mark.parametrize("measure", ["poison_record", *in_soak("stall")])
def test_settings_decide_as_in_the_lake(measure: str, spark: "SparkSession", lake_with_settings: Path) -> None:
    lake = open_lake(lake_with_settings)
    tables = [
        spark.createDataFrame(lake.scan(name))
        for name in ("gold.share_partition_history", "gold.delivery_history", "bronze.topic_batch", "bronze.setting")
    ]
    settings = frames.group_settings(tables[3])
    expected = lake.scan(STAGED[measure].table)
    extra_frames = {"extents": spark.createDataFrame(extents_in(lake_with_settings))} if measure in WITH_EXTENTS else {}
    if measure in WITH_LETTERS:
        extra_frames = {name: spark.createDataFrame(rows) for name, rows in letters_in(lake_with_settings).items()}
    computed = FUNCTIONS[measure](*tables[:2], headers=tables[2], settings=settings, **extra_frames)
    names = [name for name in computed.columns if name in expected.column_names]
    order = [name for name in TABLES[STAGED[measure].table].key if name in names]
    assert_same(computed.select(*names), expected.select(names), *order)
    if measure == "poison_record":
        assert set(expected.column("cause").to_pylist()) == {"rejected", "delivery_limit"}


def test_dead_letters_without_the_names_of_topics_are_refused(inputs: "dict[str, DataFrame]") -> None:
    with pytest.raises(UsageError, match="frames.poison_records: dead letters need topic_names, searched, too"):
        frames.poison_records(inputs["history"], inputs["deliveries"], dead_letters=inputs["dead_letters"])


def plain(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """The columns that both sides have, but the names of topics."""
    return rows.select([name for name in rows.column_names if name in names and name != "topic"])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("measure", FUNCTIONS)
def test_a_measure_gives_the_rows_of_the_lake(measure: str, inputs: "dict[str, DataFrame]") -> None:
    table = STAGED[measure].table
    assert table is not None
    extra_frames = {name: inputs[name] for name in ("headers",) if measure in WITH_HEADERS}
    extra_frames |= {name: inputs[name] for name in ("extents",) if measure in WITH_EXTENTS}
    extra_frames |= {name: inputs[name] for name in LETTERS if measure in WITH_LETTERS}
    if measure == "lag":
        rows = frames.lag(inputs["states"], **extra_frames)
    else:
        rows = FUNCTIONS[measure](inputs["history"], inputs["deliveries"], **extra_frames)
    expected = plain(table_of(NAMES, table), rows.columns)
    order = [name for name in TABLES[table].key if name in expected.column_names]
    assert_same(rows.select(*expected.column_names), expected, *order)
