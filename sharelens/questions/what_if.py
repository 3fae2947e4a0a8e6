"""What a history would have been under another setting: figures with the certainty of each."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.conditions import filter_rows
from sharelens.measures.histories.numbers import Histories
from sharelens.measures.ranges.offset_counts import offset_counts
from sharelens.measures.settings.over_time import COLD_SNAPSHOT_INTERVAL, COORDINATOR_DEFAULTS
from sharelens.measures.what_if import cold_rounds, isolation, lock_duration
from sharelens.measures.what_if.appends import READ_AT, appends, of_state_partitions
from sharelens.measures.what_if.delivery_limit import AGAIN, EARLIER, OTHER_OUTCOME, DeliveryLimit
from sharelens.measures.what_if.schema import WHAT_IF
from sharelens.measures.what_if.snapshots import snapshot_rows
from sharelens.output import Answer, Column, Row, number_text
from sharelens.output.layouts import Layout
from sharelens.output.wording import counted
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.answers.measured import PLACE_ORDER, Scope, answer, of_parts, rows_of, scope
from sharelens.questions.answers.shape import answer_schema
from sharelens.source.request import CutChoice
from sharelens.tables.parts import Part
from sharelens.tables.places import of_places
from sharelens.tables.port import RECORDS, Tables
from state_model.errors import SharelensError

ALL_KEYS = KeyFilter()
COLD_INTERVAL_MS = COORDINATOR_DEFAULTS[COLD_SNAPSHOT_INTERVAL]


def other_snapshot_interval(evidence: Tables, key_filter: KeyFilter, cut: CutChoice, limit: int) -> Answer:
    """The answer to `sharelens what-if --snapshot-update-records`: one row a share partition and figure.

    Raises:
        SharelensError: no share partition has a history that is complete enough.
    """
    scoped = scope(evidence, key_filter, cut)
    rounds = rounds_of(scoped)
    tables = [snapshot_rows(table, rounds, limit, COLD_INTERVAL_MS) for table in appends_of(scoped, key_filter, cut)]
    rows = of_places(pa.concat_tables([WHAT_IF.empty_table(), *tables]), scoped.places)
    return _answer(scoped, rows)


def rounds_of(scoped: Scope) -> cold_rounds.ColdRounds:
    """The rounds of the cold snapshot job up to the cut."""
    records = scoped.evidence.scan(RECORDS, cold_rounds.READ_AT)
    logged = (filter_rows(table, scoped.cut.condition()) for table in records)
    return cold_rounds.cold_rounds(logged, COLD_INTERVAL_MS)


def appends_of(scoped: Scope, key_filter: KeyFilter, cut: CutChoice) -> Iterator[pa.Table]:
    """APPENDS rows of all share partitions in the state partitions of the scope, by state partition."""
    numbers = scoped.places.column("state_partition").unique()
    whole_scope = scoped if key_filter.keeps_all else scope(scoped.evidence, ALL_KEYS, cut)
    places = whole_scope.places.filter(pc.is_in(whole_scope.places.column("state_partition"), value_set=numbers))
    chosen = whole_scope.only(places)
    return of_state_partitions(
        appends(chosen.inputs(part).records(READ_AT), part.history, part.deliveries) for part in chosen.parts
    )


def other_delivery_limit(evidence: Tables, key_filter: KeyFilter, cut: CutChoice, limit: int) -> Answer:
    """The answer to `sharelens what-if --delivery-count-limit`: one row a share partition and figure.

    Raises:
        SharelensError: no share partition has a history that is complete enough.
    """
    scoped = scope(evidence, key_filter, cut)
    rows = of_parts(scoped, lambda part: delivery_limit_of(scoped, part, limit).figures())
    return _answer(scoped, rows)


def other_lock_duration(evidence: Tables, key_filter: KeyFilter, cut: CutChoice, duration_ms: int) -> Answer:
    """The answer to `sharelens what-if --lock-duration`: one row a share partition and figure.

    Raises:
        SharelensError: no share partition has a history that is complete enough.
    """
    scoped = scope(evidence, key_filter, cut)
    rows = rows_of(scoped, lambda inputs: lock_duration.rows(inputs, duration_ms), evidence.settings.groups)
    return _answer(scoped, rows)


def other_isolation_level(evidence: Tables, key_filter: KeyFilter, cut: CutChoice, level: str) -> Answer:
    """The answer to `sharelens what-if --isolation-level`: one row a share partition and figure.

    Raises:
        SharelensError: no share partition has a history that is complete enough, with batch headers of its topic.
    """
    scoped = scope(evidence, key_filter, cut)
    rows = rows_of(scoped, lambda inputs: isolation.rows(inputs, level), evidence.settings.groups)
    return _answer(scoped, rows, lacking="records, or batch headers of their topic,")


def other_isolation_ranges(evidence: Tables, key_filter: KeyFilter, cut: CutChoice, level: str) -> Answer:
    """The answer to `sharelens what-if --isolation-level --list`: ranges of offsets with another outcome."""
    scoped = scope(evidence, key_filter, cut)
    rows = rows_of(scoped, lambda inputs: isolation.ranges(inputs, level), evidence.settings.groups)
    sizes = offset_counts(rows)
    sums = {
        change: pc.sum(sizes.filter(pc.equal(rows.column("change"), change))).as_py() for change in isolation.CHANGES
    }
    totals = ", ".join(f"{change} {offsets}" for change, offsets in sums.items() if offsets)
    none = "no record offset has another outcome"
    totals = f"record offsets: {totals or 'none'}"
    return answer(evidence, rows, OUTCOME_LAYOUT, totals=totals, warnings=scoped.warnings, none=none)


def other_outcomes(evidence: Tables, key_filter: KeyFilter, cut: CutChoice, limit: int) -> Answer:
    """The answer to `sharelens what-if --delivery-count-limit --list`: ranges of offsets with another outcome."""
    scoped = scope(evidence, key_filter, cut)
    rows = of_parts(scoped, lambda part: delivery_limit_of(scoped, part, limit).ranges())
    sizes = offset_counts(rows)
    earlier = pc.sum(sizes.filter(pc.equal(rows.column("change"), EARLIER))).as_py() or 0
    again = pc.sum(sizes.filter(pc.equal(rows.column("change"), AGAIN))).as_py() or 0
    totals = f"record offsets given up earlier: {earlier}; perhaps delivered again: {again}"
    none = "no record offset has another outcome"
    return answer(evidence, rows, OUTCOME_LAYOUT, totals=totals, warnings=scoped.warnings, none=none)


def delivery_limit_of(scoped: Scope, part: Part, limit: int) -> DeliveryLimit:
    """The outcomes of a part under another limit."""
    histories = Histories.of(part.history, part.deliveries)
    return DeliveryLimit(histories, scoped.evidence.settings.groups, limit)


def _answer(scoped: Scope, rows: pa.Table, lacking: str = "records") -> Answer:
    """The answer of WHAT_IF rows, with a warning about share partitions that have none."""
    left_out_count = (
        len(scoped.places)
        - rows.select(["group_id", "topic_id", "partition"])
        .group_by(["group_id", "topic_id", "partition"])
        .aggregate([])
        .num_rows
    )
    warnings = list(scoped.warnings)
    if left_out_count and left_out_count == scoped.places.num_rows:
        raise SharelensError(
            f"{_too_incomplete(left_out_count, lacking)}: no figure; see sharelens status for what is missing"
        )
    if left_out_count:
        warnings.append(_too_incomplete(left_out_count, lacking) + " and have no figures")
    marks = pc.value_counts(rows.column("certainty")).to_pylist()
    sums = {entry["values"]: entry["counts"] for entry in marks}
    totals = ", ".join(f"{name} {sums[name]}" for name in ("exact", "bound", "inferred") if name in sums)
    return answer(
        scoped.evidence,
        rows.sort_by(PLACE_ORDER),
        LAYOUT,
        totals=f"figures: {totals or 'none'}",
        warnings=warnings,
        none="no record",
    )


def _too_incomplete(count: int, lacking: str) -> str:
    return f"{counted(count, 'share partition')} lack {lacking} that the question depends on"


def _what_if(row: Row) -> str:
    low, high = row["at_least"], row["at_most"]
    return number_text(low) if low == high else f"{low} to {high}"


LAYOUT = Layout(
    schema=answer_schema(WHAT_IF),
    fields="group_id topic partition figure in_history at_least certainty state_partition completeness",
    cells=(Column(heading="WHAT-IF", cell=_what_if, right=True, fields=("at_least", "at_most")),),
    important="GROUP TOPIC PARTITION FIGURE IN-HISTORY WHAT-IF CERTAINTY",
)
OUTCOME_LAYOUT = Layout(
    schema=answer_schema(OTHER_OUTCOME),
    fields="group_id topic partition first_offset last_offset change delivery_count outcome certainty "
    "state_partition life_log_offset completeness",
    important="GROUP TOPIC PARTITION FIRST-OFFSET LAST-OFFSET CHANGE DELIVERY-COUNT OUTCOME CERTAINTY",
)
