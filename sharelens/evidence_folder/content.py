"""Writes the content of a folder of evidence: tables, README and report. Nothing of the moment, nothing of the machine.

The same question over the same records gives the same bytes: from a lake or from log directories, in any order of
copies, and also from a log that has grown behind the window.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.as_of import DELIVERY_ORDER, LogPrefix
from sharelens.evidence.conditions import filter_rows
from sharelens.evidence.metadata_tables import configuration_rows
from sharelens.evidence_folder import findings, notes
from sharelens.evidence_folder.audit import audit
from sharelens.evidence_folder.events import trace_events
from sharelens.evidence_folder.modelled import consumer_answers, group_notes, streams_answers
from sharelens.evidence_folder.notes import Note
from sharelens.evidence_folder.question import Question
from sharelens.evidence_folder.raw import RawLog, open_raw
from sharelens.evidence_folder.readme import readme
from sharelens.evidence_folder.report import report
from sharelens.evidence_folder.schemas import (
    CONFIGURATION,
    DEAD_LETTER,
    EXTENT,
    GAP,
    GROUP_LOG_RECORD,
    NOTE,
    RECORD,
    TOPIC,
    TRACE_EVENT,
)
from sharelens.evidence_folder.window import LogWindow, group_log_records, quarantined, state_records
from sharelens.evidence_folder.writers import TableFiles, sorted_rows, write_file
from sharelens.groups.summary import groups as group_rows
from sharelens.output import Answer
from sharelens.parameters.filters import KeyFilter, parse_key_filter
from sharelens.parameters.times import time_text
from sharelens.questions.answers.completeness import times
from sharelens.questions.answers.naming import ensure_known, resolve
from sharelens.questions.state import FIELDS, state_table
from sharelens.tables.cover import StatePartitionCover
from sharelens.tables.dlq_filter import DeadLetterFilter
from sharelens.tables.known_groups import group_kind, groups_of_types
from sharelens.tables.parts import Part
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_dead_letters, read_group_records, read_places, read_share_partitions
from sharelens.tables.where import Keys
from state_model.columnar.keys import LOG_ORDER
from state_model.columnar.schemas import DELIVERY_HISTORY, SHARE_PARTITION_HISTORY, plain
from state_model.consumer.records import CONSUMER_TYPES
from state_model.errors import SharelensError
from state_model.group_schemas import GroupKind
from state_model.streams.records import STREAMS_TYPES
from state_model.topics import OFFSETS_TOPIC, STATE_TOPIC

TABLES_FOLDER = "tables"
README, REPORT = "README.md", "report.html"
MOVES_WITH_PRUNING = "below_log_start"
"""A column of states that a later log start changes; the log start itself stands in the manifest."""


@dataclass(slots=True, kw_only=True)
class Content:
    """The written content: rows and columns by table, notes, and the data of the report."""

    record_counts: dict[str, int] = field(default_factory=dict)
    columns: dict[str, pa.Schema] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    answers: dict[str, Answer] = field(default_factory=dict)
    tables: dict[str, pa.Table] = field(default_factory=dict)

    def note_table(self, name: str, files: TableFiles) -> None:
        """Records the row count and columns of a table."""
        self.record_counts[name] = files.record_count
        self.columns[name] = files.schema

    @property
    def incomplete(self) -> list[Note]:
        """The notes that make the evidence incomplete."""
        return [note for note in self.notes if note.incomplete]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedQuestion:
    """A question, and the share partitions that it is about in this evidence.

    `keys`: the conditions as typed; `places`: the user partitions that the group has share state of: none of another
    `kind` of group.
    """

    question: Question
    key_filter: KeyFilter
    keys: Keys
    places: Keys
    cover: Sequence[StatePartitionCover]
    kind: GroupKind = GroupKind.SHARE


def look_up(evidence: Tables, question: Question) -> ResolvedQuestion:
    """Looks the names up, which reads every state partition, so that the cover is that of all.

    Raises:
        UsageError: the evidence has no such group or topic.
        SharelensError: the window ends before the evidence begins.
    """
    share_partitions = read_share_partitions(evidence)
    cover = tuple(evidence.cover())
    key_filter = parse_key_filter([question.group_id], question.topics, [])
    keys = resolve(evidence, key_filter)
    records = read_group_records(evidence, key_filter.groups)
    modelled = groups_of_types(records, (*CONSUMER_TYPES, *STREAMS_TYPES))
    ensure_known(evidence, key_filter, keys, modelled)
    first = pc.min(records.column("timestamp_ms")).as_py() if modelled else times(cover)[0]
    if first is None or question.to_ms <= first:
        begins = "holds no record" if first is None else f"begins at {time_text(first)}"
        raise SharelensError(
            f"the window up to {time_text(question.to_ms)} lies before the evidence in {evidence.place}, which {begins}"
        )
    places: dict[str, frozenset[int] | None] = {}
    for row in filter_rows(share_partitions, keys.expression()).to_pylist():
        places[row["topic_id"]] = (places.get(row["topic_id"]) or frozenset()) | {row["partition"]}
    return ResolvedQuestion(
        question=question,
        key_filter=key_filter,
        keys=keys,
        places=Keys(topics=places),
        cover=cover,
        kind=group_kind(records, question.to_ms - 1) if modelled and not places else GroupKind.SHARE,
    )


def write_content(evidence: Tables, resolved: ResolvedQuestion, folder: Path) -> Content:
    """Writes every content file into an empty folder.

    Raises:
        SharelensError: there is more than --max-bytes allows.
    """
    question = resolved.question
    content = Content()
    tables = folder / TABLES_FOLDER
    tables.mkdir(mode=0o700)
    raw = open_raw(evidence)
    if resolved.kind is GroupKind.SHARE:
        _write_share(evidence, raw, resolved, tables, content)
    else:
        _write_modelled(evidence, raw, resolved, tables, content)
    content.notes = list(dict.fromkeys(content.notes))
    rows = [{"code": note.code, "incomplete": note.incomplete, "detail": note.detail} for note in content.notes]
    _write(tables, "note", [pa.Table.from_pylist(rows, schema=NOTE)], NOTE, content)
    page = readme(question, evidence.cluster_id, content.record_counts, content.columns)
    write_file(folder / README, page.encode("utf-8"))
    shown = report(question, evidence.cluster_id, content.record_counts, content.notes, content.answers, content.tables)
    write_file(folder / REPORT, shown.encode("utf-8"))
    sync_folder(tables)
    sync_folder(folder)
    return content


def _write_share(evidence: Tables, raw: RawLog, resolved: ResolvedQuestion, folder: Path, content: Content) -> None:
    """The tables of a share group."""
    question = resolved.question
    windows = _write_records(raw, resolved, folder, content)
    _write_histories(evidence, resolved, folder, content)
    of_audit = audit(evidence, raw, question, resolved.keys, read_places(evidence, resolved.keys))
    measured = findings.findings(evidence, question, resolved.key_filter)
    for name, answer in (("audit", of_audit), *measured):
        content.answers[name] = answer
        _write(folder, name, [sorted_rows(answer.table)], answer.table.schema, content)
        content.notes += notes.of_warnings(answer.warnings, evidence.place)
    content.notes[:0] = notes.of_window(resolved.cover, windows, content.tables, question)


def _write_modelled(evidence: Tables, raw: RawLog, resolved: ResolvedQuestion, folder: Path, content: Content) -> None:
    """The tables of a consumer or streams group: its log alone has all of it."""
    question, is_of_streams = resolved.question, resolved.kind is GroupKind.STREAMS
    problems = [raw.problems()]
    group_log = group_log_records(raw, question.group_id, question.from_ms, question.to_ms, problems)
    _write(folder, "group_record", group_log, GROUP_LOG_RECORD, content)
    broken = quarantined(problems, {}, STATE_TOPIC).filter(pc.field("topic") == OFFSETS_TOPIC)
    _write(folder, "quarantine", [sorted_rows(broken)], broken.schema, content)
    group = _group(evidence, question)
    _write(folder, "group", [group], group.schema, content)
    _write_configuration(evidence, question, (), folder, content)
    answers_of_kind = streams_answers if is_of_streams else consumer_answers
    for name, answer in answers_of_kind(evidence, raw, question):
        content.answers[name] = answer
        _write(folder, name, [answer.table], answer.table.schema, content)
    history = content.answers["group_history"].table
    content.notes += group_notes(read_group_records(evidence, None), history, broken.num_rows, question)


def sync_folder(folder: Path) -> None:
    """The names in a folder, on the disk when this returns."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write(folder: Path, name: str, parts: Iterable[pa.Table], schema: pa.Schema, content: Content) -> None:
    with TableFiles(folder, name, schema) as files:
        for rows in parts:
            files.write_all(rows)
    content.note_table(name, files)


