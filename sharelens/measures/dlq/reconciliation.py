"""Dead letters and archived records: matches dead letters with their records, and due records with their dead letters.

    state log   ARCHIVING since t1 ──── ARCHIVED at t2          a dead letter is due from t1 on (KIP-1191, Kafka 4.4)
    DLQ topic              └ dead letter          └ a second one: duplicate
    matched: both · missing: due, and none is there · archiving: due, not archived yet · unexpected: a letter without

A record that was archived without ARCHIVING before (a gap, an aborted record, a group without a topic for dead letters)
is due none. Dead letters name a topic, not its id, so one may belong to any topic that bore the name: it goes to the
life in which its record was given up last before the letter's time. Where the evidence does not suffice, the status
is `unknown`, not a finding.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.dlq import schemas as words
from sharelens.measures.dlq.reach import DAWN, LetterTopics
from sharelens.measures.dlq.schemas import DLQ_RECONCILIATION
from sharelens.measures.poison import ARCHIVED_STATE, DEAD_LETTER, GAP
from sharelens.measures.settings.over_time import GroupSettings, in_force_at
from sharelens.measures.topics.extents import names_of_topics
from state_model.columnar.keys import SHARE_PARTITION_KEY, number_keys
from state_model.columnar.ranges import MAX_OFFSET
from state_model.columnar.schemas import COMPLETENESS, SHARE_PARTITION_HISTORY
from state_model.uuids import ZERO_UUID

Ints = npt.NDArray[np.int64]
CLOCK_TOLERANCE_MS = 60_000
"""How far a dead letter's clock may lie behind the state log's: what counts as a step of a broker's clock elsewhere."""
DLQ_POSITION = ["dlq_topic", "dlq_topic_id", "dlq_partition", "dlq_offset"]
LETTER_COLUMNS = [
    *DLQ_POSITION, "timestamp_ms", "group_id", "topic", "partition", "offset", "delivery_count", "cause",
    "value_size_bytes",
]  # fmt: skip
"""The columns of DLQ_RECORD that are read."""
HISTORY_READ = [*SHARE_PARTITION_KEY, "log_offset", "log_time_ms", "completeness", "completeness_reason"]
LIFE_KEY = ("state_partition", "life_log_offset")
ORDER = [(name, "ascending") for name in (*SHARE_PARTITION_KEY, "first_offset", *LIFE_KEY, *DLQ_POSITION)]
CLEAR_CAUSES = pa.array(["rejected", "delivery_limit"])


def reconcile(
    given_up: pa.Table,
    letters: pa.Table,
    history: Iterable[pa.Table],
    names: Mapping[str, str],
    topics: LetterTopics,
    settings: GroupSettings,
    *,
    begins_ms: int | None,
    nameless: Set[tuple[str, int]] = frozenset(),
) -> pa.Table:
    """DLQ_RECONCILIATION rows, by share partition, offset, life and place of the dead letter.

    Args:
        given_up: POISON_RECORD rows of whole share partitions, gaps among them, none near the limit.
        letters: DLQ_RECORD rows (LETTER_COLUMNS); rows whose headers can't be read are left out.
        history: SHARE_PARTITION_HISTORY rows (HISTORY_READ) of at least the share partitions `named_by` letters, in
            any parts and order. It is streamed, and not read while each letter has its record.
        names: topic names by id. An id that a dead letter holds instead of a name stands for itself.
        topics: the dead letter topics of all groups.
        settings: of the groups; DEAD_LETTER_TOPIC names where a group's dead letters go when they are due.
        begins_ms: log time from which on no share partition's records are missing (`whole_since_ms`).
        nameless: (group, partition) of share partitions whose topic has no known name (`nameless_places`).
    """
    order = [(name, "ascending") for name in ("timestamp_ms", *DLQ_POSITION)]
    letters = readable_letters(letters).sort_by(order)
    candidates = candidate_places(letters, names)
    (piece_key, key), _ = number_keys(given_up, candidates)
    chosen = _chosen(given_up, piece_key, letters, candidates.column("letter").to_numpy(), key)
    alone = np.flatnonzero(chosen < 0)
    parts = [
        _matched(given_up, letters, chosen, names),
        _without_state(letters.take(pa.array(alone)), history, names, begins_ms, nameless),
        _without_letter(given_up, letters, chosen, names, topics, settings),
    ]
    return pa.concat_tables(parts).sort_by(ORDER)


