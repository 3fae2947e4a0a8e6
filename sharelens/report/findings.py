"""The findings of `sharelens overview` on a page, and the key figures."""

from collections.abc import Mapping, Sequence

import pyarrow.compute as pc

from sharelens.findings import finding as questions
from sharelens.findings.signs import Signs
from sharelens.findings.verdict import first_line
from sharelens.groups.schemas import STREAMS
from sharelens.measures.figures import of_sums, total_of
from sharelens.output.wording import UNKNOWN, counted, name, number
from sharelens.questions.answers.completeness import COMPLETE
from sharelens.questions.answers.share_partitions import Key
from sharelens.report.gather import Gathered
from sharelens.report.model import Finding, Tile, Weight

MOST_OF_A_KIND = 4
Anchors = Mapping[tuple[Key, int], str]
"""Where on the page the trace of a record stands."""
WEIGHTS = {questions.ERROR: Weight.WRONG, questions.WARNING: Weight.WATCH, questions.INFO: Weight.NOTE}
SECTION_OF: Mapping[str, str] = {
    "stalled": "stalls",
    "trace": "stalls",
    "dlq": "dead-letters",
    "life": "lives",
    "status": "evidence",
    **dict.fromkeys(("lag", "groups", "describe", "rebalances", "cost"), "groups"),
}
"""The part of the page with what a question answers, where its name is another one."""


def findings(gathered: Gathered, anchors: Anchors, command: questions.Command) -> Sequence[Finding]:
    """The findings, the worst of each kind with a count of the others; before them the verdict where no error is
    found."""
    rows = gathered.verdict.findings
    shown: list[Finding] = []
    for kind in dict.fromkeys(row.kind for row in rows):
        rows_of_kind = [row for row in rows if row.kind == kind]
        shown += [_finding(row, gathered, anchors, command) for row in rows_of_kind[:MOST_OF_A_KIND]]
        remaining_count = len(rows_of_kind) - MOST_OF_A_KIND
        if remaining_count > 0:
            text = f"{counted(remaining_count, 'more group')} of the same kind: {kind}."
            shown.append(Finding(weight=shown[-1].weight, text=text, href=_section(rows_of_kind[0])))
    shown.sort(key=lambda finding: list(Weight).index(finding.weight))
    if gathered.verdict.count(questions.ERROR):
        return shown
    is_clear = not any(finding.weight in (Weight.WRONG, Weight.WATCH) for finding in shown)
    verdict = f"{first_line(gathered.verdict, gathered.signs)}."
    return [Finding(weight=Weight.GOOD if is_clear else Weight.WATCH, text=verdict), *shown]


def _finding(row: questions.Finding, gathered: Gathered, anchors: Anchors, command: questions.Command) -> Finding:
    about = "" if row.group_id is None else f"{name(row.group_id)}: "
    key = (row.group_id, row.topic_id, row.partition)
    trace = next((anchors[where] for where in anchors if where[0] == key), None) if row.kind == "stuck" else None
    return Finding(
        weight=WEIGHTS[row.severity] if row.remedy is None else Weight.WATCH,
        text=f"{about}{row.text}." if row.remedy is None else f"{about}{row.text}: {row.remedy}.",
        command=command(row.question, list(row.options)),
        href=trace or _section(row),
    )


def _section(row: questions.Finding) -> str:
    return f"#{STREAMS if row.group_type == STREAMS else SECTION_OF.get(row.question, row.question)}"


def tiles(gathered: Gathered) -> Sequence[Tile]:
    """The row of figures under the findings."""
    of_share_groups = () if gathered.other_groups_alone else _share_tiles(gathered)
    return (*of_share_groups, *(_streams_tiles(gathered.signs) if gathered.signs.streams else ()))


def _streams_tiles(signs: Signs) -> Sequence[Tile]:
    lags = [sign.lag.records for sign in signs.streams if sign.lag.records is not None]
    tasks, unknown = (sum(counts) for counts in zip(*((of.tasks, of.lag.unknown) for of in signs.streams), strict=True))
    without_owner = sum(len(sign.without_owner) for sign in signs.streams)
    return (
        Tile(label="Streams groups", figure=number(len(signs.streams)), detail=counted(tasks, "active task")),
        Tile(
            label="Lag of streams groups",
            figure=number(sum(lags)) + ("+" if unknown else "") if lags else UNKNOWN,
            detail=f"unknown for {number(unknown)}" if unknown else "records",
        ),
        Tile(
            label="Tasks without owner",
            figure=number(without_owner),
            detail="active tasks",
            weight=Weight.WATCH if without_owner else Weight.NOTE,
        ),
    )


def _share_tiles(gathered: Gathered) -> Sequence[Tile]:
    answers = gathered.answers
    lags, stalls = answers["lag"].table, answers["stalled"].sums
    standing, over = (total_of(stalls.filter(pc.field("is_over") == number), "rows") for number in (0, 1))
    given_up = total_of(of_sums("archived_records", answers["poison"].sums))
    again = total_of(answers["redelivered"].sums)
    unknown = lags.column("lag").null_count
    lag = pc.sum(lags.column("lag")).as_py()
    incomplete = int(pc.sum(pc.not_equal(lags.column("completeness"), COMPLETE)).as_py() or 0)
    return (
        Tile(
            label="Share groups",
            figure=number(len(gathered.signs.share_groups)),
            detail=counted(lags.num_rows, "share partition"),
        ),
        Tile(
            label="Lag",
            figure=UNKNOWN if lag is None else number(lag) + ("+" if unknown else ""),
            detail=f"unknown for {number(unknown)}" if unknown else "records",
        ),
        Tile(
            label="Standing still",
            figure=number(standing),
            detail=f"{number(over)} over",
            weight=Weight.WRONG if standing else Weight.NOTE,
        ),
        Tile(
            label="Archived",
            figure=number(given_up),
            detail="records of all groups",
            weight=Weight.WATCH if given_up else Weight.NOTE,
        ),
        Tile(label="Redelivered", figure=number(again), detail="records of all groups"),
        Tile(
            label="Completeness",
            figure="complete" if not incomplete else f"{number(incomplete)} not complete",
            detail="all share partitions" if not incomplete else "share partitions",
            weight=Weight.WATCH if incomplete else Weight.NOTE,
        ),
    )
