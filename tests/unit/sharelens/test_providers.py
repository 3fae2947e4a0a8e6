"""A project of the user may have packages of any name: questions and tables don't meet them, and a run says so."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sharelens.providers import COMMANDS, SPARK, ProviderError, provided, provided_module
from tests.datasets import dataset
from tests.processes.in_process import recorded_lake

ROOT = Path(__file__).parents[3]
NAMES = ("jobs", "lake", "measures", "tables", "broker", "evidence", "kafka_log", "workloads")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with packages of the user, where Python looks first."""
    for name in NAMES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"NAME = 'the {name} of the user'\n")
    return tmp_path


def run(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A Python process that starts in the project."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(project), str(ROOT)])}
    return subprocess.run(
        [sys.executable, *words], cwd=project, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_questions_and_tables_work_in_a_project_with_packages_of_the_same_names(project: Path) -> None:
    state = run(project, "-m", "sharelens", "state", "--log-dir", str(dataset("basic") / "logs"), "--output", "json")
    assert (state.returncode, state.stdout[:1]) == (0, "["), state.stderr
    code = (
        "import sys, jobs, lake, sharelens\n"
        "from sharelens import frames\n"
        "assert (jobs.NAME, lake.NAME) == ('the jobs of the user', 'the lake of the user')\n"
        "print(len(sharelens.open(sys.argv[1]).tables) > 10, callable(frames.share_records))"
    )
    opened = run(project, "-c", code, str(recorded_lake("basic")))
    assert opened.stdout.split() == ["True", "True"], opened.stderr


@pytest.mark.slow
def test_a_run_in_such_a_project_says_which_package_hides_the_pipeline(project: Path) -> None:
    done = run(project, "-m", "sharelens", "run", "--lake", "x", "--log-dir", "y")
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("sharelens: jobs.commands:COMMANDS can't be imported")
    assert f"jobs is that of {project / 'jobs'}" in line


@pytest.mark.slow
def test_importing_sharelens_imports_no_spark_and_no_pipeline() -> None:
    code = "import sharelens, sys; print([name for name in ('pyspark', 'pyarrow', 'jobs') if name in sys.modules])"
    assert run(ROOT, "-c", code).stdout.strip() == "[]"


def test_entry_points_name_the_commands_and_the_daemon_of_workers() -> None:
    (table,) = provided(COMMANDS)
    assert table["Into a lake"]["run"] == "jobs.commands.stages"
    assert provided_module(SPARK, "worker_daemon") == "jobs.spark.worker_daemon"
    assert provided_module(SPARK, "another") is None


def test_a_daemon_that_cannot_be_imported_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import EntryPoint

    point = EntryPoint(name="worker_daemon", value="jobs.nowhere.daemon", group=SPARK)
    monkeypatch.setattr("sharelens.providers.entry_points", lambda **_: [point])
    assert provided_module(SPARK, "worker_daemon") is None
    with pytest.raises(ProviderError, match="jobs.nowhere.daemon can't be imported"):
        list(provided(SPARK))