def readable_letters(letters: pa.Table) -> pa.Table:
    """LETTER_COLUMNS of the dead letters with group, topic, partition and offset of a record."""
    readable = pc.is_valid(letters.column("group_id"))
    for name in ("topic", "partition", "offset"):
        readable = pc.and_(readable, pc.is_valid(letters.column(name)))
    return letters.select(LETTER_COLUMNS).filter(readable)


def named_by(letters: pa.Table, names: Mapping[str, str]) -> pa.Table:
    """The distinct share partitions that dead letters may belong to; reconciliation reads the history of these."""
    return candidate_places(readable_letters(letters), names).group_by(SHARE_PARTITION_KEY).aggregate([])


def _ids(names: Mapping[str, str]) -> dict[str, list[str]]:
    """The topic ids that had each topic name."""
    ids: dict[str, list[str]] = {}
    for topic_id, name in sorted(names.items()):
        ids.setdefault(name, []).append(topic_id)
    return ids


def candidate_places(letters: pa.Table, names: Mapping[str, str]) -> pa.Table:
    """The share partitions (SHARE_PARTITION_KEY) that each dead letter may belong to; `letter` is its row."""
    ids = _ids(names)
    topic_codes = letters.column("topic").dictionary_encode().combine_chunks()
    meant = [sorted({name, *ids.get(name, ())}) for name in topic_codes.dictionary.to_pylist()]
    lengths = np.array([len(topic_ids) for topic_ids in meant], np.int64)
    begins = np.cumsum(lengths) - lengths
    code = topic_codes.indices.to_numpy()
    row = np.repeat(np.arange(len(code)), lengths[code])
    place = np.arange(len(row)) - np.repeat(np.cumsum(lengths[code]) - lengths[code], lengths[code])
    flat = pa.array([topic_id for topic_ids in meant for topic_id in topic_ids], pa.string())
    candidates = letters.select(["group_id", "partition"]).take(pa.array(row))
    candidates = candidates.append_column("topic_id", flat.take(pa.array(begins[code[row]] + place)))
    return candidates.append_column("letter", pa.array(row, pa.int64()))


def _chosen(given_up: pa.Table, piece_key: Ints, letters: pa.Table, letter: Ints, key: Ints) -> Ints:
    """For each dead letter the row of `given_up` that it belongs to; -1 for none.

    Of several lives the one in which the record was given up last before the letter; else the first one.
    """
    if not letters.num_rows:
        return np.empty(0, np.int64)
    letter_at, piece_at = _pairs(given_up, piece_key, letters, letter, key)
    starts = pc.fill_null(given_up.column("archiving_ms"), DAWN).to_numpy()[piece_at]
    stamps = letters.column("timestamp_ms").to_numpy()[letter_at]
    possible = stamps >= starts - CLOCK_TOLERANCE_MS
    letter_at, piece_at, starts, stamps = (part[possible] for part in (letter_at, piece_at, starts, stamps))
    begun = starts <= stamps
    lives = given_up.column("life_log_offset").to_numpy()[piece_at]
    order = np.lexsort((piece_key[piece_at], lives, np.where(begun, starts, -starts), begun, letter_at))
    last = order[np.append(np.diff(letter_at[order]) != 0, True)[: len(order)]]
    chosen = np.full(letters.num_rows, -1, np.int64)
    chosen[letter_at[last]] = piece_at[last]
    return chosen


def _pairs(given_up: pa.Table, piece_key: Ints, letters: pa.Table, letter: Ints, key: Ints) -> tuple[Ints, Ints]:
    """(dead letter, row of `given_up`) wherever the row's share partition and offsets are the letter's."""
    first, last, life, number = (
        given_up.column(name).to_numpy().astype(np.int64)
        for name in ("first_offset", "last_offset", "life_log_offset", "state_partition")
    )
    order = np.lexsort((first, life, number, piece_key))
    turns = np.flatnonzero(
        (np.diff(piece_key[order]) != 0) | (np.diff(number[order]) != 0) | (np.diff(life[order]) != 0)
    )
    offsets = letters.column("offset").to_numpy()[letter]
    letter_order = np.lexsort((offsets, key))
    ordered = key[letter_order]
    pairs: list[tuple[Ints, Ints]] = [(np.empty(0, np.int64), np.empty(0, np.int64))]
    for begin, end in zip([0, *(turns + 1).tolist()], [*(turns + 1).tolist(), len(order)], strict=True):
        if begin == end:
            continue
        current_key = piece_key[order[begin]]
        rows_of_key = letter_order[
            np.searchsorted(ordered, current_key) : np.searchsorted(ordered, current_key, "right")
        ]
        at = np.searchsorted(first[order[begin:end]], offsets[rows_of_key], "right") - 1
        piece = order[begin + np.maximum(at, 0)]
        hit = (at >= 0) & (last[piece] >= offsets[rows_of_key])
        pairs.append((letter[rows_of_key[hit]], piece[hit]))
    return np.concatenate([part for part, _ in pairs]), np.concatenate([part for _, part in pairs])


