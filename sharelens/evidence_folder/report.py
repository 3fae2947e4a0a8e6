"""The report of a folder of evidence: one HTML page that needs nothing beside it, made from the same rows."""

import html
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

import pyarrow as pa

from sharelens.evidence_folder.notes import Note
from sharelens.evidence_folder.question import Question
from sharelens.evidence_folder.tables import ALL_TABLES, kind_of
from sharelens.evidence_folder.writers import sorted_rows
from sharelens.output import Answer, Column, name_cell, rows_of
from sharelens.output.terminal import visible
from sharelens.parameters.times import time_text
from sharelens.questions import state
from sharelens.report.unknowable import CANNOT_KNOW_OF_CONSUMERS, CANNOT_KNOW_OF_STREAMS
from state_model.group_schemas import GroupKind

ROWS_SHOWN = 100
STYLE = """
:root { color-scheme: light dark; --ink: #1b2430; --dim: #5b6675; --line: #d9dee5; --paper: #fff; --mark: #b3540a; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6eaf0; --dim: #9aa6b5; --line: #333c48; --paper: #151a21; --mark: #f0a35e; }
}
body { margin: 0 auto; max-width: 76rem; padding: 1.5rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; margin: 0 0 .5rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .25rem; }
p { margin: .25rem 0; } .dim { color: var(--dim); } .mark { color: var(--mark); font-weight: 600; }
.box { overflow-x: auto; border: 1px solid var(--line); border-radius: 6px; margin: .5rem 0; }
table { border-collapse: collapse; width: 100%; font-size: 13px; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding: .4rem .6rem; color: var(--dim); }
th, td { padding: .3rem .6rem; border-top: 1px solid var(--line); text-align: left; white-space: nowrap; }
th { color: var(--dim); font-weight: 600; } .right { text-align: right; } .wrap { white-space: normal; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: .5rem 0; } dd { margin: 0; }
dt { color: var(--dim); } ul { padding-left: 1.2rem; margin: .25rem 0; }
@media print { .box { overflow: visible; } td { white-space: normal; } }
"""
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{body}
</body>
</html>
"""
FINDINGS = {
    "finding": "What was wrong at the window's end",
    "timeline": "What happened",
    "rebalance": "Rebalances",
    "stall": "What stood still",
    "poison": "What was given up",
    "dlq": "Dead letters and archived records",
    "redelivered": "Records delivered more than once",
    "life": "Creations, resets, deletions, moved epochs",
    "account": "Outcomes of the offsets appended in the window",
    "lag": "Lag at the window's end",
    "audit": "What the coordinators wrote against their rules",
}
STATES = {"state_before": "State before the window", "state_after": "State at the window's end"}
UNKNOWABLE_OF = {GroupKind.CONSUMER: CANNOT_KNOW_OF_CONSUMERS, GroupKind.STREAMS: CANNOT_KNOW_OF_STREAMS}
UNKNOWABLE = (
    "The log has outcomes, not acquisitions: it does not show which member had or has a record.",
    "A release, an expired lock and a member that left look the same; deliveries without an outcome are not logged.",
    "Whether a record was processed is not in the log; acknowledged means that a consumer acknowledged it.",
)


def report(
    question: Question,
    cluster_id: str | None,
    record_counts: Mapping[str, int],
    notes: Sequence[Note],
    answers: Mapping[str, Answer],
    tables: Mapping[str, pa.Table],
) -> str:
    """The page."""
    title = f"Evidence {visible(question.case_id)}"
    kind = kind_of(record_counts)
    parts = [_head(title, f"{kind.value.title()} group", question, cluster_id), _completeness(notes)]
    parts += [_finding(name, heading, answers[name]) for name, heading in FINDINGS.items() if name in answers]
    for name, heading in STATES.items():
        if name in tables:
            parts.append(_section(heading, (), _table(name, tables[name], state.LAYOUT.columns())))
    parts.append(_section("What cannot be known", UNKNOWABLE_OF.get(kind, UNKNOWABLE), ""))
    parts.append(_section("Files", (), _files(record_counts)))
    return PAGE.format(title=html.escape(title), style=STYLE, body="\n".join(parts))


def _head(title: str, kind: str, question: Question, cluster_id: str | None) -> str:
    facts = {
        kind: name_cell(question.group_id),
        "Topics asked for": ", ".join(map(name_cell, question.topics)) or "all",
        "Cluster": name_cell(cluster_id or "unknown"),
        "Window": f"{time_text(question.from_ms)} up to, not including, {time_text(question.to_ms)} (log time)",
        "Settings": ", ".join(
            f"{name} = {name_cell(setting.value)} ({setting.origin})"
            for name, setting in sorted(question.settings.items())
            if setting.value is not None
        )
        or "not told",
    }
    rows = "".join(f"<dt>{html.escape(name)}</dt><dd>{html.escape(visible(fact))}</dd>" for name, fact in facts.items())
    return f"<h1>{html.escape(title)}</h1>\n<dl>{rows}</dl>"


def _completeness(notes: Sequence[Note]) -> str:
    because = [note for note in notes if note.incomplete]
    other_notes = [note for note in notes if not note.incomplete]
    summary = (
        '<p class="mark">This evidence is incomplete:</p>' + _list(note.detail for note in because)
        if because
        else "<p>Complete: no gap, nothing unreadable, and the evidence reaches beyond the window on both sides.</p>"
    )
    notes_html = '<p class="dim">Also to know:</p>' + _list(note.detail for note in other_notes) if other_notes else ""
    return f"<h2>Completeness</h2>\n{summary}{notes_html}"


def _list(lines: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{html.escape(visible(line))}</li>" for line in lines) + "</ul>"


def _section(heading: str, lines: Iterable[str], body: str) -> str:
    intro = "".join(f'<p class="dim">{html.escape(visible(line))}</p>' for line in lines)
    return f"<h2>{html.escape(heading)}</h2>\n{intro}{body}"


def _finding(name: str, heading: str, answer: Answer) -> str:
    """A finding with its own closing lines, without the one about all of the evidence."""
    lines = (answer.summary or "").splitlines()[:-1]
    rows = sorted_rows(answer.table)
    if "duration_ms" in rows.column_names:
        rows = rows.sort_by([("duration_ms", "descending")])
    if rows.num_rows == 0:
        return _section(heading, [f"{answer.none}."], "")
    return _section(heading, lines, _table(name, rows, answer.columns))


def _table(name: str, rows: pa.Table, columns: Sequence[Column]) -> str:
    if rows.num_rows == 0:
        return '<p class="dim">No row.</p>'
    heads = "".join(f"<th scope='col'{_align(column)}>{html.escape(column.heading)}</th>" for column in columns)
    lines = []
    for row in islice(rows_of(rows), ROWS_SHOWN):
        cells = (f"<td{_align(column)}>{html.escape(column.cell(row))}</td>" for column in columns)
        lines.append(f"<tr>{''.join(cells)}</tr>")
    limit_text = f", the first {ROWS_SHOWN} here" if rows.num_rows > ROWS_SHOWN else ""
    caption = f"<caption>{rows.num_rows} rows in tables/{name}{limit_text}</caption>"
    return (
        f'<div class="box"><table>{caption}<thead><tr>{heads}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'
    )


def _align(column: Column) -> str:
    return ' class="right"' if column.right else ""


def _files(record_counts: Mapping[str, int]) -> str:
    lines = "".join(
        f"<tr><td>tables/{table.name}</td><td class='right'>{record_counts[table.name]}</td>"
        f"<td class='wrap'>{html.escape(table.one_row.replace('`', ''))}</td></tr>"
        for table in ALL_TABLES
        if table.name in record_counts
    )
    head = "<tr><th scope='col'>TABLE</th><th scope='col' class='right'>ROWS</th><th scope='col'>ONE ROW IS</th></tr>"
    caption = "<caption>each as .csv, .json and .parquet; README.md explains the columns</caption>"
    return f'<div class="box"><table>{caption}<thead>{head}</thead><tbody>{lines}</tbody></table></div>'
