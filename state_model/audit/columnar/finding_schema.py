"""The schema and the order of findings; without kernels, because tables derive from it."""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from state_model.audit.severities import SEVERITIES
from state_model.columnar.schemas import column

LOG_RECORD: Final = pa.struct(
    [pa.field("topic", pa.string()), pa.field("partition", pa.int32()), pa.field("offset", pa.int64())]
)
FINDING: Final = pa.schema(
    [
        column("severity", pa.string(), "error, warning or info", nullable=False),
        column("rule", pa.string(), "code of the rule", nullable=False),
        column("number", pa.int32(), "number of the rule", nullable=False),
        column("title", pa.string(), "what the rule says", nullable=False),
        column("group_id", pa.string(), "share group; null: the finding is about the log"),
        column("topic_id", pa.string(), "id of the user topic, 22 characters"),
        column("partition", pa.int32(), "partition of the user topic"),
        column("state_partition", pa.int32(), "partition of __share_group_state; null: the record is of another topic"),
        column("first_log_offset", pa.int64(), "log offset of the first record that violates the rule"),
        column("last_log_offset", pa.int64(), "log offset of the last one"),
        column("first_seen_ms", pa.int64(), "log time of the first"),
        column("last_seen_ms", pa.int64(), "log time of the last"),
        column("count", pa.int64(), "records that violate the rule", nullable=False),
        column("field", pa.string(), "the quantity of the first violation", nullable=False),
        column("expected", pa.string(), "what the rule expects of it", nullable=False),
        column("seen", pa.string(), "what the record has", nullable=False),
        column("impact", pa.string(), "code of what it can have done to records of the user topic", nullable=False),
        column("impact_text", pa.string(), "the impact in words", nullable=False),
        column("first_offset", pa.int64(), "first record offset that it can have affected; null: unknown, or none"),
        column("last_offset", pa.int64(), "last one; null: unknown, or none"),
        column("completeness", pa.string(), "incomplete: records before it, or at it, are missing", nullable=False),
        column(
            "cause_inferred",
            pa.string(),
            "code of the rule whose finding explains this one, or of an event; null: unknown",
        ),
        column("records", pa.list_(LOG_RECORD), "records that prove the first violation, and the last", nullable=False),
    ]
)


def worst_first(findings: pa.Table) -> pa.Table:
    """FINDING rows by severity, the worst first, then by rule and place."""
    columns = [findings.column(name) for name in ("severity", "number", "rule", "group_id", "topic_id")]
    partition, state_partition = (findings.column(name) for name in ("partition", "state_partition"))
    order = [
        pc.index_in(columns[0], value_set=pa.array(SEVERITIES)),
        *columns[1:3],
        *(pc.fill_null(column, "") for column in columns[3:]),
        pc.fill_null(partition, 0),
        pc.fill_null(state_partition, -1),
    ]
    keys = pa.table(order, names=[str(place) for place in range(len(order))])
    return findings.take(pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in keys.column_names]))
