"""Spark reads what we and our upkeep commit, and may compact it: all goes on as if nothing had happened."""

import json
import shutil
import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from jobs.publish import published_versions
from jobs.upkeep.maintain import MaintainOptions, maintain
from sharelens.cli import main
from sharelens.lake.lake import Lake
from sharelens.lake.scan import open_lake
from sharelens.lake.tables import TABLES
from tests.datasets import dataset
from tests.depths import in_soak
from tests.lakes import assert_same, content
from tests.processes.in_process import make_lake, run_here

MIDDLE_MS = 1_795_230_763_000
"""A moment in the middle of the data set `basic`."""
MONTH_MS = 30 * 86_400_000
PUBLICATIONS = 3
"""Of two runs, and of the upkeep that found something to do."""
EMPTY = "bronze.quarantine"
WITHOUT_ROWS = (
    "bronze.setting", "silver.odd_group_record", "silver.dlq_record", "silver.metadata_record", "silver.clock_step",
    "gold.share_partition_base", "gold.measure_base", "gold.dlq_reconciliation", "gold.audit_counter",
    "gold.audit_finding", "gold.configuration_history", "gold.topic_history", "gold.task_history",
    "gold.quality_result",
)  # fmt: skip
"""Tables that are empty here, as EMPTY is; Spark reads them in test_named_queries.py and as views of the catalog."""
OF_EACH_SHAPE = (
    "bronze.log_record", "bronze.ingest_extent", "silver.share_record", "gold.share_partition_state",
    "gold.delivery_history", "gold.stall", "gold.publication", EMPTY,
)  # fmt: skip
"""Tables with bytes, arrays of structs, states, a partition column, times; one that nobody compacts; an empty one.
delta-rs opens every table here, and the soak reads every one by Spark."""
COMPACTED = [
    "bronze.log_record",
    "bronze.ingest_extent",
    "silver.share_record",
    "gold.share_partition_state",
    "gold.share_partition_history",
    "gold.delivery_history",
]


@pytest.fixture(scope="module")
def two_run_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of two runs, which delta-rs committed."""
    lake = tmp_path_factory.mktemp("whole") / "lake"
    logs = dataset("basic") / "logs"
    assert run_here(lake, logs, until_ms=MIDDLE_MS).counts["bronze.log_record"] > 0
    assert run_here(lake, logs).counts["bronze.log_record"] > 0
    return lake


def path_of(lake: Path, name: str) -> str:
    """A table as Spark's SQL names it."""
    return f"delta.`{Lake(lake).table_storage(name).path}`"


