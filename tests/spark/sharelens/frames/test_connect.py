"""The DataFrame functions over Spark Connect: a client without Java, the tasks on the server."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sharelens import frames
from sharelens.lake.scan import open_lake
from tests.datasets import dataset
from tests.processes.in_process import recorded_lake

SCENARIO = "dlq"
PATIENCE_S = 1_200
CLIENT = Path(__file__).with_name("connect_client.py")
TABLES = {
    "share_records": "silver.share_record",
    "group_records": "silver.group_record",
    "group_history": "gold.group_history",
    "member_history": "gold.member_history",
    "share_initialization_history": "gold.share_initialization_history",
    "dead_letters": "silver.dlq_record",
    "share_partition_states": "gold.share_partition_state",
    "share_partition_history": "gold.share_partition_history",
    "delivery_history": "gold.delivery_history",
    "states_as_of": "gold.share_partition_state",
    "audit_findings": "gold.audit_finding",
}
DECODING = """
import sys
from pyspark.sql import SparkSession
from sharelens import frames

spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
logs = spark.read.format("kafka_log").load(sys.argv[2]).transform(frames.log_records)
print(logs.transform(frames.share_records).toArrow().num_rows)
spark.stop()
"""
OF_THE_DRIVER = {"group_settings", "other_logs", "untested_rules"}
"""Functions that return no DataFrame."""


def printed_by(client: str, remote: str) -> Any:
    """What a program in a process without Java prints of the log, as JSON."""
    environment = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "SPARK_HOME")}
    done = subprocess.run(
        [sys.executable, "-c", client, remote, str(dataset(SCENARIO) / "logs")],
        env={**environment, "PATH": "", "PYTHONPATH": os.pathsep.join(map(str, sys.path))},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_records_are_decoded_over_spark_connect(remote: str) -> None:
    assert printed_by(DECODING, remote) == open_lake(recorded_lake(SCENARIO)).scan("silver.share_record").num_rows


@pytest.mark.soak
def test_every_function_runs_over_spark_connect(remote: str) -> None:
    printed = printed_by(CLIENT.read_text(encoding="utf-8"), remote)
    lake = open_lake(recorded_lake(SCENARIO))
    expected = {name: lake.scan(table).num_rows for name, table in TABLES.items()}
    assert all(expected.values())
    assert {name: printed["rows"][name] for name in expected} == expected
    assert all(printed["columns"].values())
    assert printed["rows"].keys() | printed["columns"].keys() == set(frames.__all__) - OF_THE_DRIVER
