"""The catalogue of measures: each number has one definition, which tables, commands, SQL, pages and metrics share.

An entry has the schema of a measure's rows, the population that they count, its inputs, its pure function, and the gold
table that keeps the rows, with the rule by which a run brings them up to date. Counts that several surfaces show are in
`sharelens.measures.figures`. A new measure is one entry, and its table in `sharelens.lake.tables` if a lake keeps it.

    rule                what an increment replaces, for each share partition with new evidence (`docs/explanation`)
    WHOLE_LOG           all rows
    BY_LOG_OFFSET       rows from a record of the state log on
    BY_INTERVAL         rows of the interval that lasted when its share partition was last measured, and of later ones
    BY_MOMENT           rows from a moment of log time on
    BY_RECORD_OFFSET    rows that the reach, a record offset, does not lie above
    BY_BLOCK            the same, of contributions that add up
    BY_GROUP            all rows of the group
    BY_GROUP_RECORDS    all rows of a group with new records of the group coordinator
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from pkgutil import resolve_name
from typing import Any, cast

import pyarrow as pa

from sharelens.groups import schemas as group_schemas
from sharelens.measures import schemas
from sharelens.measures.dlq.schemas import DLQ_RECONCILIATION
from sharelens.measures.inputs import StateInputs
from sharelens.measures.latency.schemas import ATTEMPTS_CONTRIBUTION, LATENCY_CONTRIBUTION
from sharelens.measures.what_if.advice_rows import ADVICE
from sharelens.measures.what_if.schema import WHAT_IF
from sharelens.measures.what_if.state_partitions import BALANCE

HISTORY, DELIVERIES, STATE = "gold.share_partition_history", "gold.delivery_history", "gold.share_partition_state"
HEADERS, EXTENTS, SETTINGS, NAMES = "bronze.topic_batch", "bronze.ingest_extent", "bronze.setting", "silver.name"
RECORDS, GROUP_RECORDS, LETTERS = "silver.share_record", "silver.group_record", "silver.dlq_record"
HISTORIES = (HISTORY, DELIVERIES)


class Rule(Enum):
    """The rows that an increment replaces; the module docstring explains each rule."""

    WHOLE_LOG = auto()
    BY_LOG_OFFSET = auto()
    BY_INTERVAL = auto()
    BY_MOMENT = auto()
    BY_RECORD_OFFSET = auto()
    BY_BLOCK = auto()
    BY_GROUP = auto()
    BY_GROUP_RECORDS = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """The definition of a measure that questions compute.

    `description`: what a row is. `population`: what its numbers are counts of. `inputs`: the tables that it is computed
    from. `schema`: of the rows, units in the comments. `function`: the pure function, `module:function`; it is not
    imported before it is used.
    """

    description: str
    population: str
    inputs: tuple[str, ...]
    schema: pa.Schema
    function: str

    @property
    def pure_function(self) -> Callable[..., Any]:
        """The function that computes the rows, or what they are part of."""
        function: Callable[..., Any] = resolve_name(f"sharelens.{self.function}")
        return function


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure(Definition):
    """The definition of a measure that a lake keeps.

    `table`: the gold table of its rows. `rule`: of increment. `order`: the column that the rule compares.
    """

    table: str
    rule: Rule
    order: str | None = None

    def rows(self, inputs: StateInputs) -> pa.Table:
        """The rows of the share partitions of the inputs; of the measures of STAGED."""
        return cast(pa.Table, self.pure_function(inputs))


MEASURES: Mapping[str, Definition] = {
    "stall": Measure(
        description="an interval in which the first incomplete offset of a share partition did not move",
        population="intervals of a minute or more that are over, and intervals of any length that last; idle ones are "
        "computed on demand alone",
        inputs=(*HISTORIES, HEADERS, EXTENTS, SETTINGS),
        schema=schemas.STALL,
        function="measures.stalls.intervals:lasting_rows",
        table="gold.stall",
        rule=Rule.BY_INTERVAL,
        order="log_offset",
    ),
    "poison_record": Measure(
        description="a range of record offsets that a group archived, or is archiving, in one life",
        population="offsets whose last state in a life is ARCHIVED or ARCHIVING, once a life; those with cause gap "
        "hold no record and count in no number of records",
        inputs=(*HISTORIES, HEADERS, SETTINGS, LETTERS),
        schema=schemas.POISON_RECORD,
        function="measures.poison:rows",
        table="gold.poison_record",
        rule=Rule.BY_RECORD_OFFSET,
        order="last_offset",
    ),
    "redelivered_record": Measure(
        description="a range of record offsets that a group received more than once",
        population="offsets with the outcome of a second delivery, settled or not, once a life and kind",
        inputs=HISTORIES,
        schema=schemas.REDELIVERED,
        function="measures.redelivered:rows",
        table="gold.redelivered_record",
        rule=Rule.BY_RECORD_OFFSET,
        order="last_offset",
    ),
    "latency": Measure(
        description="the outcomes of a block of 4,096 record offsets in an hour, with their ages; rows add up",
        population="records by their first outcome (acknowledged or archived) in a life, once a life; gaps are counted "
        "apart",
        inputs=(*HISTORIES, HEADERS),
        schema=LATENCY_CONTRIBUTION,
        function="measures.latency.measure:latency_of",
        table="gold.latency",
        rule=Rule.BY_BLOCK,
        order="last_offset",
    ),
    "attempts": Measure(
        description="deliveries of a block of 4,096 record offsets by hour, outcome and delivery count; rows add up",
        population="records by their first outcome in a life, once a life, without gaps; outcome open are records that "
        "were delivered and are not settled, and deliveries of settled records do not count them",
        inputs=(*HISTORIES, HEADERS),
        schema=ATTEMPTS_CONTRIBUTION,
        function="measures.latency.measure:attempts_of",
        table="gold.attempts",
        rule=Rule.BY_BLOCK,
        order="last_offset",
    ),
    "life_event": Measure(
        description="an event in the life of a share partition",
        population="records of the state log that create, reset or delete a share partition, or move an epoch",
        inputs=HISTORIES,
        schema=schemas.LIFE,
        function="measures.life:rows",
        table="gold.life_event",
        rule=Rule.BY_LOG_OFFSET,
        order="log_offset",
    ),
    "lag_over_time": Measure(
        description="how far a share partition was behind at a minute of log time, where that changed",
        population="share partitions alive at each minute of log time, a row where a value differs from that of the "
        "minute before, and one when a share partition was deleted; ends are inferred from timestamps of batches",
        inputs=(HISTORY, HEADERS),
        schema=schemas.LAG_OVER_TIME,
        function="measures.lag_over_time:rows",
        table="gold.lag_over_time",
        rule=Rule.BY_MOMENT,
        order="at_ms",
    ),
    "progress": Measure(
        description="how far the measures have read a share partition",
        population="share partitions with a record in the evidence, deleted ones among them",
        inputs=(*HISTORIES, HEADERS, SETTINGS),
        schema=schemas.PROGRESS,
        function="measures.stalls.progress:rows",
        table="gold.progress",
        rule=Rule.WHOLE_LOG,
    ),
    "lag": Measure(
        description="how far a share partition is behind",
        population="live share partitions; lag counts offsets from the start offset up to the high watermark that are "
        "neither acknowledged nor archived, by the brokers' own count",
        inputs=(STATE, HEADERS, EXTENTS),
        schema=schemas.LAG,
        function="measures.lag:rows",
        table="gold.lag",
        rule=Rule.WHOLE_LOG,
    ),
    "dlq_reconciliation": Measure(
        description="a dead letter, or a range of records whose dead letter is due",
        population="dead letters of the searched topics, and records of poison_record that were on their way to one",
        inputs=("gold.poison_record", LETTERS, HISTORY, NAMES, EXTENTS, SETTINGS),
        schema=DLQ_RECONCILIATION,
        function="measures.dlq.reconciliation:reconcile",
        table="gold.dlq_reconciliation",
        rule=Rule.BY_GROUP,
    ),
    "dead_letter_causes": Definition(
        description="a range of poison_record with the cause of its dead letters",
        population="that of poison_record: a dead letter says the cause, the range is cut where causes differ",
        inputs=("gold.poison_record", "gold.dlq_reconciliation"),
        schema=schemas.POISON_RECORD,
        function="measures.dlq.causes:with_letter_causes",
    ),
    "account": Definition(
        description="a range of record offsets with one class",
        population="every offset of the window once, by the newest life that had it in reach; archived offsets may "
        "hold no record",
        inputs=(*HISTORIES, HEADERS, EXTENTS),
        schema=schemas.ACCOUNTED,
        function="measures.account:rows",
    ),
    "cost": Definition(
        description="what the state of a share partition costs its coordinator",
        population="records of the state log in the evidence, below the log start offset too; each time that an offset "
        "became ACKNOWLEDGED counts",
        inputs=(RECORDS, *HISTORIES),
        schema=schemas.COST,
        function="measures.cost:rows",
    ),
    "pruning": Definition(
        description="how far a state partition can be pruned",
        population="records of the state partition in the evidence",
        inputs=(RECORDS,),
        schema=schemas.PRUNING,
        function="measures.cost:pruning",
    ),
    "draft_cost": Definition(
        description="what the writes of a share partition would have cost under the early design of KIP-932",
        population="writes of the state log between snapshots of complete histories",
        inputs=(RECORDS, *HISTORIES),
        schema=schemas.DRAFT_COST,
        function="measures.early_draft_cost:draft_cost",
    ),
    "groups": Definition(
        description="a consumer, share or streams group now",
        population="groups with a record in __consumer_offsets, deleted ones that compaction left among them",
        inputs=(GROUP_RECORDS,),
        schema=group_schemas.GROUPS,
        function="groups.summary:groups",
    ),
    **{
        name: Measure(
            description=description,
            population=f"{population} by the records of the group coordinator that compaction left",
            inputs=(GROUP_RECORDS,),
            schema=schema,
            function="groups.histories:histories",
            table=f"gold.{name}",
            rule=Rule.BY_GROUP_RECORDS,
        )
        for name, description, population, schema in (
            ("group_history", "a group between two changes", "groups", group_schemas.GROUP_HISTORY),
            ("member_history", "a member between two changes", "members of groups", group_schemas.MEMBER_HISTORY),
            ("task_history", "the tasks of a member between two changes", "members of streams groups",
             group_schemas.TASK_HISTORY),
            ("share_initialization_history", "the share partitions of a group between two changes", "share groups",
             group_schemas.SHARE_INITIALIZATION_HISTORY),
        )
    },
    "rebalance": Definition(
        description="a rebalance of a share group",
        population="target assignments of a share group that differ from the one before",
        inputs=(GROUP_RECORDS,),
        schema=group_schemas.REBALANCE,
        function="groups.rebalances:rebalances",
    ),
    "consumer_rebalance": Definition(
        description="a rebalance of a consumer group",
        population="target assignments of a consumer group that differ from the one before",
        inputs=(GROUP_RECORDS,),
        schema=group_schemas.CONSUMER_REBALANCE,
        function="groups.model_rebalances:consumer_rebalances",
    ),
    "streams_rebalance": Definition(
        description="a rebalance of a streams group",
        population="target assignments of a streams group that differ from the one before",
        inputs=(GROUP_RECORDS,),
        schema=group_schemas.STREAMS_REBALANCE,
        function="groups.model_rebalances:streams_rebalances",
    ),
    **{
        f"what_if_{name}": Definition(
            description="a figure of a share partition in the history and under another setting",
            population=population,
            inputs=inputs,
            schema=WHAT_IF,
            function=f"measures.what_if.{function}",
        )
        for name, population, inputs, function in (
            ("snapshot_update_records", "records of the state log of complete histories", (RECORDS, *HISTORIES),
             "snapshots:snapshot_rows"),
            ("delivery_count_limit", "records of complete histories, once a life", (*HISTORIES, SETTINGS),
             "delivery_limit:DeliveryLimit"),
            ("lock_duration", "attempts of complete histories that timed out or may have", (*HISTORIES, SETTINGS),
             "lock_duration:rows"),
            ("isolation_level", "records of transactions in complete histories", (*HISTORIES, HEADERS, SETTINGS),
             "isolation:rows"),
        )
    },
    "what_if_state_partitions": Definition(
        description="a state partition under another number of them",
        population="records of the state log in the evidence",
        inputs=(RECORDS,),
        schema=BALANCE,
        function="measures.what_if.state_partitions:balance",
    ),
    "advice": Definition(
        description="a setting that the history suggests",
        population="settings of share groups and brokers whose what-if saves a fifth or more",
        inputs=(RECORDS, *HISTORIES, SETTINGS),
        schema=ADVICE,
        function="measures.what_if.advice:of_groups",
    ),
}  # fmt: skip
"""By name; the stage commits those of `STAGED` in this order: `progress` after the measures that resume from it."""
KEPT_MEASURES = {name: measure for name, measure in MEASURES.items() if isinstance(measure, Measure)}
STAGED: Mapping[str, Measure] = {
    name: measure
    for name, measure in KEPT_MEASURES.items()
    if measure.rule not in (Rule.BY_GROUP, Rule.BY_GROUP_RECORDS)
}
"""The measures that the measure stage computes share partition by share partition."""
OF_TABLE: Mapping[str, Measure] = {
    measure.table: measure for measure in KEPT_MEASURES.values() if measure.rule is not Rule.BY_GROUP_RECORDS
}
"""The measures of the tables that the measure stage writes."""
