"""The command `dlq`: dead letters and archived records, bursts, and the redrive plan."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sharelens.cli.forensics import FAIL_ON, FROM, TO, fail_on_findings
from sharelens.cli.incidents import settings_options
from sharelens.cli.options.common import (
    REQUIRE_COMPLETE,
    Duration,
    NewPath,
    cut_options,
    examples,
    filter_options,
    output_options,
)
from sharelens.cli.options.source import dead_letter_options, evidence_options
from sharelens.cli.questions import answer, in_order
from sharelens.output import Form, Shown, json_text, say_warnings, tell
from sharelens.parameters.filters import KeyFilter
from sharelens.source.request import CutChoice, Source, dead_letter_topics
from state_model.errors import UsageError

if TYPE_CHECKING:
    from sharelens.kafka_log.dead_letter_records import DeadLetterTopics

SUFFIXES = (".json", ".csv")
DEFAULT_GAP_MS = 60_000


def _topics(source: Source) -> "DeadLetterTopics | None":
    """The topics that limit an answer; None: all searched topics."""
    topics = dead_letter_topics(source.dlq_topics, source.dlq_prefix)
    return topics if source.dlq_topics or source.dlq_prefix is not None else None


def alone_or_before_a_word(command: Callable[..., None]) -> Callable[..., None]:
    """The command of a group without a subcommand; options before a subcommand are a usage error."""

    @functools.wraps(command)
    def chosen(*args: Any, **params: Any) -> None:
        context = click.get_current_context()
        word = context.invoked_subcommand
        if word is None:
            command(*args, **params)
            return
        typed = click.core.ParameterSource.COMMANDLINE
        if any(context.get_parameter_source(name) is typed for name in context.params):
            raise UsageError(f"dlq: options follow the subcommand: sharelens dlq {word} --lake ...")

    return chosen


@click.group(
    name="dlq",
    invoke_without_command=True,
    short_help="Dead letters: matched, missing, duplicate; bursts; the redrive plan.",
    epilog=examples(
        "sharelens dlq --lake ./lake --group orders-workers",
        "sharelens dlq --log-dir /var/kafka-copy --group-configs groups.txt --status missing --fail-on",
        "sharelens dlq --lake ./lake --bursts --gap 30s",
        "sharelens dlq plan --lake ./lake --group orders-workers --out redrive.json",
    ),
)
@alone_or_before_a_word
@evidence_options
@dead_letter_options
@filter_options
@cut_options
@FROM
@TO
@click.option("--status", metavar="STATUS", multiple=True, help="Only this status (missing, duplicate...). Repeatable.")
@click.option("--bursts", "as_bursts", is_flag=True, help="Group dead letters that are close in time.")
@click.option(
    "--gap", "gap_ms", type=Duration(), metavar="DURATION", help="The longest pause inside a burst  [default: 1m]"
)
@settings_options
@FAIL_ON
@REQUIRE_COMPLETE
@output_options
def dlq(
    source: Source,
    key_filter: KeyFilter,
    cut: CutChoice,
    from_ms: int | None,
    to_ms: int | None,
    status: tuple[str, ...],
    as_bursts: bool,
    gap_ms: int | None,
    fail_on: bool,
    require_complete: bool,
    shown: Shown,
) -> None:
    """Dead letters compared with archived records: matched, duplicate, missing, unexpected, archiving or unknown.

    A dead letter is due for a record in state ARCHIVING (Kafka 4.4). The command searches topics whose name begins with
    dlq., and those of --dlq-topic and --dlq-prefix, for records with headers __dlq.errors.*. --from and --to bound the
    time of the dead letter, or of archiving where there is none. --fail-on: missing, duplicate or unexpected.
    """
    in_order("dlq", from_ms, to_ms)
    from sharelens.measures.dlq.schemas import STATUSES
    from sharelens.questions.dead_letters import dlq as questions
    from sharelens.tables import opening
    from sharelens.tables.where import Span

    for unknown in sorted(set(status) - set(STATUSES)):
        raise UsageError(f"dlq: --status: {unknown!r} is no status; there are {', '.join(STATUSES)}")
    if gap_ms is not None and not as_bursts:
        raise UsageError("dlq: --gap goes with --bursts")
    if as_bursts and (status or fail_on):
        raise UsageError("dlq: --bursts counts dead letters of every status; leave out --status and --fail-on")
    topics, span = _topics(source), Span(from_ms=from_ms, to_ms=to_ms)
    with opening.open_evidence(source) as evidence:
        if as_bursts:
            gap = DEFAULT_GAP_MS if gap_ms is None else gap_ms
            answered = questions.bursts(evidence, key_filter, cut, span, gap_ms=gap, topics=topics)
        else:
            row_limit = None if fail_on else shown.row_limit
            answered = questions.dlq(
                evidence,
                key_filter,
                cut,
                span,
                evidence.settings.groups,
                topics=topics,
                statuses=status or STATUSES,
                row_limit=row_limit,
                wrong_first=shown.form is Form.TEXT,
            )
    answer(answered, shown, require_complete)
    if fail_on:
        fail_on_findings(questions.findings(answered), "rows missing, duplicate or unexpected")


@dlq.command(
    short_help="Writes the redrive plan: records to send again.",
    epilog=examples(
        "sharelens dlq plan --lake ./lake --group orders-workers --out redrive.json",
        "sharelens dlq plan --log-dir /var/kafka-copy --group-configs groups.txt --out redrive.csv",
        "sha256sum --check redrive.csv.sha256",
    ),
)
@evidence_options
@dead_letter_options
@filter_options
@cut_options
@FROM
@TO
@settings_options
@click.option(
    "--out",
    type=NewPath(),
    metavar="FILE",
    required=True,
    help="The plan to write: FILE.json or FILE.csv; its hash goes to FILE.sha256.",
)
@click.option("--force", is_flag=True, help="Overwrite existing files.")
def plan(
    source: Source,
    key_filter: KeyFilter,
    cut: CutChoice,
    from_ms: int | None,
    to_ms: int | None,
    out: str,
    force: bool,
) -> None:
    """The redrive plan: one row a dead letter or range of records without one, with an advice and its reason.

    Advice is redrive, check or do_not. sharelens never produces records; the plan is input for your own tool. The same
    evidence gives the same bytes; FILE.sha256 has their hash for sha256sum. One line of JSON goes to stdout.
    """
    in_order("dlq plan", from_ms, to_ms)
    path = Path(out)
    if path.suffix not in SUFFIXES:
        raise UsageError(
            f"dlq plan: --out: {out!r} ends in neither .json nor .csv; name a file with one of these endings"
        )
    from sharelens.output.private_files import ensure_free, write_private
    from sharelens.questions.answers.missing import unnamed_topics
    from sharelens.questions.dead_letters import dlq as questions
    from sharelens.questions.dead_letters import redrive
    from sharelens.tables import opening
    from sharelens.tables.where import Span

    beside = path.with_name(f"{path.name}.sha256")
    ensure_free(path, beside, force=force)
    span = Span(from_ms=from_ms, to_ms=to_ms)
    with opening.open_evidence(source) as evidence:
        reconciled = questions.reconciled(evidence, key_filter, cut, evidence.settings.groups, _topics(source), span)
        redrive_plan = redrive.redrive_plan(evidence, reconciled)
    content = redrive_plan.as_json() if path.suffix == ".json" else redrive_plan.as_csv()
    line = redrive.sha256_line(content, path.name)
    write_private(path, content)
    write_private(beside, line)
    say_warnings((*reconciled.warnings, *questions.without_topic(reconciled.rows), *unnamed_topics(reconciled.rows)))
    summary = {
        "plan": str(path),
        "rows": redrive_plan.rows.num_rows,
        **redrive_plan.counts(),
        "sha256": line.split()[0].decode(),
    }
    tell(json_text(summary))


COMMANDS = (dlq,)
