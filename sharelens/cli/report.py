"""The report: one HTML file. It starts no JVM."""

import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sharelens.cli.asking import parameters
from sharelens.cli.extras import ensure_libraries
from sharelens.cli.options.common import ensure_name, examples
from sharelens.output import say, say_warnings
from sharelens.parameters.filters import KeyFilter
from sharelens.question_table.rules import INTERVAL
from sharelens.question_table.shared import (
    CUT,
    DEAD_LETTER_TOPICS,
    END_OFFSETS,
    KEYS,
    NOW,
    SETTINGS_FILES,
    SHORTEST_STALL,
    SOURCE,
    SPAN,
)
from sharelens.shell import shell_word
from sharelens.source.request import CutChoice, Source
from state_model.errors import UsageError

if TYPE_CHECKING:
    from sharelens.measures.topics.file_ends import EndOffsets
    from sharelens.tables.where import Span

STDOUT = "-"
LIBRARIES = ("altair", "jinja2", "vl_convert")


@click.command(
    short_help="One HTML file about share groups.",
    epilog=examples(
        "sharelens report --lake ./lake --out report.html",
        "sharelens report --log-dir /var/kafka-copy --group orders-workers --out orders.html",
    ),
)
@parameters(*SOURCE, *DEAD_LETTER_TOPICS, *KEYS, *CUT, *NOW, *SPAN, SHORTEST_STALL, *SETTINGS_FILES, END_OFFSETS)
@click.option("--out", required=True, metavar="FILE", help="The file to write (mode 0600); - for stdout.")
def report(
    source: Source,
    key_filter: KeyFilter,
    cut: CutChoice,
    span: "Span",
    min_duration_ms: int | None,
    end_offsets: "EndOffsets | None",
    out: str,
) -> None:
    """One self-contained HTML file: findings, groups, lag over time, a picture of the state of the offsets, stalls,
    archived records, traces, gaps, and facts that the log does not have.

    --from and --to bound the log times of stalls, outcomes and charts; the cut is --as-of or the end of the evidence.
    """
    INTERVAL.check("report", asdict(span))
    target = _target(out)
    ensure_libraries("report", LIBRARIES)
    from sharelens.report.gather import ReportQuestion, gather
    from sharelens.report.page import build, render
    from sharelens.tables import opening

    with opening.open_evidence(replace(source, takes_group_log=True)) as evidence:
        question = ReportQuestion(
            key_filter=key_filter,
            cut=cut,
            span=span,
            settings=evidence.settings.groups,
            end_offsets=end_offsets,
            min_duration_ms=min_duration_ms,
        )
        gathered = gather(evidence, question)
        html = render(build(gathered, source, time.time_ns() // 1_000_000))
    say_warnings(gathered.warnings)
    _write(target, html)


def _target(out: str) -> Path | None:
    """The file to write; None for stdout.

    Raises:
        UsageError: a directory, or one that is not there.
    """
    if out == STDOUT:
        return None
    ensure_name(out, "--out")
    target = Path(out)
    if target.is_dir():
        raise UsageError(
            f"--out: {out} is a directory; name a file in it, as in --out {shell_word(str(target / 'report.html'))}"
        )
    if not target.parent.is_dir():
        raise UsageError(f"--out: there is no directory {target.parent}; make it, or name another file")
    return target


def _write(target: Path | None, html: str) -> None:
    content = html.encode()
    if target is None:
        sys.stdout.buffer.write(content)
        return
    from sharelens.lake.whole_file import write_whole

    write_whole(target, content)
    say(f"sharelens: wrote {target} ({len(content) / 1e6:.1f} MB)")


COMMANDS = (report,)
