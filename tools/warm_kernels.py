"""Compile and keep the kernels by answering a few questions from the demo's logs, so that no user waits for it."""

import contextlib
import io
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from sharelens.cli import main as sharelens
from sharelens.demo_data import SCENARIOS, unpack_scenario
from sharelens.kafka_log.record_batch import walk_headers
from state_model.columnar.boundaries import count_updates
from state_model.columnar.json_values import print_values

QUESTIONS = (
    *("overview", "state", "records", "status", "stalled", "poison", "redelivered", "latency", "life", "dlq", "audit"),
    "timeline",
    "advise",
)
SHARE_PARTITIONS = {"basic": ("g-explicit", "audit-log"), "dlq": ("gd-copy", "tasks")}
"""A group and a topic of each demo log, for questions about one group or one share partition."""
BROKER_CONFIG = "share.coordinator.snapshot.update.records.per.snapshot=500\n"


def main() -> int:
    """Ask every question of every demo log; prints failures, not answers."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sharelens-warm-") as folder:
        for name in SCENARIOS:
            logs = unpack_scenario(name, Path(folder)) / "logs"
            for question in _questions(*SHARE_PARTITIONS[name], _old_file(Path(folder) / "server.properties")):
                if _ask([*question, "--log-dir", str(logs), "--output", "json"]) != 0:
                    print(f"{question[0]} failed on the demo log {name}", file=sys.stderr)
                    return 1
    _compile_kernels_of_groups()
    _compile_kernels_of_parts()
    print(f"kernels are compiled ({time.monotonic() - started:.0f} s, once)")
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
