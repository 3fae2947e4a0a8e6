"""One writer a lake."""

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from sharelens.lake import lock
from sharelens.lake.commit import create
from sharelens.lake.errors import LakeError, LakeLockedError
from sharelens.lake.lake import Lake
from tests.unit.sharelens.lake.test_commit import TABLE, added

HOLD = """
import sys, time
from sharelens.lake import lock
from sharelens.lake.lake import Lake
with lock.hold(Lake(sys.argv[1]), 5):
    print("held", flush=True)
    time.sleep(60)
"""


def holder(lake: Path) -> "subprocess.Popen[str]":
    """Another process that holds the lake."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(lake)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def take(lake: Path, timeout_s: float) -> None:
    """Takes the lake and lets it go."""
    with lock.hold(Lake(lake), timeout_s):
        pass


def fail(lake: Path, jvm: int) -> None:
    """A run that noted its JVM and failed."""
    with lock.hold(Lake(lake), 0) as lock_file:
        lock_file.note_jvm(jvm)
        raise ZeroDivisionError


@pytest.mark.slow
def test_a_second_writer_waits_then_says_who_holds_the_lake(tmp_path: Path) -> None:
    process = holder(tmp_path)
    try:
        begun = time.monotonic()
        with pytest.raises(LakeLockedError, match=f"held by process {process.pid} on .*--lock-timeout"):
            take(tmp_path, 0.3)
        assert time.monotonic() - begun >= 0.3
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_the_lake_is_free_when_its_holder_is_killed(tmp_path: Path) -> None:
    process = holder(tmp_path)
    process.kill()
    process.communicate()
    with lock.hold(Lake(tmp_path), 5):
        assert json.loads((tmp_path / ".lock").read_text(encoding="utf-8"))["pid"] == os.getpid()


@pytest.mark.slow
def test_a_waiting_writer_goes_on_as_soon_as_the_lake_is_free(tmp_path: Path) -> None:
    entered = threading.Event()

    def first() -> None:
        with lock.hold(Lake(tmp_path), 5):
            entered.set()
            time.sleep(0.3)

    thread = threading.Thread(target=first)
    thread.start()
    assert entered.wait(5)
    begun, freed = time.monotonic() - 0.01, []
    with lock.hold(Lake(tmp_path), 5):
        freed.append(time.monotonic())
    thread.join()
    assert freed[0] - begun >= 0.3


def test_a_writer_that_waits_for_a_file_that_is_replaced_waits_for_the_new_one(tmp_path: Path) -> None:
    refusals: list[str] = []

    def wait() -> None:
        try:
            take(tmp_path, 0.4)
        except LakeLockedError as error:
            refusals.append(str(error))

    waiting = threading.Thread(target=wait)
    with ExitStack() as newer:
        with lock.hold(Lake(tmp_path), 0):
            waiting.start()
            time.sleep(2 * lock.POLL_S)
            (tmp_path / ".lock").unlink()  # as where the folder was removed and made again
            newer.enter_context(lock.hold(Lake(tmp_path), 0))
        waiting.join()
    assert [text.endswith("raise --lock-timeout") for text in refusals] == [True]


@pytest.fixture
def java() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that looks like a JVM."""
    process = subprocess.Popen(["java", "-c", "read line"], executable="/bin/sh", stdin=subprocess.PIPE)
    command = Path(f"/proc/{process.pid}/cmdline")
    until = time.monotonic() + 10
    while not command.read_bytes() and time.monotonic() < until:  # arguments show a moment after a program began
        time.sleep(0.001)
    yield process
    process.kill()
    process.communicate()


def leave_behind(lake: Path, jvm: int, **changed: object) -> None:
    """What a killed driver leaves in the lock file."""
    with lock.hold(Lake(lake), 0) as writer_lock:
        writer_lock.note_jvm(jvm)
        noted = json.loads((lake / ".lock").read_bytes())
    (lake / ".lock").write_text(json.dumps(noted | changed), encoding="utf-8")


