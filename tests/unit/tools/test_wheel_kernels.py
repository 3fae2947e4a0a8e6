"""The wheel takes compiled kernels along, if there are any."""

from pathlib import Path
from typing import Any

import pytest

from tools.wheel_kernels import INDEX, KERNELS, ShippedKernels


def built(root: Path, version: str = "standard") -> dict[str, Any]:
    data: dict[str, Any] = {"force_include": {}, "pure_python": True, "dependencies": []}
    ShippedKernels(str(root), {}, None, None, "", "wheel").initialize(version, data)  # type: ignore[arg-type]
    return data


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / KERNELS).mkdir(parents=True)
    (tmp_path / KERNELS / INDEX).write_text('{"a.kernel": {}}', encoding="utf-8")
    return tmp_path


def test_a_wheel_with_kernels_is_for_one_python(root: Path) -> None:
    data = built(root)
    assert data["force_include"] == {str(root / KERNELS): str(KERNELS)}
    assert (data["pure_python"], data["dependencies"]) == (False, [])
    assert data["tag"].startswith("cp3")


def test_without_kernels_and_in_a_clone_nothing_changes(root: Path, tmp_path: Path) -> None:
    assert built(root, "editable")["pure_python"]
    (root / KERNELS / INDEX).write_text("{}", encoding="utf-8")
    without = {"force_include": {}, "pure_python": True, "dependencies": []}
    assert built(tmp_path) == without
    (root / KERNELS / INDEX).unlink()
    assert built(tmp_path) == without
