"""What the coordinators of a running cluster say beside an answer from its logs."""

from dataclasses import replace

from sharelens.evidence.as_of import LogPrefix
from sharelens.live.checked import Checked
from sharelens.output import Answer, Report
from sharelens.source.request import CutChoice
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_states
from sharelens.tables.where import Keys


def with_coordinators(evidence: Tables, answer: Answer, cut: CutChoice) -> Answer:
    """An answer of share partitions with what the coordinators say of them, if it is about now."""
    if evidence.cluster is None or cut != CutChoice():
        return answer
    return with_check(answer, evidence.cluster.coordinators().of_share_partitions(answer.table))


def audited_with_coordinators(evidence: Tables, report: Report, keys: Keys) -> Report:
    """A report with what the coordinators say of the share partitions that it is about."""
    if evidence.cluster is None:
        return report
    checked = evidence.cluster.coordinators().of_share_partitions(read_states(evidence, keys, LogPrefix()))
    summary = _above_the_last_line(report.summary, checked.line)
    return replace(report, summary=summary, warnings=(*report.warnings, *checked.warnings))


def with_check(answer: Answer, checked: Checked) -> Answer:
    """The answer with a comparison above the last line of its summary, and its warnings."""
    summary = _above_the_last_line(answer.summary, checked.line)
    return replace(answer, summary=summary, warnings=(*answer.warnings, *checked.warnings))


def _above_the_last_line(summary: str | None, line: str) -> str:
    *earlier_lines, closing = (summary or "").split("\n")
    return "\n".join([*earlier_lines, *filter(None, [line]), closing])
