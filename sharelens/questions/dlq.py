"""Dead letters and what groups archived, side by side: what arrived, what is missing, what came twice, and bursts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from evidence.conditions import filter_rows
from kafka_log.dead_letter_records import DeadLetterTopics
from measures import dlq_reconciliation as measure
from measures.dead_lettered_rows import named_rows
from measures.dlq_causes import with_letter_causes
from measures.dlq_schemas import FINDINGS, NO_TOPIC_KNOWN, STATUSES, UNKNOWN
from measures.schemas import POISON_RECORD
from measures.settings import GroupSettings
from sharelens.filters import KeyFilter
from sharelens.output import Answer, Column, Row, known, name_cell, name_column, number_column, time_column
from sharelens.questions.completeness import evidence_line, incomplete_rows
from sharelens.questions.dlq_bursts import BURST, bursts_of
from sharelens.questions.dlq_filter import DeadLetterFilter
from sharelens.questions.evidence import Evidence, Keys, Span
from sharelens.questions.given_up import given_up_stream
from sharelens.questions.measured import Scope, scope
from sharelens.questions.naming import listed
from sharelens.questions.shape import constant
from sharelens.questions.state import completeness_cell, topic_cell
from sharelens.questions.streaming import rows_of_stream
from sharelens.request import CutChoice
from state_model.columnar.keys import only_keys_of

NOT_FOUND = (
    "no topic was looked into for dead letters: copy the topics' folders too, or name them with --dlq-topic or "
    "--dlq-prefix (for a lake, when `sharelens run` makes it)"
)
EVER = Span()
ROW_TIME = ("dead_lettered_ms", "archived_ms", "archiving_ms")
"""The time of a row: the first of these that it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """DLQ_RECONCILIATION rows at a cut, with the question that they answer."""

    rows: pa.Table
    asked: Scope
    warnings: tuple[str, ...]


def reconciled(
    evidence: Evidence,
    wanted: KeyFilter,
    asked: CutChoice,
    settings: GroupSettings,
    topics: DeadLetterTopics | None = None,
    span: Span = EVER,
) -> Reconciled:
    """What groups archived up to the cut against the dead letters by then (a broker's clock).

    `topics`: only dead letters that lie there; None: all that were looked into. `span` bounds the time of a row
    (ROW_TIME).

    Raises:
        UsageError: nothing bears the names that were typed.
        SharelensError: the cut lies before the evidence, or the dead letters are larger than --max-bytes.
    """
    scoped = scope(evidence, wanted, asked)
    stream, warnings = reconciled_stream(scoped, asked, settings, topics, span)
    return Reconciled(rows=rows_of_stream(stream, measure.ORDER), asked=scoped, warnings=warnings)


def reconciled_stream(
    scoped: Scope,
    asked: CutChoice,
    settings: GroupSettings,
    topics: DeadLetterTopics | None = None,
    span: Span = EVER,
) -> tuple[Iterator[pa.Table], tuple[str, ...]]:
    """The rows of `reconciled` in bounded tables, in any order, and its warnings."""
    letters = _letters_about(scoped, asked.as_of_ms, topics)
    warnings = (*scoped.warnings, *_warnings(letters.mine, letters.partitions), *_absent(scoped.evidence, topics))
    tables = letters.reconciled(given_up_stream(scoped, settings), settings)
    return (_in_span(rows, span) for rows in tables), warnings


def told_by_letters(
    asked: Scope, settings: GroupSettings, as_of_ms: int | None, *, near_limit: bool = False
) -> Iterator[pa.Table]:
    """Rows of `given_up_stream` with the causes that dead letters tell; runs are cut where they differ."""
    letters = _letters_about(asked, as_of_ms, None)
    with_letter = [POISON_RECORD.empty_table()]
    for rows in given_up_stream(asked, settings, near_limit=near_limit):
        has_letter = letters.meet(rows)
        with_letter.append(rows.filter(has_letter))
        yield rows.filter(pc.invert(has_letter))
    rows = pa.concat_tables(with_letter)
    yield with_letter_causes(rows, letters.against(rows, settings))


