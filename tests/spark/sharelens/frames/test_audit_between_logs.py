"""The audit as a DataFrame with the other logs of a cluster: findings and words of `sharelens audit --log-dir`."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from sharelens import frames
from sharelens.cli import main
from sharelens.lake.scan import open_lake
from sharelens.measures.settings.over_time import DELIVERY_COUNT_LIMIT, GroupSettings, Setting
from state_model.audit.rule import Need
from state_model.audit.table import BY_CODE
from tests.audit import cluster_damages as damages
from tests.datasets import dataset, scenarios
from tests.depths import in_soak
from tests.logs.cluster_logs import END_MS, state, write_cluster
from tests.logs.state_logs import START_MS, snapshot, write_state_partition
from tests.processes.in_process import make_lake, recorded_lake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COMPARED = ("rule", "severity", "group_id", "topic_id", "partition", "state_partition", "first_log_offset",
    "last_log_offset", "first_seen_ms", "last_seen_ms", "count", "field", "expected", "seen", "cause_inferred",
    "impact", "completeness")  # fmt: skip
ONLY_HERE = {Need.LOG_DIRECTORIES, Need.RECORD_LOCKS}
QUICK = ("streams",)
LARGE = "big"


def early(logs: Path) -> None:
    """A snapshot that comes earlier than the configuration allows."""
    again = snapshot("mail", epoch=1, state_epoch=2, at_ms=END_MS - 1, write_timestamp_ms=START_MS + 10)
    write_state_partition(logs, [*state()[:4], again, *state()[4:]])


@pytest.mark.parametrize(
    "damage",
    [
        (damages.beyond_epoch, damages.odd_group_records, damages.short_topic),
        *in_soak(
            (damages.other_assignment, damages.parted_group, damages.state_created_again),
            (damages.forgotten, damages.unlisted),
            (damages.later_epoch, damages.skipped_epoch),
            (damages.cut_topic, damages.other_cluster),
            (damages.other_partition, damages.other_groups),
            (damages.older_state,),
            (early,),
        ),
    ],
)
def test_findings_between_logs(
    damage: Sequence[Callable[[Path], None]],
    spark: "SparkSession",
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs, settings = write_cluster(tmp_path / "logs"), tmp_path / "settings"
    for part in damage:
        part(logs)
    settings.mkdir()
    file = settings / "broker.properties"
    file.write_text("share.coordinator.cold.partition.snapshot.interval.ms=20\n", encoding="utf-8")
    os.utime(file, (START_MS / 1000, START_MS / 1000))
    make_lake(tmp_path / "lake", logs)
    computed, untested = audited(spark, logs, tmp_path / "lake", settings=str(settings))
    expected = answer(capsys, logs, "--settings", str(settings))
    assert computed == findings_of(expected["findings"]) != []
    assert {rule for rules in untested.values() for rule in rules} >= {
        rule for row in expected["not_tested"] for rule in row["rules"]
    }


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.soak) for name in scenarios() if name != LARGE],
)
def test_recorded_logs(name: str, spark: "SparkSession", capsys: pytest.CaptureFixture[str]) -> None:
    logs = dataset(name) / "logs"
    computed, _ = audited(spark, logs, recorded_lake(name))
    assert computed == findings_of(answer(capsys, logs)["findings"])


def test_without_other_logs_their_rules_are_named_as_the_command_names_them() -> None:
    untested = frames.untested_rules()
    assert "state_after_group_deletion" in untested["__consumer_offsets",]
    assert {need for needs in untested for need in needs} == {need.value for need in Need} - {Need.STATE_LOG.value}


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(GroupSettings(broker={}), id="a broker with Kafka's default"),
        pytest.param(GroupSettings(groups={"orders": {DELIVERY_COUNT_LIMIT: Setting(value="7")}}), id="a group"),
    ],
)
def test_a_known_delivery_count_limit_leaves_no_rule_untested_for_it(settings: GroupSettings) -> None:
    needs = {need for needs in frames.untested_rules(settings=settings) for need in needs}
    assert Need.DELIVERY_COUNT_LIMIT.value not in needs
    assert Need.RECORD_LOCKS.value in needs


def audited(
    spark: "SparkSession", logs: Path, lake: Path, settings: str | None = None
) -> tuple[list[tuple[Any, ...]], dict[tuple[str, ...], Sequence[str]]]:
    """The findings of the DataFrame, and what it did not test; from tables of the lake what no source reads."""
    rows = spark.read.format("kafka_log").load(str(logs)).coalesce(2).transform(frames.log_records).cache()
    tables = open_lake(lake)
    extents = tables.scan("bronze.ingest_extent")

    def table(name: str) -> "DataFrame | None":
        table_rows = tables.scan(name)
        return spark.createDataFrame(table_rows) if table_rows.num_rows else None

    of_groups = extents.filter(pc.field("topic") == "__consumer_offsets")
    cluster_logs = frames.other_logs(
        rows,
        group_partitions=of_groups.column("partition").unique().to_pylist(),
        headers=table("bronze.topic_batch"),
        metadata_records=table("silver.metadata_record"),
        settings=settings,
        read_until_ms=pc.max(extents.column("read_until_ms")).as_py(),
    )
    state = extents.filter(pc.field("topic") == "__share_group_state").to_pylist()
    starts = [(row["topic_id"], row["partition"], row["log_start_offset"] or 0) for row in state]
    log_starts = spark.createDataFrame(starts, "log_topic_id string, state_partition int, log_start_offset long")
    problems = spark.read.format("kafka_log").option("rows", "problems").load(str(logs)).coalesce(2)
    losses = frames.losses(rows, problems=problems)
    findings = frames.audit_findings(rows, losses=losses, log_starts=log_starts, cluster_logs=cluster_logs)
    computed = findings.where(F.col("severity").isNotNull()).toArrow().to_pylist()
    rows.unpersist()
    return findings_of(computed), frames.untested_rules(cluster_logs)


def answer(capsys: pytest.CaptureFixture[str], logs: Path, *words: str) -> dict[str, Any]:
    """What the command answers."""
    capsys.readouterr()
    assert main(["audit", "--log-dir", str(logs), *words, "--severity", "info", "--output", "json"]) in (0, None)
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def findings_of(rows: Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """The findings of rules that DataFrames can test, each as a tuple."""
    testable_rows = [row for row in rows if not ONLY_HERE.intersection(BY_CODE[row["rule"]].needs)]
    testable_rows = [row for row in testable_rows if BY_CODE[row["rule"]].severity_for(None) is not None]
    return sorted(((*(row[name] for name in COMPARED), str(row["records"])) for row in testable_rows), key=str)
