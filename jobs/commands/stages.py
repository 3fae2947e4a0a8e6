"""The command `run`, and its stages as commands. They start Spark only for much work."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from jobs.commands.keep_fresh import SCHEDULE, Schedule, Work, keep_fresh, schedule_of
from jobs.commands.reading import NOTHING_TO_READ, READING, READING_OF_SETTINGS, Reading
from jobs.commands.refusals import refuse_closed
from sharelens.cli.asking import parameters
from sharelens.cli.options.common import Command, Seconds, becomes, examples, stacked
from sharelens.cli.options.spark import ENGINE, SPARK, engine_settings, session_of
from sharelens.output import json_text, say, say_warnings, tell
from sharelens.parameters.times import time_text
from sharelens.question_table.shared import lake
from sharelens.spark.engine import AUTO
from state_model.columnar.startup import import_arrow_without_pandas
from state_model.errors import UsageError

if TYPE_CHECKING:
    from jobs.options import Fetch, RunOptions
    from jobs.summary import Summary
    from sharelens.configuration.settings import Settings
    from sharelens.lake.lake import Lake

LAKE = parameters(*lake("The lake to write; created if missing.", is_required=True))
REBUILD = click.option(
    "--rebuild",
    type=click.Choice(["decode", "replay", "measure", "audit"]),
    help="Recompute from bronze (decode), silver (replay) or the histories (measure), or audit again (audit).",
)
CHECK = click.option(
    "--check/--no-check", default=False, show_default=True, help="Check new rows before they are published."
)
SKIP = click.option(
    "--skip",
    type=click.Choice(["freshness", "volume"]),
    multiple=True,
    help="Skip expectations that an old copy can't meet. Repeatable.",
)
REQUIRE_CHECK = click.option(
    "--require-check", is_flag=True, help="Publish only tables whose newest version was checked."
)
LOCK_TIMEOUT = click.option(
    "--lock-timeout",
    type=Seconds(),
    metavar="DURATION",
    help="Time to wait for the lock of another run: 90s, 5m; a number: seconds  [default: conf, 1m]",
)
REQUIRE_ROWS = click.option("--require-rows", is_flag=True, help="Exit with 1 when there is no new record.")
SETTINGS = becomes("settings", engine_settings, LOCK_TIMEOUT, REQUIRE_ROWS, *SPARK)
EVERY = becomes("schedule", schedule_of, *SCHEDULE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A run as options say it: over which lake, what it reads, when it runs again, how it computes and publishes.

    `rebuild`: the stage that starts over. `skip`: kinds of expectations that the check leaves out. `engine`: the option
    --engine.
    """

    lake: str
    settings: "Settings"
    reading: Reading = NOTHING_TO_READ
    schedule: Schedule | None = None
    rebuild: str | None = None
    skip: tuple[str, ...] = ()
    require_rows: bool = False
    require_check: bool = False
    engine: str = AUTO


def start(command: str, stages: tuple[str, ...], request: Request) -> None:
    """Runs stages of the pipeline and writes the summary: one line of JSON on stdout."""
    schedule, rebuild = request.schedule, request.rebuild
    if schedule is not None and (request.require_rows or rebuild is not None):
        raise UsageError(f"{command}: --every excludes --require-rows and --rebuild; leave one of them out")
    fetch = request.reading.fetching(rebuild)
    if "ingest" in stages and not request.reading.log_dir and fetch is None and rebuild is None:
        raise UsageError(
            f"{command}: give --log-dir DIR, a broker's log directory or a copy of one, or --bootstrap-server HOST:PORT"
        )
    if "check" not in stages:
        import_arrow_without_pandas()
    options = run_options(stages, request, fetch)
    session = session_of(command, request.settings)
    work = Work(
        lake=options.lake,
        run=lambda: run_once(options, session),
        tell=lambda summary, extra_fields: _tell_summary(command, options, summary, extra_fields),
        end=lambda: _remove_fetched(options),
        lock_timeout_s=options.lock_timeout_s,
    )
    if schedule is not None:
        keep_fresh(schedule, work)
        return
    summary = work.run()
    work.tell(summary, {"verdict": _verdict(options.lake, summary)} if command == "run" else {})
    if summary.withheld:
        refuse_closed(summary.gates)


def run_once(options: "RunOptions", session: Callable[[], Any]) -> "Summary":
    """Runs stages once, with bars of progress on a terminal. `session`: starts Spark when called."""
    from jobs.commands.progress import progress_bars
    from jobs.run import run as run_pipeline

    with progress_bars() as progress:
        return run_pipeline(options, session, progress)


def _verdict(lake: "Lake", summary: "Summary") -> str | None:
    """The first line of the overview of the cut that the run published; None: it published none."""
    if summary.run_id is None or summary.withheld:
        return None
    from sharelens.parameters.filters import KeyFilter
    from sharelens.questions.findings.overview import headline
    from sharelens.source.request import CutChoice, Source
    from sharelens.tables.opening import open_evidence

    with open_evidence(Source(lake=str(lake), cluster_id=summary.cluster_id)) as evidence:
        return headline(evidence, KeyFilter(), CutChoice(), evidence.settings.groups)


def _remove_fetched(options: "RunOptions") -> None:
    from jobs.fetched import remove_behind_runs

    remove_behind_runs(options.lake)


def _tell_summary(command: str, options: "RunOptions", summary: "Summary", extra_fields: Mapping[str, Any]) -> None:
    tell(json_text({"command": command, "lake": str(options.lake), **summary.as_dict(), **extra_fields}))
    _say_settings(summary.settings)