@dataclass(frozen=True, slots=True, kw_only=True)
class _LettersAbout:
    """The dead letters of a question: DLQ_RECORD rows `mine` of what was asked for, DLQ_PARTITION rows."""

    asked: Scope
    names: Mapping[str, str]
    mine: pa.Table
    partitions: pa.Table
    topics: measure.LetterTopics

    def meet(self, rows: pa.Table) -> pa.Array:
        """Which POISON_RECORD rows hold an offset that a dead letter names; none of those near the limit."""
        return pc.and_(named_rows(rows, self.mine, self.names), pc.is_valid(rows.column("cause")))

    def reconciled(self, stream: Iterable[pa.Table], settings: GroupSettings) -> Iterator[pa.Table]:
        """DLQ_RECONCILIATION rows of a stream of POISON_RECORD rows; only those that dead letters name are kept."""
        without_letters = replace(self, mine=self.mine.slice(0, 0))
        with_letter = [POISON_RECORD.empty_table()]
        for rows in stream:
            has_letter = self.meet(rows)
            with_letter.append(rows.filter(has_letter))
            yield without_letters.against(rows.filter(pc.invert(has_letter)), settings)
        yield self.against(pa.concat_tables(with_letter), settings)

    def against(self, found: pa.Table, settings: GroupSettings) -> pa.Table:
        """DLQ_RECONCILIATION rows of POISON_RECORD rows, none of them near the limit."""
        asked = self.asked
        named = measure.named_by(self.mine, self.names)
        parts = asked.only(only_keys_of(asked.places, named)).parts() if named.num_rows else ()
        return measure.reconcile(
            found,
            self.mine,
            (part.history for part in parts),
            self.names,
            self.topics,
            settings,
            begins_ms=max((p.first_ms for p in asked.evidence.cover() if p.first_ms is not None), default=None),
            nameless=measure.nameless_places(asked.places, self.names),
        )


def _letters_about(asked: Scope, as_of_ms: int | None, topics: DeadLetterTopics | None) -> _LettersAbout:
    names = known_names(asked.evidence, asked.places)
    letters, partitions = _letters(asked.evidence, DeadLetterFilter(groups=asked.keys.groups), as_of_ms, topics)
    return _LettersAbout(
        asked=asked,
        names=names,
        mine=_of_keys(letters, asked.keys, names),
        partitions=partitions,
        topics=measure.LetterTopics.of(letters, partitions),
    )


def known_names(evidence: Evidence, places: pa.Table) -> dict[str, str]:
    """Names of the topics of share partitions, by id, as far as known."""
    ids = places.column("topic_id").unique().to_pylist()
    names = evidence.names(ids)
    return {topic_id: names[topic_id] for topic_id in ids if topic_id in names}


def _letters(
    evidence: Evidence, wanted: DeadLetterFilter, as_of_ms: int | None, topics: DeadLetterTopics | None
) -> tuple[pa.Table, pa.Table]:
    """DLQ_RECORD rows up to a moment, and DLQ_PARTITION rows; both of these topics alone."""
    letters, partitions = evidence.dead_letters(wanted), evidence.dead_letter_partitions()
    if as_of_ms is not None:
        letters = letters.filter(pc.less_equal(letters.column("timestamp_ms"), as_of_ms))
    if topics is None:
        return letters, partitions
    there = partitions.column("dlq_topic").unique().to_pylist()
    taken = pa.array([name for name in there if topics.takes(name)], pa.string())
    letters, partitions = (
        rows.filter(pc.is_in(rows.column("dlq_topic"), value_set=taken)) for rows in (letters, partitions)
    )
    return letters, partitions


def _absent(evidence: Evidence, topics: DeadLetterTopics | None) -> list[str]:
    """At most one line, about topics that were named and not looked into."""
    there = sorted(evidence.dead_letter_partitions().column("dlq_topic").unique().to_pylist())
    absent = sorted((topics.names if topics is not None else frozenset()) - set(there))
    if not absent:
        return []
    line = (
        f"nothing was looked into for dead letters under the name {listed(absent)}: mend --dlq-topic, or copy the "
        f"topic's folders too (for a lake, give both to `sharelens run`); topics that were looked into: {listed(there)}"
    )
    return [line]


