"""Where share partitions would lie with another number of state partitions."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.conditions import filter_rows
from sharelens.measures.what_if import state_partitions as measure
from sharelens.output import Answer
from sharelens.output.layouts import Layout
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.answers.completeness import check_cut, closing_line, prefix_of
from sharelens.questions.answers.measured import described, scope
from sharelens.questions.answers.shape import answer_schema
from sharelens.source.request import CutChoice
from sharelens.tables.places import of_places
from sharelens.tables.port import RECORDS, Tables
from state_model.errors import UsageError

LARGEST_OF_MEAN = "largest state partition by records: {:.2f} times the mean in the history, {:.2f} times with {}"


def other_placement(evidence: Tables, key_filter: KeyFilter, cut: CutChoice, number: int) -> Answer:
    """The answer to `sharelens what-if --state-partitions --list`: one row a share partition."""
    scoped = scope(evidence, key_filter, cut)
    rows = of_places(_placed(evidence, cut, number), scoped.places)
    moved = pc.sum(pc.not_equal(rows.column("in_history"), rows.column("what_if"))).as_py() or 0
    summary = f"share partitions in another state partition: {moved} of {rows.num_rows}\n{closing_line(evidence)}"
    rows = described(evidence, rows.drop_columns(["state_partition"]))
    return Answer(
        table=rows, columns=PLACEMENT_LAYOUT.columns(), summary=summary, warnings=scoped.warnings, none="no record"
    )


def other_balance(evidence: Tables, key_filter: KeyFilter, cut: CutChoice, number: int) -> Answer:
    """The answer to `sharelens what-if --state-partitions`: one row a state partition and figure.

    Raises:
        UsageError: the filter leaves out share partitions.
    """
    if not key_filter.keeps_all:
        raise UsageError(
            "what-if: --state-partitions counts whole state partitions; leave out --group, --topic, --partition, "
            "or give --list"
        )
    rows = measure.balance(records_at(evidence, cut), number)
    records = rows.filter(pc.equal(rows.column("figure"), "records"))
    before, after = (_largest_of_mean(records.column(name), size) for name, size in _sizes(evidence, number))
    summary = f"{LARGEST_OF_MEAN.format(before, after, number)}\n{closing_line(evidence)}"
    warnings = tuple(check_cut(evidence, prefix_of(cut)))
    return Answer(
        table=described(evidence, rows),
        columns=BALANCE_LAYOUT.columns(),
        summary=summary,
        warnings=warnings,
        none="no record",
    )


def _sizes(evidence: Tables, number: int) -> tuple[tuple[str, int], tuple[str, int]]:
    """The columns of figures with the number of state partitions of each."""
    return ("in_history", known_number(evidence)), ("what_if", number)


def known_number(evidence: Tables) -> int:
    """The number of state partitions, as far as they have records."""
    return max((part.state_partition + 1 for part in evidence.cover()), default=1)


def _largest_of_mean(figures: pa.ChunkedArray, parts: int) -> float:
    total = pc.sum(figures).as_py() or 0
    return (pc.max(figures).as_py() or 0) * parts / total if total else 0.0


def _placed(evidence: Tables, cut: CutChoice, number: int) -> pa.Table:
    rows = measure.placement(records_at(evidence, cut), number)
    return rows.append_column("state_partition", rows.column("in_history").cast(pa.int32()))


def records_at(evidence: Tables, cut: CutChoice) -> Iterator[pa.Table]:
    """The columns that placement reads of all records up to the cut, in bounded tables."""
    prefix = prefix_of(cut)
    return (filter_rows(table, prefix.condition()) for table in evidence.scan(RECORDS, measure.READ_AT))


PLACEMENT_LAYOUT = Layout(
    schema=answer_schema(measure.PLACEMENT, has_marks=False),
    fields="group_id topic partition in_history what_if records bytes certainty",
    important="GROUP TOPIC PARTITION IN-HISTORY WHAT-IF RECORDS BYTES CERTAINTY",
)
BALANCE_LAYOUT = Layout(
    schema=answer_schema(measure.BALANCE, has_marks=False),
    fields="state_partition figure in_history what_if certainty",
    important="STATE-PARTITION FIGURE IN-HISTORY WHAT-IF CERTAINTY",
)
