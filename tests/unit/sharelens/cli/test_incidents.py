"""Settings that are given once answer alike in every command, and printed commands carry them."""

import csv
import html
import json
import re
import shlex
from pathlib import Path

import pytest

from sharelens.cli import main
from tests.dataset_settings import given_settings
from tests.datasets import dataset


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of settings with those of the recorded log `dlq`."""
    single, folder = (tmp_path_factory.mktemp(name) for name in ("single", "settings"))
    given_settings(dataset("dlq"), single)
    (single / "groups.txt").rename(folder / "group-configs.txt")
    (single / "server.properties").rename(folder / "broker.properties")
    return folder


def logs() -> list[str]:
    return ["--log-dir", str(dataset("dlq") / "logs")]


def statuses(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["dlq", *words, "--output", "text"]) == 0
    return next(line for line in capsys.readouterr().out.splitlines() if line.startswith("record offsets"))


def test_a_folder_answers_as_its_files_do(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    single = ["--group-configs", str(folder / "group-configs.txt")]
    told = statuses(capsys, *logs(), "--settings", str(folder))
    assert "missing 69" in told
    assert told == statuses(capsys, *logs(), *single)


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--settings", "--group-configs"])
def test_an_evidence_folder_judges_dead_letters_as_dlq_does(folder: Path, tmp_path: Path, option: str) -> None:
    path = folder if option == "--settings" else folder / "group-configs.txt"
    out = tmp_path / "case"
    words = ["evidence", *logs(), "--group", "gd-broken", "--from", "2026-11-21T00:00:00Z"]
    words += ["--to", "2026-11-22T00:00:00Z", "--case", "C", "--out", str(out), option, str(path)]
    assert main([*words, "--output", "json"]) == 0
    table = next(out.rglob("dlq.csv"))
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    sizes: dict[str, int] = {}
    for row in rows:
        sizes[row["status"]] = sizes.get(row["status"], 0) + int(row["last_offset"]) - int(row["offset"]) + 1
    assert sizes == {"missing": 69}
    assert main(["verify", str(out), *logs(), "--output", "json"]) == 0


@pytest.mark.slow
def test_the_commands_of_an_overview_carry_the_settings(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--settings", str(folder), "--broker-config", str(folder / "broker.properties")]
    assert main(["overview", *logs(), *options, "--output", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["findings"]
    assert {row["kind"] for row in rows} >= {"dead_letters_missing", "records_archived"}
    for row in rows:
        words = shlex.split(row["command"])
        assert f"--settings={folder}" in words
        takes_files = words[1] in ("dlq", "poison", "stalled")
        assert (f"--broker-config={folder / 'broker.properties'}" in words) == takes_files
        assert main([*words[1:], "--limit", "1"]) == 0
    capsys.readouterr()


@pytest.mark.slow
def test_the_commands_of_a_report_carry_the_settings(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    assert main(["report", *logs(), "--settings", str(folder), "--out", str(out)]) == 0
    text = html.unescape(out.read_text(encoding="utf-8"))
    commands = re.findall(r"sharelens [a-z]+ --log-dir [^<]*", text)
    assert len(commands) > 5
    assert all(f"--settings={folder}" in command for command in commands)
