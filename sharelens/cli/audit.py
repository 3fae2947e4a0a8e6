"""The command audit: the coordinators' invariants over a lake or log directories. It starts no JVM."""

from dataclasses import replace

import click

from sharelens.cli.forensics import FROM, TO, fail_on_findings
from sharelens.cli.incidents import settings_options
from sharelens.cli.options.common import examples, filter_options, output_options
from sharelens.cli.options.source import evidence_options
from sharelens.cli.questions import in_order
from sharelens.output import Shown, show, tell
from sharelens.parameters.filters import KeyFilter
from sharelens.source.request import Source
from state_model.audit.severities import SEVERITIES, VERSIONS


def explain(ctx: click.Context, param: click.Parameter, rule: str | None) -> None:
    """Prints why a rule (or each rule of a number) holds, what it needs, and what to do; ends the command."""
    if rule is None:
        return
    from state_model.audit.common_causes import EVENTS
    from state_model.audit.explanation import explanation
    from state_model.audit.table import rules_named

    if rule in EVENTS:
        tell(f"{rule} (cause of findings): {EVENTS[rule]}.")
        ctx.exit()
    tell("\n\n".join("\n".join(explanation(named)) for named in rules_named(rule, "--explain")))
    ctx.exit()


@click.command(
    short_help="Whether the share coordinators behaved: their invariants over the state log.",
    epilog=examples(
        "sharelens audit --lake ./lake --kafka-version 4.3",
        "sharelens audit --log-dir /var/kafka-copy --group orders-workers --fail-on error",
        "sharelens audit --log-dir /var/kafka-copy --suppressions known.yaml --show-suppressed",
        "sharelens audit --explain snapshot_epoch_skips",
    ),
)
@evidence_options
@filter_options
@FROM
@TO
@settings_options
@click.option("--rule", "rule", metavar="RULE", multiple=True, help="Only this rule: its code or number. Repeatable.")
@click.option(
    "--kafka-version",
    type=click.Choice(VERSIONS),
    help="The version of the brokers that wrote the log, if it is one; without it the lowest severity of all versions "
    "counts.",
)
@click.option(
    "--severity",
    type=click.Choice(SEVERITIES),
    default="warning",
    show_default=True,
    help="List findings of this severity and worse ones.",
)
@click.option(
    "--suppressions",
    "suppressions_file",
    metavar="FILE",
    help="A YAML list of findings that are known, each with a reason and a last day  [default: conf, setting audit]",
)
@click.option("--show-suppressed", is_flag=True, help="Also list the suppressed findings, with their reasons.")
@click.option(
    "--explain",
    metavar="RULE",
    is_eager=True,
    expose_value=False,
    callback=explain,
    help="Print why a rule holds, the evidence it needs, and what to do, or what a cause is; reads no log.",
)
@click.option(
    "--fail-on", type=click.Choice(SEVERITIES), help="Exit with 3 on a finding of this severity or a worse one."
)
@output_options
def audit(
    source: Source,
    key_filter: KeyFilter,
    from_ms: int | None,
    to_ms: int | None,
    rule: tuple[str, ...],
    kafka_version: str | None,
    severity: str,
    suppressions_file: str | None,
    show_suppressed: bool,
    fail_on: str | None,
    shown: Shown,
) -> None:
    """Tests the invariants of the share coordinator on every record of the state log, and lists the violations with
    the records that prove them. An error is what no healthy broker writes; a warning is legal, but has a cause that is
    worth knowing.

    Rules that need evidence that is missing are named as not tested. --from and --to bound the log time of the
    violations; the log is always read from its beginning. Suppressed findings are not listed, and don't count for
    --fail-on. Log directories of another cluster than that of the state log are a finding.

    A lake has the findings of its runs, with the settings that it keeps. There --from and --to choose the findings
    that were seen in that time, with their counts over all time.
    """
    in_order("audit", from_ms, to_ms)
    from sharelens.questions.answers.checked import audited_with_coordinators
    from sharelens.questions.answers.naming import resolve
    from sharelens.questions.audits.audit import AuditChoice, audit, findings_from
    from sharelens.settings.suppressions import read_suppressions
    from sharelens.tables.opening import open_evidence
    from sharelens.tables.where import Span
    from state_model.audit.table import rules_named

    least = max(severity, fail_on or SEVERITIES[0], key=SEVERITIES.index)
    rules = tuple(named for text in rule for named in rules_named(text))
    choice = AuditChoice(
        rules=rules,
        version=kafka_version,
        severity=least,
        suppressions=read_suppressions(suppressions_file),
        shows_suppressed=show_suppressed,
    )
    with open_evidence(replace(source, needs_state_log=False, sets_clusters_apart=True)) as evidence:
        answered = audit(evidence, key_filter, Span(from_ms=from_ms, to_ms=to_ms), choice)
        answered = audited_with_coordinators(evidence, answered, resolve(evidence, key_filter))
    show(answered, shown)
    if fail_on is not None:
        fail_on_findings(findings_from(answered, fail_on), "findings")


COMMANDS = (audit,)
