"""The table of measures: what each one reads, the function that computes it, and how an increment recomputes it.

The measure stage, questions, report, metrics and the DataFrame API take measures from here; a new measure is one entry,
and its table in `lake.tables` where a lake keeps it.

    rule                what an increment replaces, for each share partition with new evidence (`docs/explanation`)
    WHOLE               all rows
    BY_LOG_OFFSET       rows from a record of the state log on
    BY_RECORD_OFFSET    rows that the reach, a record offset, does not lie above
    BY_BLOCK            the same, of contributions that add up
    BY_GROUP            all rows of the group
    COMPUTED            no rows: a lake does not keep them
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto

import pyarrow as pa

from measures import cost, lag, latency, life, poison, progress, redelivered, schemas, stalls
from measures.dlq_schemas import DLQ_RECONCILIATION
from measures.inputs import Inputs
from measures.latency_schemas import ATTEMPTS_CONTRIBUTION, LATENCY_CONTRIBUTION

Rows = Callable[[Inputs], pa.Table]


class Rule(Enum):
    """The rows that an increment replaces; the module docstring explains each rule."""

    WHOLE = auto()
    BY_LOG_OFFSET = auto()
    BY_RECORD_OFFSET = auto()
    BY_BLOCK = auto()
    BY_GROUP = auto()
    COMPUTED = auto()


class Reads(Enum):
    """The `Inputs` that a measure reads, beside history and deliveries."""

    HEADERS = auto()
    EXTENTS = auto()
    STATES = auto()
    RECORDS = auto()
    LETTERS = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One measure.

    `table`: the gold table that keeps it; None for none. `schema`: of the rows. `rows`: computes them; None where
    `Inputs` alone does not suffice (dead letters). `order`: the column that the rule compares. `first`, `life`: of rows
    about ranges of record offsets the columns of the first offset and of the life.
    """

    schema: pa.Schema
    rows: Rows | None
    rule: Rule
    table: str | None = None
    reads: frozenset[Reads] = frozenset()
    order: str | None = None
    first: str | None = None
    life: str | None = None


HEADERS, WITH_ENDS = frozenset({Reads.HEADERS}), frozenset({Reads.HEADERS, Reads.EXTENTS})
MEASURES: Mapping[str, Measure] = {
    "stall": Measure(
        table="gold.stall",
        schema=schemas.STALL,
        rows=stalls.lasting_rows,
        reads=WITH_ENDS,
        rule=Rule.BY_LOG_OFFSET,
        order="log_offset",
    ),
    "poison_record": Measure(
        table="gold.poison_record",
        schema=schemas.POISON_RECORD,
        rows=poison.rows,
        reads=HEADERS,
        rule=Rule.BY_RECORD_OFFSET,
        order="last_offset",
        first="offset",
        life="life_log_offset",
    ),
    "redelivered_record": Measure(
        table="gold.redelivered_record",
        schema=schemas.REDELIVERED,
        rows=redelivered.rows,
        rule=Rule.BY_RECORD_OFFSET,
        order="last_offset",
        first="first_offset",
        life="life",
    ),
    "latency": Measure(
        table="gold.latency",
        schema=LATENCY_CONTRIBUTION,
        rows=latency.latency_of,
        reads=HEADERS,
        rule=Rule.BY_BLOCK,
        order="last_offset",
        first="first_offset",
    ),
    "attempts": Measure(
        table="gold.attempts",
        schema=ATTEMPTS_CONTRIBUTION,
        rows=latency.attempts_of,
        reads=HEADERS,
        rule=Rule.BY_BLOCK,
        order="last_offset",
        first="first_offset",
    ),
    "life_event": Measure(
        table="gold.life_event", schema=schemas.LIFE, rows=life.rows, rule=Rule.BY_LOG_OFFSET, order="log_offset"
    ),
    "progress": Measure(
        table="gold.progress", schema=schemas.PROGRESS, rows=progress.rows, reads=HEADERS, rule=Rule.WHOLE
    ),
    "lag": Measure(
        table="gold.lag",
        schema=schemas.LAG,
        rows=lag.rows,
        reads=frozenset({Reads.STATES, Reads.HEADERS, Reads.EXTENTS}),
        rule=Rule.WHOLE,
    ),
    "dlq_reconciliation": Measure(
        table="gold.dlq_reconciliation",
        schema=DLQ_RECONCILIATION,
        rows=None,
        reads=frozenset({Reads.LETTERS}),
        rule=Rule.BY_GROUP,
    ),
    "cost": Measure(schema=schemas.COST, rows=cost.rows, reads=frozenset({Reads.RECORDS}), rule=Rule.COMPUTED),
}
"""By name; the stage commits them in this order. `progress` comes after the measures that resume from it."""
OF_TABLE: Mapping[str, Measure] = {measure.table: measure for measure in MEASURES.values() if measure.table is not None}
STAGED: Mapping[str, Measure] = {
    name: measure for name, measure in MEASURES.items() if measure.rule not in (Rule.BY_GROUP, Rule.COMPUTED)
}
"""The measures that the measure stage computes share partition by share partition."""