def _rows(count: int, columns: Mapping[str, object]) -> pa.Table:
    """DLQ_RECONCILIATION rows; a column that is not given is null."""
    column_values = {
        column.name: columns.get(column.name, pa.nulls(count, column.type)) for column in DLQ_RECONCILIATION
    }
    return pa.table(column_values).cast(DLQ_RECONCILIATION)


def _archived_ms(rows: pa.Table) -> pa.Array:
    is_archived = pc.equal(rows.column("delivery_state"), ARCHIVED_STATE)
    return pc.if_else(is_archived, rows.column("last_outcome_ms"), pa.scalar(None, pa.int64()))


def _of_state(rows: pa.Table) -> dict[str, object]:
    """Columns of DLQ_RECONCILIATION from POISON_RECORD rows."""
    names = (*SHARE_PARTITION_KEY, *LIFE_KEY, "archiving_ms", "log_offset", *(f.name for f in COMPLETENESS))
    return {name: rows.column(name) for name in names} | {"archived_ms": _archived_ms(rows)}


def _of_letters(rows: pa.Table) -> dict[str, object]:
    """Columns of DLQ_RECONCILIATION from dead letters."""
    names = (*DLQ_POSITION, "group_id", "partition", "value_size_bytes")
    return {name: rows.column(name) for name in names} | {
        "first_offset": rows.column("offset"),
        "last_offset": rows.column("offset"),
        "dead_lettered_ms": rows.column("timestamp_ms"),
    }


def _matched(given_up: pa.Table, letters: pa.Table, chosen: Ints, names: Mapping[str, str]) -> pa.Table:
    """Rows of the dead letters whose record is known: the first letter of a record is matched, others duplicate."""
    at = np.flatnonzero(chosen >= 0)
    offsets = letters.column("offset").to_numpy()
    at = at[np.lexsort((at, offsets[at], chosen[at]))]
    fresh = np.append(True, (np.diff(chosen[at]) != 0) | (np.diff(offsets[at]) != 0))[: len(at)]
    first = at[np.flatnonzero(fresh)[np.cumsum(fresh) - 1]] if len(at) else at
    matched_letters, pieces = letters.take(pa.array(at)), given_up.take(pa.array(chosen[at]))
    earlier = letters.select(DLQ_POSITION).take(pa.array(first, mask=fresh))
    clear = pc.fill_null(pc.is_in(matched_letters.column("cause"), value_set=CLEAR_CAUSES), False)
    columns = _of_letters(matched_letters) | _of_state(pieces) | {
        "topic": pc.coalesce(names_of_topics(pieces.column("topic_id"), names), matched_letters.column("topic")),
        "status": pa.array([words.MATCHED, words.DUPLICATE]).take(pa.array((~fresh).astype(np.int8))),
        "cause": pc.if_else(clear, matched_letters.column("cause"), pieces.column("cause")),
        "cause_source": pc.if_else(clear, DEAD_LETTER, pieces.column("cause_source")),
        "delivery_count": pc.coalesce(matched_letters.column("delivery_count"), pieces.column("delivery_count")),
        **{f"duplicate_of_{name}": earlier.column(name) for name in DLQ_POSITION if name != "dlq_topic_id"},
    }  # fmt: skip
    return _rows(len(at), columns)


