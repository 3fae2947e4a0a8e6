"""The text columns of dead letters and of their bursts."""

from sharelens.output import Column, Row, by_importance, name_cell, name_column, number_column, number_text, time_column
from sharelens.questions.state import COMPLETENESS, TOPIC


def _letter_cell(row: Row) -> str:
    if row["dlq_offset"] is None:
        return name_cell(row["dlq_topic"]) if row["dlq_topic"] is not None else number_text(None)
    return f"{name_cell(row['dlq_topic'])}-{row['dlq_partition']} @ {row['dlq_offset']}"


def _offset_cell(row: Row) -> str:
    first, last = row["offset"], row["last_offset"]
    return f"{first}" if first == last else f"{first}-{last}"


def _rate_cell(row: Row) -> str:
    rate = row["rate_per_second"]
    return f"{rate:.1f}" if isinstance(rate, float) else number_text(None)


TEXT_COLUMNS = by_importance(
    (
        name_column("STATUS", "status"),
        name_column("GROUP", "group_id"),
        TOPIC,
        number_column("PARTITION", "partition"),
        Column(heading="RECORD-OFFSET", cell=_offset_cell, right=True, fields=("offset", "last_offset")),
        name_column("CAUSE", "cause"),
        number_column("DELIVERY-COUNT", "delivery_count"),
        time_column("ARCHIVED", "archived_ms"),
        time_column("DEAD-LETTERED", "dead_lettered_ms"),
        Column(heading="DEAD-LETTER", cell=_letter_cell, fields=("dlq_topic", "dlq_partition", "dlq_offset")),
        name_column("REASON", "reason"),
        COMPLETENESS,
    ),
    "STATUS GROUP TOPIC PARTITION RECORD-OFFSET REASON CAUSE DEAD-LETTER DELIVERY-COUNT ARCHIVED DEAD-LETTERED",
)
BURST_COLUMNS = by_importance(
    (
        name_column("GROUP", "group_id"),
        name_column("TOPIC", "topic"),
        name_column("CAUSE", "cause"),
        time_column("FIRST", "first_ms"),
        time_column("LAST", "last_ms"),
        number_column("DEAD-LETTERS", "dead_letters"),
        number_column("RECORDS", "records"),
        number_column("PARTITIONS", "partitions"),
        Column(heading="PER-SECOND", cell=_rate_cell, right=True, fields=("rate_per_second",)),
    ),
    "GROUP TOPIC CAUSE FIRST DEAD-LETTERS PER-SECOND RECORDS PARTITIONS LAST",
)
DIGEST_COLUMNS = (
    name_column("STATUS", "status"),
    name_column("GROUP", "group_id"),
    name_column("REASON", "reason"),
    name_column("CAUSE", "cause"),
    number_column("RECORDS", "records"),
    number_column("PARTITIONS", "partitions"),
    time_column("LAST", "last_ms"),
)
