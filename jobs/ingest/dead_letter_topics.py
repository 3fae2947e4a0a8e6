"""The lines of a run about topics without a dead letter."""

from collections.abc import Sequence
from typing import Any

from jobs import books
from state_model.topics import RECORD_TOPICS


def without_letters(extents: Sequence[dict[str, Any]]) -> list[str]:
    """One line for each searched topic in which a run took records and no dead letter."""
    looked: dict[str, int] = {}
    letters: dict[str, int] = {}
    for rows in books.by_partition(extents).values():
        row = rows[0]
        if row["topic"] in RECORD_TOPICS or row["content"] != "log_record":
            continue
        looked[row["topic"]] = looked.get(row["topic"], 0) + row["end_offset_exclusive"] - row["from_offset"]
        letters[row["topic"]] = letters.get(row["topic"], 0) + row["record_count"]
    return [
        f"{topic}: {count} offsets without a dead letter (no header __dlq.errors.*): not taken"
        for topic, count in sorted(looked.items())
        if count and not letters[topic]
    ]
