"""The layouts of dead letters and of their bursts."""

from sharelens.measures.dlq.schemas import DLQ_RECONCILIATION
from sharelens.output import Column, Row, name_cell, number_text
from sharelens.output.layouts import Layout, ratio_column
from sharelens.questions.answers.digests import digest_schema
from sharelens.questions.answers.shape import FIRST_OFFSET_NAMES, answer_schema
from sharelens.questions.dead_letters.bursts import BURST


def _letter_cell(row: Row) -> str:
    if row["dlq_offset"] is None:
        return name_cell(row["dlq_topic"]) if row["dlq_topic"] is not None else number_text(None)
    return f"{name_cell(row['dlq_topic'])}-{row['dlq_partition']} @ {row['dlq_offset']}"


def _offset_cell(row: Row) -> str:
    first, last = row["offset"], row["last_offset"]
    return f"{first}" if first == last else f"{first}-{last}"


LAYOUT = Layout(
    schema=answer_schema(DLQ_RECONCILIATION, FIRST_OFFSET_NAMES),
    fields="status group_id topic partition offset cause delivery_count archived_ms dead_lettered_ms dlq_topic "
    "reason completeness",
    cells=(
        Column(heading="RECORD-OFFSET", cell=_offset_cell, right=True, fields=("offset", "last_offset")),
        Column(heading="DEAD-LETTER", cell=_letter_cell, fields=("dlq_topic", "dlq_partition", "dlq_offset")),
    ),
    important="STATUS GROUP TOPIC PARTITION RECORD-OFFSET REASON CAUSE DEAD-LETTER DELIVERY-COUNT ARCHIVED "
    "DEAD-LETTERED",
)
BURST_LAYOUT = Layout(
    schema=BURST,
    fields="group_id topic cause first_ms last_ms dead_letters records partitions rate_per_second",
    cells=(ratio_column("PER-SECOND", "rate_per_second", 1),),
    important="GROUP TOPIC CAUSE FIRST DEAD-LETTERS PER-SECOND RECORDS PARTITIONS LAST",
)
DIGEST_KEYS = ("group_id", "status", "reason", "cause")
DIGEST_LAYOUT = Layout(
    schema=digest_schema(DLQ_RECONCILIATION, DIGEST_KEYS),
    fields="status group_id reason cause records partitions last_ms",
)
