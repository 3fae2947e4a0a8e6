"""What happened to groups, in the order of time: one list from all logs, each entry with the record that proves it.

Resets, creations and deletions, members, epochs, stalls, gaps of the state log, and archived, repeated and
dead-lettered records, minute by minute. Times are those of the writers: of the share coordinator, of the group
coordinator and of the broker.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.settings.over_time import GroupSettings
from sharelens.output import Answer, table_name
from sharelens.output.layouts import Layout
from sharelens.output.wording import counted
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.answers.completeness import check_beginning, closing_line
from sharelens.questions.answers.measured import Scope, scope
from sharelens.questions.answers.now import now_of, now_text
from sharelens.questions.dead_letters.reconciled import given_up_with_dead_letter_causes
from sharelens.questions.life import event_rows
from sharelens.questions.redelivered import redelivered_stream
from sharelens.questions.stalled import long_enough, stall_stream
from sharelens.questions.timelines import entries as entries_of
from sharelens.questions.timelines.gap_entries import gap_entries
from sharelens.questions.timelines.metadata_entries import metadata_entries
from sharelens.questions.timelines.modelled_groups import modelled_entries
from sharelens.source.request import CutChoice
from sharelens.tables.dlq_filter import DeadLetterFilter
from sharelens.tables.known_groups import groups_of_types, undecoded_groups
from sharelens.tables.metadata_history import has_metadata_log
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_dead_letters, read_group_records, read_offset_commits
from sharelens.tables.where import Span
from state_model.consumer.records import CONSUMER_TYPES
from state_model.streams.records import STREAMS_TYPES
from state_model.topics import METADATA_TOPIC

GROUPS_COUNTED = 100
"""Of so many groups the entries are counted in words."""


def timeline(
    evidence: Tables, key_filter: KeyFilter, cut: CutChoice, span: Span, settings: GroupSettings, min_duration_ms: int
) -> Answer:
    """The answer to `sharelens timeline`; `span` bounds the times of the entries.

    Raises:
        UsageError: the evidence has none of the names.
    """
    modelled_groups = _modelled_groups(evidence, key_filter)
    scoped = scope(evidence, key_filter, cut, modelled_groups)
    now_ms, span = now_of(evidence, cut), up_to_cut(span, cut)
    stalling = stall_stream(scoped, span, settings, now_ms, min_duration_ms=min_duration_ms)
    groups = frozenset(scoped.places.column("group_id").unique().to_pylist())
    records = read_group_records(evidence, None if key_filter.keeps_all else groups | modelled_groups)
    commits = read_offset_commits(evidence, modelled_groups) if modelled_groups else None
    entries = [
        *entries_of.life_entries(event_rows(scoped)),
        *entries_of.group_entries(records),
        *(() if commits is None else modelled_entries(records, commits, cut.as_of_ms)),
        *(entry for rows in stalling for entry in entries_of.stall_entries(long_enough(rows, min_duration_ms))),
        *_archived(scoped, cut, span, settings),
        *_redelivered(scoped, span),
        *_dead_letters(evidence, key_filter, None if key_filter.keeps_all else groups),
        *gap_entries(evidence, scoped.places, scoped.cut),
        *metadata_entries(evidence, scoped.places, records),
    ]
    names = evidence.names({entry["topic_id"] for entry in entries if entry["topic_id"] is not None})
    table = entries_of.timeline_table(entries, names, span)
    totals = _totals(table, {*groups, *modelled_groups, *table.column("group_id").to_pylist()})
    return Answer(
        table=table,
        columns=(LAYOUT if len(totals) == 1 else SEVERAL_GROUPS).columns(),
        summary="\n".join([*totals, *_unseen(evidence), f"{closing_line(evidence)}; {now_text(evidence, now_ms)}"]),
        warnings=(*scoped.warnings, *undecoded_groups(evidence), *check_beginning(evidence, span.from_ms, now_ms)),
        none="nothing happened",
    )


def _unseen(evidence: Tables) -> Iterator[str]:
    """What can't be among the entries."""
    if not has_metadata_log(evidence):
        yield f"unknown without {METADATA_TOPIC}: changes of settings, leaders and in-sync replicas"


def _modelled_groups(evidence: Tables, key_filter: KeyFilter) -> frozenset[str]:
    """The consumer and streams groups that the filter selects; it selects none where it only names topics."""
    if not key_filter.keeps_all and not key_filter.groups:
        return frozenset()
    records = read_group_records(evidence, None if key_filter.keeps_all else key_filter.groups)
    return groups_of_types(records, (*CONSUMER_TYPES, *STREAMS_TYPES))


def _totals(table: pa.Table, groups: Collection[str]) -> list[str]:
    """How many entries of each event: a line, or of several groups one for each."""
    if len(groups) <= 1:
        return [f"entries: {entries_of.event_totals(table)}"]
    named = sorted(groups)
    lines = [
        f"entries of {table_name(group)}: {entries_of.event_totals(table.filter(pc.field('group_id') == group))}"
        for group in named[:GROUPS_COUNTED]
    ]
    remaining_count = len(named) - len(lines)
    return [*lines, f"... {counted(remaining_count, 'more group')}"] if remaining_count else lines


def _archived(scoped: Scope, cut: CutChoice, span: Span, settings: GroupSettings) -> Iterator[entries_of.Entry]:
    sums = entries_of.ArchivedSums()
    for rows in given_up_with_dead_letter_causes(scoped, settings, cut.as_of_ms, span=span):
        sums.add(rows)
    return sums.entries(sums.table())


def _redelivered(scoped: Scope, span: Span) -> Iterator[entries_of.Entry]:
    sums = entries_of.RedeliveredSums()
    for rows in redelivered_stream(scoped, span, sums.COLUMNS):
        sums.add(rows)
    return sums.entries(sums.table())


def _dead_letters(evidence: Tables, key_filter: KeyFilter, groups: frozenset[str] | None) -> Iterator[entries_of.Entry]:
    """Dead letters minute by minute; their headers name topics, so a filter by topic leaves them out."""
    if key_filter.topics or key_filter.partitions:
        return iter(())
    sums = entries_of.LetterSums()
    letters = read_dead_letters(evidence, DeadLetterFilter(groups=groups))
    sums.add(letters.append_column(sums.TIME, letters.column("timestamp_ms")))
    return sums.entries(sums.table())


def up_to_cut(span: Span, cut: CutChoice) -> Span:
    """The span without what came after the moment of an earlier cut."""
    if cut.as_of_ms is None or (span.to_ms is not None and span.to_ms <= cut.as_of_ms):
        return span
    return replace(span, to_ms=cut.as_of_ms + 1)


LAYOUT = Layout(
    schema=entries_of.TIMELINE,
    sentences="text",
    important="AT EVENT TEXT TOPIC PARTITION RECORDS GROUP LOG-OFFSET LOG-PARTITION LOG-TOPIC",
)
SEVERAL_GROUPS = replace(
    LAYOUT, important="AT GROUP EVENT TEXT TOPIC PARTITION RECORDS LOG-OFFSET LOG-PARTITION LOG-TOPIC"
)
"""As LAYOUT, where entries are about several groups."""
