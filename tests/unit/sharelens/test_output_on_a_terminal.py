"""What a terminal gets of hostile names, through the command itself."""

import csv
import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.in_process import make_lake
from tests.state_logs import snapshot, write_log_directory

HOSTILE = "g\x1b[31m\x07\x00\x9b,\u202e"
FORMS = ("text", "csv", "json", "jsonl", "yaml")
CONTROLS = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0), 0x202E) if chr(code) not in "\r\n"]


SEVERAL = "import json, sys; from sharelens.cli import main; sys.exit(any([main(c) for c in json.loads(sys.argv[1])]))"
"""A program that runs several commands in one process."""


def on_terminal(*commands: list[str]) -> str:
    """What commands write to a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", SEVERAL, json.dumps(commands)], stdout=theirs, stderr=subprocess.DEVNULL
    ) as process:
        os.close(theirs)
        written = b""
        try:
            while part := os.read(ours, 1 << 16):
                written += part
        except OSError:  # the other side is closed
            pass
        os.close(ours)
    assert process.returncode == 0
    return written.decode()


@pytest.mark.slow
def test_no_form_of_an_answer_lets_a_name_act_on_a_terminal(tmp_path: Path) -> None:
    logs = write_log_directory(tmp_path / "logs", [snapshot(HOSTILE)])
    shown = on_terminal(*(["state", "--log-dir", str(logs), "--output", form] for form in FORMS))
    assert [letter for letter in CONTROLS if letter in shown] == []
    assert shown.count("31m") >= len(FORMS)


@pytest.mark.slow
def test_headings_of_csv_are_escaped_on_a_terminal_and_exact_in_a_pipe(tmp_path: Path) -> None:
    logs = write_log_directory(tmp_path / "logs", [snapshot()])
    make_lake(tmp_path / "lake", logs)
    query = ["sql", "--lake", str(tmp_path / "lake"), "--output", "csv", "SELECT 'a\x07' AS \"n\x1b[31m\""]
    assert on_terminal(query).splitlines() == ["n\\x1b[31m", "a\\x07"]
    piped = subprocess.run([sys.executable, "-m", "sharelens", *query], check=True, capture_output=True, text=True)
    assert list(csv.reader(io.StringIO(piped.stdout))) == [["n\x1b[31m"], ["a\x07"]]
