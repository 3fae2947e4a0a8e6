"""Kernels that a package ships: loaded without numba, called with the types that they were compiled for, no others."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_model.columnar import kernels, shipped_kernels
from state_model.columnar.kernels import Kernel
from state_model.columnar.ordering import _ordered
from state_model.columnar.shipped_kernels import INDEX, Shipped, are_shipped, digest_of, name_of, types_of

NO_KERNELS = f"{kernels.SHIPPED} has no kernels; `make setup` compiles them"


class Pair(NamedTuple):
    """An argument of two arrays."""

    first: Any
    second: Any


class OtherPair(NamedTuple):
    """The same of another class."""

    first: Any
    second: Any


def arrays() -> st.SearchStrategy[np.ndarray]:
    shapes = st.sampled_from([(0,), (1,), (4,), (2, 3), (3, 1), (1, 3)])
    types = st.sampled_from(["<i8", ">i8", "<i4", "u1", "?", "<f8"])
    views: list[Callable[[np.ndarray], np.ndarray]] = [
        lambda array: array,
        lambda array: array[::2],
        lambda array: array.T,
        lambda array: np.asfortranarray(array),
        read_only,
        unaligned,
    ]
    return st.builds(
        lambda shape, dtype, view: view(np.zeros(shape, dtype)), shapes, types, st.sampled_from(views)
    )  # fmt: skip


def read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view


def unaligned(array: np.ndarray) -> np.ndarray:
    data = np.zeros(array.nbytes + 1, np.uint8)
    return data[1:].view(array.dtype).reshape(array.shape)


def arguments() -> st.SearchStrategy[Any]:
    numbers = st.one_of(st.integers(-(1 << 63), (1 << 63) - 1), st.booleans(), st.floats(allow_nan=False))
    scalars = st.sampled_from([np.int64(1), np.bool_(True), np.float64(1.0)])
    single = st.one_of(arrays(), numbers, scalars)
    return st.one_of(single, *(st.builds(kind, single, single) for kind in (Pair, OtherPair)), st.tuples(single))


def is_of_a_numba_type(value: Any) -> bool:
    try:
        numba.typeof(value)
    except (ValueError, numba.core.errors.NumbaError):
        return False
    return True


@given(arguments().filter(is_of_a_numba_type), arguments().filter(is_of_a_numba_type))
def test_arguments_have_the_same_types_where_numba_compiles_for_both(first: Any, second: Any) -> None:
    assert (types_of([first]) == types_of([second])) == (numba.typeof(first) == numba.typeof(second))


def test_numbers_beyond_64_bits_are_of_another_type() -> None:
    assert types_of([1 << 63]) == types_of([-(1 << 63) - 1]) != types_of([1])


@pytest.fixture(scope="module")
def shipped() -> Path:
    if not are_shipped(kernels.SHIPPED):
        pytest.skip(NO_KERNELS)
    return kernels.SHIPPED


def functions_of_order(folder: Path) -> Shipped:
    """What is shipped of the kernel that sorts."""
    return Shipped(folder, _ordered.interpreted)  # type: ignore[attr-defined]


COLUMNS = np.array([3, 1, 2, 1], np.int64), np.arange(4)


def test_shipped_code_answers_as_the_function_without_numba(shipped: Path) -> None:
    code = (
        "import sys, numpy as np",
        "from state_model.columnar.ordering import _ordered",
        "print(_ordered(np.array([3, 1, 2, 1]), np.arange(4)).tolist(), 'numba' in sys.modules)",
    )
    done = subprocess.run([sys.executable, "-c", "\n".join(code)], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n") == [f"{_ordered.interpreted(*COLUMNS).tolist()} False", ""]  # type: ignore[attr-defined]


def test_shipped_code_leaves_the_interpreter_to_other_threads(shipped: Path) -> None:
    values = np.random.default_rng(1).integers(0, 1 << 62, 2_000_000)
    function = functions_of_order(shipped).function_for([values, values])
    assert function is not None
    sorting = threading.Thread(target=function, args=(values, np.arange(len(values))))
    sorting.start()
    steps = 0
    while sorting.is_alive():
        steps += 1
    assert steps > 10


def test_other_types_are_compiled(shipped: Path) -> None:
    functions = functions_of_order(shipped)
    assert functions.function_for(COLUMNS) is not None
    assert functions.function_for([COLUMNS[0].astype(np.int32), COLUMNS[1]]) is None


def test_no_compiled_function_is_shipped_for_another_source(shipped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped_kernels, "digest_of", lambda _: "another")
    assert not functions_of_order(shipped)


def summed(values: np.ndarray) -> int:
    total = 0
    for value in values:
        total += value
    return total


@pytest.mark.parametrize("content", [None, "", "{", json.dumps({})])
def test_a_folder_without_kernels_has_none(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / INDEX).write_text(content, encoding="utf-8")
    assert not are_shipped(tmp_path)
    assert not Shipped(tmp_path, summed)


@pytest.mark.parametrize("library", [None, b"", b"\x7fELF of another machine"])
def test_a_library_that_this_python_cannot_load_counts_for_nothing(library: bytes | None, tmp_path: Path) -> None:
    entry = {"source": digest_of(summed), "functions": [[[[7, "=", 1, 1281]], "kernels_0", "summed_0"]]}
    (tmp_path / INDEX).write_text(json.dumps({name_of(summed): entry}), encoding="utf-8")
    if library is not None:
        suffix = shipped_kernels.EXTENSION_SUFFIXES[0]
        (tmp_path / f"kernels_0{suffix}").write_bytes(library)
    assert not are_shipped(tmp_path)
    assert not Shipped(tmp_path, summed)


def test_a_package_without_shipped_code_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "SHIPPED", tmp_path / "nothing")
    assert Kernel(summed)(np.arange(4)) == 6


def test_numba_disabled_interprets_what_is_shipped(shipped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernels.INTERPRETS, "1")
    assert not Kernel(_ordered.interpreted)._shipped  # type: ignore[attr-defined]
