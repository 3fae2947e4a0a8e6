"""Findings: the counted violations of all state partitions as a table, the worst first."""

from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from state_model.audit.columnar.affected import ANY
from state_model.audit.columnar.finding_schema import FINDING, LOG_RECORD, worst_first
from state_model.audit.columnar.partitions import PartitionsAudit
from state_model.audit.columnar.places import placement
from state_model.audit.columnar.tally import Tally
from state_model.audit.columnar.violations import NONE, log_of_violations, of_log, violation_rows
from state_model.audit.impact import NO_LAST, Impact, impact_text
from state_model.audit.rule import Field, Rule, field_text, value_text
from state_model.audit.table import BY_ID
from state_model.topics import STATE_TOPIC

MISPLACED, COUNT_CHANGED = 20, 70
PROVING = ("first_log_offset", "last_log_offset", "snapshot_log_offset", "previous_log_offset")
"""The columns of COUNTED with the log offsets of records that prove a finding."""


def misplacements(audits: Sequence[PartitionsAudit], between_ms: tuple[int | None, int | None]) -> None:
    """Tests rules 2 and 7 over all state partitions; adds the violations to their tallies.

    Rule 7 replaces rule 2 where another number of state partitions fits all misplaced share partitions.
    """
    if not audits:
        return
    keys = pa.concat_tables([audit.auditor.keys for audit in audits])
    sizes = [audit.auditor.keys.num_rows for audit in audits]
    owner = np.repeat(np.arange(len(audits)), sizes)
    state_partitions = np.concatenate([audit.state_partitions[audit.auditor.log_of] for audit in audits])
    placed = placement(keys, state_partitions)
    begins = np.cumsum([0, *sizes])
    for row in placed.misplaced.tolist():
        audit = audits[int(owner[row])]
        number = row - int(begins[owner[row]])
        is_changed = placed.other_count is not None
        auditor = audit.auditor
        violations = violation_rows(
            rule=COUNT_CHANGED if is_changed else MISPLACED,
            share_partition=of_log(int(auditor.log_of[number])) if is_changed else number,
            log_offset=np.array([auditor.first_at[number], auditor.last_at[number]]),
            log_time_ms=np.array([auditor.first_ms[number], auditor.last_ms[number]]),
            field=int(Field.STATE_PARTITION_COUNT if is_changed else Field.STATE_PARTITION),
            expected=_count_or_unknown(placed.count) if is_changed else int(placed.expected[row]),
            seen=_count_or_unknown(placed.other_count) if is_changed else int(state_partitions[row]),
        )
        rows = Tally(between_ms)
        rows.add(violations)
        audit.tally.add_counted(rows.counted, 1 if is_changed else int(auditor.count[number]))


def _count_or_unknown(count: int | None) -> int:
    return -1 if count is None else count


def findings(
    audits: Sequence[PartitionsAudit], severities: Mapping[int, str], listed: Container[int] | None = None
) -> pa.Table:
    """FINDING rows without causes, the worst first, of the rules with a severity.

    Args:
        severities: by the id of a rule.
        listed: ids of rules that get rows; None: all.
    """
    return worst_first(pa.concat_tables([FINDING.empty_table(), *_tables(audits, severities, listed)]))


def ordered(*tables: pa.Table) -> pa.Table:
    """The FINDING rows of several tables, the worst first."""
    return worst_first(pa.concat_tables(tables))


