"""upgrade from outside, and what every other command says of an older lake."""

import json
import shlex
from pathlib import Path

import pytest

from sharelens.cli import main
from sharelens.lake.tables import SCHEMA_VERSION, TABLES
from tests.datasets import dataset
from tests.old_lakes import SCENARIO, old_lake

pytestmark = pytest.mark.slow

COMMANDS = {
    "questions": ["state", "records", "status", "lag", "stalled", "poison", "redelivered", "latency", "dlq", "life"],
    "stages": ["decode", "replay", "measure", "publish", "check", "maintain", "tables", "report"],
}
EXTRA_OPTIONS = {"maintain": ["--execute"], "report": ["--out", "report.html"]}


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return old_lake("last-2", tmp_path / "old lake")


@pytest.mark.parametrize("command", [name for names in COMMANDS.values() for name in names])
def test_every_command_that_meets_an_older_lake_names_the_upgrade(
    command: str, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([command, "--lake", str(lake), *EXTRA_OPTIONS.get(command, [])]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert f"`sharelens upgrade --lake {shlex.quote(str(lake))} --dry-run`" in line
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old lake"]


def test_a_run_over_its_logs_names_it_too_and_writes_nothing(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = sorted(lake.rglob("*"))
    assert main(["run", "--lake", str(lake), "--log-dir", str(dataset(SCENARIO) / "logs")]) == 1
    assert f"`sharelens upgrade --lake {shlex.quote(str(lake))} --dry-run`" in capsys.readouterr().err
    assert [path for path in sorted(lake.rglob("*")) if path.name != ".lock"] == files


@pytest.mark.soak
def test_a_dry_run_lists_every_table_and_the_upgrade_does_it(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["upgrade", "--lake", str(lake)]
    assert main([*words, "--dry-run", "--output", "json"]) == 0
    listed = {row["table"]: row for row in json.loads(capsys.readouterr().out)}
    assert set(listed) == set(TABLES)
    assert {key: listed["gold.stall"][key] for key in ("written_version", "schema_version", "needs", "columns")} == {
        "written_version": 2,
        "schema_version": SCHEMA_VERSION,
        "needs": "derived anew",
        "columns": "adds is_final; drops duration_time; partitions is_final",
    }
    assert main([*words, "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert (
        f"tables are recomputed as by `run --rebuild decode`; do it with `sharelens upgrade --lake {lake} --execute`"
        in shown
    )
    assert main([*words, "--execute"]) == 0
    assert "upgraded; tables are recomputed as by `run --rebuild decode`; published as run 2" in capsys.readouterr().out
    assert main([*words, "--execute"]) == 0
    assert "nothing to do: the lake is of this version" in capsys.readouterr().out
    assert main(["state", "--lake", str(lake)]) == 0


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 2, "give --dry-run to list the work, or --execute to do it"),
        (["--dry-run", "--execute"], 2, "give --dry-run to list the work, or --execute to do it"),
        (["--dry-run", "--lake", "nowhere"], 1, "nowhere is not a directory"),
        (["--execute", "--lock-timeout", "-1"], 2, "-1"),
    ],
)
def test_nonsense_is_refused_in_one_line(
    words: list[str], code: int, message: str, lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["upgrade", "--lake", str(lake), *words]) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
