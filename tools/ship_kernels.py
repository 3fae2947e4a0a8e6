"""Compiles the kernels for a generic processor into the package: python -m tools.ship_kernels [FOLDER].

A checkout uses them as an installed wheel does. As many processes compile as there are cores
(`sharelens.cli.kernel_compiler`). The processor is set before numba is imported, so they are processes of their own.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from sharelens.cli.compiling import HELPS
from sharelens.cli.kernel_compiler import compile_all
from state_model.columnar import kernels

GENERIC = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", HELPS: "1"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Compiles all kernels that questions use; the folder is replaced when all of them are there."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    folder = Path(words[0]) if words else kernels.SHIPPED
    started = time.monotonic()
    print("compiling kernels, once ...", flush=True)
    with tempfile.TemporaryDirectory(prefix="sharelens-kernels-") as scratch:
        compiled = Path(scratch) / "compiled"
        compiled.mkdir()
        env = os.environ | GENERIC | {"NUMBA_CACHE_DIR": scratch}
        compilers = [
            subprocess.Popen([sys.executable, "-c", _program(compiled, backwards=bool(number % 2))], env=env)
            for number in range(os.cpu_count() or 1)
        ]
        codes = [compiler.wait() for compiler in compilers]
        if any(codes):
            return 1
        (compiled / kernels.NUMBA).write_text(f"{metadata.version('numba')}\n", encoding="ascii")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(compiled, folder)
    print(f"kernels are compiled ({time.monotonic() - started:.0f} s, once)")
    return 0


def _program(folder: Path, *, backwards: bool) -> str:
    return f"from tools.ship_kernels import compile_into; compile_into({str(folder)!r}, backwards={backwards})"


def compile_into(folder: str, *, backwards: bool) -> None:
    """Compiles this process's share of the kernels; exits with 1 where a question fails."""
    kernels.SHIPPED = Path(folder)
    kernels.Kernel.ships = True
    raise SystemExit(compile_all(backwards=backwards))


if __name__ == "__main__":
    raise SystemExit(main())
