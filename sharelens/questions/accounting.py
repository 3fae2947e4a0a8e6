"""What became of every record offset of a window: each is in exactly one class, and the counts add up."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from measures import account as measure
from measures.lives import PLACE
from measures.schemas import CLASSES
from measures.topic_log import TopicLog, TopicLogs, limits
from measures.topics import TopicPartition
from sharelens.asked import CutAsked
from sharelens.filters import Wanted
from sharelens.output import Answer, Column, name_cell, name_column, number_column
from sharelens.questions.evidence import Evidence, Span
from sharelens.questions.measured import Histories, answer, histories, marked
from sharelens.questions.state import completeness_cell, topic_cell

FROM_STATE_LOG = "state_log"
FROM_TOPIC = "topic"
NAMED = 4


def account(evidence: Evidence, wanted: Wanted, asked: CutAsked, window: Span, *, listed: Sequence[str] = ()) -> Answer:
    """The answer to `sharelens account`; `window`: append times and record offsets; `listed`: classes to list by range.

    Times are those of the user topic's batches. A topic of which the evidence has nothing is accounted for as far as
    the state log goes. User partitions of which no share group ever determined a start offset are left out.
    """
    told = histories(evidence, wanted, asked)
    begins = _begins(told.history)
    logs, sources, warnings = _windows(evidence, told, begins, window)
    losses = {part.state_partition: part.losses for part in evidence.cover()}
    rows = measure.account(told.history, told.deliveries, limits(logs), logs, losses)
    table = _listed(rows, listed) if listed else _counted(rows, logs, sources)
    table = marked(table, told.history)
    return answer(
        evidence,
        table,
        LISTED_COLUMNS if listed else COUNTED_COLUMNS,
        told=_totals(rows, logs),
        warnings=[*told.warnings, *warnings],
        none="no offset in the window",
    )


def _begins(history: pa.Table) -> dict[TopicPartition, int]:
    """The smallest start offset named for each user partition; those of which none ever was are left out."""
    start = pc.if_else(pc.greater_equal(history.column("start_offset"), 0), history.column("start_offset"), None)
    rows = history.select(["topic_id", "partition"]).append_column("start", start)
    found = rows.group_by(["topic_id", "partition"]).aggregate([("start", "min")]).to_pylist()
    named = [row for row in found if row["start_min"] is not None]
    return {(row["topic_id"], row["partition"]): row["start_min"] for row in named}


def _windows(
    evidence: Evidence, told: Histories, begins: Mapping[TopicPartition, int], window: Span
) -> tuple[dict[TopicPartition, TopicLog], dict[TopicPartition, str], list[str]]:
    """The window of each user partition, where its end comes from, and what is missing."""
    to_ms = window.to_ms
    if to_ms is None and told.cut.as_of_ms is not None:
        to_ms = told.cut.as_of_ms + 1
    folded = TopicLogs(window.from_ms, to_ms)
    for batches in evidence.topic_batches(begins):
        folded.take(batches)
    extents = {(row["topic_id"], row["partition"]): row for row in evidence.topic_extents(begins).to_pylist()}
    reached = _reached(told)
    logs, sources = {}, {}
    missing, beyond = [], []
    for place, begin in sorted(begins.items()):
        extent = extents.get(place)
        log_start = extent["log_start_offset"] if extent else None
        end = extent["end_offset"] if extent else None
        sources[place] = FROM_TOPIC if extent else FROM_STATE_LOG
        if extent is None:
            missing.append(place)
        if end is not None and window.to_offset is None and to_ms is None and reached.get(place, 0) > end:
            beyond.append(place)
        first = begin if log_start is None else log_start
        first = first if window.from_offset is None else window.from_offset
        end = reached.get(place, begin) if end is None else end
        end = end if window.to_offset is None else min(end, window.to_offset)
        log = folded.log(place, first=first, end=max(first, end), log_start=log_start, looked_from=begin)
        if log is not None:
            logs[place] = log
    return logs, sources, [*_missing(evidence, missing, window), *_beyond(evidence, beyond)]


def _missing(evidence: Evidence, places: Sequence[TopicPartition], window: Span) -> list[str]:
    if not places:
        return []
    timed = "; a window of time needs them, so nothing of it is told" if window.from_ms is not None else ""
    warning = (
        f"no batch headers of {_named(evidence, places)} in {evidence.place}: accounted for as far as the state log "
        f"goes{timed}; "
        "copy the topics' folders too (--log-dir, or `sharelens run` again)"
    )
    return [warning]


def _beyond(evidence: Evidence, places: Sequence[TopicPartition]) -> list[str]:
    if not places:
        return []
    warning = (
        f"the state log speaks of offsets at or above the end of {_named(evidence, places)}: the copy of the topic is "
        "older than that of the state log, or no client wrote that state"
    )
    return [warning]


def _named(evidence: Evidence, places: Sequence[TopicPartition]) -> str:
    """The first few user partitions, and how many more there are."""
    names = evidence.names({topic_id for topic_id, _ in places})
    some = ", ".join(f"{name_cell(names.get(topic_id, topic_id))}:{number}" for topic_id, number in places[:NAMED])
    return some + (f" and {len(places) - NAMED} more" if len(places) > NAMED else "")


def _reached(told: Histories) -> dict[TopicPartition, int]:
    """The first offset that the state log does not speak of, by user partition."""
    parts = [
        told.deliveries.select(["topic_id", "partition"]).append_column(
            "end", pc.add(told.deliveries.column("last_offset"), 1)
        ),
        told.history.select(["topic_id", "partition"]).append_column("end", told.history.column("start_offset")),
    ]
    found = pa.concat_tables(parts).group_by(["topic_id", "partition"]).aggregate([("end", "max")]).to_pylist()
    return {(row["topic_id"], row["partition"]): max(0, row["end_max"] or 0) for row in found}


def _listed(rows: pa.Table, classes: Sequence[str]) -> pa.Table:
    return rows.filter(pc.is_in(rows.column("class"), value_set=pa.array(sorted(classes), pa.string())))


def _counted(
    rows: pa.Table,
    logs: Mapping[TopicPartition, TopicLog],
    sources: Mapping[TopicPartition, str],
) -> pa.Table:
    """One row a class and reason of each share partition, with the window and what the batches of it hold."""
    sizes = pc.add(pc.subtract(rows.column("last_offset"), rows.column("first_offset")), 1)
    table = rows.append_column("offsets", sizes)
    by = [*PLACE, "class", "reason"]
    found = table.group_by(by, use_threads=False).aggregate(
        [("offsets", "sum"), ("offsets", "count"), ("first_offset", "min"), ("last_offset", "max")]
    )
    found = found.rename_columns([*by, "offsets", "ranges", "first_offset", "last_offset"])
    places = [(row["topic_id"], row["partition"]) for row in found.select(["topic_id", "partition"]).to_pylist()]
    columns = {
        "window_first_offset": [logs[place].first for place in places],
        "window_end_offset": [logs[place].end for place in places],
        "window_offsets": [logs[place].end - logs[place].first for place in places],
        "batch_offsets": [logs[place].batch_offsets if sources[place] == FROM_TOPIC else None for place in places],
        "difference": [
            logs[place].looked_at - logs[place].batch_offsets if sources[place] == FROM_TOPIC else None
            for place in places
        ],
    }
    for name, values in columns.items():
        found = found.append_column(name, pa.array(values, pa.int64()))
    return found.append_column("end_offset_source", pa.array([sources[place] for place in places], pa.string()))


def _totals(rows: pa.Table, logs: Mapping[TopicPartition, TopicLog]) -> str:
    sizes = pc.add(pc.subtract(rows.column("last_offset"), rows.column("first_offset")), 1)
    counts = {name: pc.sum(sizes.filter(pc.equal(rows.column("class"), name))).as_py() or 0 for name in CLASSES}
    appended = sum(
        logs[(row["topic_id"], row["partition"])].end - logs[(row["topic_id"], row["partition"])].first
        for row in rows.group_by(PLACE).aggregate([]).select(["topic_id", "partition"]).to_pylist()
    )
    told = ", ".join(f"{name} {count}" for name, count in counts.items() if count) or "none"
    total = sum(counts.values())
    return f"offsets of the window {appended}, in classes {total}, difference {appended - total}: {told}"


_KEY_COLUMNS = (
    name_column("GROUP", "group_id"),
    Column(heading="TOPIC", cell=topic_cell),
    number_column("PARTITION", "partition"),
    name_column("CLASS", "class"),
    name_column("REASON", "reason"),
)
COUNTED_COLUMNS = (
    *_KEY_COLUMNS,
    number_column("OFFSETS", "offsets"),
    number_column("RANGES", "ranges"),
    number_column("FIRST-OFFSET", "first_offset"),
    number_column("LAST-OFFSET", "last_offset"),
    number_column("WINDOW-FIRST", "window_first_offset"),
    number_column("WINDOW-END", "window_end_offset"),
    number_column("WINDOW-OFFSETS", "window_offsets"),
    number_column("BATCH-OFFSETS", "batch_offsets"),
    number_column("DIFFERENCE", "difference"),
    Column(heading="COMPLETENESS", cell=completeness_cell),
)
LISTED_COLUMNS = (
    *_KEY_COLUMNS,
    number_column("FIRST-OFFSET", "first_offset"),
    number_column("LAST-OFFSET", "last_offset"),
    number_column("DELIVERY-COUNT", "delivery_count"),
    number_column("STATE-PARTITION", "state_partition"),
    number_column("LIFE", "life_log_offset"),
    number_column("STATE-LOG-OFFSET", "log_offset"),
    Column(heading="COMPLETENESS", cell=completeness_cell),
)
