"""The command `run`, and its stages as commands. They start Spark only for much work."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from jobs.commands.keep_fresh import SCHEDULE, Work, keep_fresh, schedule_of
from jobs.commands.refusals import refuse_closed
from sharelens.cli.asking import parameters
from sharelens.cli.options.common import (
    Command,
    Seconds,
    Size,
    Time,
    examples,
    stacked,
)
from sharelens.cli.options.spark import SPARK, engine_settings, session_of
from sharelens.output import json_text, say, say_warnings, tell
from sharelens.parameters.times import Rounding, time_text
from sharelens.question_table.shared import (
    BOOTSTRAP,
    CLUSTER,
    COMMAND_CONFIG,
    DELETED,
    DLQ_PREFIX,
    DLQ_TOPIC,
    LOG_DIR,
    SETTINGS,
    TOPIC_NAMES,
    UNCOMMITTED,
    USER_TOPICS,
    lake,
)
from state_model.columnar.startup import import_arrow_without_pandas
from state_model.errors import UsageError

if TYPE_CHECKING:
    from contextlib import ExitStack

    from jobs.options import RunOptions
    from jobs.summary import Summary

LAKE = parameters(*lake("The lake to write; created if missing.", is_required=True))
UNTIL = click.option(
    "--until",
    "until_ms",
    type=Time(Rounding.UP),
    metavar="TIME",
    help="Ingest only records with log times before TIME.",
)
REBUILD = click.option(
    "--rebuild",
    type=click.Choice(["decode", "replay", "measure", "audit"]),
    help="Recompute from bronze (decode), silver (replay) or the histories (measure), or audit again (audit).",
)
DLQ_VALUES = click.option(
    "--dlq-values",
    type=click.Choice(["hash", "keep"]),
    default="hash",
    show_default=True,
    help="Keys and values of dead letters: keep their size and SHA-256, or the bytes (bronze.log_record).",
)
MAX_BYTES = click.option(
    "--max-bytes",
    type=Size(),
    metavar="SIZE",
    help="With --bootstrap-server, about the most to fetch in one run; the next one goes on.  [default: 4G]",
)
READING: list[Callable[[Command], Command]] = [
    parameters(LOG_DIR, BOOTSTRAP, COMMAND_CONFIG, USER_TOPICS),
    MAX_BYTES,
    UNTIL,
    parameters(CLUSTER, UNCOMMITTED, DELETED, TOPIC_NAMES, SETTINGS, DLQ_TOPIC, DLQ_PREFIX),
    DLQ_VALUES,
]
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
ENGINE = [
    click.option(
        "--lock-timeout",
        type=Seconds(),
        metavar="DURATION",
        help="Time to wait for the lock of another run: 90s, 5m; a number: seconds  [default: conf, 1m]",
    ),
    click.option("--require-rows", is_flag=True, help="Exit with 1 when there is no new record."),
    *SPARK,
]


def start(command: str, stages: tuple[str, ...], params: dict[str, Any]) -> None:
    """Runs stages of the pipeline and writes the summary: one line of JSON on stdout."""
    schedule = schedule_of(command, params)
    fetch = _fetching(params)
    if "ingest" in stages and not params["log_dir"] and fetch is None and params.get("rebuild") is None:
        raise UsageError(
            f"{command}: give --log-dir DIR, a broker's log directory or a copy of one, or --bootstrap-server HOST:PORT"
        )
    if "check" not in stages:
        import_arrow_without_pandas()
    settings = engine_settings(params)
    options = replace(_run_options(stages, params, settings), fetch=fetch, goes_on=schedule is not None)
    session = session_of(command, settings)
    work = Work(
        lake=options.lake,
        run=lambda: _run_once(options, session),
        tell=lambda summary, extra_fields: _tell_summary(command, options, summary, extra_fields),
        end=lambda: _remove_fetched(options),
        lock_timeout_s=options.lock_timeout_s,
    )
    if schedule is not None:
        keep_fresh(schedule, work)
        return
    summary = work.run()
    work.tell(summary, {})
    if summary.withheld:
        refuse_closed(summary.gates)


def _run_once(options: "RunOptions", session: Callable[[], Any]) -> "Summary":
    from jobs.commands.progress import progress_bars
    from jobs.run import run as run_pipeline

    with progress_bars() as progress:
        return run_pipeline(options, session, progress)


def _remove_fetched(options: "RunOptions") -> None:
    from jobs.fetched import remove_behind_runs

    remove_behind_runs(options.lake)


def _tell_summary(command: str, options: "RunOptions", summary: "Summary", extra_fields: Mapping[str, Any]) -> None:
    tell(json_text({"command": command, "lake": str(options.lake), **summary.as_dict(), **extra_fields}))
    _say_settings(summary.settings)


def _fetching(params: dict[str, Any]) -> "Callable[[RunOptions, ExitStack], RunOptions] | None":
    """Fetches from the cluster that the options name; None without one. The options are removed from `params`.

    Raises:
        UsageError: options of a cluster beside those of log directories.
        ClusterError: the cluster does not answer.
    """
    named = [params.pop(name, None) for name in ("bootstrap_server", "command_config", "user_topics")]
    max_bytes = params.pop("max_bytes", None)
    if max_bytes is not None and named[0] is None:
        raise UsageError("--max-bytes goes with --bootstrap-server")
    if not any(value is not None for value in named):
        return None
    from sharelens.live.cluster import UserTopics, address

    place = address(*named)
    if place is None:
        return None
    for name in ("log_dir", "include_uncommitted", "include_deleted", "rebuild"):
        if params.get(name):
            raise UsageError(
                f"--bootstrap-server and --{name.replace('_', '-')} exclude each other; leave one of them out"
            )
    from jobs.ingest.cluster import DEFAULT_FETCHED_BYTES, ClusterOfRuns
    from sharelens.kafka_live.connection import Connection

    with Connection(place.bootstrap_server, place.config):  # before there is a lake
        cluster = ClusterOfRuns(
            address=place,
            user_topics=UserTopics(named[-1] or "samples"),
            most_bytes=max_bytes or DEFAULT_FETCHED_BYTES,
        )
    return cluster.fetch


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


def _run_options(stages: tuple[str, ...], params: dict[str, Any], settings: Any) -> "RunOptions":
    from jobs.options import RunOptions
    from sharelens.kafka_log.archives import log_directories
    from sharelens.lake.lake import Lake
    from sharelens.spark.session import in_process_bytes

    for path in (params["lake"], *params.get("log_dir", ())):
        path.encode()  # before there is a lake: its tables name both
    names = params.get("topic_names")
    from sharelens.settings.folder import read_settings_folder
    from sharelens.settings.topic_names import read_topic_names
    from sharelens.source.request import dead_letter_topics

    files = None if params.get("settings") is None else read_settings_folder(params["settings"])
    say_warnings(() if files is None else files.warnings)
    from_files = {} if files is None else dict(files.topic_names)
    return RunOptions(
        lake=Lake(params["lake"]),
        log_dirs=log_directories(params.get("log_dir", ())),
        until_ms=params.get("until_ms"),
        cluster_id=params.get("cluster_id"),
        include_uncommitted=params.get("include_uncommitted", False),
        include_deleted=params.get("include_deleted", False),
        topic_names=from_files | ({} if names is None else read_topic_names(names)),
        observations=() if files is None else files.observations,
        rebuild=params.get("rebuild"),
        lock_timeout_s=settings.lock_timeout_s,
        require_rows=params["require_rows"],
        skip_checks=params.get("skip", ()),
        limits=settings.limits(),
        require_check=params.get("require_check", False),
        stages=stages,
        split_bytes=settings.split_bytes,
        in_process_bytes=in_process_bytes(settings),
        dead_letter_topics=dead_letter_topics(params.get("dlq_topic", ()), params.get("dlq_prefix")),
        keep_dlq_values=params.get("dlq_values") == "keep",
    )


def _run(**params: Any) -> None:
    """The whole pipeline, incremental: from log directories to delivery state.

    Reads new records of the log directories, decodes and replays them, and publishes one cut. If the last run was
    killed, the command finishes it first. The summary is one line of JSON on stdout.
    """
    from jobs.options import CHECKED_STAGES, STAGES

    start("run", CHECKED_STAGES if params.pop("check") else STAGES, params)


def _ingest(**params: Any) -> None:
    """The first stage alone: records and batch headers from log directories into bronze."""
    start("ingest", ("ingest",), params)


def _decode(**params: Any) -> None:
    """The second stage alone: bronze records into typed silver rows."""
    start("decode", ("decode",), params)


def _replay(**params: Any) -> None:
    """The third stage alone: silver records into the gold states. `sharelens publish` makes them visible."""
    start("replay", ("replay",), params)


def _measure(**params: Any) -> None:
    """The fourth stage alone: measures of changed share partitions. `sharelens publish` makes them visible."""
    start("measure", ("measure",), params)


def _audit_log(**params: Any) -> None:
    """The fifth stage alone: audits new records of the state log. `sharelens publish` makes the findings visible."""
    start("audit-log", ("audit",), params)


def _publish(**params: Any) -> None:
    """The last stage: publishes the newest versions of all tables as the cut that questions read.

    Exits with 3 while a gate is closed: the newest check of a table has an unmet blocking expectation.
    """
    start("publish", ("publish",), params)


def _command(
    name: str, body: Command, short: str, options: list[Callable[[Command], Command]], example: str
) -> click.Command:
    return click.command(name, short_help=short, epilog=examples(example))(stacked(body, options))


run = _command(
    "run",
    _run,
    "The whole pipeline: from logs to delivery state.",
    [LAKE, *READING, *SCHEDULE, REBUILD, CHECK, SKIP, *ENGINE],
    "sharelens run --log-dir /var/kafka-copy --lake ./lake",
)
ingest = _command(
    "ingest",
    _ingest,
    "The first stage alone: logs into bronze.",
    [LAKE, *READING, *ENGINE],
    "sharelens ingest --log-dir /disk1/kafka --log-dir /disk2/kafka --lake ./lake",
)
decode = _command(
    "decode", _decode, "The second stage alone: bronze into silver.", [LAKE, *ENGINE], "sharelens decode --lake ./lake"
)
replay = _command(
    "replay", _replay, "The third stage alone: silver into gold.", [LAKE, *ENGINE], "sharelens replay --lake ./lake"
)
measure = _command(
    "measure",
    _measure,
    "The fourth stage alone: gold measures.",
    [LAKE, parameters(CLUSTER, SETTINGS), *ENGINE],
    "sharelens measure --lake ./lake --settings ./settings",
)
audit_log = _command(
    "audit-log",
    _audit_log,
    "The fifth stage alone: audit findings.",
    [LAKE, *ENGINE],
    "sharelens audit-log --lake ./lake",
)
publish = _command(
    "publish",
    _publish,
    "The last stage: publishes one cut of all tables.",
    [LAKE, REQUIRE_CHECK, *ENGINE[:2]],
    "sharelens publish --lake ./lake --require-check",
)
COMMANDS = (run, ingest, decode, replay, measure, audit_log, publish)