def _without_letter(
    given_up: pa.Table,
    letters: pa.Table,
    chosen: Ints,
    names: Mapping[str, str],
    topics: LetterTopics,
    settings: GroupSettings,
) -> pa.Table:
    """Rows of the runs of records whose dead letter is due and missing."""
    due = pc.and_(pc.is_valid(given_up.column("archiving_ms")), pc.not_equal(given_up.column("cause"), GAP))
    due = pc.fill_null(due, False).to_numpy(zero_copy_only=False)
    at = np.flatnonzero(chosen >= 0)
    piece, first, last = _runs_without_letter(
        given_up, chosen[at], letters.column("offset").to_numpy()[at], np.flatnonzero(due)
    )
    rows = given_up.take(pa.array(piece))
    groups = rows.column("group_id").dictionary_encode().combine_chunks()
    group_ids = groups.dictionary.to_pylist()
    due_ms = rows.column("archiving_ms").to_numpy()
    at_due, in_force = in_force_at(settings, groups.indices.to_numpy().astype(np.int64), due_ms)
    judged = [topics.judged(group_ids[number], period) for number, period in in_force]
    cut = np.array([verdict[3] for verdict in judged], np.int64)[at_due]
    gone = due_ms < cut
    waits = pc.not_equal(rows.column("delivery_state"), ARCHIVED_STATE)
    status, reason, topic = (
        pa.array([verdict[part] for verdict in judged], pa.string()).take(pa.array(at_due)) for part in range(3)
    )
    status, reason = pc.if_else(gone, words.UNKNOWN, status), pc.if_else(gone, words.EXPIRED, reason)
    columns = _of_state(rows) | {
        "topic": names_of_topics(rows.column("topic_id"), names),
        "first_offset": first,
        "last_offset": last,
        "status": pc.if_else(waits, words.ARCHIVING, status),
        "reason": pc.if_else(waits, pa.scalar(None, pa.string()), reason),
        "cause": rows.column("cause"),
        "cause_source": rows.column("cause_source"),
        "delivery_count": rows.column("delivery_count"),
        "dlq_topic": topic,
    }
    return _rows(len(piece), columns)


def _runs_without_letter(given_up: pa.Table, piece: Ints, offset: Ints, due: Ints) -> tuple[Ints, Ints, Ints]:
    """Runs (row, first, last) of the rows `due` without the offsets that have a dead letter."""
    firsts, lasts = (given_up.column(name).to_numpy() for name in ("first_offset", "last_offset"))
    is_due = np.isin(piece, due)
    rows = np.concatenate([due, piece[is_due]])
    ends = np.concatenate([lasts[due], offset[is_due] - 1])
    order = np.lexsort((ends, rows))
    rows, ends = rows[order], ends[order]
    begins_row = np.append(True, np.diff(rows) != 0)[: len(rows)]
    before = np.append(0, ends[:-1])[: len(rows)]
    has_offsets = np.where(begins_row, ends >= firsts[rows], before < ends - 1)
    begins = np.where(begins_row, firsts[rows], np.minimum(before, MAX_OFFSET - 2) + 2) if len(rows) else ends
    return rows[has_offsets], begins[has_offsets], ends[has_offsets]


def _without_state(
    letters: pa.Table,
    history: Iterable[pa.Table],
    names: Mapping[str, str],
    begins_ms: int | None,
    nameless: Set[tuple[str, int]],
) -> pa.Table:
    """Rows of the dead letters whose record the state log does not show as given up."""
    candidates = candidate_places(letters, names)
    says = _verdicts_by_letter(letters, candidates, _telling(history, letters, candidates)) if letters.num_rows else {}
    rows = []
    for row, letter in enumerate(letters.select(["group_id", "topic", "partition", "timestamp_ms"]).to_pylist()):
        verdict = says.get(row)
        if verdict is not None:
            topic_id = candidates.column("topic_id")[verdict[2]].as_py()
            rows.append((topic_id, verdict[0], verdict[1]))
            continue
        early = begins_ms is None or letter["timestamp_ms"] < begins_ms
        unclear = early or (letter["group_id"], letter["partition"]) in nameless
        status = words.UNKNOWN if unclear else words.UNEXPECTED
        rows.append((ZERO_UUID, status, words.TOO_EARLY if early else words.NO_STATE))
    ids = pa.array([row[0] for row in rows], pa.string())
    is_fine = pa.array([row[2] == words.NOT_ARCHIVED for row in rows], pa.bool_())
    columns = _of_letters(letters) | {
        "topic_id": ids,
        "topic": pc.coalesce(names_of_topics(ids, names), letters.column("topic")),
        "status": pa.array([row[1] for row in rows], pa.string()),
        "reason": pa.array([row[2] for row in rows], pa.string()),
        "cause": letters.column("cause"),
        "cause_source": pc.if_else(pc.is_valid(letters.column("cause")), DEAD_LETTER, pa.scalar(None, pa.string())),
        "delivery_count": letters.column("delivery_count"),
        "completeness": pc.if_else(is_fine, "complete", "incomplete"),
        "completeness_reason": pc.if_else(
            is_fine, pa.scalar(None, pa.string()), pa.array([r[2] for r in rows], pa.string())
        ),
    }
    return _rows(letters.num_rows, columns)