def _write_records(raw: RawLog, resolved: ResolvedQuestion, folder: Path, content: Content) -> dict[int, LogWindow]:
    """Raw records, unreadable batches, and the extent of each state partition."""
    question = resolved.question
    windows = {number: LogWindow() for number in raw.state_partitions()}
    counts: dict[int, int] = {}
    span = (question.from_ms, question.to_ms)

    def state_log() -> Iterator[pa.Table]:
        for number, window in sorted(windows.items()):
            for rows in state_records(raw, number, question.group_id, resolved.keys, span, window):
                counts[number] = counts.get(number, 0) + rows.num_rows
                yield rows

    _write(folder, "record", state_log(), RECORD, content)
    problems = [raw.problems()]
    group_log = group_log_records(raw, question.group_id, question.from_ms, question.to_ms, problems)
    _write(folder, "group_record", group_log, GROUP_LOG_RECORD, content)
    problems += [rows for window in windows.values() for rows in window.problems]
    broken = sorted_rows(quarantined(problems, windows, STATE_TOPIC))
    _write(folder, "quarantine", [broken], broken.schema, content)
    extents = pa.Table.from_pylist([_extent(part, windows, counts) for part in resolved.cover], schema=EXTENT)
    _write(folder, "extent", [extents], EXTENT, content)
    gaps = sorted_rows(pa.Table.from_pylist(list(_gaps(resolved, windows)), schema=GAP))
    _write(folder, "gap", [gaps], GAP, content)
    content.tables |= {"extent": extents, "gap": gaps, "quarantine": broken}
    return windows


