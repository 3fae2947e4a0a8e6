"""The DAGs under Airflow itself: structure, assets, and whole runs of the pipeline on recorded logs."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from sharelens.lake.scan import UNLISTED
from sharelens.lake.tables import TABLES
from sharelens.settings.folder import read_settings_folder
from tests import datasets, lakes
from tests.broker import running
from tests.broker.live.test_live_lake import consumed
from tests.broker.share_clients import SHARE_SETTINGS
from tests.once import made_once
from tests.processes.in_process import make_lake, recorded_lake

ROOT = Path(__file__).parents[2]
AIRFLOW = ROOT / ".venv-airflow" / "bin"
COMMAND = Path(sys.executable).parent / "sharelens"
WARM_PYTHON = ROOT / "tests" / "processes" / "warm_python.py"
WARM_MODULES = ("sharelens.cli", "jobs.run", "jobs.quality.check", "jobs.quality.pages")
NOT_THERE = "Airflow is not there: make setup-airflow"
PIPELINE, UPKEEP, FORENSICS = "sharelens_pipeline", "sharelens_upkeep", "sharelens_forensics"
# The log of `timeouts` was written between 03:09:44 and 03:10:30: intervals of 15 seconds hold something.
LOG, GROUP = "timeouts", "g-slow"
INTERVAL_ENDS = ["2026-11-21T03:10:00+00:00", "2026-11-21T03:10:45+00:00"]
EVERY_15_S = "* * * * * */15"
Drive = Callable[..., Any]

pytestmark = pytest.mark.skipif(not (AIRFLOW / "airflow").exists(), reason=NOT_THERE)


def airflow_variables(home: Path) -> dict[str, str]:
    """The environment variables of an Airflow that lives in a folder."""
    inherited_variables = {
        name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "SHARELENS"))
    }
    return {
        **inherited_variables,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "INFO",
    }


@contextmanager
def forks_of(python: Path | str, place: Path, modules: Sequence[str], variables: dict[str, str]) -> Iterator[list[str]]:
    """The words before a Python script that run it as a process of its own which need not import what costs seconds."""
    command = [python, str(WARM_PYTHON), str(place), *modules]
    server_variables = {**variables, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=server_variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        try:
            assert b"ready\n" in iter(server.stdout.readline, b"")  # Airflow says something before, when it is imported
            yield [sys.executable, "-IS", str(WARM_PYTHON), str(place), "+"]
        finally:
            server.terminate()


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """What runs a script in a fork of a Python that has imported the stages."""
    variables = {**os.environ, "GX_ANALYTICS_ENABLED": "false"}
    with forks_of(sys.executable, tmp_path_factory.mktemp("warm") / "socket", WARM_MODULES, variables) as words:
        yield words


class Airflow:
    """An Airflow in a folder of its own; its processes are forks of one that has imported it."""

    def __init__(self, home: Path, words: list[str]) -> None:
        self._database = home / "airflow.db"
        self._variables = airflow_variables(home)
        self._words = words
        self._empty = made_once("airflow", self._migrate) / "airflow.db"

    def _migrate(self, folder: Path) -> None:
        done = self.call(AIRFLOW / "airflow", "db", "migrate")
        assert done.returncode == 0, done.stderr[-3000:]
        with closing(sqlite3.connect(self._database)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        shutil.copy(self._database, folder)

    def forget(self) -> None:
        """Starts over with an empty database, as `airflow db migrate` makes it."""
        for path in self._database.parent.glob("airflow.db*"):
            path.unlink()
        shutil.copy(self._empty, self._database)

    def call(self, script: Path, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Runs a script in Airflow's environment."""
        return subprocess.run(
            [*self._words, str(script), *arguments],
            env={**self._variables, **variables},
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )


@pytest.fixture(scope="session")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    home = tmp_path_factory.mktemp("airflow")
    with forks_of(AIRFLOW / "python", home / "socket", ["tests.dags.warm_airflow"], airflow_variables(home)) as words:
        yield Airflow(home, words)


@pytest.fixture
def drive(airflow: Airflow) -> Drive:
    """Calls tests/dags/driver.py in Airflow's environment with the given dag settings; what it printed last.

    Each test begins with an empty database: a DAG test activates the assets of its lake only where none has their
    names.
    """
    airflow.forget()

    def call(*arguments: str, variables: Mapping[str, str] = {}, **configured: object) -> Any:
        dags = json.dumps({"command": [str(COMMAND)], "retries": 0, "retry_delay_s": 0.1, **configured})
        done = airflow.call(ROOT / "tests" / "dags" / "driver.py", *arguments, SHARELENS_DAGS=dags, **variables)
        assert done.returncode == 0, done.stderr[-3000:]
        answer = json.loads(done.stdout.splitlines()[-1])
        return (answer, done.stdout) if arguments[0] == "run" else answer

    return call


