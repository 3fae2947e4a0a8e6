"""From nothing to the first answer: a fresh clone to the end of its demo, and a wheel in an environment of its own.

Homes are empty, so nothing that this machine has kept is used. The first clone fills the caches of its home with what
is downloaded, and its parts are measured one after the other. Three more clones share this home; their median counts.
"""

import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.measure import children_s
from sharelens.demo_data import unpack_scenario
from state_model.errors import SharelensError

ROOT = Path(__file__).parents[1]
REPEATS = 3
PARTS = {
    "the command and its libraries": ".venv/.stamp-command",
    "Spark": ".venv/.stamp-spark",
    "Delta's jars": ".venv/.stamp-jars",
    "kernels": "state_model/compiled_kernels/index.json",
    "the demo itself": "demo",
}
"""What the demo of a fresh clone is made of, and the target of make that makes it."""
CACHES = (
    "UV_CACHE_DIR",
    "PIP_CACHE_DIR",
    "XDG_CACHE_HOME",
    "NUMBA_CACHE_DIR",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "PYTHONDONTWRITEBYTECODE",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Seconds by the clock, and of the processor with all processes that were waited for."""

    clock_s: float
    processor_s: float


def lines(folder: Path) -> Iterator[tuple[str, str, str]]:
    """(name, value, note) of each figure."""
    home = folder / "home"
    home.mkdir()
    clone = _clone(folder / "clone-0")
    parts = {name: _spent(["make", "--silent", target], clone, home).clock_s for name, target in PARTS.items()}
    note = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in parts.items())
    yield "fresh clone to the demo's end, with downloads, part by part", f"{sum(parts.values()):.0f} s", note
    demos = []
    for number in range(1, REPEATS + 1):
        shutil.rmtree(clone)  # a clone with its environment takes 1.5 GB
        clone = _clone(folder / f"clone-{number}")
        demos.append(_spent(["make", "--silent", "demo"], clone, home).clock_s)
    yield "fresh clone to the demo's end, downloads kept", f"{statistics.median(demos):.1f} s", f"median of {REPEATS}"
    yield from _of_the_wheel(folder, clone, home)


def _clone(place: Path) -> Path:
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(place)], check=True)
    return place


def _of_the_wheel(folder: Path, clone: Path, home: Path) -> Iterator[tuple[str, str, str]]:
    question = ["overview", "--log-dir", str(unpack_scenario("dlq", folder) / "logs")]
    built = _spent(["make", "--silent", "wheel"], clone, home)
    yield "make wheel in a clone whose demo ran", f"{built.clock_s:.0f} s", "with the tools for development"
    (wheel,) = (clone / "dist").glob("*.whl")
    uv = clone / ".venv" / "bin" / "uv"
    first: list[Spent] = []
    second: list[Spent] = []
    installed: list[Spent] = []
    for number in range(REPEATS):
        environment, empty = folder / f"environment-{number}", folder / f"home-{number}"
        empty.mkdir()
        subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, environment], check=True)
        install = [str(uv), "pip", "install", "--quiet", "--python", str(environment / "bin" / "python"), str(wheel)]
        installed.append(_spent([*install, "--constraint", str(clone / "constraints.txt")], folder, home))
        command = [str(environment / "bin" / "sharelens"), *question]
        first.append(_spent(command, folder, empty))
        second.append(_spent(command, folder, empty))
    yield "wheel: installed without downloads", f"{statistics.median(s.clock_s for s in installed):.1f} s", ""
    for name, spent in (("first", first), ("second", second)):
        processor_s = statistics.median(each.processor_s for each in spent)
        clock_s = statistics.median(each.clock_s for each in spent)
        note = (
            f"{clock_s:.1f} s by the clock; bytecode is written" if spent is first else f"{clock_s:.1f} s by the clock"
        )
        yield f"wheel: {name} overview of a small log", f"{processor_s:.1f} s of CPU", note


def _spent(command: Sequence[str], folder: Path, home: Path) -> Spent:
    """What a command takes; raises SharelensError with its last words when it fails."""
    before, begun = children_s(), time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=_variables(home), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SharelensError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    return Spent(clock_s=time.perf_counter() - begun, processor_s=children_s() - before)


def _variables(home: Path) -> Mapping[str, str]:
    """The variables that are there, but for a home and caches of this machine, and for this environment's programs."""
    path = [part for part in os.environ["PATH"].split(os.pathsep) if part != str(Path(sys.executable).parent)]
    variables = {name: text for name, text in os.environ.items() if name not in CACHES}
    return {**variables, "HOME": str(home), "PATH": os.pathsep.join(path)}
