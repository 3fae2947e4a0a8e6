"""The recorded logs as DataFrames, and the tables of the lakes that they are held to.

Several logs are read as one: Spark takes longer to plan a query than to compute one of them. The id of the log's topic
says which log a row is of.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from chispa.schema_comparer import assert_schema_equality
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from sharelens.frames.envelopes import LOSS
from sharelens.frames.shapes import spark_schema
from sharelens.kafka_log.schemas import TOPIC_BATCH
from sharelens.lake import user_topics
from sharelens.lake.scan import open_lake
from sharelens.measures.topics.extents import topic_partitions
from sharelens.output import Answer
from sharelens.parameters.filters import KeyFilter
from sharelens.settings.files import NO_SETTINGS_FILES
from sharelens.settings.folder import with_single_files
from sharelens.source.request import CutChoice, Source
from sharelens.tables.opening import open_evidence
from sharelens.tables.port import Tables
from tests.dataset_settings import given_settings
from tests.datasets import dataset
from tests.once import made_once
from tests.processes.in_process import make_lake, recorded_lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OF_THE_LAKE = ("cluster_id", "run_id", "first_run_id", "withdrawn_run_id", "misplaced", "is_final", "topic")
"""Columns that only a lake has: where rows come from, and what takes all share partitions or other tables to know."""

WITH_TOPIC = ("silver.dlq_record", "gold.share_initialization_history")
"""Tables whose rows have the name of a topic from their records."""
PARTITIONS = 2
"""Of all logs together: tasks of some rows would take longer to start than to compute."""


def id_prefix(name: str) -> str:
    """The first characters of the ids of the topics of a recorded log: its name as a number."""
    return f"{zlib.crc32(name.encode()):08x}"


def id_in(name: str, topic_id: str) -> str:
    """The id of a topic of a recorded log, which no other log has."""
    return id_prefix(name) + topic_id[len(id_prefix(name)) :]


def rows_of(spark: "SparkSession", names: Sequence[str], **options: str) -> DataFrame:
    """What the data source kafka_log reads of recorded logs, in few partitions: each of a log is one of the source."""
    logs = []
    for name in names:
        rows = spark.read.format("kafka_log").options(**options).load(str(dataset(name) / "logs"))
        id_in_log = F.concat(F.lit(id_prefix(name)), F.substr("topic_id", F.lit(len(id_prefix(name)) + 1)))
        logs.append(rows.withColumn("topic_id", id_in_log))
    return reduce(DataFrame.unionByName, logs).coalesce(PARTITIONS)


def table_of(names: Sequence[str], table: str, log_topic_id: str = "log_topic_id") -> pa.Table:
    """A table of the lakes that the pipeline makes of recorded logs, without the columns that only a lake has."""
    tables = []
    for name in names:
        rows = open_lake(recorded_lake(name)).scan(table)
        index = rows.schema.get_field_index(log_topic_id)
        if index < 0:
            tables.append(rows)
            continue
        prefix = pa.repeat(id_prefix(name), rows.num_rows)
        rest = pc.utf8_slice_codeunits(rows.column(index).cast(pa.string()), len(id_prefix(name)))
        ids = pc.binary_join_element_wise(prefix, rest, "")
        tables.append(rows.set_column(index, rows.schema.field(index).with_type(pa.string()), ids))
    all_rows = pa.concat_tables(tables)
    extra = [column for column in OF_THE_LAKE if column in all_rows.column_names and table not in WITH_TOPIC]
    return all_rows.drop_columns(
        extra or [column for column in ("cluster_id", "run_id") if column in all_rows.column_names]
    )


def histories_of(names: Sequence[str]) -> dict[str, pa.Table]:
    """The histories of recorded logs and the headers of their user topics, as the functions of measures take them."""
    headers = pa.concat_tables([open_lake(recorded_lake(name)).scan("bronze.topic_batch") for name in names])
    return {
        "history": table_of(names, "gold.share_partition_history"),
        "deliveries": table_of(names, "gold.delivery_history"),
        "headers": headers.select(TOPIC_BATCH.names),
    }


def extents_of(name: str) -> pa.Table:
    """TOPIC_EXTENT rows of all user partitions of a recorded log."""
    return extents_in(recorded_lake(name))


def extents_in(path: Path) -> pa.Table:
    """TOPIC_EXTENT rows of all user partitions of a lake."""
    lake = open_lake(path)
    states = lake.scan("gold.share_partition_state", ["topic_id", "partition"])
    books = user_topics.books(lambda table, columns, where: lake.scan(table, columns, where))
    return user_topics.extents(books, set(topic_partitions(states)))


def lake_with_its_settings(name: str) -> Path:
    """The lake of a recorded log with the settings of its groups; tests share it."""

    def make(folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        given_settings(dataset(name), folder)
        files = with_single_files(NO_SETTINGS_FILES, str(folder / "groups.txt"), str(folder / "server.properties"))
        make_lake(folder / "lake", dataset(name) / "logs", observations=files.observations)

    return made_once(f"lakes/with-settings-{name}", make) / "lake"


def cached(spark: "SparkSession", tables: dict[str, pa.Table]) -> dict[str, DataFrame]:
    """The tables as DataFrames that are computed once."""
    return {name: spark.createDataFrame(rows).cache() for name, rows in tables.items()}


def answers(
    names: Sequence[str], question: Callable[[Tables, KeyFilter, CutChoice], Answer], columns: Sequence[str]
) -> pa.Table:
    """The rows of a question to each lake, with the columns of a DataFrame."""
    tables = []
    for name in names:
        with open_evidence(Source(lake=str(recorded_lake(name)))) as evidence:
            rows = question(evidence, KeyFilter(), CutChoice()).table
            topic = id_in(name, evidence.cover()[0].log_topic_id)
        rows = rows.drop_columns([column for column in ("log_topic_id",) if column in rows.column_names])
        tables.append(rows.append_column("log_topic_id", pa.repeat(topic, rows.num_rows)).select(columns))
    return pa.concat_tables(tables)


def compare_with(answer: pa.Table, computed: DataFrame, *order: str) -> None:
    """`assert_same` with an answer, whose text may be dictionary-encoded."""
    plain = [(f.name, pa.string() if pa.types.is_dictionary(f.type) else f.type) for f in answer.schema]
    assert_same(computed, answer.cast(pa.schema(plain)), *order)


def losses_of(names: Sequence[str]) -> pa.Table:
    """LOSS rows of the state logs of recorded logs, as their lakes have them."""
    rows = []
    for name in names:
        with open_evidence(Source(lake=str(recorded_lake(name)))) as evidence:
            for part in evidence.cover():
                place = {"log_topic_id": id_in(name, part.log_topic_id), "state_partition": part.state_partition}
                rows += [place | asdict(loss) for loss in part.losses]
    return pa.Table.from_pylist(rows, schema=LOSS)


def assert_same(computed: DataFrame, expected: pa.Table, *order: str) -> None:
    """Rows and columns are equal; Arrow's nullability is not Spark's concern.

    Rows are compared as Arrow's: Spark would take longer to hand them out one by one than to compute them.
    """
    assert expected.num_rows > 0
    assert_schema_equality(computed.schema, spark_schema(expected.schema), ignore_nullable=True)
    keys = [(name, "ascending") for name in order]
    actual, expected = computed.toArrow().sort_by(keys), expected.sort_by(keys)
    assert actual.num_rows == expected.num_rows
    for name in expected.column_names:
        column = actual.column(name)
        if not column.equals(expected.column(name).cast(column.type)):
            rows = zip(actual.to_pylist(), expected.to_pylist(), strict=True)
            differing = [(ours, theirs) for ours, theirs in rows if ours != theirs]
            raise AssertionError(f"{name} differs in {len(differing)} rows; computed and expected: {differing[:1]}")
