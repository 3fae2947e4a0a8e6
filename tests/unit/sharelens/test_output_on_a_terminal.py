"""What a terminal gets, through the command itself."""

import csv
import io
from pathlib import Path

import pytest

from sharelens.cli import main
from tests.datasets import dataset
from tests.logs.state_logs import snapshot, write_log_directory
from tests.processes.in_process import recorded_lake, story_lake
from tests.processes.terminals import screens

pytestmark = pytest.mark.slow

HOSTILE = "g\x1b[31m\x07\x00\x9b,\u202e"
FORMS = ("text", "csv", "json", "jsonl", "yaml")
CONTROLS = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0), 0x202E) if chr(code) not in "\r\n"]


def test_no_form_of_an_answer_lets_a_name_act_on_a_terminal(tmp_path: Path) -> None:
    logs = write_log_directory(tmp_path / "logs", [snapshot(HOSTILE)])
    shown = "".join(screens(*(["state", "--log-dir", str(logs), "--output", form] for form in FORMS)))
    assert [letter for letter in CONTROLS if letter in shown] == []
    assert shown.count("31m") >= len(FORMS)


@pytest.mark.soak
def test_headings_of_csv_are_escaped_on_a_terminal_and_exact_in_a_pipe(capfd: pytest.CaptureFixture[str]) -> None:
    query = [
        "sql",
        "--lake",
        str(story_lake("terminal", [snapshot()])),
        "--output",
        "csv",
        "SELECT 'a\x07' AS \"n\x1b[31m\"",
    ]
    assert screens(query)[0].splitlines() == ["n\\x1b[31m", "a\\x07"]
    assert main(query) == 0
    assert list(csv.reader(io.StringIO(capfd.readouterr().out))) == [["n\x1b[31m"], ["a\x07"]]


def test_options_choose_what_a_terminal_shows() -> None:
    lag = ["lag", "--log-dir", str(dataset("basic") / "logs")]
    one_row = [*lag, "--group", "g-implicit", "--partition", "0"]
    fitting, wide, chosen, vertical, single, refused, mixed = screens(
        lag,
        [*lag, "--wide"],
        [*lag, "--columns", "lag,Group,cluster-id"],
        [*lag, "--vertical", "--columns", "partition,LAG"],
        one_row,
        [*lag, "--columns", "lagg"],
        [*lag, "--output", "json", "--wide"],
        codes=True,
    )
    assert max(map(len, fitting.splitlines())) <= 80
    left_out = " ".join(fitting.split()).partition("left out: ")[2].partition(";")[0].split(", ")
    head = wide.splitlines()[0].split()
    assert set(left_out) == set(head) - set(fitting.splitlines()[0].split())
    assert "left out" not in wide
    assert chosen.splitlines()[:2] == ["LAG  GROUP       CLUSTER-ID", "  0  g-explicit  unknown"]
    assert vertical.splitlines()[:5] == ["PARTITION  0", "LAG        0", "", "PARTITION  1", "LAG        0"]
    assert {line.split()[0]: line.split()[1] for line in single.splitlines()[:7]}["LAG"] == "51"
    assert refused.startswith("sharelens: --columns: no column 'lagg'; columns: group, topic, partition, ")
    assert (refused[-6:], mixed[-6:]) == ("exit 2", "exit 2")
    assert "--output text" in mixed


@pytest.mark.soak
def test_stalls_that_last_show_the_record_its_state_and_for_how_long() -> None:
    places = (["--log-dir", str(dataset("dlq") / "logs")], ["--lake", str(recorded_lake("dlq"))])
    first, second = (
        shown.partition("left out: ")[0]
        for shown in screens(*(["pinned", *place, "--min-duration", "0"] for place in places))
    )
    assert first == second
    headings, *rows = (line.split() for line in first.splitlines())
    assert headings[:6] == ["GROUP", "TOPIC", "PARTITION", "FIRST-INCOMPLETE", "STATE", "SECONDS"]
    assert "UNTIL" not in headings
    assert len(rows) > 1


def test_a_pipe_gets_full_lines_whatever_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    lag = ["lag", "--log-dir", str(dataset("basic") / "logs")]
    assert main(lag) == 0
    table = capfd.readouterr().out.splitlines()
    assert len(table[0]) > 120
    assert "left out" not in "".join(table)
    assert main([*lag, "--columns", "LAG,partition", "--output", "csv", "--limit", "2"]) == 0
    assert capfd.readouterr().out == "lag,partition\n0,0\n0,1\n"
    assert main([*lag, "--vertical", "--columns", "LAG", "--limit", "2"]) == 0
    assert capfd.readouterr().out.splitlines()[:3] == ["LAG  0", "", "LAG  0"]