@pytest.mark.slow
def test_a_java_process_that_a_killed_run_left_behind_is_ended(tmp_path: Path, java: "subprocess.Popen[bytes]") -> None:
    leave_behind(tmp_path, java.pid)
    with lock.hold(Lake(tmp_path), 10):
        assert java.wait(10) == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize("changed", [{"host": "h"}, {"jvm_started": 0}, {"jvm_started": None}])
def test_a_java_process_that_may_be_another_is_waited_for(
    changed: dict[str, object], tmp_path: Path, java: "subprocess.Popen[bytes]"
) -> None:
    leave_behind(tmp_path, java.pid, **changed)
    with pytest.raises(LakeLockedError, match=f"Java process {java.pid} of a run that was killed"):
        take(tmp_path, 0.2)
    assert java.stdin is not None
    threading.Timer(0.3, java.stdin.close).start()  # ends what it reads, and so the process
    with lock.hold(Lake(tmp_path), 10):
        assert java.stdin.closed
        assert java.wait(10) == 1


def test_a_process_that_only_got_the_number_of_a_java_process_is_no_reason_to_wait(tmp_path: Path) -> None:
    leave_behind(tmp_path, os.getpid())
    with lock.hold(Lake(tmp_path), 0):
        pass


@pytest.mark.parametrize("content", ["", "{", "[]", '{"jvm": "x"}'])
def test_whatever_stands_in_the_lock_file_the_lake_can_be_taken(content: str, tmp_path: Path) -> None:
    (tmp_path / ".lock").write_text(content, encoding="utf-8")
    with lock.hold(Lake(tmp_path), 0):
        pass


def test_a_run_that_failed_leaves_no_java_process_to_wait_for(tmp_path: Path, java: "subprocess.Popen[bytes]") -> None:
    with pytest.raises(ZeroDivisionError):
        fail(tmp_path, java.pid)
    with lock.hold(Lake(tmp_path), 0):
        assert java.poll() is None


def test_a_lock_that_is_taken_again_shows_the_commits_of_other_writers(tmp_path: Path) -> None:
    lake, other = Lake(tmp_path), Lake(tmp_path)
    create(other, TABLE)
    with lock.hold(lake, 0):
        assert lake.version(TABLE.name) == 0
    added(other, 1, "a")
    with lock.hold(lake, 0):
        assert lake.version(TABLE.name) == 1


@pytest.mark.parametrize("is_replaced", [False, True])
def test_an_error_in_a_lake_that_was_removed_says_so(is_replaced: bool, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()

    def write() -> None:
        lake.rename(tmp_path / "away")
        if is_replaced:
            lake.mkdir()
        raise FileNotFoundError(lake / "gold" / "a.parquet")

    message = r"lake was removed or replaced by another process .*; `sharelens run` writes a new one from the logs"
    with pytest.raises(LakeError, match=message) as caught, lock.hold(Lake(lake), 0):
        write()
    assert isinstance(caught.value.__cause__, FileNotFoundError)


def test_other_errors_stay_as_they_are(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="a segment"), lock.hold(Lake(tmp_path), 0):
        raise FileNotFoundError("a segment")


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS])
def test_a_lake_that_this_user_cannot_write_is_refused(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "open", refuse)
    message = rf"can't be written \(.*\.lock: {os.strerror(code)}\); make the folder writable"
    with pytest.raises(LakeError, match=message):
        take(tmp_path, 0)


@pytest.mark.parametrize("target", ["precious.txt", "not there"])
def test_a_link_in_the_place_of_the_lock_is_refused_and_its_target_stays(target: str, tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("of somebody else", encoding="utf-8")
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / ".lock").symlink_to(tmp_path / target)
    with pytest.raises(LakeError, match=r"\.lock is a link, and a lock is a file of the lake's own; look who made it"):
        take(tmp_path / "lake", 0)
    assert (tmp_path / "precious.txt").read_text(encoding="utf-8") == "of somebody else"
    assert {path.name for path in tmp_path.iterdir()} == {"precious.txt", "lake"}
