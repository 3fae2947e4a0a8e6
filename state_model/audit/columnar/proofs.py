"""Violations that records of several logs prove, counted by rule and place, as findings."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from state_model.audit.columnar.finding_schema import FINDING, worst_first
from state_model.audit.impact import NO_LAST, impact_text
from state_model.audit.rule import Difference, Rule, field_text, value_text
from state_model.audit.table import BY_ID


class LogRecord(NamedTuple):
    """A record of any log."""

    topic: str
    partition: int
    offset: int


class Place(NamedTuple):
    """The group, topic or partition that a violation is about. `state_partition`: None for a record of another log."""

    group_id: str | None = None
    topic_id: str | None = None
    partition: int | None = None
    state_partition: int | None = None


@dataclass(slots=True)
class _Counted:
    difference: Difference
    first: LogRecord
    last: LogRecord
    first_ms: int
    last_ms: int
    violations: int
    proof: set[LogRecord]


@dataclass(slots=True)
class Proofs:
    """Counts violations; the difference and the proof of the first of each rule and place are kept.

    `between_ms`: log times from the first up to, and without, the second; None puts no bound.
    """

    between_ms: tuple[int | None, int | None] = (None, None)
    _counted: dict[tuple[int, Place, str, int], _Counted] = field(default_factory=dict)

    def add(
        self,
        rule: int,
        place: Place,
        difference: Difference,
        record: LogRecord,
        time_ms: int,
        proof: Iterable[LogRecord] = (),
    ) -> None:
        """Counts a violation of a record; records of one log come in their order."""
        from_ms, to_ms = self.between_ms
        if (from_ms is not None and time_ms < from_ms) or (to_ms is not None and time_ms >= to_ms):
            return
        key = (rule, place, record.topic, record.partition)
        counted = self._counted.get(key)
        if counted is None:
            proof_records = {other for other in proof if other.offset >= 0}
            self._counted[key] = _Counted(difference, record, record, time_ms, time_ms, 1, {record, *proof_records})
        else:
            counted.last, counted.last_ms = record, time_ms
            counted.violations += 1

    def take(self, other: "Proofs") -> None:
        """Adds what another has counted of other places."""
        self._counted |= other._counted

    def findings(self, severities: Mapping[int, str], listed: Container[int] | None = None) -> pa.Table:
        """FINDING rows, the worst first; `severities` by rule id. `listed`: ids of rules that get rows; None: all."""
        rows = [
            _row(rule, place, counted, severities[rule])
            for (rule, place, *_), counted in self._counted.items()
            if rule in severities and (listed is None or rule in listed)
        ]
        return worst_first(pa.Table.from_pylist(rows, schema=FINDING))


def _row(rule_id: int, place: Place, counted: _Counted, severity: str) -> dict[str, Any]:
    rule, difference = BY_ID[rule_id], counted.difference
    expected = value_text(difference.field, difference.expected)
    offsets = rule.affected_offsets(difference) if rule.impact.is_about_records else None
    first_offset = None if offsets is None else offsets[0]
    last_offset = None if offsets is None or offsets[1] == NO_LAST else offsets[1]
    return {
        **place._asdict(),
        "severity": severity,
        "rule": rule.code,
        "number": rule.number,
        "title": rule.title,
        "first_log_offset": counted.first.offset,
        "last_log_offset": counted.last.offset,
        "first_seen_ms": counted.first_ms,
        "last_seen_ms": counted.last_ms,
        "count": counted.violations,
        "field": field_text(difference.field, difference.at),
        "expected": expected if rule.relation == "=" else f"{rule.relation} {expected}",
        "seen": value_text(difference.field, difference.actual) + (difference.names and f" ({difference.names})"),
        "impact": rule.impact.value,
        "impact_text": _impact_text(rule, place, first_offset, last_offset),
        "first_offset": first_offset,
        "last_offset": last_offset,
        "completeness": "complete",
        "records": [record._asdict() for record in sorted({*counted.proof, counted.last})],
    }


def _impact_text(rule: Rule, place: Place, first_offset: int | None, last_offset: int | None) -> str:
    if place.partition is None and place.group_id is not None and rule.impact.is_about_records:
        return f"records of the group {rule.impact.words}"
    has_share_partition = place.partition is not None
    return impact_text(rule.impact, first_offset, last_offset, has_share_partition=has_share_partition)
