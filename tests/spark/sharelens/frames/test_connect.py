"""The DataFrame functions over Spark Connect: a client without Java, the tasks on the server."""

import json
import os
import subprocess
import sys
from pathlib import Path

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
OF_THE_DRIVER = {"group_settings", "other_logs", "untested_rules"}
"""Functions that return no DataFrame."""


def test_every_function_runs_over_spark_connect(remote: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "SPARK_HOME")}
    done = subprocess.run(
        [sys.executable, str(CLIENT), remote, str(dataset(SCENARIO) / "logs")],
        env={**environment, "PATH": "", "PYTHONPATH": os.pathsep.join(map(str, sys.path))},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lake = open_lake(recorded_lake(SCENARIO))
    expected = {name: lake.scan(table).num_rows for name, table in TABLES.items()}
    assert all(expected.values())
    printed = json.loads(done.stdout)
    assert {name: printed["rows"][name] for name in expected} == expected
    assert all(printed["columns"].values())
    assert printed["rows"].keys() | printed["columns"].keys() == set(frames.__all__) - OF_THE_DRIVER