def _say_settings(stored: Sequence[Mapping[str, Any]]) -> None:
    """A line for each file of settings that counts only from some time on."""
    from sharelens.measures.settings.observations import OF_NOW

    for observation in stored:
        if observation["from_ms"] is not None and observation["kind"] not in OF_NOW:
            say(
                f"settings: {observation['kind']} changed: the file counts from "
                f"{time_text(observation['from_ms'])} on, when it was "
                "modified, and the one before it until then; to correct that one, give the new file its time (touch -r)"
            )


def run_options(stages: tuple[str, ...], request: Request, fetch: "Fetch | None" = None) -> "RunOptions":
    """The options of a run, from those of the command line."""
    from jobs.options import RunOptions
    from sharelens.kafka_log.archives import log_directories
    from sharelens.lake.lake import Lake
    from sharelens.spark.session import in_process_bytes

    reading, settings = request.reading, request.settings
    for path in (request.lake, *reading.log_dir):
        path.encode()  # before there is a lake: its tables name both
    from sharelens.settings.files import NO_SETTINGS_FILES
    from sharelens.settings.topic_names import read_topic_names
    from sharelens.source.request import dead_letter_topics

    files = NO_SETTINGS_FILES
    if reading.settings is not None:
        from sharelens.settings.folder import read_settings_folder

        files = read_settings_folder(reading.settings)
    say_warnings(files.warnings)
    log_dirs = log_directories(reading.log_dir)
    names = {} if reading.topic_names is None else read_topic_names(reading.topic_names)
    return RunOptions(
        lake=Lake(request.lake),
        log_dirs=log_dirs,
        until_ms=reading.until_ms(log_dirs),
        cluster_id=reading.cluster_id,
        include_uncommitted=reading.include_uncommitted,
        include_deleted=reading.include_deleted,
        topic_names={**dict(files.topic_names), **names},
        observations=files.observations,
        rebuild=request.rebuild,
        lock_timeout_s=settings.lock_timeout_s,
        require_rows=request.require_rows,
        skip_checks=request.skip,
        limits=settings.limits(),
        require_check=request.require_check,
        stages=stages,
        split_bytes=settings.split_bytes,
        in_process_bytes=in_process_bytes(settings, request.engine),
        dead_letter_topics=dead_letter_topics(reading.dlq_topic, reading.dlq_prefix),
        keep_dlq_values=reading.dlq_values == "keep",
        fetch=fetch,
        goes_on=request.schedule is not None,
    )


def _run(*, check: bool, **request: Any) -> None:
    """The whole pipeline, incremental: from log directories to delivery state.

    Reads new records of the log directories, decodes and replays them, and publishes one cut. If the last run was
    killed, the command finishes it first. The summary is one line of JSON on stdout.
    """
    from jobs.options import CHECKED_STAGES, STAGES

    start("run", CHECKED_STAGES if check else STAGES, Request(**request))


def _ingest(**request: Any) -> None:
    """The first stage alone: records and batch headers from log directories into bronze."""
    start("ingest", ("ingest",), Request(**request))


def _decode(**request: Any) -> None:
    """The second stage alone: bronze records into typed silver rows."""
    start("decode", ("decode",), Request(**request))


def _replay(**request: Any) -> None:
    """The third stage alone: silver records into the gold states. `sharelens publish` makes them visible."""
    start("replay", ("replay",), Request(**request))


def _measure(**request: Any) -> None:
    """The fourth stage alone: measures of changed share partitions. `sharelens publish` makes them visible."""
    start("measure", ("measure",), Request(**request))


def _audit_log(**request: Any) -> None:
    """The fifth stage alone: audits new records of the state log. `sharelens publish` makes the findings visible."""
    start("audit-log", ("audit",), Request(**request))


def _publish(**request: Any) -> None:
    """The last stage: publishes the newest versions of all tables as the cut that questions read.

    Exits with 3 while a gate is closed: the newest check of a table has an unmet blocking expectation.
    """
    start("publish", ("publish",), Request(**request))


def _command(
    name: str, body: Command, short: str, options: list[Callable[[Command], Command]], example: str
) -> click.Command:
    return click.command(name, short_help=short, epilog=examples(example))(stacked(body, options))


run = _command(
    "run",
    _run,
    "The whole pipeline: from logs to delivery state.",
    [LAKE, READING, EVERY, REBUILD, CHECK, SKIP, ENGINE, SETTINGS],
    "sharelens run --log-dir /var/kafka-copy --lake ./lake",
)
ingest = _command(
    "ingest",
    _ingest,
    "The first stage alone: logs into bronze.",
    [LAKE, READING, ENGINE, SETTINGS],
    "sharelens ingest --log-dir /disk1/kafka --log-dir /disk2/kafka --lake ./lake",
)
decode = _command(
    "decode",
    _decode,
    "The second stage alone: bronze into silver.",
    [LAKE, ENGINE, SETTINGS],
    "sharelens decode --lake ./lake",
)
replay = _command(
    "replay",
    _replay,
    "The third stage alone: silver into gold.",
    [LAKE, ENGINE, SETTINGS],
    "sharelens replay --lake ./lake",
)
measure = _command(
    "measure",
    _measure,
    "The fourth stage alone: gold measures.",
    [LAKE, READING_OF_SETTINGS, ENGINE, SETTINGS],
    "sharelens measure --lake ./lake --settings ./settings",
)
audit_log = _command(
    "audit-log",
    _audit_log,
    "The fifth stage alone: audit findings.",
    [LAKE, ENGINE, SETTINGS],
    "sharelens audit-log --lake ./lake",
)
publish = _command(
    "publish",
    _publish,
    "The last stage: publishes one cut of all tables.",
    [LAKE, REQUIRE_CHECK, becomes("settings", engine_settings, LOCK_TIMEOUT, REQUIRE_ROWS)],
    "sharelens publish --lake ./lake --require-check",
)
COMMANDS = (run, ingest, decode, replay, measure, audit_log, publish)
