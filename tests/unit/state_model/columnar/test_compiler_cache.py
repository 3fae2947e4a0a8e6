"""Code that numba compiles is kept where it can be; where it can't, it serves this process, and a line says so."""

import errno
from pathlib import Path

import numba
import numpy as np
import pytest

from state_model.columnar import kernels
from state_model.columnar.kernels import Kernel


def summed(values: np.ndarray) -> int:
    total = 0
    for value in values:
        total += value
    return total


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
    kernel = Kernel(summed)
    kernel._compiled._cache._numba_cache = cache()
    assert [kernel(np.arange(5)), kernel(np.arange(5, dtype=np.int32))] == [10, 10]
    assert reasons == [reason]
