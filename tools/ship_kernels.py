"""Compiles the kernels for a generic processor into a folder, for a wheel: python -m tools.ship_kernels [FOLDER].

The processor is set before numba is imported, so the compiler runs in a process of its own.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from tools.wheel_kernels import KERNELS, NUMBA

ROOT = Path(__file__).parents[1]
GENERIC = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}


def main(arguments: Sequence[str] | None = None) -> int:
    """Compiles all kernels that questions use."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    folder = Path(words[0]) if words else ROOT / KERNELS
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="sharelens-kernels-") as nothing_kept:
        env = os.environ | GENERIC | {"NUMBA_CACHE_DIR": nothing_kept}
        program = f"from tools.ship_kernels import compile_into; compile_into({str(folder)!r})"
        done = subprocess.run([sys.executable, "-c", program], env=env, check=False)
    if done.returncode == 0:
        (folder / NUMBA).write_text(f"{metadata.version('numba')}\n", encoding="ascii")
    return done.returncode


def compile_into(folder: str) -> None:
    """Compiles the kernels in this process; it exits with 1 where a question fails."""
    from state_model.columnar.kernels import Kernel
    from tools.warm_kernels import main as warm

    Kernel.shipped_to = Path(folder)
    raise SystemExit(warm())


if __name__ == "__main__":
    raise SystemExit(main())
