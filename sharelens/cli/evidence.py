"""The commands `evidence` and `verify`. They start no JVM."""

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sharelens.cli.asking import FINDINGS, close_with_command, parameters
from sharelens.cli.options.common import examples
from sharelens.cli.options.data import without_values
from sharelens.output import Answer, Shown, name_column, number_column, say, show
from sharelens.question_table.kinds import NewPath
from sharelens.question_table.question import Parameter, flag
from sharelens.question_table.shared import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    DEAD_LETTER_TOPICS,
    GROUP,
    LOG_DIR,
    MAX_BYTES,
    OUTPUT,
    REQUIRE_COMPLETE,
    SETTINGS_FILES,
    SOURCE,
    TOPIC,
    TOPIC_NAMES,
    USER_TOPICS,
    interval,
    lake,
)
from sharelens.source.making import live_cluster
from sharelens.source.request import Source
from state_model.errors import UsageError

if TYPE_CHECKING:
    from sharelens.evidence_folder.folder import Written
    from sharelens.evidence_folder.manifest import Manifest

SHA256 = re.compile(r"[0-9a-fA-F]{64}")
AS_TYPED = "sharelens.as_typed"


class Remembering(click.Command):
    """A command that keeps its command line, for the manifest."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keeps the words behind the command's name."""
        ctx.meta[AS_TYPED] = [*ctx.command_path.split(" "), *without_values(args)]
        return super().parse_args(ctx, args)


@click.command(
    cls=Remembering,
    short_help="Writes the evidence of an incident to a self-contained folder.",
    epilog=examples(
        "sharelens evidence --lake ./lake --group orders-workers --from 2026-11-21T03:00:00Z "
        "--to 2026-11-21T03:40:00Z --case INC-4711 --out ./INC-4711",
    ),
)
@parameters(
    *SOURCE,
    *DEAD_LETTER_TOPICS,
    replace(GROUP, name="group"),
    replace(TOPIC, name="topic"),
    *(
        replace(parameter, is_required=True)
        for parameter in interval("Log times from TIME on.", "Log times before TIME.")
    ),
    Parameter(
        "--case",
        name="case_id",
        metavar="ID",
        is_required=True,
        help="The name of the incident; appears on every page.",
    ),
    Parameter("--out", kind=NewPath(), metavar="DIR", is_required=True, help="The folder to write; it must not exist."),
    *SETTINGS_FILES,
    flag("--no-topic-hashes", "Don't hash segments of user topics (they may be large)."),
    REQUIRE_COMPLETE,
    *OUTPUT,
)
@click.pass_context
def evidence(
    context: click.Context,
    source: Source,
    group: str,
    topic: tuple[str, ...],
    from_ms: int,
    to_ms: int,
    case_id: str,
    out: str,
    no_topic_hashes: bool,
    require_complete: bool,
    shown: Shown,
) -> None:
    """Writes evidence of one group and one window: raw records, states before and after, events, findings.
    Of a consumer or streams group: raw records, histories of members, rebalances,
    events; of a streams group also tasks and findings.

    Tables as CSV, JSON and Parquet, a report, and a manifest with the SHA-256 of sources and content. Repeated, the
    command writes the same content byte for byte. The last line has the hash to note elsewhere.
    """
    from sharelens.evidence_folder.folder import check_place, make_evidence
    from sharelens.evidence_folder.question import ask
    from sharelens.tables import opening

    place = Path(out)
    check_place(place)
    with opening.open_evidence(_without_end_offsets(source)) as opened:
        question = ask(
            case_id=case_id,
            group_id=group,
            from_ms=from_ms,
            to_ms=to_ms,
            topics=topic,
            settings=opened.settings.groups,
            dlq_topics=source.dlq_topics,
            dlq_prefix=source.dlq_prefix,
        )
        written = make_evidence(
            opened,
            question,
            place,
            command_line=list(context.meta[AS_TYPED]),
            hash_topics=not no_topic_hashes,
            require_complete=require_complete,
        )
    show(_written(written, place), shown)


def _without_end_offsets(source: Source) -> Source:
    """The source without end offsets of settings: the manifest has none, and a folder is recomputed from it.

    Of a streams group `__consumer_offsets` alone will do.
    """
    from sharelens.settings.files import NO_SETTINGS_FILES

    files = source.settings_files or NO_SETTINGS_FILES
    return replace(source, settings_files=replace(files, takes_end_offsets=False), takes_group_log=True)