def finding_counts(
    audits: Sequence[PartitionsAudit],
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


def _tables(
    audits: Sequence[PartitionsAudit], severities: Mapping[int, str], listed: Container[int] | None
) -> Iterator[pa.Table]:
    """The findings of each audit that has any."""
    known_rules = pa.array(list(severities), pa.int64())
    rules = known_rules if listed is None else pa.array([rule for rule in severities if rule in listed], pa.int64())
    for audit in audits:
        rows = audit.tally.counted.filter(pc.is_in(audit.tally.counted.column("rule"), value_set=known_rules))
        is_listed = pc.is_in(rows.column("rule"), value_set=rules)
        if pc.any(is_listed).as_py():
            yield _findings_of(audit, rows.filter(is_listed), severities)


def _findings_of(audit: PartitionsAudit, rows: pa.Table, severities: Mapping[int, str]) -> pa.Table:
    """FINDING rows of COUNTED rows."""
    coded = rows.column("rule").combine_chunks().dictionary_encode()
    rules = [BY_ID[rule] for rule in coded.dictionary.to_pylist()]

    def by_rule(value: Callable[[Rule], object]) -> pa.Array:
        return pa.array([value(rule) for rule in rules]).take(coded.indices)

    is_about_records = by_rule(lambda rule: rule.impact.is_about_records)
    first, last = (
        pc.if_else(pc.and_(is_about_records, pc.not_equal(rows.column(name), unknown)), rows.column(name), None)
        for name, unknown in (("first_offset", ANY), ("last_offset", NO_LAST))
    )
    numbers = rows.column("share_partition")
    is_of_log = pc.less(numbers, 0)
    keys = audit.auditor.keys.take(pc.if_else(is_of_log, None, numbers))
    logs = log_of_violations(numbers.to_numpy(), audit.auditor.log_of)
    state_partitions = pa.array(audit.state_partitions[logs], pa.int32())
    field, at, expected, actual = (rows.column(name).to_pylist() for name in ("field", "at", "expected", "seen"))
    relations = by_rule(lambda rule: "" if rule.relation == "=" else f"{rule.relation} ").to_pylist()
    impacts = [rules[index].impact for index in coded.indices.to_pylist()]
    impacted = zip(impacts, first.to_pylist(), last.to_pylist(), is_of_log.to_pylist(), strict=True)
    columns = {
        "severity": by_rule(lambda rule: severities[rule.id]),
        "rule": by_rule(lambda rule: rule.code),
        "number": by_rule(lambda rule: rule.number),
        "title": by_rule(lambda rule: rule.title),
        **{name: keys.column(name) for name in keys.column_names},
        "state_partition": state_partitions,
        "first_log_offset": rows.column("first_log_offset"),
        "last_log_offset": rows.column("last_log_offset"),
        "first_seen_ms": rows.column("first_ms"),
        "last_seen_ms": rows.column("last_ms"),
        "count": rows.column("violations"),
        "field": [field_text(*values) for values in zip(field, at, strict=True)],
        "expected": [text + value_text(*values) for text, *values in zip(relations, field, expected, strict=True)],
        "seen": [value_text(*values) for values in zip(field, actual, strict=True)],
        "impact": by_rule(lambda rule: rule.impact.value),
        "impact_text": [_impact_text(*impact) for impact in impacted],
        "first_offset": first,
        "last_offset": last,
        "completeness": _completeness(audit, rows),
        "cause_inferred": pa.nulls(rows.num_rows, pa.string()),
        "records": _proof(rows, by_rule(lambda rule: rule.compares_state), state_partitions),
    }
    return pa.table(columns).select(FINDING.names).cast(FINDING)


@lru_cache(maxsize=1024)
def _impact_text(impact: Impact, first: int | None, last: int | None, is_of_log: bool) -> str:
    """The impact of a finding in words, cached: thousands of findings of a rule have the same text."""
    return impact_text(impact, first, last, has_share_partition=not is_of_log)


def _completeness(audit: PartitionsAudit, rows: pa.Table) -> list[str]:
    if not audit.first_losses:
        return ["complete"] * rows.num_rows
    places = (rows.column(name).to_numpy() for name in ("share_partition", "last_log_offset"))
    return ["incomplete" if is_incomplete else "complete" for is_incomplete in audit.is_incomplete(*places).tolist()]


def _proof(rows: pa.Table, compares_state: pa.Array, state_partitions: pa.Array) -> pa.Array:
    """For each row the records that prove the first violation, and the last, by offset; all of its state partition."""
    first, last, snapshot, previous = (rows.column(name).to_numpy() for name in PROVING)
    has_state = compares_state.to_numpy(zero_copy_only=False)
    offsets = np.stack([first, last, np.where(has_state, snapshot, NONE), np.where(has_state, previous, NONE)], axis=1)
    offsets.sort(axis=1)
    is_kept = (offsets >= 0) & (np.diff(offsets, axis=1, prepend=NONE) != 0)
    counts = is_kept.sum(axis=1)
    ends = np.concatenate([[0], np.cumsum(counts)])
    proving = offsets[is_kept]
    of_row = pa.array(np.repeat(np.arange(rows.num_rows), counts))
    places = pa.repeat(STATE_TOPIC, len(proving)), state_partitions.take(of_row)
    records = pa.StructArray.from_arrays([*places, pa.array(proving)], fields=list(LOG_RECORD))
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), records)
