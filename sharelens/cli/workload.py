"""Workloads of real clients, and the check of their journals."""

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sharelens.cli.asking import parameters
from sharelens.cli.options.common import NewPath, Seconds, examples
from sharelens.kafka_formats.addresses import listeners
from sharelens.output import Answer, Column, Shown, by_importance, name_cell, name_column, say, show, text_column
from sharelens.output.wording import counted
from sharelens.question_table.shared import OUTPUT
from state_model.errors import UsageError

if TYPE_CHECKING:
    from sharelens.workloads.check import CheckResult
    from sharelens.workloads.run import WorkloadOptions

FINDINGS = 3
PROFILE_NAMES = (
    "steady",
    "poison",
    "slow-consumer",
    "crash-loop",
    "offset-resets",
    "dead-letters",
    "transactions",
    "many-groups",
    "streams",
    "consumer",
)
WITHOUT_SHARE_GROUPS = ("streams", "consumer")
DEFAULT_DURATION_S = 10.0
DEFAULT_RATE = 200.0


@click.command(
    short_help="Sends the load of real clients to a broker and writes a journal.",
    epilog=examples(
        "sharelens workload --bootstrap-server 127.0.0.1:9092 --profile poison --duration 20s --journal poison.jsonl",
        "sharelens workload --check poison.jsonl",
    ),
)
@click.option("--bootstrap-server", metavar="HOST:PORT", help="The broker.")
@click.option("--profile", type=click.Choice(PROFILE_NAMES), help="Records, members and faults.")
@click.option("--records", type=click.IntRange(min=1), metavar="N", help="Number of records to produce.")
@click.option(
    "--duration",
    "duration_s",
    type=Seconds(least_ms=100),
    metavar="DURATION",
    help="Time to produce: 90s, 5m; a number: seconds  [default: 10s without --records]",
)
@click.option(
    "--rate",
    type=click.FloatRange(min=0.1),
    metavar="N",
    help="Records a second  [default: 200 with a duration, else without limit]",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed of the random choices, such as poisonous records."
)
@click.option("--topic", metavar="TOPIC", help="The topic; created if missing  [default: workload-PROFILE]")
@click.option("--group", metavar="GROUP", help="Name or name prefix of the groups  [default: workload-PROFILE]")
@click.option("--journal", metavar="FILE", type=NewPath(path_type=Path), help="A new file: JSON, one line an event.")
@click.option(
    "--checkpoints",
    metavar="FILE",
    type=NewPath(path_type=Path),
    help="A new file: answers of the share coordinator for the groups' state. Sends the state RPCs.",
)
@click.option(
    "--kafka-libs",
    metavar="DIR",
    multiple=True,
    type=click.Path(path_type=Path),
    help="The jars of Kafka 4.2 or later, for the profile streams; repeatable  [default: $KAFKA_HOME/libs]",
)
@click.option("--check", "checked", metavar="FILE", type=click.Path(path_type=Path), help="Only check this journal.")
@parameters(*OUTPUT)
def workload(
    bootstrap_server: str | None,
    profile: str | None,
    records: int | None,
    duration_s: float | None,
    rate: float | None,
    seed: int,
    topic: str | None,
    group: str | None,
    journal: Path | None,
    checkpoints: Path | None,
    kafka_libs: tuple[Path, ...],
    checked: Path | None,
    shown: Shown,
) -> None:
    """Sends the load of real clients to a broker and checks their journal at the end. Exits with 3 on findings.

    Findings: a record delivered after its confirmed outcome, a delivery count above every limit, a missing acknowledged
    record. An outcome that the client does not know is ambiguous and no finding. The profile streams runs an
    application of Kafka Streams; finding: a record that it did not count, or counted twice. The profile consumer runs a
    consumer group; findings: a partition with two owners, a record read again after its commit, a commit of a member
    that was fenced.
    """
    if checked is not None:
        if any(option is not None for option in (bootstrap_server, profile, journal, checkpoints)):
            raise UsageError("--check excludes the options of a run; leave them out")
        _judge(checked, shown)
        return
    if bootstrap_server is None or profile is None or journal is None:
        raise UsageError("give --bootstrap-server HOST:PORT, --profile and --journal FILE; or --check FILE")
    if duration_s is None and records is None:
        duration_s = DEFAULT_DURATION_S
    if rate is None and duration_s is not None:
        rate = DEFAULT_RATE
    if profile == "streams" and topic is not None:
        raise UsageError("the profile streams has its own topics: leave out --topic")
    if profile in WITHOUT_SHARE_GROUPS and checkpoints is not None:
        raise UsageError(f"the profile {profile} has no share state: leave out --checkpoints")
    listeners(bootstrap_server)
    options = _options(bootstrap_server, profile, (records, duration_s, rate), seed, topic, group)
    if profile == "streams":
        _run_streams(options, journal, kafka_libs)
    elif profile == "consumer":
        _run_consumers(options, journal)
    else:
        _run(options, journal, checkpoints)
    _judge(journal, shown)


