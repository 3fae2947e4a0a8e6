"""How far share groups are behind: now, as of a time, at offsets of the state log, or over time."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from measures import lag as measure
from measures.topics import BATCH_COLUMNS, TOPIC_END, EndsFromHeaders, TopicPartition
from sharelens.asked import CutAsked
from sharelens.filters import Wanted
from sharelens.output import Answer, Column, Row, known, name_column, number_column
from sharelens.questions.completeness import (
    check_cut,
    cut_of,
    evidence_line,
    incomplete_rows,
    misplaced_warnings,
    times,
)
from sharelens.questions.evidence import KEY_ORDER, Cut, Evidence
from sharelens.questions.naming import ensure_known, resolve
from sharelens.questions.shape import constant
from sharelens.questions.state import completeness_cell, topic_cell
from sharelens.times import time_text

EndOffsets = Mapping[tuple[str, int], int]
"""End offsets by (topic name, partition)."""
FROM_FILE = "end_offsets_file"


def lag(evidence: Evidence, wanted: Wanted, asked: CutAsked, *, end_offsets: EndOffsets | None = None) -> Answer:
    """The answer to `sharelens lag`; `end_offsets` goes before what the evidence says of the topics."""
    keys = resolve(evidence, wanted)
    cut = cut_of(asked)
    placed = evidence.states(keys, cut).sort_by(KEY_ORDER)
    found = placed.filter(pc.invert(placed.column("misplaced")))
    warnings = check_cut(evidence, cut)
    if found.num_rows == 0:
        ensure_known(evidence, wanted, keys)
    topic_ids = found.column("topic_id").unique().to_pylist()
    names = evidence.names(topic_ids)
    cut = _within(evidence, cut)
    ends = ends_at(evidence, measure.begins_of(found), cut)
    if end_offsets is not None:
        ends = with_end_offsets(ends, end_offsets, {i: names[i] for i in topic_ids if i in names})
    table = measure.lag(found, ends, names, end_of_now=cut.whole)
    table = table.add_column(0, "cluster_id", constant(evidence.cluster_id, table.num_rows, pa.string()))
    warnings += misplaced_warnings(placed.filter(placed.column("misplaced")), names)
    closing = evidence_line(evidence.cover(), incomplete_rows(table.column("completeness")))
    return Answer(
        table=table,
        columns=text_columns(inferred=not cut.whole),
        summary=f"{_cut_line(evidence, cut, table)}\n{closing}",
        warnings=tuple(warnings),
        none="no live share partition",
    )


def _within(evidence: Evidence, cut: Cut) -> Cut:
    """The cut, or no cut where it lies at or behind the end of the evidence."""
    last = times(evidence.cover())[1]
    return Cut() if cut.as_of_ms is not None and last is not None and cut.as_of_ms >= last else cut


def ends_at(evidence: Evidence, begins: Mapping[TopicPartition, int], cut: Cut) -> pa.Table:
    """TOPIC_END rows of user partitions at a cut; offsets of the state log name no moment, so then no end is known."""
    extents = evidence.topic_extents(begins)
    if cut.at_offsets:
        places = extents.select(["topic_id", "partition"]).to_pylist()
        return pa.Table.from_pylist(places, schema=TOPIC_END)
    folded = EndsFromHeaders(cut.as_of_ms)
    for batches in evidence.topic_batches(begins):
        folded.take(batches.select(BATCH_COLUMNS))
    return folded.ends(extents)


def with_end_offsets(ends: pa.Table, given: EndOffsets, names: Mapping[str, str]) -> pa.Table:
    """TOPIC_END rows with the ends that a file gives, in the place of those that the evidence tells.

    A name that several ids bear means the one that the evidence has a partition of; when that leaves several, none.
    """
    rows = {(row["topic_id"], row["partition"]): row for row in ends.to_pylist()}
    ids: dict[str, list[str]] = {}
    for topic_id, name in names.items():
        ids.setdefault(name, []).append(topic_id)
    for (name, partition), offset in given.items():
        place = _place_of(ids.get(name, []), partition, rows)
        if place is None:
            continue
        before = rows.get(place, dict.fromkeys(TOPIC_END.names))
        same = before["end_offset"] == offset
        rows[place] = before | {
            "topic_id": place[0],
            "partition": partition,
            "end_offset": offset,
            "end_offset_source": FROM_FILE,
            "last_stable_offset": before["last_stable_offset"] if same else None,
            "end_offset_inferred": None,
        }
    return pa.Table.from_pylist([rows[place] for place in sorted(rows)], schema=TOPIC_END)


def _place_of(ids: Sequence[str], partition: int, rows: Mapping[TopicPartition, object]) -> TopicPartition | None:
    there = [topic_id for topic_id in ids if (topic_id, partition) in rows]
    choice = ids if len(ids) == 1 else there
    return (choice[0], partition) if len(choice) == 1 else None


def _cut_line(evidence: Evidence, cut: Cut, table: pa.Table) -> str:
    """Which moment all columns stand for, and where the end offsets come from."""
    last = times(evidence.cover())[1]
    moment = "offsets of the state log" if cut.at_offsets else time_text(last if cut.as_of_ms is None else cut.as_of_ms)
    sources = sorted(filter(None, table.column("end_offset_source").unique().to_pylist()))
    return f"cut: {moment}; end offsets: {', '.join(sources) or 'none known'}"


def text_columns(*, inferred: bool) -> tuple[Column, ...]:
    """Kafka's words and order first, ours after; `inferred`: the cut is an earlier moment."""
    guess = (number_column("END-OFFSET-INFERRED", "end_offset_inferred"), number_column("LAG-INFERRED", "lag_inferred"))
    return (
        name_column("GROUP", "group_id"),
        Column(heading="TOPIC", cell=topic_cell),
        number_column("PARTITION", "partition"),
        number_column("LEADER-EPOCH", "leader_epoch"),
        number_column("START-OFFSET", "start_offset"),
        number_column("LAG", "lag"),
        number_column("FIRST-INCOMPLETE", "first_incomplete_offset"),
        number_column("END-OFFSET", "end_offset"),
        *(guess if inferred else ()),
        number_column("LAG-STABLE", "lag_stable"),
        number_column("LAG-RECOUNTED", "lag_recounted"),
        number_column("LAG-NAIVE", "lag_naive"),
        Column(heading="COMPLETENESS", cell=completeness_cell),
        Column(heading="WHY", cell=_why_cell),
    )


def _why_cell(row: Row) -> str:
    """The reason why the lag is unknown, else what makes the figures differ."""
    return known(row["why"] if row["unknown_reason"] is None else row["unknown_reason"])
