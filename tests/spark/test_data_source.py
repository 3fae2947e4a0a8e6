"""`spark.read.format("kafka_log")` on recorded broker logs."""

import json
import tarfile
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from sharelens.kafka_log import reader
from sharelens.kafka_log.layout import scan_log_directory
from sharelens.kafka_log.schemas import LOG_RECORD
from sharelens.kafka_log.union import unite
from tests.datasets import dataset


def _read_here(directory: Path, *, include_uncommitted: bool = False) -> pa.Table:
    chunks = []
    for partition in unite([scan_log_directory(str(directory))]):
        end = reader.readable_end(partition, include_uncommitted=include_uncommitted)
        for split in reader.splits(partition, 0, end, 1 << 20):
            chunks += [chunk.records for chunk in reader.read_split(split, include_uncommitted=include_uncommitted)]
    return pa.Table.from_batches(chunks, schema=LOG_RECORD)


def _keyed(table: pa.Table) -> dict[tuple[str, int, int], dict[str, object]]:
    rows = {(row["topic"], row["partition"], row["offset"]): row for row in table.to_pylist()}
    assert len(rows) == table.num_rows
    return rows


def test_spark_finds_the_source_and_reads_what_the_reader_reads(spark: SparkSession) -> None:
    directory = dataset("dlq") / "logs"
    frame = spark.read.format("kafka_log").option("splitBytes", "20000").load(str(directory))
    assert frame.columns == LOG_RECORD.names
    assert frame.rdd.getNumPartitions() > len(unite([scan_log_directory(str(directory))]))
    read, expected = _keyed(frame.toArrow()), _keyed(_read_here(directory))
    assert len(expected) > 1000
    assert any(row["headers"] for row in expected.values())
    assert read == expected


def test_options_choose_topics_and_offsets(spark: SparkSession) -> None:
    frame = (
        spark.read.format("kafka_log")
        .option("topics", "__share_group_state, orders")
        .option("startingOffset", "3")
        .option("endingOffset", "10")
        .load(str(dataset("basic") / "logs"))
    )
    rows = frame.select("topic", "partition", "offset").collect()
    assert {row.topic for row in rows} == {"__share_group_state", "orders"}
    assert {row.offset for row in rows if row.topic == "orders"} == set(range(3, 10))


def test_a_topic_that_is_not_there_is_refused_with_those_that_are(spark: SparkSession) -> None:
    source = spark.read.format("kafka_log").option("topics", "__share_group_state,orderz")
    with pytest.raises(AnalysisException, match="no folder of orderz in .*; topics: .*__share_group_state, .*orders"):
        source.load(str(dataset("basic") / "logs")).count()


def test_several_directories_are_one_log(spark: SparkSession) -> None:
    places = [str(dataset("crash") / name) for name in ("logs-live", "logs", "logs-crashed")]
    frame = spark.read.format("kafka_log").option("paths", json.dumps(places)).load()
    assert _keyed(frame.toArrow()) == _keyed(_read_here(dataset("crash") / "logs"))


def test_uncommitted_records_are_held_back_unless_asked_for(spark: SparkSession) -> None:
    source = spark.read.format("kafka_log").option("topic", "__share_group_state")
    place = str(dataset("crash") / "logs-crashed")
    held_back = source.load(place).select("uncommitted").collect()
    with_uncommitted = source.option("includeUncommitted", "true").load(place).select("uncommitted").collect()
    assert not any(row.uncommitted for row in held_back)
    assert sum(row.uncommitted for row in with_uncommitted) == len(with_uncommitted) - len(held_back) > 0


def test_an_archive_is_read_as_its_directory(spark: SparkSession, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "log.tar.gz", "w:gz") as tar:
        tar.add(dataset("basic") / "logs", arcname="logs")
    frame = spark.read.format("kafka_log").load(str(tmp_path / "log.tar.gz"))
    assert _keyed(frame.toArrow()) == _keyed(_read_here(dataset("basic") / "logs"))


def test_problems_can_be_read_too(spark: SparkSession, tmp_path: Path) -> None:
    source = dataset("basic") / "logs" / "orders-0"
    copy = tmp_path / "logs" / "orders-0"
    copy.mkdir(parents=True)
    for name in ("00000000000000000000.log", "partition.metadata"):
        raw = bytearray((source / name).read_bytes())
        if name.endswith(".log"):
            raw[100] ^= 1
        (copy / name).write_bytes(raw)
    rows = spark.read.format("kafka_log").option("rows", "problems").load(str(tmp_path / "logs")).collect()
    assert [(row.reason, row.position, row.first_offset) for row in rows] == [("crc_mismatch", 0, 0)]


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("splitbites", "1", "no option splitbites"),
        ("rows", "all", "records or problems"),
        ("includeUncommitted", "maybe", "true or false"),
        ("startingOffset", "-1", "startingOffset"),
    ],
)
def test_an_option_that_is_not_understood_is_named(spark: SparkSession, option: str, value: str, words: str) -> None:
    with pytest.raises(AnalysisException, match=words):
        spark.read.format("kafka_log").option(option, value).load(str(dataset("basic") / "logs")).count()
