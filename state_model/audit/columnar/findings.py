"""Findings: the counted violations of all state partitions as a table, the worst first."""

from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from state_model.audit.causes import Sighting, inferred_causes
from state_model.audit.columnar.affected import ANY
from state_model.audit.columnar.finding_schema import FINDING, rank
from state_model.audit.columnar.partition import PartitionAudit
from state_model.audit.columnar.places import placement
from state_model.audit.columnar.tally import Tally
from state_model.audit.columnar.violations import violation_rows
from state_model.audit.impact import NO_LAST, impact_text
from state_model.audit.rule import Field, Rule, field_text, value_text
from state_model.audit.table import BY_ID
from state_model.topics import STATE_TOPIC

MISPLACED, COUNT_CHANGED = 20, 70


def misplacements(audits: Sequence[PartitionAudit], between_ms: tuple[int | None, int | None]) -> None:
    """Tests rules 2 and 7 over all state partitions; adds the violations to their tallies.

    Rule 7 replaces rule 2 where another number of state partitions fits all misplaced share partitions.
    """
    if not audits:
        return
    keys = pa.concat_tables([audit.auditor.keys for audit in audits])
    sizes = [audit.auditor.keys.num_rows for audit in audits]
    owner = np.repeat(np.arange(len(audits)), sizes)
    placed = placement(keys, np.array([audit.number for audit in audits], np.int64)[owner])
    begins = np.cumsum([0, *sizes])
    for row in placed.misplaced.tolist():
        audit = audits[int(owner[row])]
        number = row - int(begins[owner[row]])
        is_changed = placed.other_count is not None
        auditor = audit.auditor
        violations = violation_rows(
            rule=COUNT_CHANGED if is_changed else MISPLACED,
            share_partition=-1 if is_changed else number,
            log_offset=np.array([auditor.first_at[number], auditor.last_at[number]]),
            log_time_ms=np.array([auditor.first_ms[number], auditor.last_ms[number]]),
            field=int(Field.STATE_PARTITION_COUNT if is_changed else Field.STATE_PARTITION),
            expected=_known(placed.count) if is_changed else int(placed.expected[row]),
            seen=_known(placed.other_count) if is_changed else audit.number,
        )
        rows = Tally(between_ms)
        rows.add(violations)
        audit.tally.add_counted(rows.counted, 1 if is_changed else int(auditor.count[number]))


def _known(count: int | None) -> int:
    return -1 if count is None else count


def findings(
    audits: Sequence[PartitionAudit], severities: Mapping[int, str], listed: Container[int] | None = None
) -> pa.Table:
    """FINDING rows, the worst first, of the rules with a severity.

    Args:
        severities: by the id of a rule.
        listed: ids of rules that get rows; None: all. A cause may be a finding without a row.
    """
    rows = [row for audit in audits for row in _findings_of(audit, severities, listed)]
    rows.sort(key=rank)
    return pa.Table.from_pylist(rows, schema=FINDING)


def ordered(*tables: pa.Table) -> pa.Table:
    """The FINDING rows of several tables, the worst first."""
    if all(table.num_rows == 0 for table in tables[1:]):
        return tables[0]
    rows = [row for table in tables for row in table.to_pylist()]
    return pa.Table.from_pylist(sorted(rows, key=rank), schema=FINDING)


def finding_counts(
    audits: Sequence[PartitionAudit],
    severities: Mapping[int, str],
    choose: Callable[[pa.Table], pa.Table] | None = None,
) -> Counter[str]:
    """The number of findings by severity, without a row for each.

    `choose`: the rows of a table of share partitions (group_id, topic_id, partition) whose findings count; None: all
    findings count, those about the log too.
    """
    counts: Counter[str] = Counter()
    for audit in audits:
        keys = audit.auditor.keys
        rows = audit.tally.counted
        if choose is not None:
            numbered = keys.append_column("number", pa.array(np.arange(keys.num_rows)))
            chosen = choose(numbered).column("number").to_numpy()
            rows = rows.filter(pa.array(np.isin(rows.column("share_partition").to_numpy(), chosen)))
        for rule in rows.column("rule").to_pylist():
            if rule in severities:
                counts[severities[rule]] += 1
    return counts


def _findings_of(
    audit: PartitionAudit, severities: Mapping[int, str], listed: Container[int] | None
) -> Iterator[dict[str, Any]]:
    """The findings of a state partition."""
    counted = audit.tally.counted
    rows = counted.filter(pc.is_in(counted.column("rule"), value_set=pa.array(list(severities), pa.int64())))
    violations = rows.to_pylist()
    causes = inferred_causes([_sighting(row, severities[row["rule"]]) for row in violations])
    for row, cause in zip(violations, causes, strict=True):
        rule = row["rule"]
        if listed is None or rule in listed:
            yield _finding(audit, row, BY_ID[rule], severities[rule]) | {"cause_inferred": cause}


def _sighting(row: Mapping[str, Any], severity: str) -> Sighting:
    rule, first = BY_ID[row["rule"]], row["first_log_offset"]
    snapshot = row["snapshot_log_offset"]
    has_state = rule.compares_state and snapshot >= 0
    since = min(snapshot, first) if has_state else first
    return Sighting(rule.code, row["share_partition"], first, since, severity)


def _finding(audit: PartitionAudit, row: Mapping[str, Any], rule: Rule, severity: str) -> dict[str, Any]:
    number = row["share_partition"]
    key = audit.auditor.keys.slice(number, 1).to_pylist()[0] if number >= 0 else {}
    proving = {row["first_log_offset"], row["last_log_offset"]}
    if rule.compares_state:
        proving |= {row["snapshot_log_offset"], row["previous_log_offset"]}
    expected = value_text(row["field"], row["expected"])
    offsets = (row["first_offset"], row["last_offset"]) if rule.impact.is_about_records else (ANY, NO_LAST)
    first_offset = None if offsets[0] == ANY else offsets[0]
    last_offset = None if offsets[1] == NO_LAST else offsets[1]
    return {
        "severity": severity,
        "rule": rule.code,
        "number": rule.number,
        "title": rule.title,
        "group_id": key.get("group_id"),
        "topic_id": key.get("topic_id"),
        "partition": key.get("partition"),
        "state_partition": audit.number,
        "first_log_offset": row["first_log_offset"],
        "last_log_offset": row["last_log_offset"],
        "first_seen_ms": row["first_ms"],
        "last_seen_ms": row["last_ms"],
        "count": row["violations"],
        "field": field_text(row["field"], row["at"]),
        "expected": expected if rule.relation == "=" else f"{rule.relation} {expected}",
        "seen": value_text(row["field"], row["seen"]),
        "impact": rule.impact.value,
        "impact_text": impact_text(rule.impact, first_offset, last_offset, has_share_partition=number >= 0),
        "first_offset": first_offset,
        "last_offset": last_offset,
        "completeness": "incomplete" if audit.is_lost_before(number, row["last_log_offset"]) else "complete",
        "records": [
            {"topic": STATE_TOPIC, "partition": audit.number, "offset": offset}
            for offset in sorted(proving)
            if offset >= 0
        ],
    }
