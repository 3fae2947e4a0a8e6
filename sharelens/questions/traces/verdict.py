"""Where a record stands at the end of the evidence, in one line; and why an offset has no outcome."""

from collections.abc import Mapping, Sequence
from typing import Any

from sharelens.measures.topics.headers import ABORTED, ABSENT, CONTROL
from sharelens.measures.topics.offset_kinds import OPEN_TRANSACTION, RECORD
from sharelens.output import name_cell
from sharelens.questions.traces import vocabulary
from sharelens.questions.traces.events import BEGINNINGS, DEAD_LETTERED, DELIVERY_STATE, Event
from sharelens.questions.traces.topic_offsets import BEYOND_END, PRUNED

WHY: Mapping[str | None, str] = {
    CONTROL: "the offset has a control record (a transaction marker), which is never delivered",
    ABORTED: "its record belongs to an aborted transaction",
    OPEN_TRANSACTION: "its record belongs to a transaction that is open",
    ABSENT: "no batch of the topic has the offset (compacted, or never written)",
    PRUNED: "it lies below the topic's log start offset (deleted by retention or by request)",
    BEYOND_END: "it lies beyond the end of the topic",
    None: "the topic partition is not in the evidence; its folder may have the cause",
}
TOPIC_END = "topic_end"
"""The key of events of a share partition without a start offset: the end of its topic partition, if it is known."""
NO_START = (
    "the start offset is not yet determined: under latest, the default of share.auto.offset.reset, the record may "
    "never be delivered"
)
NO_END = "the end of the topic partition is not in the evidence"
UNSETTLED: Mapping[str, str] = {
    "not_settled": "no delivery state was ever written for it",
    "passed_without_outcome": "passed by the start offset",
    "life_ended_without_outcome": "its life ended without an outcome",
    "available_again": vocabulary.AVAILABLE_AGAIN,
    "unknown_state": "in a delivery state that this version does not know",
}


def verdict(rows: Sequence[Event], offset: int) -> str:
    """The outcome of the newest life; `rows`: events of one share partition in order, misplaced ones left out."""
    if not rows:
        return f"record {offset}: not in the state log"
    begins = [at for at, row in enumerate(rows) if row["event"] in (*BEGINNINGS, "first_seen")]
    life = rows[begins[-1] :] if begins else rows
    states = [row for row in life if row["event"] == DELIVERY_STATE]
    parts = [_outcome(life, states)]
    settled = life[0]["outcome"] in ("acknowledged", "archived", "archiving")
    moves = [row["event"] for row in life if row["event"].startswith(("start_offset", "below"))]
    if settled and moves and moves[-1] == "start_offset_passed":
        parts.append(vocabulary.PASSED)
    if life[-1]["event"] == "deleted":
        parts.insert(0, "the share partition is deleted")
    if life[0]["outcome"] not in ("acknowledged", "available_again", "below_first_start"):
        parts += _why(life[0])
    return f"record {offset}: {'; '.join(parts)}"


def _outcome(life: Sequence[Event], states: Sequence[Event]) -> str:
    code = life[0]["outcome"]
    if code == "not_settled" and TOPIC_END in life[0]:
        return f"{UNSETTLED[code]}; {NO_START}"
    if code == "below_first_start":
        return "below the first start offset, outside the share partition"
    count = states[-1]["delivery_count"] if states else 0
    if code in UNSETTLED:
        last_state = f"; last delivery state {states[-1]['delivery_state_name']}/{count}" if states else ""
        none = "; no delivery state was ever written for it" if not states and code != "not_settled" else ""
        return UNSETTLED[code] + (f", deliveries so far {count}" if code == "available_again" else last_state or none)
    letters = [row for row in life if row["event"] == DEAD_LETTERED]
    word = {"archiving": vocabulary.ARCHIVING}.get(code, code)
    return f"{word}, delivery count {count}" + "".join(map(_letter, letters))


def _letter(row: Mapping[str, Any]) -> str:
    return f"; {vocabulary.DEAD_LETTERED}: {name_cell(row['dlq_topic'])}-{row['dlq_partition']} @ {row['dlq_offset']}"


def _why(row: Mapping[str, Any]) -> list[str]:
    holds = row["offset_holds"]
    if holds is None and TOPIC_END in row:
        end = row[TOPIC_END]
        return [NO_END if end is None else f"the topic partition ends at offset {end}"]
    if holds == RECORD or (row["outcome"] in ("archived", "archiving") and holds not in (CONTROL, ABSENT)):
        return []
    return [WHY[holds]]
