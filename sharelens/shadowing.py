"""Packages of other projects that hide ours: our top-level packages have names that others use too (`jobs`, `lake`)."""

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

PACKAGES = (
    "state_model",
    "object_stores",
    "kafka_log",
    "kafka_live",
    "pyspark_kafka_log",
    "evidence",
    "measures",
    "lake",
    "jobs",
    "broker",
    "workloads",
)
HOME = Path(__file__).resolve().parents[1]
"""The folder that holds our packages, beside each other."""


class ShadowedPackageError(ImportError):
    """Raised when Python would import another project's package in the place of one of ours."""


def check_packages(packages: Sequence[str] = PACKAGES) -> None:
    """Makes sure that our packages come from the folder that `sharelens` comes from; one that is absent is no fault.

    Raises:
        ShadowedPackageError: another package comes first; its message is one line that says which, where, what to do.
        SystemExit: the same for the command, which then prints the line and ends with 1.
    """
    for name in packages:
        spec = find_spec(name)
        folder = None if spec is None else _folder_of(spec)
        if folder is not None and folder != HOME:
            message = (
                f"the package {name} comes from {folder}, not from sharelens in {HOME}: rename that one, "
                f"start elsewhere, or put {HOME} first on PYTHONPATH"
            )
            if _is_command():
                raise SystemExit(f"sharelens: {message}")
            raise ShadowedPackageError(message, name=name)


def _folder_of(spec: ModuleSpec) -> Path | None:
    """The folder that holds a package or module."""
    places = list(spec.submodule_search_locations or ())
    if not places and spec.origin is not None:
        places = [spec.origin]
    return Path(os.path.realpath(places[0])).parent if places else None


def _is_command() -> bool:
    """Whether the process is `sharelens` or `python -m sharelens`; for the latter Python has no better name yet."""
    return sys.argv[:1] == ["-m"] or Path(sys.argv[0] if sys.argv else "").stem == "sharelens"