def nameless_places(places: pa.Table, names: Mapping[str, str]) -> set[tuple[str, int]]:
    """(group, partition) of share partitions (rows with SHARE_PARTITION_KEY) whose topic has no known name."""
    keys = places.select(SHARE_PARTITION_KEY).group_by(SHARE_PARTITION_KEY).aggregate([])
    return {(row["group_id"], row["partition"]) for row in keys.to_pylist() if row["topic_id"] not in names}


def _telling(history: Iterable[pa.Table], letters: pa.Table, candidates: pa.Table) -> pa.Table:
    """First and last history row of each candidate, and the last row before each letter; streams to bound memory."""
    kept_rows = pa.schema([SHARE_PARTITION_HISTORY.field(name) for name in HISTORY_READ]).empty_table()
    for rows in history:
        union_rows = pa.concat_tables([kept_rows, rows.select(HISTORY_READ).cast(kept_rows.schema)])
        times = _Times.of(letters, candidates, union_rows)
        has_rows = times.begin < times.end
        before = times.at[times.at > times.begin] - 1
        looked_at = np.unique(np.concatenate([times.begin[has_rows], before, times.end[has_rows] - 1]))
        kept_rows = union_rows.take(pa.array(times.order[looked_at]))
    return kept_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class _Times:
    """The candidate share partitions of dead letters, and the positions of the letters among their records.

    `order`: rows of the history by share partition and time. One entry a candidate: of its share partition's rows the
    first, the one behind the last, and the first after the letter, as places in `order`.
    """

    order: Ints
    begin: Ints
    end: Ints
    at: Ints

    @staticmethod
    def of(letters: pa.Table, candidates: pa.Table, history: pa.Table) -> "_Times":
        (history_key, key), _ = number_keys(history, candidates)
        times, offsets = (history.column(name).to_numpy() for name in ("log_time_ms", "log_offset"))
        order = np.lexsort((offsets, times, history_key))
        stamps = letters.column("timestamp_ms").to_numpy()[candidates.column("letter").to_numpy()]
        is_letter = np.repeat([False, True], [len(history_key), len(key)])
        merged_order = np.lexsort((is_letter, np.concatenate([times, stamps]), np.concatenate([history_key, key])))
        rows_before = np.cumsum(~is_letter[merged_order])
        at = np.empty(len(merged_order), np.int64)
        at[merged_order] = rows_before
        keys = history_key[order]
        begin, end = (np.searchsorted(keys, key, side) for side in ("left", "right"))
        return _Times(order=order, begin=begin, end=end, at=at[len(history_key) :])


def _verdicts_by_letter(letters: pa.Table, candidates: pa.Table, history: pa.Table) -> dict[int, tuple[str, str, int]]:
    """Status, reason and deciding candidate of each dead letter, from the state at the time of the letter.

    Of several candidates the most certain one decides; NOT_ARCHIVED is the most certain reason.
    """
    times = _Times.of(letters, candidates, history)
    is_complete = pc.equal(history.column("completeness"), "complete").to_numpy(zero_copy_only=False)[times.order]
    says = [words.TOO_EARLY, words.TOO_LATE, words.NOT_COMPLETE, words.NOT_ARCHIVED]
    verdicts: dict[int, tuple[str, str, int]] = {}
    weight: dict[int, int] = {}
    for candidate, row in enumerate(candidates.column("letter").to_pylist()):
        begin, end, at = (int(places[candidate]) for places in (times.begin, times.end, times.at))
        if begin == end:
            continue
        place = 0 if at == begin else 1 if at == end else 3 if is_complete[at - 1] else 2
        if place > weight.get(row, -1):
            weight[row] = place
            status = words.UNEXPECTED if says[place] == words.NOT_ARCHIVED else words.UNKNOWN
            verdicts[row] = (status, says[place], candidate)
    return verdicts