def settings(folder: Path, **extra_settings: object) -> dict[str, object]:
    """The dag settings of a lake in a folder."""
    return {
        "lake": str(folder / "lake"),
        "log_dirs": [str(datasets.dataset(LOG) / "logs")],
        "schedule": EVERY_15_S,
        "start": "2026-11-21T00:00:00Z",
        "metrics_file": str(folder / "sharelens.prom"),
        "report_file": str(folder / "report.html"),
        "cases_dir": str(folder / "cases"),
        **extra_settings,
    }


def test_dags_load_fast_have_the_pinned_structure_and_assets_and_refuse_a_backfill_backwards(
    drive: Drive, tmp_path: Path
) -> None:
    structure = drive("structure", **settings(tmp_path))
    assert structure["errors"] == {}
    assert structure["seconds"] < 2
    assert structure["heavy"] == []
    tasks = {dag_id: dag["tasks"] for dag_id, dag in structure["dags"].items()}
    assert tasks == {
        PIPELINE: {
            "ingest": ["decode"],
            "decode": ["replay"],
            "replay": ["measure"],
            "measure": ["audit"],
            "audit": ["check"],
            "check": ["publish"],
            "publish": [],
        },
        UPKEEP: {"maintain": []},
        FORENSICS: {"evidence": ["report"], "report": ["verify"], "verify": []},
    }
    for dag in structure["dags"].values():
        assert (dag["retries"], dag["timeouts"], dag["owners"]) == ([0], [3600.0], ["sharelens"])
        assert dag["has_docs"]
        assert "sharelens" in dag["tags"]
        assert not dag["catchup"]
    assert structure["dags"][PIPELINE]["max_active_runs"] == structure["dags"][UPKEEP]["max_active_runs"] == 1
    assert structure["dags"][FORENSICS]["params"] == ["case", "from", "group", "to", "topic"]
    assets = structure["dags"][PIPELINE]["assets"]
    tables = [name for name in TABLES if name not in UNLISTED]
    assert assets.pop("publish") == sorted(f"file://{tmp_path}/lake/{name.replace('.', '/')}" for name in tables)
    assert set(map(tuple, assets.values())) == {()}
    assert "cannot be run in reverse" in structure["backwards"][PIPELINE]


def test_the_settings_of_the_how_to_page_load_as_printed(airflow: Airflow) -> None:
    page = (ROOT / "docs" / "how-to" / "schedule.md").read_text(encoding="utf-8")
    examples = re.findall(r"SHARELENS_DAGS='(.*)'\n", page)
    assert len(examples) == 2
    for printed in examples:
        done = airflow.call(ROOT / "tests" / "dags" / "driver.py", "structure", SHARELENS_DAGS=printed)
        assert done.returncode == 0, done.stderr[-3000:]
        loaded = json.loads(done.stdout.splitlines()[-1])
        assert (loaded["errors"], set(loaded["dags"])) == ({}, {PIPELINE, UPKEEP, FORENSICS})


def test_a_wrong_setting_is_an_import_error_that_names_it(drive: Drive) -> None:
    errors = drive("structure", lake="not/absolute")["errors"]
    assert len(errors) == 3
    assert all("setting dags.lake in " in error for error in errors.values())
    assert all("should be an absolute path, not 'not/absolute'" in error for error in errors.values())


