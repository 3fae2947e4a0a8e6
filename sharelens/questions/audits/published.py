"""The findings of the audit that stand in a lake's published cut: errors and warnings that no suppression covers."""

from collections import Counter
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.findings.signs import Audited
from sharelens.lake.tables import GOLD_AUDIT_STATE
from sharelens.tables.port import Tables
from sharelens.tables.reading import read
from sharelens.tables.where import Keys, Where
from state_model.audit.columnar.finding_schema import FINDING
from state_model.audit.columnar.suppressed import sifted
from state_model.audit.severities import ERROR, SEVERITIES, WARNING
from state_model.audit.table import RULES
from state_model.columnar.schemas import column

TABLE = "gold.audit_finding"
AUDITED = pa.schema(
    [
        *(field for field in FINDING if field.name not in ("field", "expected", "seen", "records", "title")),
        column("topic", pa.string(), "name of the topic; null = unknown"),
    ]
)
OPEN = pc.field("withdrawn_run_id").is_null() & pc.field("severity").isin([ERROR, WARNING])
COUNTED = tuple(rule for rule in RULES if not rule.needs and rule.severity_for(None) in (ERROR, WARNING))
"""The rules that every run can test."""


def by_rule(findings: pa.Table) -> dict[tuple[str, str], int]:
    """Number of findings by severity and rule; 0 for rules without one."""
    counts = Counter({(str(rule.severity_for(None)), rule.code): 0 for rule in COUNTED})
    counts.update(zip(*(findings.column(name).to_pylist() for name in ("severity", "rule")), strict=True))
    return dict(counts)


def audited_findings(evidence: Tables, keys: Keys = Keys(), until_ms: int | None = None) -> Audited | None:  # noqa: B008
    """The findings of share partitions, first seen up to a log time; None: nobody has audited the evidence.

    Without an audited state partition only findings show that an audit has run.

    Without a condition in `keys` also those about a log. Log directories are audited by `audit` alone, which is a
    reading of its own.
    """
    if not evidence.stored(GOLD_AUDIT_STATE) or not evidence.stored(TABLE):
        return None
    has_states = any(part.num_rows for part in evidence.scan(GOLD_AUDIT_STATE, ["state_partition"]))
    rows = read(evidence, TABLE, AUDITED.names, Where(keys=keys, columns=OPEN))
    if rows.num_rows == 0 and not has_states:
        return None
    if until_ms is not None:
        rows = rows.filter(pc.fill_null(pc.less_equal(rows.column("first_seen_ms"), until_ms), True))
    if rows.num_rows == 0:
        return Audited(rows=rows)
    from sharelens.settings.suppressions import read_suppressions

    parted = sifted(rows, read_suppressions(None), datetime.now(UTC).date())
    severity = pc.index_in(parted.counting.column("severity"), pa.array(SEVERITIES))
    order = [(name, "ascending") for name in ("order", "number", "rule", "group_id", "topic_id", "partition")]
    return Audited(
        rows=parted.counting.append_column("order", severity).sort_by(order).drop_columns(["order"]),
        suppressed=parted.suppressed.num_rows,
        warnings=parted.warnings,
    )
