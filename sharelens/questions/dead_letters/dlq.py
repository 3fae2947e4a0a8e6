"""Dead letters against archived records: matched, missing, duplicate, unexpected; and bursts of dead letters."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.conditions import filter_rows
from sharelens.kafka_log.dead_letter_records import DeadLetterTopics
from sharelens.measures.dlq import reach as dlq_reach
from sharelens.measures.dlq import reconciliation as measure
from sharelens.measures.dlq.causes import with_letter_causes
from sharelens.measures.dlq.dead_lettered_rows import named_rows
from sharelens.measures.dlq.schemas import (
    ARCHIVING,
    DUPLICATE,
    FINDINGS,
    MATCHED,
    MISSING,
    NO_TOPIC_KNOWN,
    STATUSES,
    UNEXPECTED,
    UNKNOWN,
)
from sharelens.measures.figures import total_of
from sharelens.measures.schemas import POISON_RECORD
from sharelens.measures.settings.over_time import GroupSettings
from sharelens.output import Answer, name_cell
from sharelens.output.wording import listed
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.answers.completeness import closing_line, incomplete_rows
from sharelens.questions.answers.digests import Digest, as_answer
from sharelens.questions.answers.doubtful_settings import doubtful_settings
from sharelens.questions.answers.measured import Scope, is_stored, scope
from sharelens.questions.answers.shape import constant
from sharelens.questions.answers.streaming import Listed, Listing, rows_of_stream
from sharelens.questions.dead_letters.bursts import BURST, bursts_of
from sharelens.questions.dead_letters.columns import BURST_LAYOUT, DIGEST_KEYS, DIGEST_LAYOUT, LAYOUT
from sharelens.questions.dead_letters.given_up import given_up_stream
from sharelens.source.request import CutChoice
from sharelens.tables.dlq_filter import DeadLetterFilter
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_dead_letter_partitions, read_dead_letters
from sharelens.tables.where import Keys, Span, Where
from state_model.columnar.keys import SHARE_PARTITION_KEY, only_keys_of

NOT_FOUND = (
    "no topic was searched for dead letters: copy the topics' folders too, or name them with --dlq-topic or "
    "--dlq-prefix (for a lake, when `sharelens run` makes it)"
)
EVER = Span()
TABLE = "gold.dlq_reconciliation"
JUDGED = [*SHARE_PARTITION_KEY, "offset", "last_offset", "status"]
WRONG_FIRST = (MISSING, UNEXPECTED, DUPLICATE, UNKNOWN, ARCHIVING, MATCHED)
BY_STATUS = ("rank", "ascending")
DIGEST_ORDER = [BY_STATUS, ("records", "descending"), ("group_id", "ascending"), ("cause", "ascending")]
ROW_TIME = ("dead_lettered_ms", "archived_ms", "archiving_ms")
"""The time of a row: the first of these that it has."""
DEFAULT_GAP_MS = 60_000


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
    topics: DeadLetterTopics | None = None,
    span: Span = EVER,
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
    scoped: Scope, settings: GroupSettings, as_of_ms: int | None, *, near_limit: bool = False
) -> Iterator[pa.Table]:
    """Rows of `given_up_stream` with the causes of their dead letters; ranges are split where causes differ."""
    return with_dead_letter_causes(scoped, given_up_stream(scoped, settings, near_limit=near_limit), settings, as_of_ms)


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
        return (*scoped.warnings, *_warnings(self.letters, self.partitions), *_absent(scoped.evidence, topics), *doubts)

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
            nameless=measure.nameless_places(scoped.places, self.names),
        )


def _letters_about(scoped: Scope, as_of_ms: int | None, topics: DeadLetterTopics | None) -> _LettersAbout:
    names = known_names(scoped.evidence, scoped.places)
    letters, partitions = _letters(scoped.evidence, DeadLetterFilter(groups=scoped.keys.groups), as_of_ms, topics)
    return _LettersAbout(
        scoped=scoped,
        names=names,
        letters=_of_keys(letters, scoped.keys, names),
        partitions=partitions,
        topics=dlq_reach.LetterTopics.of(letters, partitions),
    )


def known_names(evidence: Tables, places: pa.Table) -> dict[str, str]:
    """Names of the topics of share partitions, by id, as far as known."""
    ids = places.column("topic_id").unique().to_pylist()
    names = evidence.names(ids)
    return {topic_id: names[topic_id] for topic_id in ids if topic_id in names}


def _letters(
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


def _absent(evidence: Tables, topics: DeadLetterTopics | None) -> list[str]:
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


def _of_keys(letters: pa.Table, keys: Keys, names: Mapping[str, str]) -> pa.Table:
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


def _warnings(letters: pa.Table, partitions: pa.Table) -> list[str]:
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


def dlq(
    evidence: Tables,
    key_filter: KeyFilter,
    cut: CutChoice,
    span: Span,
    settings: GroupSettings,
    *,
    topics: DeadLetterTopics | None = None,
    statuses: Sequence[str] = STATUSES,
    row_limit: int | None = None,
    is_text: bool = False,
) -> Answer:
    """The answer to `sharelens dlq`; `span` bounds the time of a row (ROW_TIME).

    `row_limit`: only the first rows are kept; None: all. `is_text`: rows by status (WRONG_FIRST) before all else.
    """
    scoped = scope(evidence, key_filter, cut)
    stream, warnings = reconciled_stream(scoped, cut, settings, topics)
    order = [BY_STATUS, *measure.ORDER] if is_text else measure.ORDER
    listed = Listed(order=order, row_limit=row_limit, ranks={BY_STATUS[0]: status_rank})
    reconciled_rows = ReconciledRows(evidence, span, listed, warnings, statuses)
    for rows in stream:
        reconciled_rows.add(rows)
    return reconciled_rows.answer()


class ReconciledRows:
    """Collects the answer from DLQ_RECONCILIATION rows; `sums` by group, status, reason, cause and share partition."""

    def __init__(
        self,
        evidence: Tables,
        span: Span,
        listed: Listed,
        warnings: Sequence[str],
        statuses: Sequence[str] = STATUSES,
    ) -> None:
        """`warnings`: those of the stream; `statuses`: those that are listed."""
        self._evidence, self._span, self._warnings, self._statuses = evidence, span, warnings, statuses
        self._listing, self._digest = Listing(listed), Digest(DIGEST_KEYS)

    def add(self, rows: pa.Table) -> pa.Table:
        """Adds the rows of the span, and returns them."""
        rows = in_span(rows, self._span)
        self._digest.add(rows, row_times(rows))
        self._listing.add(_of_statuses(rows, self._statuses))
        return rows

    def answer(self) -> Answer:
        """The answer of all rows."""
        table, all_rows = self._listing.table(), self._listing.row_counts(self._evidence)
        sums = self._digest.table()
        incomplete = incomplete_rows(table.column("completeness")) if all_rows is None else all_rows.incomplete
        lines = _of_statuses(sums, self._statuses)
        lines = lines.append_column(BY_STATUS[0], status_rank(lines))
        return Answer(
            table=with_cluster(self._evidence, table),
            columns=LAYOUT.columns(),
            summary=f"{_totals(sums)}\n{closing_line(self._evidence, incomplete)}",
            warnings=(*self._warnings, *without_topic(sums)),
            none=_none(sums, self._statuses),
            all_rows=all_rows,
            sums=self._digest.sums(),
            digest=as_answer(lines, DIGEST_LAYOUT.columns(), DIGEST_ORDER),
        )


def _none(sums: pa.Table, statuses: Sequence[str]) -> str:
    """The text of an answer without rows: nothing at all, or nothing with the statuses."""
    if sums.num_rows == 0:
        return "no dead letter, and none was due"
    return f"no record offset is {' or '.join(statuses)}"


def findings(answered: Answer) -> int:
    """Rows that are missing, duplicate or unexpected."""
    status = answered.table.column("status")
    return int(pc.sum(pc.is_in(status, value_set=pa.array(FINDINGS))).as_py() or 0)


def with_cluster(evidence: Tables, rows: pa.Table) -> pa.Table:
    """The rows with cluster_id in front."""
    cluster = constant(evidence.cluster_id, rows.num_rows, pa.string())
    return rows.add_column(0, pa.field("cluster_id", pa.string()), cluster)


def in_span(rows: pa.Table, span: Span) -> pa.Table:
    """The DLQ_RECONCILIATION rows whose time (ROW_TIME) lies in the span."""
    times = row_times(rows)
    return filter_rows(rows.append_column("log_time_ms", times), span.expression()).drop_columns(["log_time_ms"])


def row_times(rows: pa.Table) -> pa.ChunkedArray:
    """The time of each row (ROW_TIME)."""
    return pc.coalesce(*(rows.column(name) for name in ROW_TIME))


def _of_statuses(rows: pa.Table, statuses: Sequence[str]) -> pa.Table:
    return rows.filter(pc.is_in(rows.column("status"), value_set=pa.array(list(statuses), pa.string())))


def status_rank(rows: pa.Table) -> pa.ChunkedArray:
    """The place of each row's status in WRONG_FIRST."""
    return pc.index_in(rows.column("status"), value_set=pa.array(WRONG_FIRST))


