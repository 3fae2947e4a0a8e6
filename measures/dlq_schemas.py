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
REASONS = (
    NO_DEAD_LETTER, NO_TOPIC_KNOWN, TOPIC_NOT_HELD, EXPIRED, HELD_BACK, NOT_ARCHIVED, NO_STATE, TOO_EARLY, TOO_LATE,
    NOT_COMPLETE,
)  # fmt: skip

DLQ_RECONCILIATION = pa.schema(
    [
        column("group_id", pa.string(), "share group", nullable=False),
        column(
            "topic_id", pa.string(), "topic of the record; zero uuid where its name stands for none", nullable=False
        ),
        column("topic", pa.string(), "its name; null = unknown"),
        column("partition", pa.int32(), "its partition", nullable=False),
        column("offset", pa.int64(), "the record's offset; the first of a run without dead letters", nullable=False),
        column("last_offset", pa.int64(), "the last offset of that run (inclusive)", nullable=False),
        column("status", pa.string(), "; ".join(STATUSES), nullable=False),
        column("reason", pa.string(), "why it is missing, unexpected or unknown; else null"),
        column("cause", pa.string(), "rejected, delivery_limit or unknown, by the dead letter before all else"),
        column("cause_source", pa.string(), "dead_letter, configuration, headers or inferred; null = unknown cause"),
        column("delivery_count", pa.int16(), "how often the record was delivered"),
        column("dlq_topic", pa.string(), "topic that holds the dead letter, or would; null = not known"),
        column("dlq_topic_id", pa.string(), "its id; null without dead letter"),
        column("dlq_partition", pa.int32(), "partition of the dead letter; null without one"),
        column("dlq_offset", pa.int64(), "offset of the dead letter there; null without one"),
        column("archiving_ms", pa.int64(), "log time from which the dead letter was due; null = not in the evidence"),
        column("archived_ms", pa.int64(), "log time at which the record was archived; null = it was not"),
        column("dead_lettered_ms", pa.int64(), "timestamp of the dead letter (a broker's clock); null without one"),
        column("duplicate_of_dlq_topic", pa.string(), "of a duplicate: topic of the first dead letter"),
        column("duplicate_of_dlq_partition", pa.int32(), "of a duplicate: partition of the first one"),
        column("duplicate_of_dlq_offset", pa.int64(), "of a duplicate: offset of the first one"),
        column("value_size_bytes", pa.int64(), "size of the dead letter's value; null = no value, or no dead letter"),
        column("state_partition", pa.int32(), "partition of __share_group_state; null = no state"),
        column("life_log_offset", pa.int64(), "life of the share partition in which it was archived; null = none"),
        column("log_offset", pa.int64(), "state log offset of the record that archived it; null = none"),
        *COMPLETENESS,
    ]
)
