"""Compiles the kernels ahead of time into the package: python -m tools.ship_kernels [FOLDER].

A checkout uses them as an installed wheel does, and neither needs numba for them. The questions about the demo's logs
are asked with interpreted kernels first, which tells what types each one is called with: no list is kept. Then as many
processes compile as there are cores, each one an extension module (`numba.pycc`). The processor is set before numba is
imported, so they are processes of their own.
"""

import importlib
import json
import os
import shutil
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from sharelens.cli.compiling import HELPS
from sharelens.cli.kernel_compiler import call_all
from state_model.columnar import kernels
from state_model.columnar.kernels import Kernel
from state_model.columnar.shipped_kernels import INDEX, ArgumentTypes, digest_of, name_of, types_of

GENERIC = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", HELPS: "1"}
NO_COMPILER = "no compiler for C with the headers of Python (Debian: gcc, libpython3-dev): kernels compile when called"

Calls = Mapping[str, Mapping[ArgumentTypes, tuple[Any, ...]]]
"""By the name of a kernel: the types of its calls as `types_of` gives them, and as numba names them."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Compiles all kernels that questions use; the folder is replaced when all of them are there."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    folder = Path(words[0]) if words else kernels.SHIPPED
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sharelens-kernels-") as scratch:
        compiled = Path(scratch) / "compiled"
        compiled.mkdir()
        if has_compiler():
            print("compiling kernels, once ...", flush=True)
            index = compile_into(compiled, scratch)
        else:
            print(NO_COMPILER)
            index = {}
        (compiled / INDEX).write_text(json.dumps(index), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(compiled, folder)
    if index:
        print(f"kernels are compiled ({time.monotonic() - started:.0f} s, once)")
    return 0


def has_compiler() -> bool:
    """Whether extension modules can be compiled here."""
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    return shutil.which(compiler) is not None and (Path(sysconfig.get_path("include")) / "Python.h").is_file()


def compile_into(folder: Path, scratch: str) -> dict[str, Any]:
    """Compiles the kernels into extension modules of a folder, one for each core; what INDEX says about them."""
    os.environ |= GENERIC | {"NUMBA_CACHE_DIR": scratch}
    cores = os.cpu_count() or 1
    with ProcessPoolExecutor(cores, mp_context=get_context("spawn")) as pool:
        calls = pool.submit(recorded_calls).result()
        names = [f"kernels_{number}" for number in range(cores)]
        shares = [{name: calls[name] for name in share} for share in _shares(sorted(calls), cores)]
        parts = list(pool.map(compile_module, names, shares, [str(folder)] * cores))
    return {name: entry for part in parts for name, entry in part.items()}


def recorded_calls() -> Calls:
    """The types with which questions call kernels; raises RuntimeError where a question fails."""
    import numba  # after GENERIC is set

    calls: dict[str, dict[ArgumentTypes, tuple[Any, ...]]] = {}
    thread = threading.local()

    def call(kernel: Any, *arguments: Any) -> Any:
        is_inner, thread.is_inner = getattr(thread, "is_inner", False), True
        if not is_inner:  # kernels that others call lie in their code
            typed = tuple(map(numba.typeof, arguments))
            calls.setdefault(name_of(kernel.interpreted), {})[types_of(arguments)] = typed
        try:
            with np.errstate(over="ignore"):  # machine code wraps around
                return kernel.interpreted(*arguments)
        finally:
            thread.is_inner = is_inner

    Kernel.__call__ = call  # type: ignore[assignment, method-assign]
    Kernel.is_numba_loaded = True  # so that short inputs count, too
    if call_all() != 0:
        raise RuntimeError("a question about the demo's logs failed")
    return calls


def _shares(names: Sequence[str], count: int) -> list[list[str]]:
    """The kernels in shares that take about the same time to compile, by the size of their code."""
    shares: list[list[str]] = [[] for _ in range(count)]
    sizes = {name: _size(_kernel(name), set()) for name in names}
    for name in sorted(names, key=lambda name: -sizes[name]):
        min(shares, key=lambda share: sum(sizes[each] for each in share)).append(name)
    return shares


def _size(kernel: Any, counted: set[int]) -> int:
    """The bytes of bytecode of a kernel and of those that it calls."""
    if not isinstance(kernel, Kernel) or id(kernel) in counted:
        return 0
    counted.add(id(kernel))
    code, names = kernel.interpreted.__code__, kernel.interpreted.__globals__
    return len(code.co_code) + sum(_size(names.get(name), counted) for name in code.co_names)


def _kernel(name: str) -> Any:
    module, _, function = name.rpartition(".")
    return getattr(importlib.import_module(module), function)


def compile_module(name: str, calls: Calls, folder: str) -> dict[str, Any]:
    """Compiles kernels into one extension module of a folder; what INDEX says about them."""
    pycc: Any = importlib.import_module("numba.pycc.compiler")
    types: Any = importlib.import_module("numba.core.typing")
    flags_of_pycc = pycc.Flags

    def flags() -> Any:
        result = flags_of_pycc()
        result.release_gil = True  # as kernels have it; pycc has no option for it
        return result

    pycc.Flags = flags
    Kernel._compiler()  # imports numba as kernels do
    extension: Any = importlib.import_module("numba.pycc").CC(name, source_module=kernels)
    extension.output_dir = folder
    index: dict[str, Any] = {}
    for kernel in calls:
        function = _kernel(kernel).interpreted
        index[kernel] = {"source": digest_of(function), "functions": []}
        for number, (argument_types, typed) in enumerate(sorted(calls[kernel].items(), key=str)):
            symbol = f"{kernel}.{number}".replace(".", "_")
            # `export` wants the type of the result, which numba finds out.
            extension._exported_functions[symbol] = pycc.ExportEntry(symbol, types.signature(None, *typed), function)
            index[kernel]["functions"].append((argument_types, name, symbol))
    extension.compile()
    return index


if __name__ == "__main__":
    raise SystemExit(main())
