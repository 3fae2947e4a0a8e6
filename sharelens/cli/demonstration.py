"""The demo: each step says the command that does the same."""

import shlex
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow as pa

from sharelens.asked import CutAsked, Source
from sharelens.filters import Wanted, parse_wanted
from sharelens.output import Shown, say, show
from sharelens.packed import SUFFIX, unpack

SHOWN = Shown(limit=12)


def demonstrate(data_set: str, lake: Path) -> None:
    """Runs the pipeline over a packed log directory and asks the lake."""
    from sharelens.cli.compute import start
    from sharelens.questions import opening, state, status, trace
    from sharelens.questions.lake_evidence import LakeEvidence

    with tempfile.TemporaryDirectory(prefix="sharelens-demo-log-") as folder:
        logs = Path(folder)
        unpack(Path(str(files("sharelens.demo_data").joinpath(data_set + SUFFIX))), logs)
        logs = logs / "logs" if (logs / "logs").is_dir() else logs
        _step("run", "--log-dir", str(logs), "--lake", str(lake))
        start("run", _stages(), _run_asked(logs, lake))
    with opening.open_evidence(Source(lake=str(lake))) as evidence:
        _step("state", "--lake", str(lake))
        answered = state.state(evidence, Wanted(), CutAsked())
        show(answered, SHOWN)
        chosen = busiest_record(answered.table)
        if chosen is not None:
            group, topic, partition, offset = chosen
            _step(
                "trace", "--lake", str(lake), "--group", group, "--topic", topic,
                "--partition", str(partition), "--offset", str(offset),
            )  # fmt: skip
            show(trace.trace(evidence, parse_wanted([group], [topic], [partition]), offset), SHOWN)
        _step("status", "--lake", str(lake))
        if isinstance(evidence, LakeEvidence):
            show(status.lake_status(evidence.lake, None), SHOWN)


def _stages() -> tuple[str, ...]:
    from jobs.options import STAGES

    return STAGES


def _run_asked(logs: Path, lake: Path) -> dict[str, Any]:
    nothing = dict.fromkeys(
        ("until_ms", "cluster_id", "topic_names", "rebuild", "lock_timeout", "offline", "jars_dir", "master")
    )
    flags = {"include_uncommitted": False, "include_deleted": False, "require_rows": False}
    return {"lake": str(lake), "log_dir": (str(logs),), "conf": (), **nothing, **flags}


def busiest_record(states: pa.Table) -> tuple[str, str, int, int] | None:
    """(group, topic or its id, partition, record offset) of the record delivered most often; None without any."""
    best: tuple[int, tuple[str, str, int, int]] | None = None
    for row in states.select(["group_id", "topic", "topic_id", "partition", "state_batches"]).to_pylist():
        for batch in row["state_batches"]:
            found = (row["group_id"], row["topic"] or row["topic_id"], row["partition"], batch["first_offset"])
            if best is None or batch["delivery_count"] > best[0]:
                best = batch["delivery_count"], found
    return best and best[1]


def _step(*words: str) -> None:
    say("")
    say("$ sharelens " + shlex.join(words))
