"""Archived records with their dead letters: as a run stored them, or reconciled with the letters of a question."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.conditions import filter_rows
from sharelens.kafka_log.dead_letter_records import DeadLetterTopics
from sharelens.measures.dlq import reach as dlq_reach
from sharelens.measures.dlq import reconciliation as measure
from sharelens.measures.dlq.causes import with_letter_causes
from sharelens.measures.dlq.dead_lettered_rows import named_rows
from sharelens.measures.schemas import POISON_RECORD
from sharelens.measures.settings.over_time import GroupSettings
from sharelens.output import name_cell
from sharelens.output.wording import listed
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.answers.doubtful_settings import doubtful_settings
from sharelens.questions.answers.measured import Scope, is_stored, scope
from sharelens.questions.answers.streaming import rows_of_stream
from sharelens.questions.dead_letters.given_up import given_up_stream, stored_given_up
from sharelens.source.request import CutChoice
from sharelens.tables.dlq_filter import DeadLetterFilter
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_dead_letter_partitions, read_dead_letters
from sharelens.tables.where import WHOLE_SPAN, Keys, Span, Where
from state_model.columnar.keys import SHARE_PARTITION_KEY, only_keys_of

NOT_FOUND = (
    "no topic was searched for dead letters: copy the topics' folders too, or name them with --dlq-topic or "
    "--dlq-prefix (for a lake, when `sharelens run` makes it)"
)
TABLE = "gold.dlq_reconciliation"
JUDGED = [*SHARE_PARTITION_KEY, "first_offset", "last_offset", "status", "reason", "archiving_ms"]
ROW_TIME = ("dead_lettered_ms", "archived_ms", "archiving_ms")
"""The time of a row: the first of these that it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """DLQ_RECONCILIATION rows at a cut, with the question that they answer."""

    rows: pa.Table
    scoped: Scope
    warnings: tuple[str, ...]


def reconciled(
    evidence: Tables,
    key_filter: KeyFilter,
    cut: CutChoice,
    settings: GroupSettings,
    topics: DeadLetterTopics | None,
    span: Span,
) -> Reconciled:
    """The records that groups archived up to the cut, each with its dead letter up to then (a broker's clock).

    `topics`: only dead letters of these topics; None: of all topics that were searched. `span` bounds the time of a row
    (ROW_TIME).

    Raises:
        UsageError: the evidence has none of the names.
        SharelensError: the cut lies before the evidence, or the dead letters are larger than --max-bytes.
    """
    scoped = scope(evidence, key_filter, cut)
    stream, warnings = reconciled_stream(scoped, cut, settings, topics)
    rows = rows_of_stream((in_span(rows, span) for rows in stream), measure.ORDER)
    return Reconciled(rows=rows, scoped=scoped, warnings=warnings)


def reconciled_stream(
    scoped: Scope,
    cut: CutChoice,
    settings: GroupSettings,
    topics: DeadLetterTopics | None = None,
) -> tuple[Iterator[pa.Table], tuple[str, ...]]:
    """The rows of `reconciled` of any time in bounded tables, in any order, and its warnings."""
    letters = _letters_about(scoped, cut.as_of_ms, topics)
    tables = (letters.against(rows, settings) for letters, rows in letters.apart(given_up_stream(scoped, settings)))
    return tables, letters.warnings(topics)


def judged_stream(
    scoped: Scope, cut: CutChoice, settings: GroupSettings, where: pc.Expression | None = None
) -> Iterator[pa.Table]:
    """JUDGED columns of DLQ_RECONCILIATION rows in bounded tables; of the gold table where a run stored them.

    `where`: a condition on these columns.
    """
    if is_stored(scoped, TABLE, settings):
        return scoped.evidence.scan(TABLE, JUDGED, Where(keys=scoped.keys, columns=where))
    return (filter_rows(rows.select(JUDGED), where) for rows in reconciled_stream(scoped, cut, settings)[0])


def given_up_with_dead_letter_causes(
    scoped: Scope, settings: GroupSettings, as_of_ms: int | None, *, near_limit: bool = False, span: Span = WHOLE_SPAN
) -> Iterator[pa.Table]:
    """Rows of `given_up_stream` whose last outcome lies in the span, with the causes of their dead letters.

    Ranges are split where causes differ. Where a run stored the rows, they have these causes.
    """
    in_span = span.expression("last_outcome_ms")
    kept_rows = stored_given_up(scoped, settings, near_limit=near_limit, where=in_span)
    if kept_rows is not None:
        return kept_rows
    given_up = given_up_stream(scoped, settings, near_limit=near_limit)
    with_causes = with_dead_letter_causes(scoped, given_up, settings, as_of_ms)
    return (filter_rows(rows, in_span) for rows in with_causes)


