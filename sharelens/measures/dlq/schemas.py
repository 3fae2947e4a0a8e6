"""The Arrow schemas of the reconciliation of dead letters, and its status and reason words."""

import pyarrow as pa

from state_model.columnar.schemas import COMPLETENESS, column

MATCHED, DUPLICATE, MISSING = "matched", "duplicate", "missing"
UNEXPECTED, ARCHIVING, UNKNOWN = "unexpected", "archiving", "unknown"
STATUSES = (MATCHED, DUPLICATE, MISSING, UNEXPECTED, ARCHIVING, UNKNOWN)
FINDINGS = (DUPLICATE, MISSING, UNEXPECTED)

NO_DEAD_LETTER = "no_dead_letter"
NO_TOPIC_KNOWN = "no_dead_letter_topic_known"
TOPIC_NOT_HELD = "dead_letter_topic_not_in_evidence"
EXPIRED = "dead_letter_may_have_expired"
HELD_BACK = "dead_letters_held_back"
NOT_ARCHIVED = "not_archived"
NO_STATE = "no_share_state"
TOO_EARLY = "before_the_state_log"
TOO_LATE = "after_the_state_log"
NOT_COMPLETE = "state_log_not_complete"

DLQ_RECONCILIATION = pa.schema(
    [
        column("group_id", pa.string(), "share group", nullable=False),
        column(
            "topic_id", pa.string(), "topic id of the record; zero uuid where no topic has the name", nullable=False
        ),
        column("topic", pa.string(), "name of the topic; null = unknown"),
        column("partition", pa.int32(), "partition of the topic", nullable=False),
        column(
            "first_offset",
            pa.int64(),
            "record offset; the first one of a range without dead letters",
            nullable=False,
        ),
        column("last_offset", pa.int64(), "last offset of the range (inclusive)", nullable=False),
        column("status", pa.string(), "; ".join(STATUSES), nullable=False),
        column("reason", pa.string(), "why the status is missing, unexpected or unknown; else null"),
        column(
            "cause",
            pa.string(),
            "rejected, delivery_limit or unknown; a dead letter takes precedence over other sources",
        ),
        column("cause_source", pa.string(), "dead_letter, configuration, headers or inferred; null = unknown cause"),
        column("delivery_count", pa.int16(), "delivery count of the record"),
        column("dlq_topic", pa.string(), "topic of the dead letter, or in which it is due; null = unknown"),
        column("dlq_topic_id", pa.string(), "id of that topic; null = no dead letter"),
        column("dlq_partition", pa.int32(), "partition of the dead letter; null = no dead letter"),
        column("dlq_offset", pa.int64(), "offset of the dead letter; null = no dead letter"),
        column("archiving_ms", pa.int64(), "log time from which the dead letter was due; null = not in the evidence"),
        column("archived_ms", pa.int64(), "log time at which the record was archived; null = not archived"),
        column(
            "dead_lettered_ms", pa.int64(), "timestamp of the dead letter (a broker's clock); null = no dead letter"
        ),
        column("duplicate_of_dlq_topic", pa.string(), "of a duplicate: topic of the first dead letter"),
        column("duplicate_of_dlq_partition", pa.int32(), "of a duplicate: partition of the first one"),
        column("duplicate_of_dlq_offset", pa.int64(), "of a duplicate: offset of the first one"),
        column("value_size_bytes", pa.int64(), "size of the dead letter's value; null = no value, or no dead letter"),
        column("state_partition", pa.int32(), "partition of __share_group_state; null = no state"),
        column(
            "life_log_offset", pa.int64(), "life of the share partition in which the record was archived; null = none"
        ),
        column("log_offset", pa.int64(), "state log offset of the archiving record; null = none"),
        *COMPLETENESS,
    ]
)
