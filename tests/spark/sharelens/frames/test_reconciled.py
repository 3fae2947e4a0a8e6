"""Dead letters of recorded logs against their records are the rows of the lakes, and of `reconcile` over all rows."""

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from sharelens import frames
from sharelens.lake.dlq_partitions import DLQ_PARTITION
from sharelens.lake.scan import open_lake
from sharelens.lake.tables import TABLES
from sharelens.measures.dlq.reach import LetterTopics, whole_since_ms
from sharelens.measures.dlq.reconciliation import HISTORY_READ, LETTER_COLUMNS, nameless_places, reconcile
from sharelens.measures.dlq.schemas import DLQ_RECONCILIATION
from sharelens.measures.schemas import POISON_RECORD
from sharelens.measures.settings.over_time import NO_SETTINGS, GroupSettings
from sharelens.source.request import Source
from sharelens.tables.opening import open_evidence
from sharelens.tables.reading import read_dead_letter_partitions
from state_model.errors import UsageError
from tests.spark.sharelens.frames.recorded import assert_same, lake_with_its_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLE = "gold.dlq_reconciliation"
ORDER = TABLES[TABLE].key[1:]
READ = {
    "poison_records": ("gold.poison_record", POISON_RECORD.names),
    "dead_letters": ("silver.dlq_record", LETTER_COLUMNS),
    "share_partition_history": ("gold.share_partition_history", ["log_topic_id", "state_partition", *HISTORY_READ]),
    "topic_names": ("silver.name", ["topic_id", "topic"]),
}


@pytest.fixture(scope="module")
def lake() -> Path:
    """The lake of the recorded log `dlq` with the settings of its groups."""
    return lake_with_its_settings("dlq")


@pytest.fixture(scope="module")
def tables(lake: Path) -> dict[str, pa.Table]:
    """The arguments of the function from the lake."""
    rows = {name: open_lake(lake).scan(table, list(columns)) for name, (table, columns) in READ.items()}
    with open_evidence(Source(lake=str(lake))) as evidence:
        return rows | {"searched": read_dead_letter_partitions(evidence)}


def reconciled(spark: "SparkSession", rows: dict[str, pa.Table], settings: GroupSettings) -> "DataFrame":
    return frames.dlq_reconciliation(
        **{name: spark.createDataFrame(table) for name, table in rows.items()}, settings=settings
    )


def test_a_recorded_log_has_the_rows_of_the_lake(
    spark: "SparkSession", lake: Path, tables: dict[str, pa.Table]
) -> None:
    settings = frames.group_settings(spark.createDataFrame(open_lake(lake).scan("bronze.setting")))
    computed = reconciled(spark, tables, settings)
    expected = open_lake(lake).scan(TABLE)
    assert {"matched", "missing"} <= set(expected.column("status").to_pylist())
    assert set(computed.columns) == set(expected.column_names) - {"cluster_id", "run_id"}
    assert_same(computed, expected.select(computed.columns), *ORDER)


def test_letters_that_are_lost_repeated_or_of_no_record_are_judged_as_over_all_rows_at_once(
    spark: "SparkSession", tables: dict[str, pa.Table]
) -> None:
    """Of each dead letter in turn: lost; there twice; of an offset that was not given up; with the topic's id."""
    letters = tables["dead_letters"].to_pylist()
    ids = dict(zip(*(tables["topic_names"].column(name).to_pylist() for name in ("topic", "topic_id")), strict=True))
    changed = []
    for number, letter in enumerate(letters):
        again = letter | {"dlq_offset": letter["dlq_offset"] + 1_000, "timestamp_ms": letter["timestamp_ms"] + 1}
        beside = again | {"offset": letter["offset"] + 100_000}
        by_id = letter | {"topic": ids.get(letter["topic"], letter["topic"])}
        nowhere = again | {"topic": "nowhere", "dlq_offset": letter["dlq_offset"] + 2_000}
        changed += [[], [letter, again, nowhere], [letter, beside], [by_id]][number % 4]
    searched = [row | {"log_start_offset": 1} for row in tables["searched"].to_pylist()]
    rows = tables | {
        "dead_letters": pa.Table.from_pylist(changed, tables["dead_letters"].schema),
        "searched": pa.Table.from_pylist(searched, DLQ_PARTITION),
    }
    names = dict(zip(ids.values(), ids, strict=True))
    history = rows["share_partition_history"]
    expected = reconcile(
        rows["poison_records"].cast(POISON_RECORD),
        rows["dead_letters"],
        [history],
        names,
        LetterTopics.of(rows["dead_letters"], with_oldest(rows["searched"], rows["dead_letters"])),
        NO_SETTINGS,
        begins_ms=whole_since_ms(beginnings(history)),
        nameless=nameless_places(history, names),
    )
    assert {"matched", "duplicate", "missing", "unexpected"} <= set(expected.column("status").to_pylist())
    computed = reconciled(spark, rows, NO_SETTINGS).select(DLQ_RECONCILIATION.names)
    assert_same(computed, expected, *ORDER)


def with_oldest(searched: pa.Table, letters: pa.Table) -> pa.Table:
    """DLQ_PARTITION rows with the time of the oldest of some dead letters."""
    oldest: dict[tuple[str, int], int] = {}
    for letter in letters.to_pylist():
        place = letter["dlq_topic"], letter["dlq_partition"]
        oldest[place] = min(letter["timestamp_ms"], oldest.get(place, letter["timestamp_ms"]))
    rows = [row | {"oldest_ms": oldest.get((row["dlq_topic"], row["dlq_partition"]))} for row in searched.to_pylist()]
    return pa.Table.from_pylist(rows, DLQ_PARTITION)


def beginnings(history: pa.Table) -> list[tuple[int, int]]:
    """The offset and log time of the first record of each state partition."""
    folds = [("log_offset", "min"), ("log_time_ms", "min")]
    first = history.group_by(["log_topic_id", "state_partition"]).aggregate(folds)
    return [(row["log_offset_min"], row["log_time_ms_min"]) for row in first.to_pylist()]


def test_arguments_that_do_not_fit_are_refused(spark: "SparkSession", tables: dict[str, pa.Table]) -> None:
    lacking = tables | {"searched": tables["searched"].drop_columns(["held_back"])}
    with pytest.raises(UsageError, match=r"frames.dlq_reconciliation: searched does not fit: it lacks held_back"):
        reconciled(spark, lacking, NO_SETTINGS)
