"""Running a command as a user would, with its time and the memory of its processes."""

import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

SAMPLE_S = 0.1
REPEATS = 3
COMMAND = Path(sys.executable).parent / "sharelens"
ROLES = ("driver", "worker", "jvm")


TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A finished command: wall clock in seconds, standard output, and the highest memory of one process by role.

    `processor_s`: for each sample the seconds from the start on and the processor time of all its processes until then.
    """

    seconds: float
    output: str
    peak_bytes: dict[str, int]
    processor_s: list[tuple[float, float]]

    @property
    def summary(self) -> dict[str, Any]:
        """The JSON line that a job prints."""
        return dict(json.loads(self.output.splitlines()[-1]))

    def last_processor_s(self, seconds: float) -> float:
        """Processor time of all processes in the last `seconds` of the command."""
        before = [spent for at, spent in self.processor_s if at <= self.seconds - seconds]
        return self.processor_s[-1][1] - (before[-1] if before else 0.0)


def sharelens(*arguments: str, variables: Mapping[str, str] | None = None) -> Measured:
    """Runs the installed command; raises RuntimeError with its last words when it fails."""
    return measured([str(COMMAND), *arguments], variables)


def measured(command: Sequence[str], variables: Mapping[str, str] | None = None) -> Measured:
    """Runs a command to its end, with these environment variables beside those that are there."""
    environ = {**os.environ, **(variables or {})}
    peaks, spent = dict.fromkeys(ROLES, 0), list[tuple[float, float]]()
    ended = threading.Event()
    begun = time.perf_counter()
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        sampler = threading.Thread(target=_sample, args=(process.pid, peaks, spent, ended), daemon=True)
        sampler.start()
        output, problems = process.communicate()
        seconds = time.perf_counter() - begun
        ended.set()
        sampler.join()
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}: {problems.strip()[-500:]}")
    return Measured(seconds=seconds, output=output, peak_bytes=peaks, processor_s=spent or [(seconds, 0.0)])


def children_s() -> float:
    """User and system seconds so far of all processes that this one has started and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def processor_s_of(pid: int) -> float:
    """User and system seconds of a running process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


def _sample(root: int, peaks: dict[str, int], spent: list[tuple[float, float]], ended: threading.Event) -> None:
    ticks: dict[int, int] = {}
    begun = time.perf_counter()
    while not ended.wait(SAMPLE_S):
        for pid, name, used in _tree(root):
            role = "driver" if pid == root else "jvm" if "java" in name else "worker"
            peaks[role] = max(peaks[role], _peak_bytes(pid))
            ticks[pid] = used  # a process that has ended stays with its last sample
        spent.append((time.perf_counter() - begun, TICK_S * sum(ticks.values())))


def _tree(root: int) -> list[tuple[int, str, int]]:
    """(pid, command, processor time in ticks) of a process and all below it."""
    children: dict[int, list[tuple[int, str, int]]] = {}
    processes: list[tuple[int, str, int]] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                head, _, tail = (folder / "stat").read_text().rpartition(")")
            except OSError:
                continue
            fields = tail.split()
            process = (int(folder.name), head.partition("(")[2], int(fields[11]) + int(fields[12]))
            children.setdefault(int(fields[1]), []).append(process)
            processes += [process] if process[0] == root else []
    for pid, *_ in processes:
        processes += children.get(pid, [])
    return processes


def _peak_bytes(pid: int) -> int:
    """The most memory that a process has had so far; 0 when it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration, ValueError):
        return 0


def best_inside(module: ModuleType, name: str, work: Callable[[], object]) -> float:
    """Least seconds that `work` spends in one function of a module, over the repeats."""
    plain = getattr(module, name)
    spent = 0.0

    def timed(*arguments: object) -> object:
        nonlocal spent
        begun = time.perf_counter()
        result = plain(*arguments)
        spent += time.perf_counter() - begun
        return result

    seconds = []
    setattr(module, name, timed)
    try:
        for _ in range(REPEATS):
            spent = 0.0
            work()
            seconds.append(spent)
    finally:
        setattr(module, name, plain)
    return min(seconds)


def best(work: Callable[[], object]) -> float:
    """Least seconds that `work` takes, over the repeats."""
    times = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return min(times)