def counts_of(sums: pa.Table) -> dict[str, int]:
    """Record offsets by status, in the order of STATUSES, from sums of `records` by status."""
    return {status: total_of(sums.filter(pc.field("status") == status)) for status in STATUSES}


def _totals(sums: pa.Table) -> str:
    return "record offsets: " + ", ".join(f"{status} {count}" for status, count in counts_of(sums).items())


def without_topic(rows: pa.Table) -> list[str]:
    """At most one line: groups without a known dead-letter topic, and what to do."""
    unknown_rows = rows.filter((pc.field("status") == UNKNOWN) & (pc.field("reason") == NO_TOPIC_KNOWN))
    if unknown_rows.num_rows == 0:
        return []
    groups = listed(unknown_rows.column("group_id").unique().to_pylist())
    warning = (
        f"the dead-letter topic of {groups} is unknown, so missing dead letters are unknown: give "
        "--settings DIR with group-configs.txt (kafka-configs --describe --entity-type groups), --dlq-topic NAME, or a "
        "controller's or broker's folder __cluster_metadata-0 beside the other folders (for a lake, to `sharelens run`)"
    )
    return [warning]


def bursts(
    evidence: Tables,
    key_filter: KeyFilter,
    cut: CutChoice,
    span: Span,
    *,
    gap_ms: int = DEFAULT_GAP_MS,
    topics: DeadLetterTopics | None = None,
) -> Answer:
    """Runs of dead letters of one group, topic and cause in which no pause is longer than `gap_ms`.

    The largest come first. Times are the dead letters' (a broker's clock).
    """
    scoped = scope(evidence, key_filter, cut)
    names = known_names(evidence, scoped.places)
    letters, partitions = _letters(evidence, DeadLetterFilter(groups=scoped.keys.groups), cut.as_of_ms, topics)
    letters = _of_keys(letters, scoped.keys, names)
    warnings = (*scoped.warnings, *_warnings(letters, partitions), *_absent(evidence, topics))
    within = Span(from_ms=span.from_ms, to_ms=span.to_ms).expression()
    timed = filter_rows(letters.append_column("log_time_ms", letters.column("timestamp_ms")), within)
    rows = bursts_of(timed, gap_ms)
    table = with_cluster(evidence, rows).cast(BURST)
    closing = closing_line(evidence, incomplete_rows(table.column("completeness")))
    return Answer(
        table=table,
        columns=BURST_LAYOUT.columns(),
        summary=f"dead letters: {timed.num_rows} in {table.num_rows} bursts\n{closing}",
        warnings=warnings,
        none="no dead letter",
    )
