"""The unit: its command is one that our own parser takes, and systemd finds no fault in it."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes.command_lines import schedule

UNIT = Path(__file__).parents[3] / "conf" / "systemd" / "sharelens.service"


def exec_start() -> list[str]:
    text = UNIT.read_text(encoding="utf-8").replace("\\\n", " ")
    (line,) = (line for line in text.splitlines() if line.startswith("ExecStart="))
    return shlex.split(line.removeprefix("ExecStart="))


def test_the_unit_runs_a_command_that_there_is():
    program, *words = exec_start()
    assert Path(program).name == "sharelens"
    assert schedule(words).maintain_every_s == 600


@pytest.mark.slow
def test_systemd_finds_no_fault_in_the_unit(tmp_path):
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("no systemd-analyze here")
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text(encoding="utf-8").replace(exec_start()[0], sys.executable), encoding="utf-8")
    done = subprocess.run([program, "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False)
    complaints = [line for line in done.stderr.splitlines() if UNIT.name in line]
    assert (done.returncode, complaints) == (0, []), done.stderr