def _extent(
    part: StatePartitionCover, windows: Mapping[int, LogWindow], counts: Mapping[int, int]
) -> dict[str, object]:
    window = windows[part.state_partition]
    return {
        "log_topic_id": part.log_topic_id,
        "state_partition": part.state_partition,
        "first_log_offset": part.first_offset,
        "first_log_time_ms": part.first_ms,
        "before_log_offset": window.before,
        "first_window_log_offset": window.first_in,
        "last_window_log_offset": window.last_in,
        "window_records": window.record_count,
        "group_records": counts.get(part.state_partition, 0),
    }


def _gaps(resolved: ResolvedQuestion, windows: Mapping[int, LogWindow]) -> Iterator[dict[str, object]]:
    """Losses up to the end of the window, without losses of other groups' share partitions."""
    for part in resolved.cover:
        window = windows[part.state_partition]
        for loss in part.losses:
            if loss.group_id not in (None, resolved.question.group_id) or loss.first_offset >= window.after:
                continue
            yield {
                "log_topic_id": part.log_topic_id,
                "state_partition": part.state_partition,
                "first_log_offset": loss.first_offset,
                "last_log_offset": loss.last_offset,
                "reason": loss.reason,
                "in_window": window.reaches(loss.first_offset, loss.last_offset),
                "group_id": loss.group_id,
                "topic_id": loss.topic_id,
                "partition": loss.partition,
            }


def _write_histories(evidence: Tables, resolved: ResolvedQuestion, folder: Path, content: Content) -> None:
    """States before and after, scalars and delivery states in the window, the group by its own log, names."""
    question, keys = resolved.question, resolved.keys
    for name, moment in (("state_before", question.from_ms), ("state_after", question.to_ms)):
        states, misplaced = state_table(evidence, keys, LogPrefix(as_of_ms=moment - 1))
        states = states.select([column for column in FIELDS if column != MOVES_WITH_PRUNING])
        content.tables[name] = states
        content.notes += notes.of_warnings(misplaced, evidence.place)
        _write(folder, name, [states], states.schema, content)
    places = read_places(evidence, keys)
    ids = sorted(places.column("topic_id").unique().to_pylist())
    _write_changes(evidence.histories(places, LogPrefix(as_of_ms=question.to_ms - 1)), question, folder, content)
    group = _group(evidence, question)
    content.tables["group"] = group
    _write(folder, "group", [group], group.schema, content)
    names = evidence.names(ids)
    topics = pa.Table.from_pylist(
        [{"topic_id": topic_id, "topic": names.get(topic_id)} for topic_id in ids], schema=TOPIC
    )
    content.tables["topic"] = topics
    _write(folder, "dead_letter", [_dead_letters(evidence, resolved, names)], DEAD_LETTER, content)
    _write(folder, "topic", [topics], TOPIC, content)
    _write_configuration(evidence, question, names.values(), folder, content)


