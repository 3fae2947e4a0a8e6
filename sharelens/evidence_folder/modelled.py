"""What an evidence folder has of a consumer or streams group: histories, rebalances, events and the audit.

Of a streams group also the histories of tasks, and findings. All comes from records of the group
coordinator with a timestamp before the window's end.
"""

from collections.abc import Collection, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.group_decoding import decode_groups
from sharelens.evidence_folder.notes import Note
from sharelens.evidence_folder.question import Question
from sharelens.evidence_folder.raw import RawLog
from sharelens.findings.finding import FINDING, finding_rows
from sharelens.findings.streams import found_in
from sharelens.findings.thresholds import Thresholds
from sharelens.groups.histories import histories
from sharelens.groups.intervals import Histories
from sharelens.groups.model_rebalances import consumer_rebalances, streams_rebalances
from sharelens.groups.replay import is_of_types
from sharelens.measures.stalls.intervals import MIN_DURATION_MS
from sharelens.output import Answer
from sharelens.output.layouts import Layout
from sharelens.parameters.filters import KeyFilter
from sharelens.parameters.times import time_text
from sharelens.questions.answers.completeness import incomplete_rows
from sharelens.questions.audits import audit
from sharelens.questions.findings.streams_signs import streams_signs
from sharelens.questions.groups import rebalances_consumer, rebalances_streams
from sharelens.questions.timelines import timeline
from sharelens.source.request import CutChoice
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_group_records
from sharelens.tables.where import Span
from state_model.audit.columnar.group_audit import audit_groups
from state_model.audit.columnar.proofs import Proofs
from state_model.audit.consumer.table import RULES as CONSUMER_RULES
from state_model.audit.rule import Need
from state_model.audit.severities import ERROR, WARNING
from state_model.audit.streams.table import RULES
from state_model.columnar.completeness import Completeness
from state_model.consumer.records import CONSUMER_TYPES
from state_model.streams.records import STREAMS_TYPES

LISTED = {
    rule.id: severity
    for rule in (*RULES, *CONSUMER_RULES)
    if rule.needs == (Need.GROUP_COORDINATOR,) and (severity := rule.severity_for(None)) in (ERROR, WARNING)
}
"""Severities of the rules that the group's own records decide, by rule id."""
AT_THE_END = pa.schema([FINDING.field(name) for name in ("severity", "kind", "group_id", "size", "since_ms", "text")])
"""A finding without the command that explains it, which names where the evidence lies."""
FINDING_LAYOUT = Layout(
    schema=AT_THE_END,
    fields="severity kind size since_ms text",
    sentences="text",
    important="SEVERITY KIND TEXT SINCE SIZE",
)


def streams_answers(evidence: Tables, raw: RawLog, question: Question) -> Iterator[tuple[str, Answer]]:
    """Each table's name with its answer."""
    records, last_ms = _records(evidence, question, STREAMS_TYPES), question.to_ms - 1
    signs = streams_signs(evidence, records, last_ms, min(last_ms, _newest_ms(records)))
    rows = finding_rows(found_in(signs, Thresholds()), lambda *_: "").select(AT_THE_END.names)
    yield "finding", Answer(table=rows, columns=FINDING_LAYOUT.columns(), none="nothing is wrong at the window's end")
    group_histories = histories(records)
    yield from _answers(evidence, question, group_histories, streams_rebalances(records), rebalances_streams.LAYOUT)
    yield "task_history", Answer(table=_touching(group_histories.tasks, question))
    yield "audit", _audit(raw, question)


def consumer_answers(evidence: Tables, raw: RawLog, question: Question) -> Iterator[tuple[str, Answer]]:
    """Each table's name with its answer; findings about consumer groups are those of `overview --all-groups`."""
    records = _records(evidence, question, CONSUMER_TYPES)
    rebalances = rebalances_consumer.rows(evidence, consumer_rebalances(records))
    yield from _answers(evidence, question, histories(records), rebalances, rebalances_consumer.LAYOUT)
    yield "audit", _audit(raw, question)


