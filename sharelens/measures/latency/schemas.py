"""The Arrow schemas of latency and attempts, with a comment a column; nothing here computes.

A contribution is what the offsets of one block (4,096 record offsets) add to an hour, an outcome and, of attempts, a
delivery count. The lake keeps contributions; answers add them up.
"""

import pyarrow as pa

from state_model.columnar.schemas import COMPLETENESS, LOG_POSITION, SHARE_PARTITION, column

ACKNOWLEDGED, ARCHIVED, OPEN = "acknowledged", "archived", "open"
OUTCOMES = (ACKNOWLEDGED, ARCHIVED, OPEN)
CREATE_TIME, LOG_APPEND_TIME, BOTH_TYPES = "create_time", "log_append_time", "both"
PERCENTILES = (50, 90, 99)

_WHERE = [
    *LOG_POSITION[:2],
    *SHARE_PARTITION,
    column("hour_ms", pa.int64(), "beginning of the hour (UTC) of the outcome's log time; null = unknown time"),
]
_AGES = [
    column(
        "age_min_ms",
        pa.int64(),
        "smallest possible age; negative: record timestamp after the outcome; null = no age known",
    ),
    *(
        column(
            f"age_p{rank}_{bound}_ms",
            pa.int64(),
            f"{rank} % of the offsets have an age up to a value that is at {least} this",
        )
        for rank in PERCENTILES
        for bound, least in (("min", "least"), ("max", "most"))
    ),
    column("age_largest_min_ms", pa.int64(), "the largest age is at least this"),
    column("age_max_ms", pa.int64(), "largest possible age, if no record is older than the first record of its batch"),
]
"""Columns that hold lengths of time, not moments."""
LATENCY = pa.schema(
    [
        *_WHERE,
        column("outcome", pa.string(), "acknowledged or archived: the first outcome of the offset in its life"),
        column("settled_offsets", pa.int64(), "record offsets with the outcome", nullable=False),
        column(
            "gap_offsets",
            pa.int64(),
            "archived offsets without a record; settled_offsets does not count them",
            nullable=False,
        ),
        column("aged_offsets", pa.int64(), "settled offsets whose age has bounds", nullable=False),
        column(
            "clock",
            pa.string(),
            "clock of the record timestamps: create_time, log_append_time or both; null = no age known",
        ),
        *_AGES,
        column("negative_offsets_min", pa.int64(), "offsets whose age is certainly negative", nullable=False),
        column("negative_offsets_max", pa.int64(), "offsets whose age may be negative", nullable=False),
        column("deliveries", pa.int64(), "deliveries of the settled offsets", nullable=False),
        column("extra_deliveries", pa.int64(), "deliveries after the first delivery of each offset", nullable=False),
        column("deliveries_per_settled", pa.float64(), "deliveries per settled offset; null = none settled"),
        column("first_settled_ms", pa.int64(), "log time of the first outcome; null = unknown"),
        column("last_settled_ms", pa.int64(), "log time of the last outcome; null = unknown"),
        column(
            "settled_per_minute",
            pa.float64(),
            "settled offsets per minute, over the hour or from first to last outcome",
        ),
        *COMPLETENESS,
    ]
)
"""One row a share partition, hour and outcome."""
ATTEMPTS = pa.schema(
    [
        *_WHERE,
        column("outcome", pa.string(), "acknowledged, archived, or open: delivered and not settled", nullable=False),
        column("delivery_count", pa.int16(), "largest delivery count of the offset in its life", nullable=False),
        column("offsets", pa.int64(), "record offsets", nullable=False),
        column("deliveries", pa.int64(), "offsets times delivery count", nullable=False),
        column("extra_deliveries", pa.int64(), "deliveries after the first delivery of each offset", nullable=False),
        *COMPLETENESS,
    ]
)
"""One row a share partition, hour, outcome and delivery count."""
_BLOCK = [
    column("first_offset", pa.int64(), "lowest record offset of the row; no row spans blocks of 4,096", nullable=False),
    column("last_offset", pa.int64(), "highest record offset of the row", nullable=False),
]
_HISTOGRAM = pa.list_(pa.struct([pa.field("age_ms", pa.int64()), pa.field("offsets", pa.int64())]))
_HISTOGRAMS = [
    column("ages_at_least", _HISTOGRAM, "aged offsets by the least age of each, as the lower edge of its bucket"),
    column("ages_at_most", _HISTOGRAM, "aged offsets by the largest age of each, as the upper edge of its bucket"),
]


def _with_block(schema: pa.Schema, histograms: list[pa.Field]) -> pa.Schema:
    fields = list(schema)
    at = schema.get_field_index("hour_ms") + 1
    marks = len(fields) - len(COMPLETENESS)
    return pa.schema([*fields[:at], *_BLOCK, *fields[at:marks], *histograms, *fields[marks:]])


LATENCY_CONTRIBUTION = _with_block(LATENCY, _HISTOGRAMS)
"""One row a share partition, block of record offsets, hour and outcome; ages and rates are those of the row alone."""
ATTEMPTS_CONTRIBUTION = _with_block(ATTEMPTS, [])
"""One row a share partition, block of record offsets, hour, outcome and delivery count."""
AGE = pa.schema(
    [
        *LOG_POSITION[:2],
        *SHARE_PARTITION,
        column("first_offset", pa.int64(), "first record offset of the range", nullable=False),
        column("last_offset", pa.int64(), "last record offset of the range (inclusive)", nullable=False),
        column("outcome", pa.string(), "acknowledged or archived", nullable=False),
        column("delivery_count", pa.int16(), "largest delivery count in that life", nullable=False),
        column("settled_ms", pa.int64(), "log time of the outcome", nullable=False),
        column("age_min_ms", pa.int64(), "settled_ms - max timestamp of the batch", nullable=False),
        column("age_max_ms", pa.int64(), "settled_ms - base timestamp of the batch", nullable=False),
        column("clock", pa.string(), "create_time or log_append_time", nullable=False),
        column("log_offset", pa.int64(), "record of the state log with the outcome", nullable=False),
    ]
)
"""A range of settled offsets in one batch of the topic, with the bounds of its age."""
