"""Copies of a tree: one that records which tests run mutated statements, and one in which mutants are tested."""

import os
import shutil
import signal
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tools.mutants.mutations import Mutant

MARKS = "not spark and not broker and not airflow and not soak and not components"
LIMIT_SECONDS = 120
"""A mutant whose tests take longer counts as survived."""
PYTEST = ("-m", "pytest", "-q", "-x", "-n0", "-m", MARKS, *("-p", "no:cacheprovider", "-p", "no:randomly"))
LEFT_OUT = shutil.ignore_patterns(".git", ".venv*", "build", "dist")


def copy(tree: Path, target: Path) -> Path:
    """A copy with the times of its files, so that compiled kernels stay valid, and the environment of the tree."""
    shutil.copytree(tree, target, symlinks=True, ignore=LEFT_OUT)
    (target / ".venv").symlink_to((tree / ".venv").resolve())
    return target


def record(tree: Path, mutants: Sequence[Mutant], records: Path) -> None:
    """Runs every quick test of a copy of the tree, which is changed; fills the folder of records."""
    for mutant in mutants:
        _replace(tree / mutant.path, mutant.before, mutant.recorded)
    command = [each for each in PYTEST if each != "-x"]
    with (records / "log").open("w") as log:
        arguments = [*command, "-p", "mutant_recorder", "--ignore", "tests/unit/test_tidy.py"]
        subprocess.run([_python(tree), *arguments], cwd=tree, env=_environment(tree, records), stdout=log, check=False)


def covering(records: Path, number: int) -> list[str]:
    """Tests that run the statement of a mutant, the shortest first.

    What a fixture runs counts for all tests of its file: fixtures are shared. What was made once counts for those that
    use it, and whatever was made from it.
    """
    seconds: dict[str, float] = defaultdict(float)
    for line in _lines(records / "seconds"):
        test, _, duration = line.rpartition("\t")
        seconds[test] += float(duration)
    users = defaultdict(set)
    for line in _lines(records / "uses"):
        user, _, name = line.rpartition("\t")
        users[f"once {name}"].add(user)
    contexts, tests = list(_lines(records / str(number))), set()
    visited = set(contexts)
    for context in contexts:
        fresh = users.get(context, set()) - visited
        visited |= fresh
        contexts += fresh
        test, _, phase = context.rpartition(" ")
        file = test.partition("::")[0]
        tests |= {each for each in seconds if each.startswith(f"{file}::")} if phase == "(setup)" else {test}
    return sorted(tests & seconds.keys(), key=lambda test: seconds[test])


def outcome(tree: Path, mutant: Mutant, tests: Iterable[str], folder: Path) -> str:
    """What the tests make of a mutant in a copy of the tree: died, survived or timed out."""
    listed = folder / "tests"
    listed.write_text("".join(f"{test}\n" for test in tests), encoding="utf-8")
    with _changed(tree / mutant.path, mutant):
        process = subprocess.Popen(
            [_python(tree), *PYTEST, f"@{listed}"],
            cwd=tree, env=_environment(tree, None), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        try:
            code = process.wait(LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return "timed out"
    return "survived" if code == 0 else "died"


@contextmanager
def _changed(path: Path, mutant: Mutant) -> Iterator[None]:
    """The file with the mutant in it, and as it was, to its times, thereafter."""
    status, text = path.stat(), path.read_bytes()
    _replace(path, mutant.before, mutant.after)
    try:
        yield
    finally:
        path.write_bytes(text)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def _replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{path}: the function doesn't stand there once"
    path.write_text(text.replace(old, new), encoding="utf-8")


def _environment(tree: Path, records: Path | None) -> dict[str, str]:
    plugins = str(Path(__file__).parent)
    environment = os.environ | {"PYTHONPATH": f"{tree}{os.pathsep}{plugins}", "SHARELENS_SAME_EXAMPLES": "1"}
    return environment if records is None else environment | {"MUTANT_RECORDS": str(records)}


def _python(tree: Path) -> str:
    return str(tree / ".venv" / "bin" / "python")


def _lines(path: Path) -> Iterator[str]:
    if path.is_file():
        yield from path.read_text(encoding="utf-8").splitlines()
