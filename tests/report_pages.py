"""Reports of small logs, and a log whose names are as hostile as names can be."""

import json
from pathlib import Path
from typing import Any

import pytest
import vl_convert

from sharelens.measures.settings.over_time import GroupSettings
from sharelens.report import charts
from sharelens.report.gather import Gathered, ReportQuestion, gather
from sharelens.report.model import Drawn, Sheet
from sharelens.report.page import build, render
from sharelens.source.request import Source
from sharelens.tables import opening
from tests.logs.state_logs import START_MS, snapshot, update, write_log_directory
from tests.logs.user_topics import write_orders

WRITTEN_MS = START_MS + 86_400_000
HOSTILE = (
    "</script><script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "'\"`; -- {{ 7 * 7 }} {% raw %} ${7*7}",
    "line\nbreak\ttab \u202egnp.exe \x1b[31m",
    "&lt;b&gt; ]]> <!-- \u2028 \U0001f600",
    "-x",
    "",
)


def gathered(source: Source, **question: Any) -> Gathered:
    """What a report of the source is about."""
    with opening.open_evidence(source) as evidence:
        return gather(evidence, ReportQuestion(settings=GroupSettings(), **question))


def page(source: Source, *, written_ms: int = WRITTEN_MS, **question: Any) -> str:
    """The HTML of a report."""
    return render(build(gathered(source, **question), source, written_ms))


def sheet_rows(sheet: Sheet) -> list[dict[str, str]]:
    """The texts of a table by heading."""
    return [{head.label: cell.text for head, cell in zip(sheet.heads, row, strict=True)} for row in sheet.rows]


def leave_out_charts(patch: pytest.MonkeyPatch) -> None:
    """Pages get no charts, which take half of their time."""
    patch.setattr(charts, "drawn", lambda *_: Drawn(wide="<svg/>", narrow="<svg/>"))


def leave_charts_undrawn(patch: pytest.MonkeyPatch) -> None:
    """In place of charts pages get all that these are drawn from."""
    patch.setattr(vl_convert, "vegalite_to_svg", lambda spec, **_: json.dumps(spec))


def pinned_log(directory: Path, groups: tuple[str, ...] = ("g",)) -> Source:
    """Groups that stand still at offset 4 of orders-0 for ten minutes, while 5 to 9 are done and 20 is given up."""
    records = []
    for group in groups:
        records.append(snapshot(group, at_ms=START_MS, start=-1))
        records.append(update(group, start=0, batches=[(0, 3, 2, 1), (4, 4, 0, 1)], at_ms=START_MS + 1000))
        records.append(update(group, start=4, batches=[(4, 4, 0, 2), (5, 9, 2, 1)], at_ms=START_MS + 60_000))
        records.append(update(group, batches=[(20, 20, 4, 5)], at_ms=START_MS + 120_000))
    for group in groups:
        records.append(update(group, batches=[(10, 12, 2, 1)], at_ms=START_MS + 600_000))
    records.sort(key=lambda record: record["timestamp_ms"])
    write_log_directory(directory, records, cluster_id="cluster-1")
    write_orders(directory)
    return Source(log_dirs=(str(directory),))
