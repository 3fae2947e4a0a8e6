"""Dead letters against archived records: matched, missing, duplicate, unexpected; and bursts of dead letters."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.conditions import filter_rows
from sharelens.kafka_log.dead_letter_records import DeadLetterTopics
from sharelens.measures.dlq import reconciliation as measure
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
from sharelens.measures.settings.over_time import GroupSettings
from sharelens.output import Answer
from sharelens.output.wording import listed
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.answers.completeness import closing_line, incomplete_rows
from sharelens.questions.answers.digests import Digest, as_answer
from sharelens.questions.answers.measured import scope
from sharelens.questions.answers.shape import FIRST_OFFSET_NAMES, constant, in_answer
from sharelens.questions.answers.streaming import Listing, RowChoice
from sharelens.questions.dead_letters.bursts import BURST, bursts_of
from sharelens.questions.dead_letters.columns import BURST_LAYOUT, DIGEST_KEYS, DIGEST_LAYOUT, LAYOUT
from sharelens.questions.dead_letters.reconciled import (
    absent_topics,
    in_span,
    known_names,
    letter_warnings,
    letters_up_to,
    of_keys,
    reconciled_stream,
    row_times,
)
from sharelens.source.request import CutChoice
from sharelens.tables.dlq_filter import DeadLetterFilter
from sharelens.tables.port import Tables
from sharelens.tables.where import Span

WRONG_FIRST = (MISSING, UNEXPECTED, DUPLICATE, UNKNOWN, ARCHIVING, MATCHED)
BY_STATUS = ("rank", "ascending")
DIGEST_ORDER = [BY_STATUS, ("records", "descending"), ("group_id", "ascending"), ("cause", "ascending")]
DEFAULT_GAP_MS = 60_000


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
    choice = RowChoice(order=order, row_limit=row_limit, ranks={BY_STATUS[0]: status_rank})
    reconciled_rows = ReconciledRows(evidence, span, choice, warnings, statuses)
    for rows in stream:
        reconciled_rows.add(rows)
    return reconciled_rows.answer()


class ReconciledRows:
    """Collects the answer from DLQ_RECONCILIATION rows; `sums` by group, status, reason, cause and share partition."""

    def __init__(
        self,
        evidence: Tables,
        span: Span,
        choice: RowChoice,
        warnings: Sequence[str],
        statuses: Sequence[str] = STATUSES,
    ) -> None:
        """`warnings`: those of the stream; `statuses`: those that are listed."""
        self._evidence, self._span, self._warnings, self._statuses = evidence, span, warnings, statuses
        self._listing, self._digest = Listing(choice), Digest(DIGEST_KEYS)

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
            table=with_cluster(self._evidence, in_answer(table, FIRST_OFFSET_NAMES)),
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
    letters, partitions = letters_up_to(evidence, DeadLetterFilter(groups=scoped.keys.groups), cut.as_of_ms, topics)
    letters = of_keys(letters, scoped.keys, names)
    warnings = (*scoped.warnings, *letter_warnings(letters, partitions), *absent_topics(evidence, topics))
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
