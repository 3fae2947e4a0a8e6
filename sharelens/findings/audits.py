"""Rules about the audit: one finding a group and severity, and one for the logs."""

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.findings.finding import ERROR, WARNING, Finding
from sharelens.findings.rule import Need, Rule
from sharelens.findings.signs import Signs
from sharelens.findings.thresholds import RECENT_MS, Thresholds
from sharelens.output.wording import clock, counted, place
from state_model.columnar.keys import SHARE_PARTITION_KEY


def errors(signs: Signs, thresholds: Thresholds) -> Iterator[Finding]:
    """What no healthy broker writes."""
    return _of_audit(signs, ERROR)


def warnings(signs: Signs, thresholds: Thresholds) -> Iterator[Finding]:
    """What is unusual, of the last hour."""
    return _of_audit(signs, WARNING)


def _of_audit(signs: Signs, severity: str) -> Iterator[Finding]:
    """One for each group, and one for the logs: the rules of the audit that they violate; only recent warnings."""
    if signs.audited is None:
        return
    rows = signs.audited.rows.filter(pc.field("severity") == severity)
    if severity == WARNING:
        rows = rows.filter(pc.field("last_seen_ms") >= signs.now_ms - RECENT_MS)
    groups = rows.column("group_id").combine_chunks().dictionary_encode(null_encoding="encode").indices.to_numpy()
    order = np.argsort(groups, kind="stable")
    for places in np.split(order, np.flatnonzero(np.diff(groups[order])) + 1) if len(order) else ():
        yield _of_rules(signs, rows.take(pa.array(places)), severity)


def _of_rules(signs: Signs, rows: pa.Table, severity: str) -> Finding:
    """The finding of AUDITED rows of a group, or of logs; the first row that no other explains is the worst one."""
    unexplained = rows.filter(pc.is_null(rows.column("cause_inferred")))
    worst = (unexplained if unexplained.num_rows else rows).slice(0, 1).to_pylist()[0]
    group_id, topic_id = worst["group_id"], worst["topic_id"]
    rules = rows.column("rule").unique().to_pylist()
    more_rules = f" and {counted(len(rules) - 1, 'more rule')}" if len(rules) > 1 else ""
    since_ms, records = pc.min(rows.column("first_seen_ms")).as_py(), pc.sum(rows.column("count")).as_py()
    where = "" if worst["partition"] is None else f" in {place(worst['topic'], topic_id, worst['partition'])}"
    since = "" if since_ms is None else f", first at {clock(since_ms, signs.now_ms)}"
    return Finding(
        severity=severity,
        kind="audit_error" if severity == ERROR else "audit_warning",
        text=f"{worst['rule']}{more_rules} violated by {counted(records, 'record')}{where}{since}",
        question="audit",
        options=() if group_id is None else (f"--group={group_id}",),
        group_id=group_id,
        topic_id=topic_id,
        topic=worst["topic"],
        partition=worst["partition"],
        share_partitions=rows.filter(pc.field("partition").is_valid())
        .group_by(SHARE_PARTITION_KEY)
        .aggregate([])
        .num_rows,
        size=records,
        since_ms=since_ms,
    )


RULES: Mapping[str, Rule] = {
    rule.kind: rule
    for rule in (
        Rule(
            kind="audit_error",
            subject="group",
            severities=(ERROR,),
            when="The audit has errors: records that no healthy broker writes.",
            refining=(Need.AUDIT,),
            judge=errors,
        ),
        Rule(
            kind="audit_warning",
            subject="group",
            severities=(WARNING,),
            when="The audit has warnings of the last hour.",
            refining=(Need.AUDIT,),
            judge=warnings,
        ),
    )
}