def _options(
    bootstrap_server: str,
    profile: str,
    amount: tuple[int | None, float | None, float | None],
    seed: int,
    topic: str | None,
    group: str | None,
) -> "WorkloadOptions":
    try:
        from sharelens.workloads.load import Amount
        from sharelens.workloads.profiles import CONSUMER, PROFILES, STREAMS
        from sharelens.workloads.run import WorkloadOptions
    except ModuleNotFoundError as missing:
        raise UsageError(f"workloads need {missing.name}: pip install 'sharelens[broker,workload]'") from missing
    records, duration_s, rate = amount
    return WorkloadOptions(
        bootstrap=bootstrap_server,
        profile={**PROFILES, STREAMS.name: STREAMS, CONSUMER.name: CONSUMER}[profile],
        amount=Amount(records=records, duration_s=duration_s, rate=rate),
        seed=seed,
        topic=topic or f"workload-{profile}",
        group=group or f"workload-{profile}",
    )


def _run(options: "WorkloadOptions", path: Path, checkpoints_path: Path | None) -> None:
    from sharelens.workloads.checkpoints import Checkpoints
    from sharelens.workloads.journal import Journal
    from sharelens.workloads.run import Workload

    with ExitStack() as files:
        journal = files.enter_context(closing(Journal(path)))
        checkpoints = None
        if checkpoints_path is not None:
            checkpoints = files.enter_context(
                closing(Checkpoints(checkpoints_path, options.bootstrap, options.topic, options.groups))
            )
        with _refusals(options):
            Workload(options, journal, checkpoints).run()
        if checkpoints is not None:
            say(f"sharelens: {checkpoints.taken_count} checkpoints in {checkpoints_path}")


def _run_streams(options: "WorkloadOptions", path: Path, kafka_libs: tuple[Path, ...]) -> None:
    from sharelens.workloads.application import find_java
    from sharelens.workloads.journal import Journal
    from sharelens.workloads.streams import StreamsWorkload

    java = find_java(kafka_libs)
    with closing(Journal(path)) as journal, _refusals(options):
        StreamsWorkload(options, journal, java).run()


def _run_consumers(options: "WorkloadOptions", path: Path) -> None:
    from sharelens.workloads.consumers import ConsumerWorkload
    from sharelens.workloads.journal import Journal

    with closing(Journal(path)) as journal, _refusals(options):
        ConsumerWorkload(options, journal).run()


@contextmanager
def _refusals(options: "WorkloadOptions") -> Iterator[None]:
    """What the client library raises, as an error of the run."""
    from confluent_kafka import KafkaException

    from sharelens.workloads.admin import WorkloadError

    try:
        yield
    except KafkaException as error:
        raise WorkloadError(f"{options.bootstrap}: {error.args[0].str()}") from error


def _judge(path: Path, shown: Shown) -> None:
    import pyarrow as pa

    from sharelens.workloads.check import check
    from sharelens.workloads.journal import read_journal

    checked = check(read_journal(path))
    schema = pa.schema([("code", pa.string()), ("where", pa.string()), ("line", pa.int64()), ("why", pa.string())])
    rows = [
        {"code": finding.code, "where": finding.where, "line": finding.line, "why": finding.why}
        for finding in checked.findings
    ]
    columns = (
        text_column("CODE", "code"),
        name_column("WHERE", "where"),
        Column(heading="LINE", cell=lambda row: name_cell(row["line"]), right=True, fields=("line",)),
        text_column("WHY", "why"),
    )
    table = pa.Table.from_pylist(rows, schema=schema)
    ranked = by_importance(columns, "CODE WHERE WHY LINE")
    show(Answer(table=table, columns=ranked, summary=_summary(checked), none="no findings"), shown)
    if checked.findings:
        say(f"sharelens: {counted(len(checked.findings), 'finding')} in {path}")
        raise click.exceptions.Exit(FINDINGS)


def _summary(checked: "CheckResult") -> str:
    return ", ".join(f"{name} {number}" for name, number in sorted(checked.counts.items()) if number) or "nothing seen"


COMMANDS = (workload,)