@pytest.fixture(scope="module")
def maintained_lake(two_run_lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same lake after upkeep now and a month later: compacted tables, checkpoints, logs that were cut."""
    lake = shutil.copytree(two_run_lake, tmp_path_factory.mktemp("kept") / "lake")
    later = time.time_ns() // 1_000_000 + MONTH_MS
    maintain(MaintainOptions(lake=Lake(lake), dry_run=False))
    cut = maintain(MaintainOptions(lake=Lake(lake), dry_run=False, now_ms=later))
    assert cut.as_dict()["log_files"] > 0
    assert_same(lake, two_run_lake)
    return lake


@pytest.mark.parametrize(
    "name",
    [
        *OF_EACH_SHAPE[::2],
        *in_soak(*OF_EACH_SHAPE[1::2]),
        *in_soak(*(name for name in TABLES if name not in (*OF_EACH_SHAPE, *WITHOUT_ROWS))),
    ],
)
def test_spark_reads_a_table_that_upkeep_left(name: str, maintained_lake: Path, spark: SparkSession) -> None:
    frame = spark.table(path_of(maintained_lake, name))
    fields = TABLES[name].schema
    assert frame.columns == fields.names
    comments = {field.name: field.metadata.get("comment") for field in frame.schema}
    assert comments == {field.name: field.metadata[b"comment"].decode() for field in fields}
    rows = frame.toArrow().to_pylist()
    if name == "gold.publication":
        assert len(rows) == PUBLICATIONS
    else:
        ours = without_zone(open_lake(maintained_lake).scan(name)).to_pylist()
        assert sorted(map(repr, rows)) == sorted(map(repr, ours))
        assert bool(rows) == (name != EMPTY)


@pytest.mark.parametrize("name", TABLES)
def test_every_reader_may_open_a_table_that_upkeep_left(name: str, maintained_lake: Path) -> None:
    table = DeltaTable(Lake(maintained_lake).table_storage(name).path)
    assert (table.protocol().min_reader_version, table.protocol().min_writer_version) == (1, 2)
    assert table.metadata().partition_columns == list(TABLES[name].partition_by)
    count = PUBLICATIONS if name == "gold.publication" else open_lake(maintained_lake).scan(name).num_rows
    assert table.to_pyarrow_dataset(schema=TABLES[name].schema).count_rows() == count
    assert count == 0 or name not in (*WITHOUT_ROWS, EMPTY)


def test_spark_says_what_a_table_asks_of_readers(maintained_lake: Path, spark: SparkSession) -> None:
    detail = spark.sql(f"DESCRIBE DETAIL {path_of(maintained_lake, 'gold.stall')}").first()
    assert detail is not None
    assert (detail.minReaderVersion, detail.minWriterVersion) == (1, 2)
    assert detail.partitionColumns == list(TABLES["gold.stall"].partition_by)


def without_zone(rows: pa.Table) -> pa.Table:
    """The times under the name of the zone that Spark gives them."""
    fields = [f.with_type(pa.timestamp("us", tz="UTC")) if pa.types.is_timestamp(f.type) else f for f in rows.schema]
    return rows.cast(pa.schema(fields))


def test_spark_goes_back_to_earlier_versions_and_tells_their_history(
    two_run_lake: Path, maintained_lake: Path, spark: SparkSession
) -> None:
    name = "silver.share_record"
    history = spark.sql(f"DESCRIBE HISTORY {path_of(two_run_lake, name)}").collect()
    assert [row.operation for row in history] == ["WRITE", "WRITE", "CREATE TABLE"]
    assert [row.userMetadata for row in history] == ["decode 2", "decode 1", None]
    upkeep = spark.sql(f"DESCRIBE HISTORY {path_of(maintained_lake, name)}").first()
    assert upkeep is not None
    assert upkeep.userMetadata.startswith("maintain ")
    stamps = [row.timestamp for row in reversed(history)]
    assert stamps == sorted(set(stamps))
    versions = [f"SELECT * FROM {path_of(two_run_lake, name)} VERSION AS OF {version}" for version in range(3)]
    counts = [spark.sql(query).count() for query in versions]
    assert counts[0] == 0 < counts[1] < counts[2] == open_lake(two_run_lake).scan(name).num_rows


def answers(lake: Path, capsys: pytest.CaptureFixture[str]) -> list[object]:
    """What a reader is told about the lake."""
    documents = []
    for words in (["state"], ["records"], ["state", "--as-of", str(MIDDLE_MS)]):
        assert main([*words, "--lake", str(lake), "--output", "json"]) == 0
        documents.append(json.loads(capsys.readouterr().out))
    return documents


@pytest.mark.soak
def test_runs_and_questions_go_on_over_tables_that_spark_compacted(
    spark: SparkSession, two_run_lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs, lake = dataset("basic") / "logs", tmp_path / "lake"
    make_lake(lake, logs, until_ms=MIDDLE_MS - 1500)
    make_lake(lake, logs, until_ms=MIDDLE_MS)
    published, before, answered = published_versions(Lake(lake)), content(lake), answers(lake, capsys)
    files = {name: len(Lake(lake).snapshot(name).files) for name in TABLES}
    for name in COMPACTED:
        spark.sql(f"OPTIMIZE {path_of(lake, name)}")
    compacted = {name: len(Lake(lake).snapshot(name).files) for name in TABLES}
    assert compacted["bronze.log_record"] == compacted["silver.share_record"] == 1 < files["bronze.log_record"]
    assert published_versions(Lake(lake)) == published
    assert answers(lake, capsys) == answered
    make_lake(lake, logs)
    assert_same(lake, two_run_lake)
    assert before["silver.share_record"].num_rows < content(lake)["silver.share_record"].num_rows
    make_lake(lake, rebuild="decode")
    assert_same(lake, two_run_lake)
