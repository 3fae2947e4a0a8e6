"""Jars that tests and benchmarks need beside Spark's own: fetched once from the public Maven repository, and kept."""

import contextlib
import fcntl
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from sharelens.spark.jars import reason, resolve
from sharelens.spark.kept_files import keep_folder
from state_model.errors import SharelensError


class ToolUnavailableError(SharelensError):
    """Raised when jars are not there and could not be fetched."""


def kept_folder(name: str) -> Path:
    """Where jars are kept under a name."""
    return keep_folder() / name


def kept_jars(name: str, packages: Sequence[tuple[str, Sequence[str]]], jars: Sequence[str]) -> Path:
    """The folder with these jars; when one is missing, all that the packages resolve to are fetched first.

    packages: coordinates as Spark's resolver takes them, several joined by commas, and the groups and artifacts to
        leave out of what they depend on.
    jars: as that resolver names them, GROUP_ARTIFACT-VERSION.jar.

    Raises:
        ToolUnavailableError: without them and without a way to get them; the message is one line.
    """
    folder = kept_folder(name)
    if missing_in(folder, jars):
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(folder):
            if missing_in(folder, jars):
                _fetch(folder, packages, jars)
    return folder


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lets one process at a time fetch into a folder; the others wait."""
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(folder: Path, packages: Sequence[tuple[str, Sequence[str]]], jars: Sequence[str]) -> None:
    """Resolves the packages beside the folder, and moves the jars there when all have come: others see all or none."""
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}-", dir=folder.parent) as scratch:
        report = [resolve(package, Path(scratch), excluded) for package, excluded in packages]
        fetched = Path(scratch) / "jars"
        missing = missing_in(fetched, jars)
        if missing:
            raise ToolUnavailableError(f"{', '.join(missing)} could not be fetched: {reason(''.join(report))}")
        shutil.rmtree(folder, ignore_errors=True)
        fetched.rename(folder)


def missing_in(folder: Path, jars: Sequence[str]) -> list[str]:
    """The jars that a folder lacks."""
    return [jar for jar in jars if not (folder / jar).is_file()]
