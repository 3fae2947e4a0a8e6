"""The class of every record offset of a window: each offset has exactly one, and the counts add up."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures import account as measure
from sharelens.measures.account_windows import FROM_TOPIC, Windows, reaches_of, windows_of
from sharelens.measures.ranges.offset_counts import offset_counts
from sharelens.measures.schemas import ACCOUNTED, CLASSES
from sharelens.measures.topics.extents import TopicPartition, topic_partitions
from sharelens.measures.topics.topic_log import TopicLog, limits
from sharelens.output import Answer, name_cell
from sharelens.output.layouts import Layout
from sharelens.output.wording import first_of
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.answers.measured import Scope, answer, by_place, marked, scope
from sharelens.questions.answers.shape import answer_schema
from sharelens.source.request import CutChoice
from sharelens.tables.missing_topics import missing_user_partitions
from sharelens.tables.parts import Part
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_topic_batches, read_topic_extents
from sharelens.tables.where import Span
from state_model.columnar.keys import FULL_PLACE_KEY
from state_model.columnar.schemas import column

NAMED = 4


def account(
    evidence: Tables, key_filter: KeyFilter, cut: CutChoice, span: Span, *, listed: Sequence[str] = ()
) -> Answer:
    """The answer to `sharelens account`; `span`: append times and record offsets; `listed`: classes to list by range.

    Times are those of the user topic's batches. Where the evidence lacks a topic, the end of the state log bounds the
    window. User partitions for which no share group determined a start offset are left out.
    """
    scoped = scope(evidence, key_filter, cut)
    windows = _windows(evidence, scoped, span)
    logs = windows.logs
    losses = {part.state_partition: part.losses for part in evidence.cover()}

    def of_part(part: Part) -> tuple[pa.Table, Counter[str], int, int]:
        rows = measure.account(part.history, part.deliveries, limits(logs), logs, losses)
        shown = marked(_listed(rows, listed) if listed else _counted(rows, windows), part.history)
        gaps = measure.archived_without_record(rows, logs)
        return shown, _offsets_of_classes(rows), _offsets_of_windows(rows, logs), gaps

    tables, counts, sizes, gaps = zip(*scoped.parts.each(of_part), strict=True)
    return answer(
        evidence,
        by_place(tables),
        LISTED_LAYOUT if listed else LAYOUT,
        totals=_totals(sum(counts, Counter()), sum(sizes), sum(gaps)),
        warnings=[
            *scoped.warnings,
            *_missing(evidence, windows.without_topic, span),
            *_beyond(evidence, windows.beyond),
        ],
        none=f"no offset is {' or '.join(listed)}" if listed else "no offset in the window",
    )


def _windows(evidence: Tables, scoped: Scope, window: Span) -> Windows:
    """The window of each user partition; at a moment in the past it ends there."""
    to_ms = window.to_ms
    if to_ms is None and scoped.cut.as_of_ms is not None:
        to_ms = scoped.cut.as_of_ms + 1
    return windows_of(
        reaches_of((part.history, part.deliveries) for part in scoped.parts),
        partial(read_topic_batches, evidence),
        partial(read_topic_extents, evidence),
        from_ms=window.from_ms,
        to_ms=to_ms,
        from_offset=window.from_offset,
        to_offset=window.to_offset,
    )


def _missing(evidence: Tables, places: Sequence[TopicPartition], window: Span) -> list[str]:
    if not places:
        return []
    timed = "; a window of time needs them, so its offsets are not counted" if window.from_ms is not None else ""
    remedy = "no live share partition needs them any more"
    if missing_user_partitions(evidence, places):
        remedy = "copy the topics' folders too (--log-dir, or `sharelens run` again)"
    warning = (
        f"no batch headers of {_named(evidence, places)} in {evidence.place}: counted up to the end of the "
        f"state log{timed}; {remedy}"
    )
    return [warning]


def _beyond(evidence: Tables, places: Sequence[TopicPartition]) -> list[str]:
    if not places:
        return []
    warning = (
        f"the state log has offsets at or above the end of {_named(evidence, places)}: the copy of the topic is "
        "older than that of the state log, or no client wrote that state"
    )
    return [warning]


def _named(evidence: Tables, places: Sequence[TopicPartition]) -> str:
    """The first few user partitions, and how many more there are."""
    names = evidence.names({topic_id for topic_id, _ in places})
    return first_of(places, lambda at: f"{name_cell(names.get(at[0], at[0]))}:{at[1]}", NAMED)


def _listed(rows: pa.Table, classes: Sequence[str]) -> pa.Table:
    return rows.filter(pc.is_in(rows.column("class"), value_set=pa.array(sorted(classes), pa.string())))


def _counted(rows: pa.Table, windows: Windows) -> pa.Table:
    """One row a class and reason of each share partition, with the window and what the batches of it hold."""
    logs, sources = windows.logs, windows.sources
    sizes = offset_counts(rows)
    table = rows.append_column("offsets", sizes)
    by = [*FULL_PLACE_KEY, "class", "reason"]
    counts = table.group_by(by, use_threads=False).aggregate(
        [("offsets", "sum"), ("offsets", "count"), ("first_offset", "min"), ("last_offset", "max")]
    )
    counts = counts.rename_columns([*by, "offsets", "ranges", "first_offset", "last_offset"])
    places = [(row["topic_id"], row["partition"]) for row in counts.select(["topic_id", "partition"]).to_pylist()]
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
        counts = counts.append_column(name, pa.array(values, pa.int64()))
    return counts.append_column("end_offset_source", pa.array([sources[place] for place in places], pa.string()))


def _offsets_of_classes(rows: pa.Table) -> Counter[str]:
    """How many offsets of ACCOUNTED rows are in each class."""
    sizes = offset_counts(rows)
    return Counter({name: pc.sum(sizes.filter(pc.equal(rows.column("class"), name))).as_py() or 0 for name in CLASSES})


def _offsets_of_windows(rows: pa.Table, logs: Mapping[TopicPartition, TopicLog]) -> int:
    """How many offsets the windows of the share partitions of ACCOUNTED rows have."""
    places = topic_partitions(rows.group_by(FULL_PLACE_KEY).aggregate([]))
    return sum(logs[place].end - logs[place].first for place in places)


def _totals(counts: Counter[str], appended: int, archived_gaps: int) -> str:
    """The line of totals, its classes in the order of CLASSES; `archived_gaps`: archived offsets without a record."""
    remarks = {"archived": f" ({archived_gaps} without a record)" if archived_gaps else ""}
    by_class = ", ".join(f"{name} {counts[name]}{remarks.get(name, '')}" for name in CLASSES if counts[name]) or "none"
    total = counts.total()
    return f"offsets of the window {appended}, in classes {total}, difference {appended - total}: {by_class}"


COUNTED = pa.schema(
    [
        *(ACCOUNTED.field(name) for name in (*FULL_PLACE_KEY, "class", "reason")),
        column("offsets", pa.int64(), "record offsets of the class and reason"),
        column("ranges", pa.int64(), "ranges of offsets that are next to each other"),
        *(ACCOUNTED.field(name) for name in ("first_offset", "last_offset")),
        column("window_first_offset", pa.int64(), "first offset of the window"),
        column("window_end_offset", pa.int64(), "end of the window, exclusive"),
        column("window_offsets", pa.int64(), "offsets of the window"),
        column("batch_offsets", pa.int64(), "offsets of the window in batches of the topic; null = no batch headers"),
        column("difference", pa.int64(), "offsets in classes less those in batches; null = no batch headers"),
        column("end_offset_source", pa.string(), "what the end of the window comes from"),
    ]
)
LAYOUT = Layout(
    schema=answer_schema(COUNTED),
    fields="group_id topic partition class reason offsets ranges first_offset last_offset window_first_offset "
    "window_end_offset window_offsets batch_offsets difference completeness",
    headings={"window_first_offset": "WINDOW-FIRST", "window_end_offset": "WINDOW-END"},
    important="GROUP TOPIC PARTITION CLASS REASON OFFSETS DIFFERENCE FIRST-OFFSET LAST-OFFSET RANGES",
)
LISTED_LAYOUT = Layout(
    schema=answer_schema(ACCOUNTED),
    fields="group_id topic partition class reason first_offset last_offset delivery_count state_partition "
    "life_log_offset log_offset completeness",
    important="GROUP TOPIC PARTITION CLASS REASON FIRST-OFFSET LAST-OFFSET DELIVERY-COUNT",
)
