"""One process compiles a kernel; others see that, wait for it, and don't wait for one that is gone."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from state_model.columnar import compiler_lock
from state_model.columnar.compiler_lock import CompilerLock

HOLDS = """
import sys
from pathlib import Path
from state_model.columnar.compiler_lock import CompilerLock
lock = CompilerLock(Path(sys.argv[1]))
lock.take()
print("taken", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kernel.lock"


@pytest.fixture
def holder(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has the lock until its stdin closes."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "taken\n"
        yield process


def test_a_free_lock_is_taken_and_given_back(path: Path) -> None:
    lock, second = CompilerLock(path), CompilerLock(path)
    assert not lock.is_taken()
    assert not lock.take()
    assert lock.is_taken()
    assert second.is_taken()
    lock.release()
    lock.release()
    assert not second.is_taken()


def test_a_look_gives_nothing_back_that_another_thread_took_meanwhile(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, second = CompilerLock(path), CompilerLock(path)

    def another_thread_is_first(same_lock: CompilerLock) -> bool:
        assert takes(same_lock)
        return False

    takes = CompilerLock._try
    with monkeypatch.context() as patched:
        patched.setattr(CompilerLock, "_try", another_thread_is_first)
        assert lock.is_taken()
    assert second.is_taken()
    lock.release()
    assert not second.is_taken()


@pytest.mark.slow
def test_the_lock_of_a_process_goes_with_it(holder: subprocess.Popen[str], path: Path) -> None:
    lock = CompilerLock(path)
    assert lock.is_taken()
    holder.kill()
    holder.wait()
    assert not lock.take()
    lock.release()


@pytest.mark.slow
@pytest.mark.usefixtures("holder")
def test_a_process_that_never_ends_is_not_waited_for_forever(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler_lock, "WAIT_S", 0.05)
    assert CompilerLock(path).take()


@pytest.mark.parametrize("path", [None, Path("/proc/no-such-folder/kernel.lock")])
def test_where_no_lock_can_be_written_nobody_waits(path: Path | None) -> None:
    lock = CompilerLock(path)
    assert not lock.take()
    assert not lock.is_taken()
    lock.release()