def test_intervals_in_turn_and_again_make_the_lake_of_one_run(drive: Drive, warm: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "settings"
    folder.mkdir()
    (folder / "broker.properties").write_text("group.share.delivery.count.limit=3\n", encoding="utf-8")
    files = {"settings": str(folder), "metrics_file": None, "report_file": None}
    options = settings(tmp_path, command=[*warm, str(COMMAND)], **files)
    runs, output = drive("run", PIPELINE, *INTERVAL_ENDS, INTERVAL_ENDS[-1], **options)
    assert [run["state"] for run in runs] == ["success"] * 3, output[-5000:]
    until_ms = int(datetime.fromisoformat(INTERVAL_ENDS[-1]).timestamp() * 1000)
    observations = read_settings_folder(str(folder)).observations
    make_lake(tmp_path / "whole", datasets.dataset(LOG) / "logs", until_ms=until_ms, observations=observations)
    lakes.assert_same(tmp_path / "lake", tmp_path / "whole")


def test_a_task_killed_in_the_middle_is_finished_by_its_retry_and_upkeep_and_forensics_work_on(
    drive: Drive, warm: list[str], tmp_path: Path
) -> None:
    killed = tmp_path / "killed"
    killed_once = str(ROOT / "tests" / "dags" / "killed_once.py")
    wrapper = [*warm, killed_once, str(killed), "commit:gold.delivery_history:replay:before"]
    window = {"case": "night-7", "group": GROUP, "from": "2026-11-21T03:09:50Z", "to": "2026-11-21T03:10:20Z"}
    arguments = [PIPELINE, "-", UPKEEP, "-", FORENSICS, "-=" + json.dumps(window)]
    runs, output = drive("run", *arguments, **settings(tmp_path, command=wrapper, retries=1))
    assert killed.exists()
    assert (runs[0]["state"], runs[0]["tries"]["replay"]) == ("success", 2)
    assert "replay ended with -9" in output
    assert "kafka_sharegroup_lag" in (tmp_path / "sharelens.prom").read_text()
    assert "<html" in (tmp_path / "report.html").read_text()
    lakes.assert_same(tmp_path / "lake", recorded_lake(LOG))
    assert runs[1]["state"] == "success", output[-5000:]
    assert runs[2]["tasks"] == {"evidence": "success", "report": "success", "verify": "success"}, output
    case = tmp_path / "cases" / "night-7"
    assert {path.name for path in case.iterdir()} >= {"evidence", "report.html"}
    subprocess.run([COMMAND, "verify", case / "evidence"], check=True, capture_output=True, timeout=60)


SECRET = "hardly-guessable-4711"


def kafka_connection(bootstrap: str) -> dict[str, str]:
    """Variables with an Airflow connection to a broker, which has a login that the client properties get."""
    host, _, port = bootstrap.rpartition(":")
    extra = {"security.protocol": "PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256", "client.rack": "a\\b"}
    connection = {"conn_type": "generic", "host": host, "port": int(port), "extra": extra}
    connection |= {"login": "observer", "password": f'{SECRET}\\"'}
    return {"AIRFLOW_CONN_KAFKA_TEST": json.dumps(connection)}


def test_a_cluster_of_a_connection_becomes_the_lake_of_its_directory_without_a_trace_of_its_secret(
    drive: Drive, warm: list[str], tmp_path: Path
) -> None:
    broker = running.start(tmp_path / "log", **SHARE_SETTINGS)
    try:
        consumed(broker)
        options = settings(tmp_path, command=[*warm, str(COMMAND)], metrics_file=None, report_file=None)
        options |= {"cluster_connection": "kafka_test", "log_dirs": [str(tmp_path / "gone")], "user_topics": "all"}
        runs, output = drive("run", PIPELINE, "-", variables=kafka_connection(broker.bootstrap), **options)
        assert runs[0]["state"] == "success", output[-5000:]
    finally:
        assert broker.stop() == 0
    assert SECRET not in output
    files = [path for path in (tmp_path / "lake").rglob("*") if path.is_file()]
    assert len(files) > 10
    assert not any(SECRET.encode() in path.read_bytes() for path in files)
    make_lake(tmp_path / "copied", tmp_path / "log")
    state = ("silver.share_record", "gold.share_partition_state", "gold.delivery_history")
    assert lakes.differences(lakes.content(tmp_path / "lake", state), lakes.content(tmp_path / "copied", state)) == []


def test_a_connection_that_names_no_broker_fails_without_a_retry(drive: Drive, tmp_path: Path) -> None:
    variables = {"AIRFLOW_CONN_KAFKA_TEST": json.dumps({"conn_type": "generic", "extra": {}})}
    options = settings(tmp_path, retries=3, cluster_connection="kafka_test")
    runs, output = drive("run", PIPELINE, "-", variables=variables, **options)
    assert (runs[0]["tasks"]["ingest"], runs[0]["tries"]["ingest"]) == ("failed", 1)
    assert "connection kafka_test names no broker: give it host and port" in output


def test_a_missing_source_fails_the_first_task_with_a_clear_line(drive: Drive, tmp_path: Path) -> None:
    runs, output = drive("run", PIPELINE, "-", **settings(tmp_path, log_dirs=[str(tmp_path / "gone")]))
    assert runs[0]["tasks"]["ingest"] == "failed"
    assert runs[0]["tasks"]["publish"] == "upstream_failed"
    assert f"{tmp_path / 'gone'}" in next(line for line in output.splitlines() if "sharelens: " in line)