def with_dead_letter_causes(
    scoped: Scope, given_up: Iterable[pa.Table], settings: GroupSettings, as_of_ms: int | None
) -> Iterator[pa.Table]:
    """POISON_RECORD rows without causes from dead letters, with these causes; in bounded tables, in any order."""
    about = _letters_about(scoped, as_of_ms, None)
    for letters, rows in about.apart(given_up):
        yield with_letter_causes(rows, letters.against(rows, settings)) if letters is about else rows


def given_up_and_reconciled(
    scoped: Scope, cut: CutChoice, settings: GroupSettings
) -> tuple[Iterator[tuple[pa.Table, pa.Table]], tuple[str, ...]]:
    """Rows of `given_up_with_dead_letter_causes` and `reconciled_stream` together, and the warnings of the latter."""
    about = _letters_about(scoped, cut.as_of_ms, None)

    def tables() -> Iterator[tuple[pa.Table, pa.Table]]:
        for letters, rows in about.apart(given_up_stream(scoped, settings)):
            reconciled = letters.against(rows, settings)
            yield with_letter_causes(rows, reconciled) if letters is about else rows, reconciled

    return tables(), about.warnings(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _LettersAbout:
    """The dead letters of a question: DLQ_RECORD rows (`letters`) of its share partitions, and DLQ_PARTITION rows."""

    scoped: Scope
    names: Mapping[str, str]
    letters: pa.Table
    partitions: pa.Table
    topics: dlq_reach.LetterTopics

    def apart(self, stream: Iterable[pa.Table]) -> Iterator[tuple["_LettersAbout", pa.Table]]:
        """POISON_RECORD rows that no dead letter names, without letters; at the end the others, with these letters.

        Only rows that dead letters name are kept in memory; rows near the limit are none of them.
        """
        without_letters = replace(self, letters=self.letters.slice(0, 0))
        named = [POISON_RECORD.empty_table()]
        for rows in stream:
            has_letter = pc.and_(named_rows(rows, self.letters, self.names), pc.is_valid(rows.column("cause")))
            named.append(rows.filter(has_letter))
            yield without_letters, rows.filter(pc.invert(has_letter))
        yield self, pa.concat_tables(named)

    def warnings(self, topics: DeadLetterTopics | None) -> tuple[str, ...]:
        """Warnings about the question and about the searched topics."""
        scoped = self.scoped
        doubts = doubtful_settings(scoped.evidence, scoped.keys.groups)
        return (
            *scoped.warnings,
            *letter_warnings(self.letters, self.partitions),
            *absent_topics(scoped.evidence, topics),
            *doubts,
        )

    def against(self, given_up: pa.Table, settings: GroupSettings) -> pa.Table:
        """DLQ_RECONCILIATION rows of POISON_RECORD rows, none of them near the limit."""
        scoped = self.scoped
        named = measure.named_by(self.letters, self.names)
        parts = scoped.only(only_keys_of(scoped.places, named)).parts if named.num_rows else ()
        return measure.reconcile(
            given_up,
            self.letters,
            (part.history for part in parts),
            self.names,
            self.topics,
            settings,
            begins_ms=dlq_reach.whole_since_ms(
                (part.first_offset, part.first_ms) for part in scoped.evidence.cover() if part.first_ms is not None
            ),
            nameless=measure.nameless_places(scoped.places, self.names) if self.letters.num_rows else frozenset(),
        )


def _letters_about(scoped: Scope, as_of_ms: int | None, topics: DeadLetterTopics | None) -> _LettersAbout:
    names = known_names(scoped.evidence, scoped.places)
    letters, partitions = letters_up_to(scoped.evidence, DeadLetterFilter(groups=scoped.keys.groups), as_of_ms, topics)
    return _LettersAbout(
        scoped=scoped,
        names=names,
        letters=of_keys(letters, scoped.keys, names),
        partitions=partitions,
        topics=dlq_reach.LetterTopics.of(letters, partitions),
    )


def known_names(evidence: Tables, places: pa.Table) -> dict[str, str]:
    """Names of the topics of share partitions, by id, as far as known."""
    ids = places.column("topic_id").unique().to_pylist()
    names = evidence.names(ids)
    return {topic_id: names[topic_id] for topic_id in ids if topic_id in names}


def letters_up_to(
    evidence: Tables, letter_filter: DeadLetterFilter, as_of_ms: int | None, topics: DeadLetterTopics | None
) -> tuple[pa.Table, pa.Table]:
    """DLQ_RECORD rows up to a moment, and DLQ_PARTITION rows; of these topics alone (None: of all)."""
    letters, partitions = read_dead_letters(evidence, letter_filter), read_dead_letter_partitions(evidence)
    if as_of_ms is not None:
        letters = letters.filter(pc.less_equal(letters.column("timestamp_ms"), as_of_ms))
    if topics is None:
        return letters, partitions
    there = partitions.column("dlq_topic").unique().to_pylist()
    names = pa.array([name for name in there if topics.takes(name)], pa.string())
    letters, partitions = (
        rows.filter(pc.is_in(rows.column("dlq_topic"), value_set=names)) for rows in (letters, partitions)
    )
    return letters, partitions


def absent_topics(evidence: Tables, topics: DeadLetterTopics | None) -> list[str]:
    """At most one line: topics of --dlq-topic that were not searched."""
    there = sorted(read_dead_letter_partitions(evidence).column("dlq_topic").unique().to_pylist())
    absent = sorted((topics.names if topics is not None else frozenset()) - set(there))
    if not absent:
        return []
    line = (
        f"no topic {listed(absent)} was searched for dead letters: correct --dlq-topic, or copy the "
        f"topic's folders too (for a lake, give both to `sharelens run`); searched topics: {listed(there)}"
    )
    return [line]


def of_keys(letters: pa.Table, keys: Keys, names: Mapping[str, str]) -> pa.Table:
    """The dead letters whose topic (name or id) and partition are among the keys."""
    if keys.topics is not None:
        condition = pc.scalar(False)
        for topic_id, numbers in sorted(keys.topics.items()):
            topic_condition = pc.field("topic").isin(sorted({topic_id, names.get(topic_id, topic_id)}))
            if numbers is not None:
                topic_condition &= pc.field("partition").isin(pa.array(sorted(numbers), pa.int32()))
            condition |= topic_condition
        letters = letters.filter(condition)
    return filter_rows(letters, Keys(partitions=keys.partitions).expression())


def letter_warnings(letters: pa.Table, partitions: pa.Table) -> list[str]:
    """Warnings about the topics that were searched for dead letters."""
    warnings = [] if partitions.num_rows else [NOT_FOUND]
    totals: dict[str, tuple[int, int]] = {}
    for row in partitions.to_pylist():
        offsets, dead_letters = totals.get(row["dlq_topic"], (0, 0))
        offsets += max(0, row["end_offset"] - row["log_start_offset"])
        totals[row["dlq_topic"]] = (offsets, dead_letters + row["letters"])
    without_letters = [topic for topic, (offsets, dead_letters) in totals.items() if offsets and not dead_letters]
    if without_letters:
        warnings.append(f"no dead letter (no header __dlq.errors.*) in {listed(without_letters)}: left out")
    broken = letters.num_rows - letters.column("header_problem").null_count
    if broken:
        places = letters.filter(pc.is_valid(letters.column("header_problem"))).slice(0, 3).to_pylist()
        positions = ", ".join(
            f"{name_cell(row['dlq_topic'])}-{row['dlq_partition']} @ {row['dlq_offset']} ({row['header_problem']})"
            for row in places
        )
        remainder_text = f" and {broken - len(places)} more" if broken > len(places) else ""
        warnings.append(f"headers that can't be read in {broken} dead letters: {positions}{remainder_text}")
    return warnings


def in_span(rows: pa.Table, span: Span) -> pa.Table:
    """The DLQ_RECONCILIATION rows whose time (ROW_TIME) lies in the span."""
    times = row_times(rows)
    return filter_rows(rows.append_column("log_time_ms", times), span.expression()).drop_columns(["log_time_ms"])


def row_times(rows: pa.Table) -> pa.ChunkedArray:
    """The time of each row (ROW_TIME)."""
    return pc.coalesce(*(rows.column(name) for name in ROW_TIME))
