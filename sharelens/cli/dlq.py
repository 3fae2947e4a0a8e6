"""The command `dlq plan`."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sharelens.cli.asking import parameters
from sharelens.cli.options.common import NewPath, examples
from sharelens.output import json_text, say_warnings, tell
from sharelens.parameters.filters import KeyFilter
from sharelens.question_table.rules import INTERVAL
from sharelens.question_table.shared import CUT, DEAD_LETTER_TOPICS, KEYS, SETTINGS_FILES, SOURCE, SPAN
from sharelens.source.request import CutChoice, Source, limiting_topics
from state_model.errors import UsageError

if TYPE_CHECKING:
    from sharelens.tables.where import Span

SUFFIXES = (".json", ".csv")


@click.command(
    short_help="Writes the redrive plan: records to send again.",
    epilog=examples(
        "sharelens dlq plan --lake ./lake --group orders-workers --out redrive.json",
        "sharelens dlq plan --log-dir /var/kafka-copy --group-configs groups.txt --out redrive.csv",
        "sha256sum --check redrive.csv.sha256",
    ),
)
@parameters(*SOURCE, *DEAD_LETTER_TOPICS, *KEYS, *CUT, *SPAN, *SETTINGS_FILES)
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
    span: "Span",
    out: str,
    force: bool,
) -> None:
    """The redrive plan: one row a dead letter or range of records without one, with an advice and its reason.

    Advice is redrive, check or do_not. sharelens never produces records; the plan is input for your own tool. The same
    evidence gives the same bytes; FILE.sha256 has their hash for sha256sum. One line of JSON goes to stdout.
    """
    INTERVAL.check("dlq plan", asdict(span))
    path = Path(out)
    if path.suffix not in SUFFIXES:
        raise UsageError(
            f"dlq plan: --out: {out!r} ends in neither .json nor .csv; name a file with one of these endings"
        )
    from sharelens.output.private_files import ensure_free, write_private
    from sharelens.questions.answers.missing import unnamed_topics
    from sharelens.questions.dead_letters import dlq as questions
    from sharelens.questions.dead_letters import reconciled, redrive
    from sharelens.tables import opening

    beside = path.with_name(f"{path.name}.sha256")
    ensure_free(path, beside, force=force)
    with opening.open_evidence(source) as evidence:
        reconciled_rows = reconciled.reconciled(
            evidence,
            key_filter,
            cut,
            evidence.settings.groups,
            limiting_topics(source.dlq_topics, source.dlq_prefix),
            span,
        )
        redrive_plan = redrive.redrive_plan(evidence, reconciled_rows)
    content = redrive_plan.as_json() if path.suffix == ".json" else redrive_plan.as_csv()
    line = redrive.sha256_line(content, path.name)
    write_private(path, content)
    write_private(beside, line)
    say_warnings(
        (
            *reconciled_rows.warnings,
            *questions.without_topic(reconciled_rows.rows),
            *unnamed_topics(reconciled_rows.rows),
        )
    )
    summary = {
        "plan": str(path),
        "rows": redrive_plan.rows.num_rows,
        **redrive_plan.counts(),
        "sha256": line.split()[0].decode(),
    }
    tell(json_text(summary))
