"""The life of one record: facts of the state log, each with its log record.

The log holds outcomes: that a record was handed out shows when its outcome is written, and release, lock timeout and
leaving look the same.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.groups.members import ASSIGNED_MEMBERS, Assigned, assigned
from sharelens.output import Answer, Column, Row, name_cell, number_text
from sharelens.output.layouts import Layout
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.answers.completeness import (
    COMPLETE,
    INCOMPLETE,
    MISPLACED,
    closing_line,
    incomplete_rows,
    misplaced_warnings,
)
from sharelens.questions.answers.missing import without_group_records
from sharelens.questions.answers.naming import ensure_known, resolve
from sharelens.questions.answers.shape import ABOUT, MARKS
from sharelens.questions.answers.share_partitions import Key
from sharelens.questions.traces.events import (
    DELIVERY_STATE,
    SCALARS,
    Event,
    TurningRowGroups,
    attempt_events,
    delivery_events,
    in_order,
    in_place,
    letter_events,
    life_events,
    outcome,
    rows_of_places,
    turning_rows,
    words,
)
from sharelens.questions.traces.topic_offsets import BEYOND_END, topic_end, what_offset_holds
from sharelens.questions.traces.verdict import TOPIC_END, verdict
from sharelens.questions.traces.vocabulary import NEVER_KNOWN
from sharelens.tables.dlq_filter import DeadLetterFilter
from sharelens.tables.misplaced import misplaced_places, place_of
from sharelens.tables.port import DELIVERIES, HISTORY, Tables
from sharelens.tables.reading import read, read_dead_letters, read_group_records
from sharelens.tables.where import Keys, Order, Where
from state_model.columnar.schemas import column
from state_model.share_records import DeliveryState

SCHEMA = pa.schema(
    [
        *ABOUT,
        column("record_offset", pa.int64(), "the record's offset"),
        column("state_partition", pa.int32(), "partition of __share_group_state"),
        column("log_offset", pa.int64(), "state log offset of the event's record"),
        column("log_time_ms", pa.int64(), "log time of that record; of a dead letter its own time"),
        column(
            "event",
            pa.string(),
            "created, first_seen, reset, deleted, start_offset_set, below_start_offset, start_offset_passed, "
            "start_offset_returned, delivery_state, attempts_not_logged or dead_lettered",
        ),
        column("start_offset", pa.int64(), "start offset (SPSO) from the event on"),
        column("delivery_state", pa.int8(), "delivery state as logged"),
        column("delivery_state_name", pa.string(), "its name"),
        column("delivery_count", pa.int16(), "delivery count as logged"),
        column("until_log_offset", pa.int64(), "state log offset at which the delivery state ended; null = it lasts"),
        column("until_ms", pa.int64(), "log time of that record"),
        column("end_reason", pa.string(), "changed, start_offset_passed, reset or deleted; null = it lasts"),
        column("life_log_offset", pa.int64(), "life: log offset of the creating or resetting record"),
        *MARKS,
        column("meaning", pa.string(), "the event in fixed words"),
        column("attempts_not_logged", pa.int16(), "deliveries without an outcome in the log; null = none, or unknown"),
        column(
            "outcome",
            pa.string(),
            "of the event's life: acknowledged, archived, archiving, available_again, not_settled, "
            "passed_without_outcome, below_first_start, life_ended_without_outcome or unknown_state",
        ),
        column(
            "offset_holds",
            pa.string(),
            "of a record without an outcome, or archived: what the topic's batch headers have at the offset: record, "
            "control, aborted, open_transaction, absent, pruned or beyond_end; null = not read, or no topic",
        ),
        column("dlq_topic", pa.string(), "topic of the dead letter; null = none in the evidence"),
        column("dlq_partition", pa.int32(), "partition of the dead letter"),
        column("dlq_offset", pa.int64(), "offset of the dead letter"),
        column("dlq_cause", pa.string(), "cause by the dead letter"),
    ]
)
MEMBERS = column(
    "assigned_members_inferred",
    ASSIGNED_MEMBERS,
    "members that the partition was assigned to at that time; null = before the first assignment in the evidence",
)
ELSEWHERE = {"completeness": INCOMPLETE, "completeness_reason": MISPLACED}
GIVEN_UP = (DeliveryState.ARCHIVING, DeliveryState.ARCHIVED)
NEEDS_NO_REASON = ("acknowledged", "available_again", "below_first_start")
"""Outcomes for which it does not matter what the topic holds at the offset."""
MEMBERS_KNOWN = (
    "members by __consumer_offsets, which is compacted: earlier assignments may be gone; a partition is assigned to "
    "several members at once"
)


def trace(evidence: Tables, key_filter: KeyFilter, offset: int, *, members: bool = False) -> Answer:
    """The answer to `sharelens trace`: events of one record in log order; `members`: with those assigned at each event.

    Raises:
        UsageError: nothing bears the names that were typed.
    """
    keys = resolve(evidence, key_filter)
    ranges = read(evidence, DELIVERIES, where=Where(keys=keys, offsets=(offset,)))
    history = _history(evidence, keys, ranges.column("valid_from_log_offset"), offset)
    if history.num_rows == 0:
        ensure_known(evidence, key_filter, keys)
    misplaced = misplaced_places(evidence, keys, history)
    aside = set(map(place_of, misplaced.to_pylist()))
    rows: list[Event] = []
    for scalars in rows_of_places(history):
        rows += _story(evidence, scalars, ranges, offset, elsewhere=place_of(_first(scalars)) in aside)
    names = evidence.names({row["topic_id"] for row in rows})
    shared = {"cluster_id": evidence.cluster_id, "record_offset": offset}
    rows = [shared | {"topic": names.get(row["topic_id"]), "meaning": words(row)} | row for row in rows]
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    closing = [*_verdicts([row for row in rows if place_of(row) not in aside], offset), NEVER_KNOWN]
    warnings = misplaced_warnings(misplaced, names)
    if members:
        records = read_group_records(evidence, frozenset(table.column("group_id").to_pylist()))
        if records.num_rows == 0 and table.num_rows:
            warnings.append(without_group_records("members are unknown"))
        table = _with_members(records, table)
        closing.append(MEMBERS_KNOWN)
    closing.append(closing_line(evidence, incomplete_rows(table.column("completeness"))))
    return Answer(
        table=table,
        columns=LAYOUT.columns(table.column_names),
        summary="\n".join(closing),
        warnings=tuple(warnings),
        none="the state log has no record of this share partition",
    )


def _history(evidence: Tables, keys: Keys, states_from: pa.ChunkedArray, offset: int) -> pa.Table:
    """The rows of `turning_rows`, from few row groups where these suffice."""
    if len(keys.topics or ()) == 1:
        choice = TurningRowGroups(offset, states_from)
        history = turning_rows(_scalars(evidence, Where(keys=keys, choice=choice)), offset, states_from)
        if choice.suffice(history):
            return history
    return turning_rows(_scalars(evidence, Where(keys=keys)), offset, states_from)


def _scalars(evidence: Tables, where: Where) -> Iterator[pa.Table]:
    return evidence.scan(HISTORY, SCALARS, where, Order.LOG)


def _verdicts(rows: Sequence[Event], offset: int) -> Iterator[str]:
    """One line; one for each topic id where a name stands for several."""
    topics = list(dict.fromkeys(row["topic_id"] for row in rows))
    for topic_id in topics[1:] and topics:
        yield f"topic id {topic_id}: " + verdict([row for row in rows if row["topic_id"] == topic_id], offset)
    if len(topics) < 2:
        yield verdict(rows, offset)


def _story(evidence: Tables, scalars: pa.Table, ranges: pa.Table, offset: int, *, elsewhere: bool) -> list[Event]:
    """The events of one share partition in one state partition; `elsewhere`: its state lies in another one.

    `scalars`: its rows of `turning_rows`.
    """
    place = _first(scalars)
    losses = [
        loss for part in evidence.cover() if part.state_partition == place["state_partition"] for loss in part.losses
    ]
    moves, states = list(life_events(scalars, offset)), list(delivery_events(_of_same(scalars, ranges)))
    events = _with_completeness([*moves, *states, *attempt_events(moves, states, losses)], scalars)
    letters: list[Event] = []
    if not elsewhere and any(event["delivery_state"] in GIVEN_UP for event in states):
        rows_of_letters = _dead_letters(evidence, place, offset)
        letters = [event | {"completeness": COMPLETE} for event in letter_events(rows_of_letters, place)]
    rows = _with_outcomes(in_order(events, letters))
    if elsewhere:
        return [row | ELSEWHERE for row in rows]
    newest = next((row["outcome"] for row in reversed(rows) if row["outcome"] is not None), None)
    start = pc.min(scalars.filter(pc.greater_equal(scalars.column("start_offset"), 0)).column("start_offset")).as_py()
    if newest in NEEDS_NO_REASON or (start is not None and offset < start):
        return [row | {"offset_holds": None} for row in rows]
    if start is None:  # runs read no headers for it
        end = topic_end(evidence, place["topic_id"], place["partition"])
        holds = BEYOND_END if end is not None and offset >= end else None
        return [row | {"offset_holds": holds, TOPIC_END: end} for row in rows]
    holds = what_offset_holds(evidence, place["topic_id"], place["partition"], offset)
    return [row | {"offset_holds": holds} for row in rows]


def _dead_letters(evidence: Tables, place: Mapping[str, Any], offset: int) -> pa.Table:
    """DLQ_RECORD rows of the dead letters of one record of a share partition.

    A dead letter names the topic, not its id: a dead letter of an earlier topic of that name may be among them.
    """
    key = place["group_id"], place["topic_id"], place["partition"]
    return read_dead_letters(evidence, letters_of_records(evidence, [(key, offset)]))


def letters_of_records(evidence: Tables, records: Iterable[tuple[Key, int]]) -> DeadLetterFilter:
    """The dead letters of these (share partition, offset); of several records those of mixed keys, too."""
    keys, offsets = zip(*records, strict=True)
    groups, topic_ids, partitions = map(frozenset, zip(*keys, strict=True))
    topics = topic_ids.union(evidence.names(topic_ids).values())
    return DeadLetterFilter(groups=groups, topics=topics, partitions=partitions, offsets=frozenset(offsets))


def _first(scalars: pa.Table) -> dict[str, Any]:
    place: dict[str, Any] = scalars.slice(0, 1).to_pylist()[0]
    return place


def _with_outcomes(rows: Sequence[Event]) -> list[Event]:
    """Each event with the outcome of the record in its life; dead letters and deletions end the life before them."""
    with_outcomes: list[Event] = []
    lives = [list(life_pairs) for _, life_pairs in groupby(_lives(rows), key=lambda pair: pair[0])]
    for number, life in enumerate(lives):
        events = [row for _, row in life]
        ended = number + 1 < len(lives) or events[-1]["event"] == "deleted"
        code = outcome(events, ended=ended)
        with_outcomes += [row | {"outcome": code} for row in events]
    return with_outcomes


def _lives(rows: Sequence[Event]) -> Iterator[tuple[int, Event]]:
    """Each event with the number of its life, from 0 on."""
    number, begun = 0, False
    for row in rows:
        if row["event"] in ("created", "reset", "first_seen"):
            number += begun
            begun = True
        yield number, row


def _with_members(records: pa.Table, table: pa.Table) -> pa.Table:
    """The rows with the members that the partition was assigned to at each of them, by GROUP_RECORD rows."""
    rows = table.select(["topic_id", "partition", "log_time_ms"]).to_pylist()
    timelines: dict[tuple[str, int], Assigned] = {
        place: assigned(records, *place) for place in {(row["topic_id"], row["partition"]) for row in rows}
    }
    members = [timelines[row["topic_id"], row["partition"]].at(row["log_time_ms"]) for row in rows]
    return table.append_column(MEMBERS, pa.array(members, ASSIGNED_MEMBERS))


def _of_same(scalars: pa.Table, ranges: pa.Table) -> pa.Table:
    key = scalars.slice(0, 1).to_pylist()[0]
    same = ranges.filter(in_place(key))
    return same.sort_by([("valid_from_log_offset", "ascending")])


def _with_completeness(events: list[Event], history: pa.Table) -> list[Event]:
    """Each event of a share partition with the completeness of the state after its record."""
    key_filter = pa.array(sorted({event["log_offset"] for event in events}), pa.int64())
    rows = history.filter(pc.field("log_offset").isin(key_filter))
    marks = {
        row["log_offset"]: {name: row[name] for name in ("completeness", "completeness_reason")}
        for row in rows.select(["log_offset", "completeness", "completeness_reason"]).to_pylist()
    }
    return [event if "completeness" in event else event | marks.get(event["log_offset"], {}) for event in events]


def _state_cell(row: Row) -> str:
    return (
        f"{row['delivery_state_name']}/{row['delivery_count']}" if row["event"] == DELIVERY_STATE else number_text(None)
    )


def _ended_cell(row: Row) -> str:
    return name_cell(row["end_reason"]) if row["end_reason"] else number_text(None)


def _meaning_cell(row: Row) -> str:
    letter = f": {name_cell(row['dlq_topic'])}-{row['dlq_partition']} @ {row['dlq_offset']}"
    return str(row["meaning"]) + (letter if row["dlq_topic"] is not None else "")


def _members_cell(row: Row) -> str:
    members = row["assigned_members_inferred"]
    if not isinstance(members, list):
        return number_text(None)
    return ", ".join(map(_member_text, members)) or "none"


def _member_text(member: Mapping[str, Any]) -> str:
    client = f"{name_cell(member['client_id'])}@{name_cell(member['client_host'])}"
    return f"{name_cell(member['member_id'])} ({client})"


LAYOUT = Layout(
    schema=SCHEMA.append(MEMBERS),
    fields="group_id topic partition record_offset start_offset log_time_ms event delivery_state_name "
    "state_partition log_offset until_log_offset end_reason completeness assigned_members_inferred",
    cells=(
        Column(
            heading="EVENT",
            cell=_meaning_cell,
            fields=("event", "meaning", "dlq_topic", "dlq_partition", "dlq_offset"),
            folds=True,
        ),
        Column(heading="STATE", cell=_state_cell, fields=("delivery_state_name", "delivery_count")),
        Column(heading="ENDED-BY", cell=_ended_cell, fields=("end_reason",)),
        Column(
            heading="ASSIGNED-MEMBERS-INFERRED",
            cell=_members_cell,
            fields=("assigned_members_inferred",),
            folds=True,
        ),
    ),
    important="LOG-TIME EVENT ASSIGNED-MEMBERS-INFERRED STATE",
    varies="assigned_members_inferred with --members",
)
