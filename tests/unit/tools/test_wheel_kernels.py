"""The wheel takes compiled kernels along, if there are any."""

from pathlib import Path
from typing import Any

import pytest

from tools.wheel_kernels import KERNELS, NUMBA, ShippedKernels


def built(root: Path, version: str = "standard") -> dict[str, Any]:
    data: dict[str, Any] = {"force_include": {}, "pure_python": True, "dependencies": []}
    ShippedKernels(str(root), {}, None, None, "", "wheel").initialize(version, data)  # type: ignore[arg-type]
    return data


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / KERNELS).mkdir(parents=True)
    (tmp_path / KERNELS / NUMBA).write_text("0.68.1\n", encoding="ascii")
    return tmp_path


def test_a_wheel_with_kernels_is_for_one_python_and_one_numba(root: Path) -> None:
    data = built(root)
    assert data["force_include"] == {str(root / KERNELS): str(KERNELS)}
    assert (data["pure_python"], data["dependencies"]) == (False, ["numba==0.68.1"])
    assert data["tag"].startswith("cp3")


def test_without_kernels_and_in_a_clone_nothing_changes(root: Path, tmp_path: Path) -> None:
    assert built(root, "editable")["pure_python"]
    (root / KERNELS / NUMBA).unlink()
    assert built(tmp_path) == {"force_include": {}, "pure_python": True, "dependencies": []}
