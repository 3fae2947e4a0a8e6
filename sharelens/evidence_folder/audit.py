"""The audit of the state partitions that have the group's share partitions, by the records before the window's end."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.auditing import audited_batches
from sharelens.evidence.conditions import filter_rows
from sharelens.evidence_folder.question import Question
from sharelens.evidence_folder.raw import RawLog
from sharelens.measures.settings.over_time import DELIVERY_COUNT_LIMIT, largest
from sharelens.output import Answer
from sharelens.questions.audits.audit import LAYOUT, with_topics
from sharelens.tables.port import Tables
from sharelens.tables.where import Keys
from state_model.audit.columnar.explained import with_causes
from state_model.audit.columnar.findings import findings, misplacements
from state_model.audit.columnar.partition import PartitionAudit
from state_model.audit.rule import Need
from state_model.audit.severities import ERROR, WARNING
from state_model.audit.table import RULES, is_tested

OF_THE_COPY = frozenset({"log_offsets_missing"})
"""Rules about a copy of the log, whose gaps are a table of their own."""
LISTED = {
    rule.id: severity
    for rule in RULES
    if rule.code not in OF_THE_COPY and is_tested(rule, None, {Need.DELIVERY_COUNT_LIMIT})
    if (severity := rule.severity_for(None)) in (ERROR, WARNING)
}
"""Severities by rule id, for an unknown Kafka version."""


def audit(evidence: Tables, raw: RawLog, question: Question, keys: Keys, places: pa.Table) -> Answer:
    """FINDING rows of the share partitions of `keys`, and of the logs of their `places`: errors and warnings.

    Rules over all state partitions are tested over those that have share partitions of `keys`. Rules about the log
    start are left out: they need more than the folder is about.
    """
    firsts = {part.state_partition: part.first_offset for part in evidence.cover()}
    numbers = sorted(set(places.column("state_partition").to_pylist()) & firsts.keys())
    audits = [_audited(raw, number, firsts[number], question) for number in numbers]
    misplacements(audits, (None, None))
    rows = with_causes(findings(audits, LISTED))
    condition = keys.expression()
    of_log = pc.field("group_id").is_null()
    rows = filter_rows(rows, None if condition is None else condition | of_log)
    names = evidence.names(rows.column("topic_id").drop_null().unique().to_pylist())
    return Answer(
        table=with_topics(rows, names),
        columns=LAYOUT.columns(),
        none="no rule of severity error or warning is violated",
    )


def _audited(raw: RawLog, number: int, first_offset: int, question: Question) -> PartitionAudit:
    result = PartitionAudit(
        number,
        first_offset=first_offset,
        log_start_offset=0,
        has_newest=False,
        limit_of_group=largest(question.group_settings(), DELIVERY_COUNT_LIMIT),
        replays=False,
    )
    for piece in raw.state(number, 0, question.to_ms):
        end = int(np.searchsorted(piece.times, question.to_ms, "left"))
        for _ in audited_batches(result, piece.records.slice(0, end), piece.times[:end]):
            pass
    result.close()
    return result
