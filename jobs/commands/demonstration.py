"""The demo: each step prints its command."""

import tempfile
from importlib.resources import files
from pathlib import Path

import pyarrow as pa

from sharelens.cli import live
from sharelens.demo_data.packed import SUFFIX, unpack
from sharelens.output import Shown, say, show
from sharelens.parameters.filters import KeyFilter, parse_key_filter
from sharelens.shell import shell_line
from sharelens.source.request import CutChoice, Source
from state_model.errors import UsageError

SHOWN = Shown(limit=12)
LIVE, RECORDED = "live", "basic"


def demonstrate(data_set: str | None, lake: Path) -> None:
    """Makes or unpacks a broker's log directory, runs the pipeline over it and asks the lake.

    Args:
        data_set: the packed log to take; `live`: a log made on the spot; None: live where that is possible.
    """
    with tempfile.TemporaryDirectory(prefix="sharelens-demo-log-") as folder:
        if is_live(data_set):
            incident = live.make_incident(Path(folder))
            _ask(incident.log_dir, lake, incident.record)
        else:
            logs = Path(folder)
            unpack(Path(str(files("sharelens.demo_data").joinpath((data_set or RECORDED) + SUFFIX))), logs)
            _ask(logs / "logs" if (logs / "logs").is_dir() else logs, lake, None)


def is_live(data_set: str | None) -> bool:
    """Whether the demo makes its own log; prints missing packages when it can't.

    Raises:
        UsageError: `live` was chosen, and a package is missing.
    """
    if data_set not in (None, LIVE):
        return False
    missing = live.missing_packages()
    if not missing:
        return True
    install = f"{', '.join(missing)} is missing: pip install 'sharelens[broker,workload]'"
    if data_set == LIVE:
        raise UsageError(install)
    say(f"sharelens: the demo takes a recorded log; for one with a broker and clients {install}")
    return False


def _ask(logs: Path, lake: Path, record: live.RecordPlace | None) -> None:
    """Logs into a lake, then its state, the life of a record (None: the one that the state names), its status."""
    from jobs.commands.reading import Reading
    from jobs.commands.stages import Request, start
    from sharelens.cli.options.spark import engine_settings
    from sharelens.lake.scan import open_lake
    from sharelens.questions import state, status
    from sharelens.questions.traces import trace
    from sharelens.tables import opening

    _step("run", "--log-dir", str(logs), "--lake", str(lake))
    reading = Reading(log_dir=(str(logs),))
    start("run", _stages(), Request(lake=str(lake), reading=reading, settings=engine_settings()))
    with opening.open_evidence(Source(lake=str(lake))) as evidence:
        _step("state", "--lake", str(lake))
        answered = state.state(evidence, KeyFilter(), CutChoice())
        show(answered, SHOWN)
        chosen = record or busiest_record(answered.table)
        if chosen is not None:
            group, topic, partition, offset = chosen
            _step(
                "trace", "--lake", str(lake), "--group", group, "--topic", topic,
                "--partition", str(partition), "--offset", str(offset),
            )  # fmt: skip
            show(trace.trace(evidence, parse_key_filter([group], [topic], [partition]), offset), SHOWN)
        _step("status", "--lake", str(lake))
        show(status.lake_status(open_lake(str(lake)), None), SHOWN)


def _stages() -> tuple[str, ...]:
    from jobs.options import STAGES

    return STAGES


def busiest_record(states: pa.Table) -> live.RecordPlace | None:
    """(group, topic or its id, partition, record offset) of the record delivered most often; None without any."""
    best: tuple[int, live.RecordPlace] | None = None
    for row in states.select(["group_id", "topic", "topic_id", "partition", "state_batches"]).to_pylist():
        for batch in row["state_batches"]:
            place = (row["group_id"], row["topic"] or row["topic_id"], row["partition"], batch["first_offset"])
            if best is None or batch["delivery_count"] > best[0]:
                best = batch["delivery_count"], place
    return best and best[1]


def _step(*words: str) -> None:
    say("")
    say("$ " + shell_line(["sharelens", *words]))