def _records(evidence: Tables, question: Question, types: Collection[int]) -> pa.Table:
    """GROUP_RECORD rows of the group with these types, before the window's end."""
    records = read_group_records(evidence, frozenset({question.group_id}))
    records = records.filter(is_of_types(records, types))
    return records.filter(pc.field("timestamp_ms") < question.to_ms)


def _answers(
    evidence: Tables, question: Question, of_group: Histories, rebalances: pa.Table, layout: Layout
) -> Iterator[tuple[str, Answer]]:
    """What groups of both kinds have."""
    cut, span = CutChoice(as_of_ms=question.to_ms - 1), Span(from_ms=question.from_ms, to_ms=question.to_ms)
    key_filter, settings = KeyFilter(groups=frozenset({question.group_id})), question.group_settings()
    yield "timeline", timeline.timeline(evidence, key_filter, cut, span, settings, MIN_DURATION_MS)
    within = rebalances.filter(pc.field("at_ms") >= question.from_ms)
    yield "rebalance", Answer(table=within, columns=layout.columns(), none="no rebalance")
    for name, rows in (("group", of_group.groups), ("member", of_group.members)):
        yield f"{name}_history", Answer(table=_touching(rows, question))


def group_notes(records: pa.Table, histories: pa.Table, quarantined: int, question: Question) -> Iterator[Note]:
    """Causes of incomplete evidence.

    `records`: GROUP_RECORD rows of all groups; `histories`: GROUP_HISTORY rows; `quarantined`: unreadable batches and
    records.
    """
    ends = pc.min_max(records.column("timestamp_ms"))
    first_ms, last_ms = ends["min"].as_py(), ends["max"].as_py()
    if first_ms > question.from_ms:
        detail = f"the first record of a group in __consumer_offsets is of {time_text(first_ms)}, after the window's "
        yield Note(code="begins_late", incomplete=False, detail=f"{detail}beginning {time_text(question.from_ms)}")
    if last_ms < question.to_ms:
        detail = f"the newest record of a group in __consumer_offsets is of {time_text(last_ms)}, before the window's "
        yield Note(code="ends_early", incomplete=False, detail=f"{detail}end {time_text(question.to_ms)}")
    if quarantined:
        detail = f"{quarantined} batches or records of __consumer_offsets could not be read or decoded (quarantine)"
        yield Note(code="quarantined", incomplete=True, detail=detail)
    marked = incomplete_rows(histories.column("completeness"))
    if marked:
        detail = f"{marked} of {histories.num_rows} rows of group_history are not complete; each row has the reason"
        yield Note(code="group_history_incomplete", incomplete=True, detail=detail)


def _newest_ms(records: pa.Table) -> int:
    return pc.max(records.column("timestamp_ms")).as_py() or 0


def _touching(rows: pa.Table, question: Question) -> pa.Table:
    """The rows of a history that were valid in the window."""
    return rows.filter(pc.fill_null(pc.greater_equal(rows.column("valid_to_ms"), question.from_ms), True))


def _audit(raw: RawLog, question: Question) -> Answer:
    """FINDING rows of the group: errors and warnings of the rules LISTED."""
    proofs, tables, odd = Proofs(), [], []
    complete: dict[int, Completeness] = {}
    for piece in raw.group_log():
        rows = piece.records.filter(pc.field("timestamp_ms") < question.to_ms)
        for number in rows.column("partition").unique().to_pylist():
            offsets = rows.filter(pc.field("partition") == number).column("offset")
            complete.setdefault(number, Completeness()).take(offsets)
        decoded = decode_groups(rows)
        is_own = pc.field("group_id") == question.group_id
        tables.append(decoded.records.filter(is_own))
        odd.append(decoded.odd_records.filter(is_own))
    if tables:
        complete_from = {number: completeness.complete_from for number, completeness in complete.items()}
        audit_groups(
            pa.concat_tables(tables), pa.concat_tables(odd), frozenset(complete), proofs, complete_from=complete_from
        )
    rows = audit.with_topics(proofs.findings(LISTED, LISTED), {})
    return Answer(table=rows, columns=audit.LAYOUT.columns(), none="no rule of severity error or warning is violated")
