"""Kernels are compiled ahead of time for the types that questions call them with."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from state_model.columnar.ordering import by_column
from state_model.columnar.shipped_kernels import INDEX, Shipped
from tools import ship_kernels

ROWS, ORDER = np.arange(6).reshape(3, 2), np.array([2, 0])
COMPILES = """
import json, sys
import numba, numpy as np
from state_model.columnar.shipped_kernels import INDEX, types_of
from tools.ship_kernels import compile_module
rows, order = np.arange(6).reshape(3, 2), np.array([2, 0])
typed = {types_of([rows, order]): (numba.typeof(rows), numba.typeof(order))}
index = compile_module("kernels_0", {"state_model.columnar.ordering.by_column": typed}, sys.argv[1])
open(f"{sys.argv[1]}/{INDEX}", "w").write(json.dumps(index))
"""


@pytest.mark.slow
def test_a_kernel_compiled_ahead_answers_as_its_function(tmp_path: Path) -> None:
    if not ship_kernels.has_compiler():
        pytest.skip(ship_kernels.NO_COMPILER)
    subprocess.run([sys.executable, "-c", COMPILES, str(tmp_path)], check=True)
    function = Shipped(tmp_path, by_column.interpreted).function_for([ROWS, ORDER])  # type: ignore[attr-defined]
    assert function is not None
    assert function(ROWS, ORDER).tolist() == [[4, 0], [5, 1]]


def test_without_a_compiler_nothing_is_shipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ship_kernels, "has_compiler", lambda: False)
    folder = tmp_path / "compiled_kernels"
    folder.mkdir()
    (folder / "kernels_0.of_before.so").touch()
    assert ship_kernels.main([str(folder)]) == 0
    assert capsys.readouterr().out == f"{ship_kernels.NO_COMPILER}\n"
    assert [path.name for path in folder.iterdir()] == [INDEX]
    assert json.loads((folder / INDEX).read_text()) == {}


def test_shares_take_about_the_same_time() -> None:
    names = [
        "state_model.columnar.fold.fold",
        "state_model.columnar.ordering.by_column",
        "state_model.audit.columnar.kernels.audit_kernel.audit_records",
        "state_model.columnar.ordering._ordered",
    ]
    shares = ship_kernels._shares(names, 2)
    assert sorted(name for share in shares for name in share) == sorted(names)
    assert [len({"fold", "audit_records"} & {name.rpartition(".")[2] for name in share}) for share in shares] == [1, 1]
