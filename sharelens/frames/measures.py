"""DataFrame -> DataFrame: the measures, share partition by share partition, for people who compose in Spark.

    poison_records(share_partition_history(records), delivery_history(records))

The functions in `measures` do the work, one state partition's share partition in one task. They tell what the state log
alone can say: batch headers of user topics and settings of groups are not among the inputs, but for the ends of `lag`.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from lake.parquet import conform
from lake.tables import with_times
from measures import lag as lag_measure
from measures import life as life_measure
from measures import poison as poison_measure
from measures import redelivered as redelivered_measure
from measures import stalls as stall_measure
from measures.headers import HELD, NO_RECORD, OFFSET_TIME
from measures.schemas import LAG, LIFE, POISON_RECORD, REDELIVERED, STALL
from measures.settings import GroupSettings
from measures.topics import TOPIC_END
from state_model.columnar.keys import SHARE_PARTITION_KEY, STATE_PARTITION_KEY
from state_model.columnar.schemas import DELIVERY_HISTORY, SHARE_PARTITION_HISTORY, SHARE_PARTITION_STATE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Measure = Callable[[pa.Table, pa.Table], pa.Table]
NO_SETTINGS = GroupSettings()


def lags(states: "DataFrame", ends: "DataFrame") -> "DataFrame":
    """LAG rows, with timestamps and without names, from SHARE_PARTITION_STATE and TOPIC_END rows."""

    def measure(mine: pa.Table, end: pa.Table) -> pa.Table:
        return lag_measure.lag(_typed(mine, SHARE_PARTITION_STATE), _typed(end, TOPIC_END), {})

    return _cogrouped(states, ends, ["topic_id", "partition"], measure, LAG)


def stalls(history: "DataFrame", deliveries: "DataFrame") -> "DataFrame":
    """STALL rows, with timestamps, of a minute and more, those that last as if nothing were written any more."""

    def measure(scalars: pa.Table, ranges: pa.Table) -> pa.Table:
        found = stall_measure.intervals(scalars, ranges, NO_RECORD.empty_table(), NO_SETTINGS)
        found = stall_measure.long_enough(found, None, stall_measure.MIN_DURATION_MS)
        return stall_measure.stalls(found, OFFSET_TIME.empty_table(), {}, NO_SETTINGS, now_ms=None)

    return _measured(history, deliveries, measure, STALL)


def poison_records(history: "DataFrame", deliveries: "DataFrame") -> "DataFrame":
    """POISON_RECORD rows, with timestamps; gaps are not told apart."""

    def measure(scalars: pa.Table, ranges: pa.Table) -> pa.Table:
        return poison_measure.poison(scalars, ranges, NO_RECORD.empty_table(), HELD.empty_table(), NO_SETTINGS)

    return _measured(history, deliveries, measure, POISON_RECORD)


def redelivered_records(history: "DataFrame", deliveries: "DataFrame") -> "DataFrame":
    """REDELIVERED rows, with timestamps."""
    return _measured(history, deliveries, redelivered_measure.redelivered, REDELIVERED)


def life_events(history: "DataFrame", deliveries: "DataFrame") -> "DataFrame":
    """LIFE rows, with timestamps."""
    return _measured(history, deliveries, life_measure.life, LIFE)


def _measured(history: "DataFrame", deliveries: "DataFrame", measure: Measure, schema: pa.Schema) -> "DataFrame":
    """What a measure says of SHARE_PARTITION_HISTORY and DELIVERY_HISTORY rows."""

    def typed(scalars: pa.Table, ranges: pa.Table) -> pa.Table:
        return measure(_typed(scalars, SHARE_PARTITION_HISTORY), _typed(ranges, DELIVERY_HISTORY))

    return _cogrouped(history, deliveries, [*STATE_PARTITION_KEY, *SHARE_PARTITION_KEY], typed, schema)


def _cogrouped(
    left: "DataFrame", right: "DataFrame", keys: list[str], measure: Measure, schema: pa.Schema
) -> "DataFrame":
    timed = pa.schema(with_times(list(schema)))

    def rows(one: pa.Table, other: pa.Table) -> pa.Table:
        return conform(measure(one, other), timed)

    both = left.groupBy(*keys).cogroup(right.groupBy(*keys))
    return both.applyInArrow(rows, from_arrow_schema(timed))


def _typed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    return rows.select(schema.names).cast(schema).combine_chunks()
