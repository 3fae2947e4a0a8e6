"""The table of measures that a lake keeps: schema, function, and rule of increment of each.

The measure stage, questions, report, metrics and the DataFrame API take measures from here; a new measure is one entry,
and its table in `sharelens.lake.tables`.

    rule                what an increment replaces, for each share partition with new evidence (`docs/explanation`)
    WHOLE               all rows
    BY_LOG_OFFSET       rows from a record of the state log on
    BY_INTERVAL         rows of the interval that lasted when its share partition was last measured, and of later ones
    BY_RECORD_OFFSET    rows that the reach, a record offset, does not lie above
    BY_BLOCK            the same, of contributions that add up
    BY_GROUP            all rows of the group
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto

import pyarrow as pa

from sharelens.measures import lag, life, poison, redelivered, schemas
from sharelens.measures.dlq.schemas import DLQ_RECONCILIATION
from sharelens.measures.inputs import StateInputs
from sharelens.measures.latency import measure as latency
from sharelens.measures.latency.schemas import ATTEMPTS_CONTRIBUTION, LATENCY_CONTRIBUTION
from sharelens.measures.stalls import intervals as stalls
from sharelens.measures.stalls import progress

Rows = Callable[[StateInputs], pa.Table]


class Rule(Enum):
    """The rows that an increment replaces; the module docstring explains each rule."""

    WHOLE_LOG = auto()
    BY_LOG_OFFSET = auto()
    BY_INTERVAL = auto()
    BY_RECORD_OFFSET = auto()
    BY_BLOCK = auto()
    BY_GROUP = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """The declaration of a measure: gold table, schema, function and rule of increment.

    `table`: the gold table that keeps it. `schema`: of the rows. `rows`: computes them; None where inputs of share
    partitions do not suffice (dead letters). `order`: the column that the rule compares. `first`, `life`: of rows
    about ranges of record offsets the columns of the first offset and of the life.
    """

    table: str
    schema: pa.Schema
    rows: Rows | None
    rule: Rule
    order: str | None = None
    first: str | None = None
    life: str | None = None


MEASURES: Mapping[str, Measure] = {
    "stall": Measure(
        table="gold.stall",
        schema=schemas.STALL,
        rows=stalls.lasting_rows,
        rule=Rule.BY_INTERVAL,
        order="log_offset",
    ),
    "poison_record": Measure(
        table="gold.poison_record",
        schema=schemas.POISON_RECORD,
        rows=poison.rows,
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
        rule=Rule.BY_BLOCK,
        order="last_offset",
        first="first_offset",
    ),
    "attempts": Measure(
        table="gold.attempts",
        schema=ATTEMPTS_CONTRIBUTION,
        rows=latency.attempts_of,
        rule=Rule.BY_BLOCK,
        order="last_offset",
        first="first_offset",
    ),
    "life_event": Measure(
        table="gold.life_event", schema=schemas.LIFE, rows=life.rows, rule=Rule.BY_LOG_OFFSET, order="log_offset"
    ),
    "progress": Measure(table="gold.progress", schema=schemas.PROGRESS, rows=progress.rows, rule=Rule.WHOLE_LOG),
    "lag": Measure(
        table="gold.lag",
        schema=schemas.LAG,
        rows=lag.rows,
        rule=Rule.WHOLE_LOG,
    ),
    "dlq_reconciliation": Measure(
        table="gold.dlq_reconciliation",
        schema=DLQ_RECONCILIATION,
        rows=None,
        rule=Rule.BY_GROUP,
    ),
}
"""By name; the stage commits them in this order. `progress` comes after the measures that resume from it."""
OF_TABLE: Mapping[str, Measure] = {measure.table: measure for measure in MEASURES.values()}
STAGED: Mapping[str, Measure] = {
    name: measure for name, measure in MEASURES.items() if measure.rule is not Rule.BY_GROUP
}
"""The measures that the measure stage computes share partition by share partition."""
