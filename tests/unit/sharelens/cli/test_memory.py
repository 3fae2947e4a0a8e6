"""A command allocates what it may and no more, whoever allocates, and the process is free again afterwards."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from sharelens.cli import main, memory
from sharelens.cli.memory import ROOM_BYTES, bounded_memory
from tests.datasets import FEW
from tests.processes.in_process import recorded_lake


def test_the_bound_is_that_of_the_process_and_ends_with_the_command() -> None:
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with bounded_memory(1 << 20):
        soft, _ = resource.getrlimit(resource.RLIMIT_DATA)
        assert soft > ROOM_BYTES
        with pytest.raises(MemoryError):
            bytearray(ROOM_BYTES + (1 << 30))
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_where_the_system_does_not_say_what_is_allocated_there_is_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "STATUS", Path("/nowhere"))
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with bounded_memory(1 << 20):
        assert resource.getrlimit(resource.RLIMIT_DATA) == before


@pytest.mark.slow
def test_one_long_text_is_not_beyond_the_memory_of_a_query() -> None:
    words = ["sql", "--lake", str(recorded_lake(FEW[0])), "--memory", "64M", "SELECT length(repeat('x', 3000000000))"]
    done = subprocess.run([sys.executable, "-m", "sharelens", *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Out of Memory" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_a_query_has_as_long_as_the_option_says(capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT count(*) FROM range(100000000000) a(n), range(1000) b(m) WHERE n % 7 = m"
    assert main(["sql", "--lake", str(recorded_lake(FEW[0])), "--timeout", "200ms", query]) == 1
    assert "longer than 0.2 s; narrow it, or raise --timeout" in capsys.readouterr().err