def _of_keys(letters: pa.Table, keys: Keys, names: Mapping[str, str]) -> pa.Table:
    """The dead letters of topics and partitions that were asked for; a topic by its name or its id."""
    if keys.topics is not None:
        condition = pc.scalar(False)
        for topic_id, numbers in sorted(keys.topics.items()):
            here = pc.field("topic").isin(sorted({topic_id, names.get(topic_id, topic_id)}))
            if numbers is not None:
                here &= pc.field("partition").isin(pa.array(sorted(numbers), pa.int32()))
            condition |= here
        letters = letters.filter(condition)
    return filter_rows(letters, Keys(partitions=keys.partitions).expression())


def _warnings(letters: pa.Table, partitions: pa.Table) -> list[str]:
    """What has to be said of the topics that were looked into."""
    warnings = [] if partitions.num_rows else [NOT_FOUND]
    totals: dict[str, tuple[int, int]] = {}
    for row in partitions.to_pylist():
        offsets, found = totals.get(row["dlq_topic"], (0, 0))
        held = max(0, row["end_offset"] - row["log_start_offset"])
        totals[row["dlq_topic"]] = (offsets + held, found + row["letters"])
    strange = [topic for topic, (offsets, found) in totals.items() if offsets and not found]
    if strange:
        warnings.append(f"no dead letter (no header __dlq.errors.*) in {listed(strange)}: left out")
    broken = letters.num_rows - letters.column("header_problem").null_count
    if broken:
        places = letters.filter(pc.is_valid(letters.column("header_problem"))).slice(0, 3).to_pylist()
        told = ", ".join(
            f"{name_cell(row['dlq_topic'])}-{row['dlq_partition']} @ {row['dlq_offset']} ({row['header_problem']})"
            for row in places
        )
        more = f" and {broken - len(places)} more" if broken > len(places) else ""
        warnings.append(f"headers that can't be read in {broken} dead letters: {told}{more}")
    return warnings


def dlq(
    evidence: Evidence,
    wanted: KeyFilter,
    asked: CutChoice,
    span: Span,
    settings: GroupSettings,
    *,
    topics: DeadLetterTopics | None = None,
    statuses: Sequence[str] = STATUSES,
) -> Answer:
    """The answer to `sharelens dlq`; `span` bounds the time of a row (ROW_TIME)."""
    found = reconciled(evidence, wanted, asked, settings, topics, span)
    rows = found.rows
    told = _told(rows)
    warnings = [*found.warnings, *without_topic(rows)]
    rows = rows.filter(pc.is_in(rows.column("status"), value_set=pa.array(list(statuses), pa.string())))
    closing = evidence_line(evidence.cover(), incomplete_rows(rows.column("completeness")))
    return Answer(
        table=with_cluster(evidence, rows),
        columns=TEXT_COLUMNS,
        summary=f"{told}\n{closing}",
        warnings=tuple(warnings),
        none="no dead letter, and none was due",
    )


def findings(answered: Answer) -> int:
    """Rows that are missing, duplicate or unexpected."""
    status = answered.table.column("status")
    return int(pc.sum(pc.is_in(status, value_set=pa.array(FINDINGS))).as_py() or 0)


def with_cluster(evidence: Evidence, rows: pa.Table) -> pa.Table:
    """The rows with cluster_id in front."""
    cluster = constant(evidence.cluster_id, rows.num_rows, pa.string())
    return rows.add_column(0, pa.field("cluster_id", pa.string()), cluster)


def _in_span(rows: pa.Table, span: Span) -> pa.Table:
    times = pc.coalesce(*(rows.column(name) for name in ROW_TIME))
    return filter_rows(rows.append_column("log_time_ms", times), span.expression()).drop_columns(["log_time_ms"])


def _sizes(rows: pa.Table) -> pa.ChunkedArray:
    return pc.add(pc.subtract(rows.column("last_offset"), rows.column("offset")), 1)