def _write_configuration(
    evidence: Tables, question: Question, topics: Iterable[str], folder: Path, content: Content
) -> None:
    """The settings of the group and its topics that began before the window's end; what ended later is in force.

    Settings that can be secret are left out. Without a metadata log there is no such table.
    """
    history = evidence.metadata.history
    if history is None:
        return
    of_group = (pc.field("entity_type") == "group") & (pc.field("entity") == question.group_id)
    of_topics = (pc.field("entity_type") == "topic") & pc.field("entity").isin(pa.array(sorted(topics), pa.string()))
    is_plain = ~pc.field("is_sensitive") & (pc.field("valid_from_ms") < question.to_ms)
    rows = configuration_rows(history).filter((of_group | of_topics) & is_plain).select(CONFIGURATION.names)
    is_over = pc.less(rows.column("valid_to_ms"), question.to_ms)
    for name in ("valid_to_log_offset", "valid_to_ms"):
        ends = pc.if_else(is_over, rows.column(name), pa.scalar(None, pa.int64()))
        rows = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), ends)
    _write(folder, "configuration", [rows], CONFIGURATION, content)


def _write_changes(parts: Iterable[Part], question: Question, folder: Path, content: Content) -> None:
    """Scalars and delivery states in the window, and the events between these; one going through the histories."""
    unwritten = SHARE_PARTITION_HISTORY.empty_table()
    schemas = {
        "share_partition_history": SHARE_PARTITION_HISTORY,
        "delivery_history": DELIVERY_HISTORY,
        "trace_event": TRACE_EVENT,
    }
    with ExitStack() as stack:
        files = {name: stack.enter_context(TableFiles(folder, name, schema)) for name, schema in schemas.items()}
        for part in parts:
            history = plain(part.history.filter(_between(part.history, "log_time_ms", question)))
            done, unwritten = _without_last(pa.concat_tables([unwritten, history]))
            files["share_partition_history"].write_all(done.sort_by(LOG_ORDER))
            stood = pc.fill_null(pc.greater_equal(part.deliveries.column("valid_to_ms"), question.from_ms), True)
            deliveries = plain(part.deliveries.filter(stood)).sort_by(DELIVERY_ORDER)
            files["delivery_history"].write_all(deliveries)
            for events in trace_events(deliveries, question.from_ms, question.to_ms):
                files["trace_event"].write_all(events)
        files["share_partition_history"].write_all(unwritten.sort_by(LOG_ORDER))
    for name, written in files.items():
        content.note_table(name, written)


def _without_last(history: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The rows below the last state partition, and those of it, to which the next part may add."""
    numbers = history.column("state_partition")
    is_last = pc.equal(numbers, pc.max(numbers))
    return history.filter(pc.invert(is_last)), history.filter(is_last)


def _dead_letters(evidence: Tables, resolved: ResolvedQuestion, names: Mapping[str, str]) -> pa.Table:
    """DEAD_LETTER rows of the group with timestamps in the window, of the topics of the question (names or ids)."""
    topics = resolved.places.topics if resolved.keys.topics is not None else None
    ids_and_names = None
    if topics is not None:
        ids_and_names = frozenset(topics) | {names.get(topic_id, topic_id) for topic_id in topics}
    letters = read_dead_letters(
        evidence, DeadLetterFilter(groups=frozenset({resolved.question.group_id}), topics=ids_and_names)
    )
    letters = letters.filter(_between(letters, "timestamp_ms", resolved.question))
    letter_topics = resolved.question.letter_topics()
    is_chosen = [letter_topics.takes(topic) for topic in letters.column("dlq_topic").to_pylist()]
    return letters.filter(pa.array(is_chosen, pa.bool_()))


def _between(rows: pa.Table, column: str, question: Question) -> pa.ChunkedArray:
    at = rows.column(column)
    return pc.and_(pc.greater_equal(at, question.from_ms), pc.less(at, question.to_ms))


def _group(evidence: Tables, question: Question) -> pa.Table:
    """GROUPS rows as of the two moments, `moment` (before, after) in front; none where the group's log has none."""
    records = read_group_records(evidence, frozenset({question.group_id}))
    parts = []
    for moment, end in (("before", question.from_ms), ("after", question.to_ms)):
        rows = group_rows(records, end - 1)
        parts.append(rows.add_column(0, "moment", pa.repeat(moment, rows.num_rows)))
    return pa.concat_tables(parts)
