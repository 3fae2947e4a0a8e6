"""Commands that write a lake, killed at any moment again and again: readers see a whole cut, and the next command ends
what was begun. Kills at named points, and what is left behind each, are in tests/unit/jobs.
"""

import shutil
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

from sharelens.cli import main
from sharelens.lake.errors import LakeError
from sharelens.lake.scan import open_lake
from tests.datasets import dataset
from tests.lakes import content, differences
from tests.old_lakes import old_lake
from tests.processes import killed_commands
from tests.processes.in_process import ANY_SIZE, recorded_lake
from tests.processes.interrupted_run import lake_and_logs
from tests.processes.killed_commands import rounds

KILLS, OF_ONE_LAKE = 200, 4
"""Kills of each kind of work, a thousand in all, and kills of one lake before a command goes on to its end."""
ENVIRONMENT = {"SHARELENS_IN_PROCESS_BYTES": str(ANY_SIZE), "SHARELENS_LOCK_TIMEOUT_S": "60"}
UPGRADE = ("upgrade", "--execute")
FOR_EVER_S = 5.0
"""How long a command that runs again and again may go on."""
Tables = dict[str, pa.Table]


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is killed.

    `before`: the lake that it begins with; None: there is none. `killed`, `last`: the words of the command that is
    killed and of the one that goes on to its end. `is_older`: readers refuse the lake until it is done.
    """

    before: Path | None
    killed: Sequence[str]
    last: Sequence[str]
    is_older: bool = False
    contents: list[Tables] = field(default_factory=list)
    """What a reader may see: first before the work, then behind it."""

    def begin(self, lake: Path) -> None:
        """Makes the lake as it is before the work."""
        if self.before is not None:
            shutil.copytree(self.before, lake)

    def finish(self, lake: Path) -> float:
        """Goes on to the end; the seconds that it took."""
        began = time.monotonic()
        assert main([*self.last, "--lake", str(lake)]) == 0
        return time.monotonic() - began

    def readers_see_a_cut(self, lake: Path) -> None:
        """A reader sees the lake before the work, or behind it, or an error that there is none to read yet."""
        try:
            open_lake(lake)
        except LakeError:
            assert self.is_older or self.before is None
            return
        tables = content(lake)
        assert any(not differences(tables, possible) for possible in self.contents)


def first_run(_: Path) -> Work:
    logs = str(dataset("streams") / "logs")
    words = ["run", "--log-dir", logs]
    return Work(before=None, killed=words, last=words)


def later_run(folder: Path) -> Work:
    before, logs = lake_and_logs(folder)
    words = ["run", "--log-dir", str(logs)]
    return Work(before=before, killed=words, last=words)


def run_again_and_again(folder: Path) -> Work:
    before, logs = lake_and_logs(folder)
    words = ["run", "--log-dir", str(logs)]
    return Work(before=before, killed=[*words, "--every", "0.5s", "--maintain-every", "1s"], last=words)


def upkeep(_: Path) -> Work:
    words = ["maintain", "--execute", "--window", "1ms"]
    return Work(before=recorded_lake("streams"), killed=words, last=words)


def upgrade(folder: Path) -> Work:
    return Work(before=old_lake("first-1", folder / "old"), killed=UPGRADE, last=UPGRADE, is_older=True)


@pytest.mark.soak
@pytest.mark.parametrize("make", [first_run, later_run, run_again_and_again, upkeep, upgrade])
def test_the_next_command_ends_what_killed_ones_began(
    make: Callable[[Path], Work], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in ENVIRONMENT.items():
        monkeypatch.setenv(name, text)
    work = make(tmp_path)
    undisturbed = tmp_path / "undisturbed"
    work.begin(undisturbed)
    if work.before is not None and not work.is_older:
        work.contents.append(content(undisturbed))
    longest_s = work.finish(undisturbed)
    work.contents.append(content(undisturbed))
    if "--every" in work.killed:
        longest_s = FOR_EVER_S
    kills = 0
    for chosen in rounds(10 * KILLS):
        lake = tmp_path / "lake"
        work.begin(lake)
        for _ in range(OF_ONE_LAKE):
            process = killed_commands.begun([*work.killed, "--lake", str(lake)], ENVIRONMENT)
            process.join(chosen.uniform(0, longest_s))
            code = killed_commands.ended(process)
            if lake.is_dir():
                work.readers_see_a_cut(lake)
            if code == 0:
                break
            assert code == -signal.SIGKILL
            kills += 1
        work.finish(lake)
        assert not differences(content(lake), work.contents[-1])
        shutil.rmtree(lake)
        if kills >= KILLS:
            break
    assert kills >= KILLS
