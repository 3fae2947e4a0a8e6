"""check and publish from outside: exit codes, forms of the answer, and a closed gate that every answer names."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sharelens.cli import main
from sharelens.lake.commit import commit
from sharelens.lake.lake import Lake
from sharelens.lake.parquet import write_rows
from sharelens.lake.scan import open_lake
from sharelens.lake.tables import TABLES
from tests.logs.state_logs import START_MS, snapshot, update
from tests.processes.in_process import story_lake

pytestmark = pytest.mark.slow
SHARE_RECORD = "silver.share_record"


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    story = [snapshot("g", start=0), update("g", start=5, at_ms=START_MS + 1)]
    return Path(shutil.copytree(story_lake("quality", story, "a-cluster"), tmp_path / "lake"))


def plant_a_record_twice(lake: Path) -> None:
    files = write_rows(Lake(lake), TABLES[SHARE_RECORD], open_lake(lake).scan(SHARE_RECORD).slice(0, 1), {})
    commit(Lake(lake), SHARE_RECORD, stage="plant", run=1, adds=files)


@pytest.mark.soak
def test_a_closed_gate_is_named_by_every_answer_and_holds_the_publication(
    lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["check", "--lake", str(lake), "--table", SHARE_RECORD, "--level", "blocking"]
    assert main(["state", "--lake", str(lake)]) == 0
    assert "closed gates" not in capsys.readouterr().out
    assert main(words) == 0
    assert "all gates open" in capsys.readouterr().out
    plant_a_record_twice(lake)
    assert main([*words, "--output", "json"]) == 3
    out, err = capsys.readouterr()
    (failed,) = json.loads(out)["not_met"]
    assert (failed["table_name"], failed["expectation"]) == (SHARE_RECORD, "key_is_unique")
    assert f"gates closed: {SHARE_RECORD}" in err
    assert main(["state", "--lake", str(lake)]) == 0
    assert capsys.readouterr().out.endswith(f"; closed gates: {SHARE_RECORD} (key_is_unique)\n")
    assert main(["status", "--lake", str(lake), "--output", "json"]) == 0
    (gate,) = json.loads(capsys.readouterr().out)["closed_gates"]
    assert (gate["table"], gate["not_met"]) == (SHARE_RECORD, ["key_is_unique"])
    assert main(["publish", "--lake", str(lake)]) == 3
    out, err = capsys.readouterr()
    assert json.loads(out)["withheld"] is True
    assert "not published, questions still read the last cut" in err
    query = "SELECT count(*) AS n FROM gold.quality_result WHERE success = false"
    assert main(["sql", "--lake", str(lake), query, "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"n": 1}]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--table", "silver.nonsense"], 2, "no such table; tables: bronze.log_record"),
        (["--skip", "keys"], 2, "'keys' is not one of 'freshness', 'volume'"),
        (["--now", "2026-11-21T05:00:00"], 2, "--now"),
        (["--stale-after", "soon"], 2, "is no duration"),
    ],
)
def test_nonsense_is_refused_in_one_line(
    words: list[str], code: int, message: str, lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--lake", str(lake), *words]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


def test_no_lake_is_said_to_be_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--lake", str(tmp_path / "nowhere")]) == 1
    assert "is not a directory" in capsys.readouterr().err


@pytest.mark.soak
def test_a_check_needs_no_network_no_home_and_sends_nothing(lake: Path, tmp_path: Path) -> None:
    script = (
        "import socket, sys\n"
        "def refuse(*anything, **more): raise OSError('the network was asked for')\n"
        "socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse\n"
        "from sharelens.cli import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    environment = {**os.environ, "HOME": str(tmp_path / "home"), "PYTHONPATH": str(Path(__file__).parents[4])}
    (tmp_path / "home").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", script, "check", "--lake", str(lake), "--table", "silver.name", "--output", "json"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr.count("\n")) == (0, 1), done.stderr
    assert list((tmp_path / "home").iterdir()) == []