def _written(written: "Written", place: Path) -> Answer:
    """The content files, their completeness, and the hash to note."""
    import pyarrow as pa

    schema = pa.schema([("path", pa.string()), ("size_bytes", pa.int64()), ("sha256", pa.string())])
    rows = [{name: getattr(file, name) for name in schema.names} for file in written.files]
    because = written.content.incomplete
    marked = "complete" if not because else "incomplete: " + "; ".join(note.detail for note in because)
    return Answer(
        table=pa.Table.from_pylist(rows, schema=schema),
        columns=(
            name_column("PATH", "path"),
            number_column("SIZE-BYTES", "size_bytes"),
            name_column("SHA-256", "sha256"),
        ),
        summary=f"{place}: {marked}\nmanifest SHA-256, to be noted elsewhere: {written.manifest_sha256}",
        warnings=tuple(note.detail for note in written.content.notes if not note.incomplete),
    )


@click.command(
    short_help="Checks an evidence folder against its manifest and its sources.",
    epilog=examples(
        "sharelens verify ./INC-4711",
        "sharelens verify ./INC-4711 --log-dir /backup/kafka-1 --log-dir /backup/kafka-2",
        "sharelens verify ./INC-4711 --bootstrap-server localhost:9092",
    ),
)
@click.argument("folder", metavar="DIR")
@click.option("--manifest-sha256", metavar="HEX", help="The hash that `evidence` printed.")
@parameters(
    *lake("Recompute the content from this lake, and compare."),
    replace(LOG_DIR, help="Recompute the content from this log directory or copy. Repeatable."),
    BOOTSTRAP,
    COMMAND_CONFIG,
    USER_TOPICS,
    replace(TOPIC_NAMES, help="The same file as for `evidence`."),
    MAX_BYTES,
    *OUTPUT,
)
def verify(
    folder: str,
    manifest_sha256: str | None,
    lake: str | None,
    log_dir: tuple[str, ...],
    bootstrap_server: str | None,
    command_config: str | None,
    user_topics: str | None,
    topic_names: str | None,
    max_bytes: int,
    shown: Shown,
) -> None:
    """Compares an evidence folder with its manifest: sizes, SHA-256, missing and extra files. Exits 3 on a finding.

    With --lake, --log-dir or --bootstrap-server it also recomputes the content, compares file by file, and lists
    changed source files. A source that grew or was pruned is a note, not a finding.
    """
    if [lake is None, not log_dir, bootstrap_server is None].count(False) > 1:
        raise UsageError("verify: give one of --lake, --log-dir and --bootstrap-server")
    if manifest_sha256 is not None and not SHA256.fullmatch(manifest_sha256):
        raise UsageError("verify: --manifest-sha256: give the 64 hexadecimal digits that `sharelens evidence` printed")
    from sharelens.evidence_folder import verify as check

    read, rows = check.verify(Path(folder), noted_sha256=manifest_sha256)
    live = live_cluster(bootstrap_server, command_config, user_topics, max_bytes)
    again = lake is not None or bool(log_dir) or live is not None
    if again:
        from sharelens.tables import opening

        source = replace(_source(read, lake, log_dir, topic_names, max_bytes), live=live)
        close_with_command(source)
        with opening.open_evidence(_without_end_offsets(source)) as opened:
            rows += check.verify_sources(opened, read)
            rows += check.recompute(opened, read, Path(folder))
    show(check.answer(rows, read, recomputed=again), shown)
    findings = sum(row["kind"] == check.FINDING for row in rows)
    if findings:
        say(f"sharelens: {findings} findings: the folder differs from its manifest or its sources")
        raise click.exceptions.Exit(FINDINGS)


def _source(
    read: "Manifest", lake: str | None, log_dir: tuple[str, ...], topic_names: str | None, max_bytes: int
) -> Source:
    """The source with the reading options of the manifest."""
    from sharelens.kafka_log.archives import log_directories
    from state_model.topics import UNKNOWN_CLUSTER

    cluster = read.document.get("cluster_id")
    return Source(
        lake=lake,
        log_dirs=log_directories(log_dir),
        named_dirs=log_dir,
        cluster_id=cluster if isinstance(cluster, str) and cluster != UNKNOWN_CLUSTER else None,
        include_uncommitted=read.sources.get("include_uncommitted") is True,
        include_deleted=read.sources.get("include_deleted") is True,
        topic_names=topic_names,
        max_bytes=max_bytes,
        dlq_topics=read.question.dlq_topics,
        dlq_prefix=read.question.dlq_prefix,
    )


COMMANDS = (evidence, verify)
