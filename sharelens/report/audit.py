"""The audit's findings on a page: what coordinators wrote that they must not write, or that has a cause."""

from collections import Counter
from collections.abc import Sequence

from sharelens.findings.signs import Audited
from sharelens.output.wording import UNKNOWN, counted, name, place
from sharelens.questions.answers.share_partitions import Row
from sharelens.report.model import Cell, Head, Section, Sheet
from sharelens.report.orders import ROWS_SHOWN
from sharelens.report.sheets import number_cell, text_cell, time_cell

NOT_AUDITED = "Nobody has audited this evidence. A run audits its lake; log directories are audited by the command."
MARKS = {"error": "wrong", "warning": "watch"}


def audit_section(audited: Audited | None, command: str) -> Section:
    """The part of the page about the audit; `command` answers for all of it."""
    if audited is None:
        return Section(name="audit", title="Audit", paragraphs=(NOT_AUDITED,), commands=(command,))
    return Section(
        name="audit",
        title="Audit",
        paragraphs=_words(audited),
        sheets=(_sheet(audited, command),) if audited.rows.num_rows else (),
        commands=() if audited.rows.num_rows else (command,),
    )


def _words(audited: Audited) -> Sequence[str]:
    counts = Counter(audited.rows.column("severity").to_pylist())
    suppressed = f" {counted(audited.suppressed, 'finding')} suppressed." if audited.suppressed else ""
    if not counts:
        return (f"The coordinators wrote what they must: no error, no warning.{suppressed}",)
    counts_text = f"{counted(counts['error'], 'error')}, {counted(counts['warning'], 'warning')}"
    return (
        f"{counts_text}. An error is what no healthy broker writes; a warning is legal, but has a cause.{suppressed}",
    )


def _sheet(audited: Audited, command: str) -> Sheet:
    return Sheet(
        name="audit-table",
        caption="Findings of the audit, errors first",
        heads=(
            Head(label="Severity"),
            Head(label="Rule"),
            Head(label="Group"),
            Head(label="Share partition"),
            Head(label="Records", number=True, hint="state-log records that violate the rule"),
            Head(label="First", hint="log time, UTC"),
            Head(label="Last", hint="log time, UTC"),
            Head(label="Impact"),
            Head(label="Follows from", hint="the rule whose finding explains this one, or an event"),
            Head(label="Evidence"),
        ),
        rows=[_cells(row) for row in audited.rows.slice(0, ROWS_SHOWN).to_pylist()],
        left_off=max(0, audited.rows.num_rows - ROWS_SHOWN),
        command=command,
        tools=True,
    )


def _cells(row: Row) -> Sequence[Cell]:
    where = UNKNOWN if row["partition"] is None else place(row["topic"], row["topic_id"], row["partition"])
    return (
        Cell(text=row["severity"], mark=MARKS[row["severity"]]),
        text_cell(row["rule"]),
        text_cell(UNKNOWN if row["group_id"] is None else name(row["group_id"])),
        text_cell(where),
        number_cell(row["count"]),
        time_cell(row["first_seen_ms"]),
        time_cell(row["last_seen_ms"]),
        text_cell(row["impact_text"]),
        text_cell(row["cause_inferred"] or UNKNOWN),
        text_cell(row["completeness"]),
    )