def _told(rows: pa.Table) -> str:
    """Record offsets by status."""
    counts = {
        status: pc.sum(_sizes(rows.filter(pc.equal(rows.column("status"), status)))).as_py() or 0 for status in STATUSES
    }
    return "record offsets: " + ", ".join(f"{status} {count}" for status, count in counts.items())


def without_topic(rows: pa.Table) -> list[str]:
    """At most one line: what to do about groups whose dead letters may be anywhere."""
    mine = rows.filter((pc.field("status") == UNKNOWN) & (pc.field("reason") == NO_TOPIC_KNOWN))
    if mine.num_rows == 0:
        return []
    groups = listed(mine.column("group_id").unique().to_pylist())
    warning = (
        f"no topic for dead letters is known of {groups}, so nobody can say whether theirs are missing: give "
        "--group-configs FILE (kafka-configs --describe --entity-type groups), or --dlq-topic NAME"
    )
    return [warning]


def bursts(
    evidence: Evidence,
    wanted: KeyFilter,
    asked: CutChoice,
    span: Span,
    *,
    gap_ms: int,
    topics: DeadLetterTopics | None = None,
) -> Answer:
    """Runs of dead letters of one group, topic and cause in which no pause is longer than `gap_ms`.

    The largest come first. Times are the dead letters' (a broker's clock).
    """
    read = scope(evidence, wanted, asked)
    names = known_names(evidence, read.places)
    letters, partitions = _letters(evidence, DeadLetterFilter(groups=read.keys.groups), asked.as_of_ms, topics)
    letters = _of_keys(letters, read.keys, names)
    warnings = (*read.warnings, *_warnings(letters, partitions), *_absent(evidence, topics))
    within = Span(from_ms=span.from_ms, to_ms=span.to_ms).expression()
    timed = filter_rows(letters.append_column("log_time_ms", letters.column("timestamp_ms")), within)
    rows = bursts_of(timed, gap_ms)
    table = with_cluster(evidence, rows).cast(BURST)
    closing = evidence_line(evidence.cover(), incomplete_rows(table.column("completeness")))
    return Answer(
        table=table,
        columns=BURST_COLUMNS,
        summary=f"dead letters: {timed.num_rows} in {table.num_rows} bursts\n{closing}",
        warnings=warnings,
        none="no dead letter",
    )


def _letter_cell(row: Row) -> str:
    if row["dlq_offset"] is None:
        return name_cell(row["dlq_topic"]) if row["dlq_topic"] is not None else known(None)
    return f"{name_cell(row['dlq_topic'])}-{row['dlq_partition']} @ {row['dlq_offset']}"


def _offset_cell(row: Row) -> str:
    first, last = row["offset"], row["last_offset"]
    return f"{first}" if first == last else f"{first}-{last}"


def _rate_cell(row: Row) -> str:
    rate = row["rate_per_second"]
    return f"{rate:.1f}" if isinstance(rate, float) else known(None)


TEXT_COLUMNS = (
    name_column("STATUS", "status"),
    name_column("GROUP", "group_id"),
    Column(heading="TOPIC", cell=topic_cell),
    number_column("PARTITION", "partition"),
    Column(heading="RECORD-OFFSET", cell=_offset_cell, right=True),
    name_column("CAUSE", "cause"),
    number_column("DELIVERY-COUNT", "delivery_count"),
    time_column("ARCHIVED", "archived_ms"),
    time_column("DEAD-LETTERED", "dead_lettered_ms"),
    Column(heading="DEAD-LETTER", cell=_letter_cell),
    name_column("REASON", "reason"),
    Column(heading="COMPLETENESS", cell=completeness_cell),
)
BURST_COLUMNS = (
    name_column("GROUP", "group_id"),
    name_column("TOPIC", "topic"),
    name_column("CAUSE", "cause"),
    time_column("FIRST", "first_ms"),
    time_column("LAST", "last_ms"),
    number_column("DEAD-LETTERS", "dead_letters"),
    number_column("RECORDS", "records"),
    number_column("PARTITIONS", "partitions"),
    Column(heading="PER-SECOND", cell=_rate_cell, right=True),
)
