"""Compiles the kernels for a generic processor into the package: python -m tools.ship_kernels [FOLDER].

A checkout uses them as an installed wheel does. As many processes as there are cores answer the same questions about
the demo's logs: the first one that calls a kernel compiles it, the others interpret it. The processor is set before
numba is imported, so the compilers run in processes of their own.
"""

import contextlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sharelens.cli import main as sharelens
from sharelens.demo_data import SCENARIOS, unpack_scenario
from sharelens.kafka_log.record_batch import walk_headers
from state_model.columnar import kernels
from state_model.columnar.boundaries import count_updates
from state_model.columnar.json_values import print_values

GENERIC = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
QUESTIONS = (
    *("overview", "state", "records", "status", "stalled", "poison", "redelivered", "latency", "life", "dlq", "audit"),
    "timeline",
    "advise",
)
SHARE_PARTITIONS = {"basic": ("g-explicit", "audit-log"), "dlq": ("gd-copy", "tasks")}
"""A group and a topic of each demo log, for questions about one group or one share partition."""
BROKER_CONFIG = "share.coordinator.snapshot.update.records.per.snapshot=500\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Compiles all kernels that questions use; the folder is replaced when all of them are there."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    folder = Path(words[0]) if words else kernels.SHIPPED
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sharelens-kernels-") as scratch:
        compiled, claims = Path(scratch) / "compiled", Path(scratch) / "claims"
        compiled.mkdir()
        claims.mkdir()
        env = os.environ | GENERIC | {"NUMBA_CACHE_DIR": scratch}
        program = f"from tools.ship_kernels import compile_into; compile_into({str(compiled)!r}, {str(claims)!r})"
        compilers = [subprocess.Popen([sys.executable, "-c", program], env=env) for _ in range(os.cpu_count() or 1)]
        codes = [compiler.wait() for compiler in compilers]
        if any(codes):
            return 1
        (compiled / kernels.NUMBA).write_text(f"{metadata.version('numba')}\n", encoding="ascii")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(compiled, folder)
    print(f"kernels are compiled ({time.monotonic() - started:.0f} s, once)")
    return 0


def compile_into(folder: str, claims: str) -> None:
    """Compiles this process's share of the kernels; exits with 1 where a question fails."""
    kernels.SHIPPED = Path(folder)
    kernels.Kernel.ships = True
    kernels.Kernel.__call__ = _shared(Path(claims))  # type: ignore[method-assign]
    raise SystemExit(ask_all())


def _shared(claims: Path) -> Callable[..., Any]:
    """The call of a kernel in one of several processes: compiled by the first one, interpreted by the others.

    A kernel that an interpreted one calls is interpreted, too: it is compiled in its callers.
    """
    is_mine: dict[Any, bool] = {}
    thread = threading.local()

    def call(kernel: Any, *arguments: Any, **named: Any) -> Any:
        if getattr(thread, "interprets", False):
            return kernel.interpreted(*arguments, **named)
        if kernel not in is_mine:
            is_mine[kernel] = _claim(claims / f"{kernel.__module__}.{kernel.__qualname__}")
        if is_mine[kernel]:
            return kernel._compiled(*arguments, **named)
        thread.interprets = True
        try:
            with np.errstate(over="ignore"):  # machine code wraps around
                return kernel.interpreted(*arguments, **named)
        finally:
            thread.interprets = False

    return call


def _claim(path: Path) -> bool:
    """Whether this process is the first one that asks for a name."""
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def ask_all() -> int:
    """Asks every question of every demo log; prints failures, not answers."""
    with tempfile.TemporaryDirectory(prefix="sharelens-warm-") as folder:
        for name in SCENARIOS:
            logs = unpack_scenario(name, Path(folder)) / "logs"
            for question in _questions(*SHARE_PARTITIONS[name], _old_file(Path(folder) / "server.properties")):
                if _ask([*question, "--log-dir", str(logs), "--output", "json"]) != 0:
                    print(f"{question[0]} failed on the demo log {name}", file=sys.stderr)
                    return 1
    _compile_kernels_of_groups()
    _compile_kernels_of_parts()
    return 0


def _questions(group: str, topic: str, broker_config: Path) -> Iterator[list[str]]:
    for question in QUESTIONS:
        yield [question, *(["--group", group] if question == "timeline" else [])]
    yield ["state", "--group", group, "--topic", topic, "--partition", "0"]
    yield ["audit", "--broker-config", str(broker_config)]


def _old_file(path: Path) -> Path:
    """A configuration that counts from before the first record on."""
    path.write_text(BROKER_CONFIG, encoding="utf-8")
    os.utime(path, (0, 0))
    return path


def _compile_kernels_of_parts() -> None:
    """Compiles the kernels that only logs in parts need: those of a large share partition, and of a running cluster."""
    weights = np.ones(1, np.int64)
    for each in (weights, _read_only(weights)):
        count_updates(np.zeros(1, np.int64), np.zeros(1, np.int64), each, 1, np.zeros(1, np.int64))
    walk_headers(_read_only(np.zeros(1, np.uint8)), 1, require_whole=True)


def _read_only(array: np.ndarray) -> np.ndarray:
    """A view as Arrow's buffers and files give it; kernels of such arrays are compiled apart."""
    view = array.view()
    view.flags.writeable = False
    return view


def _compile_kernels_of_groups() -> None:
    """Compiles the kernel that only many records of groups need."""
    print_values(np.zeros(1, np.int64), pa.array([None], pa.binary()))


def _ask(arguments: list[str]) -> int:
    errors = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        try:
            code = sharelens(arguments) or 0
        except SystemExit as stop:
            code = int(stop.code or 0)
    if code != 0:
        sys.stderr.write(errors.getvalue())
    return code


if __name__ == "__main__":
    raise SystemExit(main())
