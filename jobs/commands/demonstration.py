"""The demo: each step prints its command."""

import io
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import pyarrow as pa

from jobs.commands.reading import Reading
from sharelens.cli import live
from sharelens.cli import main as sharelens
from sharelens.configuration.environment import variables_set
from sharelens.demo_data.packed import SUFFIX, unpack
from sharelens.output import say, tell
from sharelens.parameters.filters import KeyFilter
from sharelens.source.request import CutChoice, Source
from sharelens.spark.engine import IN_PROCESS, ON_SPARK
from state_model.errors import UsageError

if TYPE_CHECKING:
    from jobs.summary import Summary

LIVE, RECORDED = "live", "basic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Folders of the demo. `keep`: `folder` stays; it has the log, the report, and the lake unless that has a place.

    `is_explored`: the explorer's pages show the lake at the end.
    """

    folder: Path
    lake: Path
    keep: bool
    is_explored: bool = False

    @property
    def report(self) -> Path:
        """The report's file."""
        return self.folder / "report.html"


def demonstrate(data_set: str | None, places: Places) -> None:
    """Makes or unpacks a broker's log directory, runs the pipeline over it and asks the lake.

    Args:
        data_set: the packed log to take; `live`: a log made on the spot; None: live where that is possible.
        places: where the log, the lake and the report are written.
    """
    if is_live(data_set):
        incident = live.make_incident(places.folder)
        logs, record = incident.log_dir, incident.record
    else:
        unpack(Path(str(files("sharelens.demo_data").joinpath((data_set or RECORDED) + SUFFIX))), places.folder)
        logs, record = places.folder / "logs", None
    _run(logs, places.lake, _engine())
    _ask(places, record)
    _compare(logs, places)
    _end(places)


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


def _engine() -> str:
    """Where the pipeline computes: on Spark, if it is installed; says what to install if not."""
    if find_spec("pyspark") is not None:
        return ON_SPARK
    say("sharelens: the demo runs in one process; for Spark: pip install 'sharelens[spark]'")
    return IN_PROCESS


def _run(logs: Path, lake: Path, engine: str) -> None:
    """Runs the pipeline into a lake and prints what the summary says about its stages."""
    from jobs.commands import stages
    from jobs.options import STAGES
    from sharelens.cli.options.spark import engine_settings, session_of

    _remark(f"the pipeline {'on Spark' if engine == ON_SPARK else 'in one process'}: segments into Delta tables")
    live.print_command(["run", "--log-dir", str(logs), "--lake", str(lake), "--engine", engine])
    settings = engine_settings()
    request = stages.Request(lake=str(lake), reading=Reading(log_dir=(str(logs),)), settings=settings, engine=engine)
    summary = stages.run_once(stages.run_options(STAGES, request), session_of("run", settings))
    for line in _summary_lines(summary):
        tell(line)


def _summary_lines(summary: "Summary") -> Iterator[str]:
    """The engine and the time of each stage; how many rows the tables got."""
    for engine, name in ((ON_SPARK, "Spark"), (IN_PROCESS, "this process")):
        stage_times = [
            f"{stage} {seconds:.1f} s"
            for stage, seconds in summary.seconds.items()
            if summary.engine.get(stage) == engine
        ]
        if stage_times:
            yield from textwrap.wrap(f"stages in {name}: {', '.join(stage_times)}", live.WIDTH)
    yield f"run {summary.run_id} is published"


def _ask(places: Places, record: live.RecordPlace | None) -> None:
    """Asks the lake for its verdict and the life of a record (None: the one that the state names); writes a report."""
    from sharelens.questions import state
    from sharelens.tables import opening

    lake = ("--lake", str(places.lake))
    _remark("questions need no JVM")
    _command("overview", *lake)
    with opening.open_evidence(Source(lake=str(places.lake))) as evidence:
        chosen = record or busiest_record(state.state(evidence, KeyFilter(), CutChoice()).table)
    if chosen is not None:
        group, topic, partition, offset = chosen
        _remark("the life of the record that was delivered most often")
        key = ("--group", group, "--topic", topic, "--partition", str(partition), "--offset", str(offset))
        _command("trace", *lake, *key)
    if find_spec("altair") is None:
        say("sharelens: the demo writes no report; for one: pip install 'sharelens[report]'")
        return
    _remark("all of it as one HTML file")
    _command("report", *lake, "--out", str(places.report))


def _compare(logs: Path, places: Places) -> None:
    """Runs the pipeline in this process into a second lake, and compares all tables.

    Raises:
        DemoError: a table differs.
    """
    from jobs.comparison import content, differing_tables

    second = places.folder / "lake-in-process"
    _run(logs, second, IN_PROCESS)
    tables, again = content(places.lake), content(second)
    if differing := differing_tables(tables, again):
        raise live.DemoError(f"the engines wrote different rows: {', '.join(differing)}; --keep keeps both lakes")
    rows = sum(table.num_rows for table in tables.values())
    tell(f"both engines wrote equal tables: {len(tables)} tables with {rows} rows")


def _end(places: Places) -> None:
    """Says where lake and report lie, and which commands to type next."""
    stays = places.keep or not places.lake.is_relative_to(places.folder)
    tell("")
    if places.keep and places.report.exists():
        tell(f"report: {places.report}")
    if stays:
        tell(f"lake: {places.lake}")
    tell("type next:")
    lake = ("--lake", str(places.lake))
    about_lake = (("poison", *lake), ("sql", *lake, "SELECT * FROM gold.lag"), ("explore", *lake))
    about_files = (("demo", "--keep"), ("overview", "--log-dir", "/var/lib/kafka/data"), ("demo", "--explore"))
    for words in about_lake if stays else about_files:
        for line in live.command_lines(words):
            tell(f"  {line}")
    if places.is_explored:
        tell("")
        explore = ("explore", *lake, "--port", "0")
        live.print_command(explore)
        sharelens(explore)


def busiest_record(states: pa.Table) -> live.RecordPlace | None:
    """(group, topic or its id, partition, record offset) of the record delivered most often; None without any."""
    best: tuple[int, live.RecordPlace] | None = None
    for row in states.select(["group_id", "topic", "topic_id", "partition", "state_batches"]).to_pylist():
        for batch in row["state_batches"]:
            place = (row["group_id"], row["topic"] or row["topic_id"], row["partition"], batch["first_offset"])
            if best is None or batch["delivery_count"] > best[0]:
                best = batch["delivery_count"], place
    return best and best[1]


def _command(*words: str) -> None:
    """Prints a command line and runs it. Raises DemoError when it fails."""
    live.print_command(words)
    with _text_that_fits():
        code = sharelens(words)
    if code != 0:
        raise live.DemoError(f"sharelens {words[0]} ended with {code}")


def _remark(text: str) -> None:
    say("")
    say(f"# {text}")


class _Screen(io.TextIOBase):
    """A stream that gets the text of a terminal: tables that fit its width."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def isatty(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        return self._stream.write(text)

    def flush(self) -> None:
        self._stream.flush()


@contextmanager
def _text_that_fits() -> Iterator[None]:
    """In the block answers fit live.WIDTH columns where stdout is no terminal."""
    if sys.stdout.isatty():
        yield
        return
    screen = {"COLUMNS": str(live.WIDTH), "NO_COLOR": "1", "TERM": "dumb"}
    with variables_set(screen), redirect_stdout(_Screen(sys.stdout)), redirect_stderr(_Screen(sys.stderr)):
        yield
