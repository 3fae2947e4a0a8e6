"""The audit over log directories and over a lake that is made of them."""

from pathlib import Path
from typing import Any, NamedTuple

from sharelens.output import Report
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.audits.audit import AuditChoice, audit
from sharelens.source.request import Source
from sharelens.tables.opening import open_evidence
from sharelens.tables.where import Span
from state_model.audit.rule import Need
from state_model.audit.table import BY_CODE
from tests.processes.in_process import make_lake

VERSION = "4.4"


class Audited(NamedTuple):
    """Findings of every severity, and the rules that are not tested, without those that only log directories allow."""

    findings: list[dict[str, Any]]
    not_tested: set[str]


def without_topics(audited: Audited) -> Audited:
    """Without the rules on user topics among those that are not tested.

    A lake reads user partitions from the lowest start offset of their states on. Where no state has any, it has read
    none, and names these rules.
    """
    return audited._replace(
        not_tested={code for code in audited.not_tested if Need.USER_TOPIC not in BY_CODE[code].needs}
    )


def over_logs(logs: Path) -> Audited:
    """The answer over log directories."""
    return _audited(Source(log_dirs=(str(logs),)))


def over_lake(logs: Path, lake: Path) -> Audited:
    """The answer over a new lake of the log directories."""
    make_lake(lake, logs)
    return _audited(Source(lake=str(lake)))


def _audited(source: Source) -> Audited:
    with open_evidence(source) as evidence:
        report: Report = audit(evidence, KeyFilter(), Span(), AuditChoice(version=VERSION, severity="info"))
    rows = report.parts["findings"].table.to_pylist()
    untested = {code for row in report.parts["not_tested"].table.to_pylist() for code in row["rules"]}
    everywhere = {code for code, rule in BY_CODE.items() if Need.LOG_DIRECTORIES not in rule.needs}
    return Audited([row for row in rows if row["rule"] in everywhere], untested & everywhere)
