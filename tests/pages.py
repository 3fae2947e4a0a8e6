"""Code blocks of pages of documentation, and a shell that runs them as they are printed."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.once import made_once

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
WARM_PYTHON = ROOT / "tests" / "processes" / "warm_python.py"
WITHOUT_CHECKS = (
    *("sharelens.cli", "numba", "duckdb", "deltalake", "pyarrow.dataset", "sharelens.lake.scan", "jobs.run"),
    *("sharelens.tables.logs.tables", "sharelens.tables.lakes.tables", "sharelens.report.page"),
)
WARM_MODULES = (
    *WITHOUT_CHECKS,
    "great_expectations",  # no test of pages asks what a check sends: tests/unit/jobs/commands/test_check.py does
)
QUIET = {"GX_ANALYTICS_ENABLED": "false"}
"""What `jobs.quality.checkpoints` sets before it imports Great Expectations."""
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
SHELL = ("sh", "bash")
KEPT_JARS = Path(sys.prefix) / "share" / "sharelens" / "jars"
TIMEOUT_S = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A code block of a page: its commands, and what the page prints below each."""

    language: str
    text: str

    @property
    def commands(self) -> list[str]:
        """The lines behind `$`, or a script of the shell as a whole."""
        if self.language in SHELL:
            return [self.text]
        return [line[2:] for line in self.text.splitlines() if line.startswith("$ ")]

    @property
    def printed(self) -> list[list[str]]:
        """The lines below each command."""
        parts = re.split(r"^\$ .*\n", self.text, flags=re.MULTILINE)[1:]
        return [part.splitlines() for part in parts]


def blocks(page: Path) -> list[Block]:
    """The code blocks of a page in their order."""
    return [Block(language=name, text=text) for name, text in FENCE.findall(page.read_text(encoding="utf-8"))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """An environment with the command `sharelens`: folders of programs for PATH, and its Python."""

    programs: Sequence[Path]
    python: Path
    variables: Mapping[str, str]

    def run(self, script: str, folder: Path) -> subprocess.CompletedProcess[str]:
        """Runs a script in a folder; a command that fails ends it."""
        path = os.pathsep.join([str(folder / "bin"), *map(str, self.programs), os.environ["PATH"]])
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=folder,
            env={**_other_variables(), **self.variables, "HOME": str(folder), "PATH": path},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )


KINDS = ("clone", "wheel")


def installed(kind: str, place: Path) -> Installation:
    """A clone with its environment, or a wheel in an environment of its own below `place`."""
    if kind == "clone":
        python = Path(sys.executable)
        return Installation(programs=[python.parent], python=python, variables={"PYTHONPATH": str(ROOT)})
    python = install_wheel(place)
    return Installation(programs=[python.parent], python=python, variables={"SHARELENS_JARS_DIR": str(KEPT_JARS)})


@contextmanager
def warmed(bare: Installation, place: Path, modules: Sequence[str] = WARM_MODULES) -> Iterator[Installation]:
    """The installation with a command that runs in forks of one process that has imported what costs seconds."""
    socket = place / "socket"
    programs = place / "programs"
    programs.mkdir(parents=True)
    server = subprocess.Popen(
        [bare.python, WARM_PYTHON, socket, *modules],
        cwd=place,
        env={**_other_variables(), **bare.variables, **QUIET},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    try:
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
        shim = programs / "sharelens"
        command = bare.python.with_name("sharelens")
        shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -IS "{WARM_PYTHON}" "{socket}" + "{command}" "$@"\n')
        shim.chmod(0o700)
        yield replace(bare, programs=[programs, *bare.programs])
    finally:
        server.terminate()
        server.wait()
        if server.stdout is not None:
            server.stdout.close()


def _other_variables() -> dict[str, str]:
    """The environment variables that are neither ours nor Python's."""
    return {name: text for name, text in os.environ.items() if not name.startswith(("SHARELENS", "PYTHON"))}


def _build_wheel(folder: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)


def install_wheel(place: Path) -> Path:
    """The Python of a new environment with the wheel; its libraries are those of the environment of the tests."""
    (wheel,) = made_once("wheel", _build_wheel).glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place / "env")], check=True)
    python = place / "env" / "bin" / "python"
    uv = Path(sys.executable).with_name("uv")
    install = [str(uv), "pip", "install", "--quiet", "--offline", "--no-deps", "--python", str(python), str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    (site,) = (place / "env").glob("lib/python*/site-packages")
    (libraries,) = (path for path in Path(sys.executable).parents[1].glob("lib/python*/site-packages"))
    (site / "libraries.pth").write_text(f"{libraries}\n", encoding="utf-8")
    return python
