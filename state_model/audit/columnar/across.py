"""Findings that need more than one log partition, computed in the driver from tables."""

from collections.abc import Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from state_model.audit.columnar.finding_schema import FINDING
from state_model.audit.columnar.findings import COUNT_CHANGED, MISPLACED, findings, misplacements
from state_model.audit.columnar.partitions import PartitionsAudit
from state_model.audit.rule import Rule
from state_model.audit.severities import SEVERITIES
from state_model.audit.table import BY_ID, RULES

LOG: Final = ["cluster_id", "log_topic_id"]
PLACE: Final = ("log_topic_id", "state_partition")
"""A state partition of a cluster, by the columns of the audit's tables."""
LOG_FINDING: Final = pa.schema([*(pa.field(name, pa.string()) for name in LOG), *FINDING])
"""A finding with its cluster and the id of its log's topic."""
COUNTS_OF_STATE: Final = [*LOG, "state_partition", "share_partitions", "first_losses"]
"""The columns of gold.audit_state that rules over all state partitions read."""
ACROSS: Final = (BY_ID[MISPLACED], BY_ID[COUNT_CHANGED])
"""The rules of this module; each run judges them for all logs."""


def stored_severity(rule: Rule) -> str:
    """The rule's severity for an unknown Kafka version; the lowest one if only some versions forbid the violation."""
    return rule.severity_for(None) or SEVERITIES[-1]


STORED: Final[Mapping[int, str]] = {rule.id: stored_severity(rule) for rule in RULES if not rule.is_legal}
"""Severities in the lake by rule id."""


def across_logs(states: pa.Table) -> pa.Table:
    """LOG_FINDING rows of the rules ACROSS; `states`: COUNTS_OF_STATE of gold.audit_state."""
    tables = [LOG_FINDING.empty_table()]
    for log in states.group_by(LOG).aggregate([]).to_pylist():
        is_of_log = (pc.field("cluster_id") == log["cluster_id"]) & (pc.field("log_topic_id") == log["log_topic_id"])
        log_states = states.filter(is_of_log).sort_by("state_partition")
        audit = PartitionsAudit.of_counts(log_states)
        misplacements([audit], (None, None))
        tables.append(of_log(findings([audit], STORED), **log))
    return pa.concat_tables(tables)


def of_log(rows: pa.Table, cluster_id: str, log_topic_id: str) -> pa.Table:
    """FINDING rows as LOG_FINDING."""
    constants = [pa.repeat(value, rows.num_rows) for value in (cluster_id, log_topic_id)]
    return pa.Table.from_arrays([*constants, *rows.columns], schema=LOG_FINDING)
