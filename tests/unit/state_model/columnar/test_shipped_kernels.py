"""Kernels that a package ships: code for a generic processor is loaded, whatever numba keeps on this machine."""

import errno
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np
import pytest

from state_model.columnar import kernels
from state_model.columnar.kernels import Kernel

SOURCE = """
def summed(values):
    total = 0
    for value in values:
        total += value
    return total
"""


def module_of(path: Path, source: str = SOURCE) -> ModuleType:
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("shipped_example", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compiled(function: Any, monkeypatch: pytest.MonkeyPatch, folder: Path, *, ships: bool = False) -> Any:
    """The compiled function after a call, with its counts of hits and misses; numba itself keeps nothing."""
    monkeypatch.setattr(kernels, "SHIPPED", folder)
    monkeypatch.setattr(Kernel, "ships", ships)
    kernel = Kernel(function)
    kernel._compiled._cache._numba_cache = numba.core.caching.NullCache()
    assert kernel(np.arange(5)) == 10
    return kernel._compiled


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the code of the example."""
    folder = tmp_path / "compiled_kernels"
    folder.mkdir()
    module = module_of(tmp_path / "shipped_example.py")
    assert compiled(module.summed, monkeypatch, folder, ships=True).stats.cache_misses.total() == 1
    assert len(list(folder.iterdir())) == 2
    return folder


def test_shipped_code_is_not_compiled_again(shipped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = module_of(tmp_path / "shipped_example.py")
    stats = compiled(module.summed, monkeypatch, shipped).stats
    assert (stats.cache_hits.total(), stats.cache_misses.total()) == (1, 0)


@pytest.mark.parametrize("other", ["source", "numba", "machine"])
def test_code_of_another_source_numba_or_machine_does_not_count(
    other: str, shipped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = module_of(tmp_path / "shipped_example.py", SOURCE + ("\n# changed" if other == "source" else ""))
    if other == "numba":
        monkeypatch.setattr(numba, "__version__", "0.0.1")
    if other == "machine":
        monkeypatch.setattr("platform.machine", lambda: "another")
    stats = compiled(module.summed, monkeypatch, shipped).stats
    assert (stats.cache_hits.total(), stats.cache_misses.total()) == (0, 1)


class FullDisk:
    """numba's cache on a disk without room."""

    cache_path = "/cache"

    def load_overload(self, *_: object) -> None:
        """Has nothing."""

    def save_overload(self, *_: object) -> None:
        """Fails."""
        raise OSError(errno.ENOSPC, "No space left on device")


class Unwritable(FullDisk):
    """numba's cache in a folder that somebody else owns."""

    def save_overload(self, *_: object) -> None:
        """Fails."""
        raise PermissionError(errno.EACCES, "Permission denied")


@pytest.mark.parametrize(
    ("cache", "reason"),
    [
        (numba.core.caching.NullCache, "no folder for them is writable"),
        (FullDisk, "/cache: No space left on device"),
        (Unwritable, "/cache: Permission denied"),
    ],
)
def test_code_that_cannot_be_kept_computes_and_is_said_once(
    cache: type, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reasons: list[str] = []
    monkeypatch.setattr(kernels, "when_unsaved", reasons.append)
    monkeypatch.setattr(kernels, "SHIPPED", tmp_path / "nothing")
    kernel = Kernel(module_of(tmp_path / "shipped_example.py").summed)
    kernel._compiled._cache._numba_cache = cache()
    assert [kernel(np.arange(5)), kernel(np.arange(5, dtype=np.int32))] == [10, 10]
    assert reasons == [reason]


def test_shipped_code_needs_no_place_of_its_own(shipped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reasons: list[str] = []
    monkeypatch.setattr(kernels, "when_unsaved", reasons.append)
    compiled(module_of(tmp_path / "shipped_example.py").summed, monkeypatch, shipped)
    assert reasons == []


def test_a_package_without_shipped_code_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = module_of(tmp_path / "shipped_example.py")
    monkeypatch.setattr(kernels, "SHIPPED", tmp_path / "nothing")
    assert Kernel(module.summed)(np.arange(4)) == 6
