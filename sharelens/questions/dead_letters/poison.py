"""Records that groups archived without success: how often each was delivered, and the cause, as far as known."""

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.conditions import filter_rows
from sharelens.measures import poison as measure
from sharelens.measures.schemas import POISON_RECORD
from sharelens.measures.settings.over_time import GroupSettings
from sharelens.output import Answer, Column, Row
from sharelens.output.layouts import Layout
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.answers.completeness import check_beginning
from sharelens.questions.answers.digests import Digest, as_answer, digest_schema
from sharelens.questions.answers.doubtful_settings import doubtful_settings
from sharelens.questions.answers.measured import Scope, answer, scope
from sharelens.questions.answers.missing import COPY_FOLDERS, unseen
from sharelens.questions.answers.shape import FIRST_OFFSET_NAMES, answer_schema, in_answer
from sharelens.questions.answers.streaming import Listing, RowChoice
from sharelens.questions.dead_letters.reconciled import given_up_with_dead_letter_causes
from sharelens.source.request import CutChoice
from sharelens.tables.port import Tables
from sharelens.tables.where import Span

CAUSES = (measure.REJECTED, measure.DELIVERY_LIMIT, measure.UNKNOWN, measure.GAP)
NO_LIMIT = (
    "the delivery count limit of some groups is unknown, so rejected records and records at the limit look alike: give "
    "--settings DIR with group-configs.txt (kafka-configs --describe --entity-type groups) and broker.properties "
    "(server.properties), or a controller's or broker's folder __cluster_metadata-0, which has the groups' own; for a "
    "lake, to `sharelens run`"
)
UNSEEN = f"there an archived offset may be a gap (a control record, or none at all), which is no poison; {COPY_FOLDERS}"


def poison(
    evidence: Tables,
    key_filter: KeyFilter,
    cut: CutChoice,
    span: Span,
    settings: GroupSettings,
    *,
    near_limit: bool = False,
    gaps: bool = False,
    row_limit: int | None = None,
) -> Answer:
    """The answer to `sharelens poison`; `span` bounds the log time of the last outcome.

    `row_limit`: only the first rows are kept; None: all.
    """
    scoped = scope(evidence, key_filter, cut)
    archived = ArchivedRows(scoped, span, RowChoice(order=measure.ORDER, row_limit=row_limit), gaps=gaps)
    for rows in given_up_with_dead_letter_causes(scoped, settings, cut.as_of_ms, near_limit=near_limit, span=span):
        archived.add(rows)
    return archived.answer()


class ArchivedRows:
    """Collects the answer from POISON_RECORD rows, gaps among them; `sums` by group, cause and share partition."""

    def __init__(self, scoped: Scope, span: Span, choice: RowChoice, *, gaps: bool = False) -> None:
        """`gaps`: whether they are listed."""
        self._scoped, self._span, self._gaps = scoped, span, gaps
        self._listing, self._digest, self._without_limit = Listing(choice), Digest(DIGEST_KEYS), 0

    def add(self, rows: pa.Table) -> pa.Table:
        """Adds the rows of the span, and returns them."""
        rows = in_span(rows, self._span)
        self._digest.add(rows, rows.column("last_outcome_ms"))
        self._without_limit += rows.column("delivery_count_limit").null_count
        self._listing.add(rows if self._gaps else without_gaps(rows))
        return rows

    def answer(self) -> Answer:
        """The answer of all rows."""
        evidence, sums = self._scoped.evidence, self._digest.table()
        answered = answer(
            evidence,
            in_answer(self._listing.table(), FIRST_OFFSET_NAMES),
            LAYOUT,
            totals=_totals(_offsets_by_cause(sums)),
            warnings=(*check_beginning(evidence, self._span.from_ms), *self._warnings()),
            none="no archived record",
            all_rows=self._listing.row_counts(evidence),
            sums=self._digest.sums(),
        )
        shown = sums if self._gaps else without_gaps(sums)
        return replace(answered, digest=as_answer(shown, DIGEST_LAYOUT.columns(), MOST_RECORDS_FIRST))

    def _warnings(self) -> list[str]:
        scoped = self._scoped
        doubts = doubtful_settings(scoped.evidence, scoped.keys.groups)
        warnings = [*scoped.warnings, *([NO_LIMIT] if self._without_limit else []), *doubts]
        return warnings + unseen(scoped.evidence, scoped.user_partitions, UNSEEN)


def in_span(rows: pa.Table, span: Span) -> pa.Table:
    """The POISON_RECORD rows whose last outcome lies in the span."""
    return filter_rows(rows, span.expression("last_outcome_ms"))


def without_gaps(rows: pa.Table) -> pa.Table:
    """The rows of records among POISON_RECORD rows, or sums of them."""
    return rows.filter(pc.fill_null(pc.not_equal(rows.column("cause"), measure.GAP), True))


def _offsets_by_cause(sums: pa.Table) -> dict[str | None, int]:
    """Record offsets by cause; None: near the limit."""
    totals = sums.group_by("cause").aggregate([("records", "sum")])
    return dict(zip(totals.column("cause").to_pylist(), totals.column("records_sum").to_pylist(), strict=True))


def _totals(offsets: Mapping[str | None, int]) -> str:
    near = offsets.get(None, 0)
    by_cause = ", ".join(f"{cause} {offsets.get(cause, 0)}" for cause in CAUSES)
    return f"record offsets: {by_cause} (no records; --gaps lists them)" + (f"; near the limit {near}" if near else "")


LAYOUT = Layout(
    schema=answer_schema(POISON_RECORD, FIRST_OFFSET_NAMES),
    fields="group_id topic partition offset last_offset delivery_state_name delivery_count cause cause_source "
    "delivery_count_limit delivery_count_limit_source first_outcome_ms last_outcome_ms state_partition log_offset "
    "completeness",
    headings={
        "delivery_state_name": "STATE",
        "cause_source": "CAUSE-FROM",
        "delivery_count_limit": "LIMIT",
        "delivery_count_limit_source": "LIMIT-FROM",
    },
    important="GROUP TOPIC PARTITION OFFSET LAST-OFFSET CAUSE DELIVERY-COUNT LIMIT LAST-OUTCOME CAUSE-FROM STATE "
    "FIRST-OUTCOME",
)


def _cause_cell(row: Row) -> str:
    return "near_limit" if row["cause"] is None else str(row["cause"])


MOST_RECORDS_FIRST = [("records", "descending"), ("group_id", "ascending"), ("cause", "ascending")]
DIGEST_KEYS = ("group_id", "cause")
DIGEST_LAYOUT = Layout(
    schema=digest_schema(POISON_RECORD, DIGEST_KEYS),
    headings={"last_ms": "LAST-OUTCOME"},
    cells=(Column(heading="CAUSE", cell=_cause_cell, fields=("cause",)),),
)
