"""Compiles kernels by asking about the demo's logs, in a process of its own, beside others that compile them, too.

The first process that calls a kernel compiles it; the others interpret it until its code is there. So as many cores
compile as there are processes, and no list of kernels or signatures is kept.
"""

import contextlib
import io
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sharelens.demo_data import SCENARIOS, unpack_scenario
from state_model.columnar.kernels import Kernel

QUESTIONS = (
    *("overview", "state", "records", "status", "stalled", "poison", "redelivered", "latency", "life", "dlq", "audit"),
    "timeline",
    "advise",
)
SHARE_PARTITIONS = {"basic": ("g-explicit", "audit-log"), "dlq": ("gd-copy", "tasks")}
"""A group and a topic of each demo log, for questions about one group or one share partition."""
BROKER_CONFIG = "share.coordinator.snapshot.update.records.per.snapshot=500\n"


def help_compiling() -> None:
    """The work of a helper: it ends when the process that started it has gone, which closes its stdin."""

    def wait_for_the_end() -> None:
        sys.stdin.read()
        os._exit(0)

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    compile_all()


def compile_all() -> None:
    """Asks every question of every demo log and compiles what no other process compiles.

    Prints failures, not answers.
    """
    Kernel.__call__ = _shared_call()  # type: ignore[method-assign]
    call_all()


def call_all() -> int:
    """Calls every kernel with the types that questions call it with, by asking about the demo's logs; the exit code.

    Prints failures, not answers.
    """
    with tempfile.TemporaryDirectory(prefix="sharelens-warm-") as folder:
        for words in _questions(Path(folder)):
            if _ask(words) != 0:
                sys.stderr.write(f"{words[0]} failed on a log of the demo\n")
                return 1
    _call_kernels_of_groups()
    _call_kernels_of_parts()
    _call_kernels_of_many_rows()
    return 0


def _shared_call() -> Any:
    """The call of a kernel: compiled, or interpreted while another process compiles it.

    A kernel that an interpreted one calls is interpreted, too: it is compiled in its callers.
    """
    thread = threading.local()

    def call(kernel: Any, *arguments: Any, **named: Any) -> Any:
        if not getattr(thread, "interprets", False) and not kernel.is_compiled_elsewhere():
            return kernel._compiled(*arguments, **named)
        before, thread.interprets = getattr(thread, "interprets", False), True
        try:
            with np.errstate(over="ignore"):  # machine code wraps around
                return kernel.interpreted(*arguments, **named)
        finally:
            thread.interprets = before

    return call


def _questions(folder: Path) -> Iterator[list[str]]:
    for name in SCENARIOS:
        source = ["--log-dir", str(unpack_scenario(name, folder) / "logs"), "--output", "json"]
        group, topic = SHARE_PARTITIONS[name]
        for question in QUESTIONS:
            yield [question, *(["--group", group] if question == "timeline" else []), *source]
        yield ["state", "--group", group, "--topic", topic, "--partition", "0", *source]
        yield ["audit", "--broker-config", str(_old_file(folder / "server.properties")), *source]


def _old_file(path: Path) -> Path:
    """A configuration that counts from before the first record on."""
    path.write_text(BROKER_CONFIG, encoding="utf-8")
    os.utime(path, (0, 0))
    return path


def _call_kernels_of_parts() -> None:
    """Calls the kernels that only logs in parts need: those of a large share partition, and of a running cluster."""
    from sharelens.kafka_log.record_batch import SHORT_BYTES, walk_headers
    from state_model.columnar.boundaries import count_updates

    weights = np.ones(1, np.int64)
    for each in (weights, _read_only(weights)):
        count_updates(np.zeros(1, np.int64), np.zeros(1, np.int64), each, 1, np.zeros(1, np.int64))
    data = np.zeros(SHORT_BYTES + 1, np.uint8)
    walk_headers(data, 1, require_whole=True)
    walk_headers(_read_only(data), 1, require_whole=True)


def _call_kernels_of_many_rows() -> None:
    """Calls the kernel that sorts more rows than the demo's logs have."""
    from state_model.columnar.ordering import FEW_ROWS, order_by

    order_by(np.zeros(FEW_ROWS, np.int64))


def _read_only(array: np.ndarray) -> np.ndarray:
    """A view as Arrow's buffers and files give it; kernels of such arrays are compiled apart."""
    view = array.view()
    view.flags.writeable = False
    return view


def _call_kernels_of_groups() -> None:
    """Calls the kernel that only many records of groups need."""
    from state_model.columnar.json_values import print_values

    print_values(np.zeros(1, np.int64), pa.array([None], pa.binary()))


def _ask(arguments: list[str]) -> int:
    from sharelens.cli import main as sharelens

    errors = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        try:
            code = sharelens(arguments) or 0
        except SystemExit as stop:
            code = int(stop.code or 0)
    if code != 0:
        sys.stderr.write(errors.getvalue())
    return code
