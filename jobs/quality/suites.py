"""The expectations of every table. Most follow from its definition in `sharelens.lake.tables`.

A log that a broker wrote oddly must not close a gate: what blocks is what our own stages guarantee of any log. What
only a strange log would break is a warning.
"""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from jobs.quality import evidence, references
from jobs.quality.rule import (
    AUDIT,
    BETWEEN,
    BLOCKING,
    CONTAIN_SET,
    FRESHNESS,
    IN_SET,
    KEYS,
    MAX_BETWEEN,
    NOT_BELOW,
    NOT_NULL,
    NULLABILITY,
    RANGES,
    SHAPE,
    STAGE,
    UNIQUE,
    VOLUME,
    WARNING,
    Rule,
)
from sharelens.configuration.limits import DEFAULT_LIMITS, Limits
from sharelens.lake.commit import required_columns
from sharelens.lake.scan import UNLISTED
from sharelens.lake.settings_rows import TABLE as BRONZE_SETTING
from sharelens.lake.tables import TABLES, Table
from state_model.audit.severities import ERROR
from state_model.audit.severities import WARNING as WARNING_FINDING

FINDINGS = "gold.audit_finding"
FIRST_MS, LAST_MS = 1_262_304_000_000, 4_102_444_800_000  # 2010-01-01 and 2100-01-01
OURS_FROM_0 = (
    "partition", "state_partition", "log_offset", "offset", "base_offset", "from_offset", "end_offset_exclusive",
    "log_start_offset", "held_back", "unreadable_bytes", "record_count", "state_batch_count",
    "valid_from_log_offset", "valid_to_log_offset", "life_log_offset", "snapshot_log_offset",
    "finished_behind", "update_count_from_log",
    "dlq_partition", "dlq_offset", "record_bytes", "trailing_bytes",
)  # fmt: skip
"""Columns, of any table, that our stages write and that no log can make negative."""
LOGGED_FROM_0 = ("first_offset", "last_offset", "delivery_count", "lag_recounted", "size_bytes", "source_offset")
"""Columns that repeat what a log says; a strange one can make them negative."""
LOWEST = {"run_id": 1, "start_offset": -1, "position": -1, "delivery_complete_count": -1, "committed_end": 0}
TIMES = ("timestamp_ms", "log_time_ms", "valid_from_ms", "valid_to_ms", "base_timestamp_ms", "max_timestamp_ms")
FROM_THE_BEGINNING = ((BRONZE_SETTING, "valid_from_ms"),)
"""Times of a table that are 0 for the beginning of a log."""
NOT_AFTER = (
    ("first_offset", "last_offset", BLOCKING), ("base_offset", "offset", BLOCKING),
    ("base_offset", "last_offset", BLOCKING),
    ("from_offset", "end_offset_exclusive", BLOCKING), ("valid_from_log_offset", "valid_to_log_offset", BLOCKING),
    ("valid_from_ms", "valid_to_ms", BLOCKING), ("timestamp_ms", "log_time_ms", WARNING),
    ("life_log_offset", "valid_from_log_offset", BLOCKING), ("since_ms", "until_ms", WARNING),
    ("first_log_offset", "last_log_offset", BLOCKING),
)  # fmt: skip
"""Pairs of columns, of any table that has both, of which the first is never above the second."""
SETS: dict[str, tuple[str, ...]] = {
    "completeness": ("complete", "provisional", "incomplete", "uncommitted"),
    "record_type": ("snapshot", "update", "tombstone"),
    "timestamp_type": ("CreateTime", "LogAppendTime"),
    "control_type": ("COMMIT", "ABORT", "OTHER"),
    "end_reason": ("changed", "split_or_joined", "start_offset_passed", "reset", "deleted", "removed"),
    "content": (
        "log_record",
        "topic_batch",
        "metadata_record",
        "replay",
        "measure",
        "audit",
        "bronze",
        "silver",
        "history",
    ),
    "ended_by": ("moved", "reset", "deleted"),
}
STATES = {"delivery_state": range(5)}
OF_A_LATER_KAFKA = frozenset({"delivery_state", "delivery_state_name", "record_type"})
"""Columns whose unknown values are kept: a later Kafka may have more."""
STATE_NAMES = ("AVAILABLE", "ACQUIRED", "ACKNOWLEDGED", "ARCHIVING", "ARCHIVED")
SETS_OF_ONE_TABLE = {
    ("bronze.ingest_extent", "status"): ("planned", "taken", "dropped"),
    ("gold.quality_result", "level"): (BLOCKING, WARNING),
}
"""Sets of one table's column."""
OPEN_OR_ENDED = pc.field("is_open") == pc.field("valid_to_log_offset").is_null()
HAS_VALUE = ~pc.field("record_type").isin(SETS["record_type"]) | (
    (pc.field("record_type") != "tombstone") == pc.field("value_version").is_valid()
)
COMPLETE_OR_WHY = (pc.field("completeness") == "complete") == pc.field("completeness_reason").is_null()
AGREEMENTS = (
    (("is_open", "valid_to_log_offset"), "open_or_ended", OPEN_OR_ENDED, "a range is open, or says when it ended"),
    (
        ("record_type", "value_version"), "value_unless_tombstone", HAS_VALUE,
        "a snapshot and an update have a value, a tombstone has none",
    ),
    (
        ("completeness", "completeness_reason"), "complete_or_why", COMPLETE_OR_WHY,
        "a row is complete, or says why it is not",
    ),
)  # fmt: skip
"""Columns of a row that must agree: which they are, the rule's name, the condition, its meaning."""


def rules_of(name: str, limits: Limits = DEFAULT_LIMITS) -> tuple[Rule, ...]:
    """Every expectation of a table, both levels; names are unique within the table."""
    table = TABLES[name]
    return (
        *_shape(table),
        *_nullability(table),
        *_keys(table),
        *_lowest(table),
        *_sets(table),
        *_pairs(table),
        *_agreements(table),
        *references.rules_of(name),
        *evidence.rules_of(name),
        *_stage(name),
        *_freshness(name, limits),
        *_volume(name, limits),
        *_audit(name, limits),
    )


def field_text(field: pa.Field) -> str:
    """A column as its shape is compared: name, type, nullability; fields inside lists and structs are nullable."""
    return f"{field.name} {_type_text(field.type)}{'' if field.nullable else ' not null'}"


def _type_text(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"list<{_type_text(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{part.name}: {_type_text(part.type)}' for part in kind)}>"
    return str(kind)


def _shape(table: Table) -> Iterator[Rule]:
    declared = [field_text(field) for field in table.schema]
    required = [field_text(field) for field in required_columns(table.name)]
    yield Rule(
        table=table.name,
        name="columns_are_known",
        kind=SHAPE,
        level=BLOCKING,
        expectation=IN_SET,
        arguments={"column": "field", "value_set": declared},
        meaning="no column is there that is not declared so, with its type and nullability",
        about_facts=True,
    )
    yield Rule(
        table=table.name,
        name="columns_are_there",
        kind=SHAPE,
        level=BLOCKING,
        expectation=CONTAIN_SET,
        arguments={"column": "field", "value_set": required},
        meaning="every declared column is there, with its type and nullability, but for later ones of an older lake",
        about_facts=True,
    )


def _nullability(table: Table) -> Iterator[Rule]:
    for field in table.schema:
        if field.nullable:
            continue
        yield Rule(
            table=table.name,
            name=f"{field.name}_is_not_null",
            kind=NULLABILITY,
            level=BLOCKING,
            expectation=NOT_NULL,
            arguments={"column": field.name},
            meaning=f"`{field.name}` is always known",
        )


def _keys(table: Table) -> Iterator[Rule]:
    yield Rule(
        table=table.name,
        name="key_is_unique",
        kind=KEYS,
        level=BLOCKING,
        expectation=UNIQUE,
        arguments={"column": "repeated_key"},
        meaning=f"no two rows have the same {', '.join(f'`{name}`' for name in table.key)}",
        about_facts=True,
    )


def _lowest(table: Table) -> Iterator[Rule]:
    bounds = [(name, 0, BLOCKING) for name in OURS_FROM_0] + [(name, 0, WARNING) for name in LOGGED_FROM_0]
    bounds += [(name, least, BLOCKING) for name, least in LOWEST.items()]
    for name, least, level in bounds:
        if name in table.schema.names and pa.types.is_integer(table.schema.field(name).type):
            yield _between(table, f"{name}_from_{'minus_1' if least < 0 else least}", name, level, least, None)
    for name in TIMES:
        if name in table.schema.names and (table.name, name) not in FROM_THE_BEGINNING:
            yield _between(table, f"{name}_is_plausible", name, WARNING, FIRST_MS, LAST_MS)


def _between(table: Table, rule: str, column: str, level: str, least: int, upper_bound: int | None) -> Rule:
    bounds = {"min_value": least} if upper_bound is None else {"min_value": least, "max_value": upper_bound}
    above = "lies in the years 2010 to 2099" if upper_bound is not None else f"is at least {least}"
    return Rule(
        table=table.name,
        name=rule,
        kind=RANGES,
        level=level,
        expectation=BETWEEN,
        arguments={"column": column, **bounds},
        meaning=f"`{column}` {above}",
    )


def _sets(table: Table) -> Iterator[Rule]:
    values_of: dict[str, tuple[object, ...]] = {
        **{name: values for name, values in SETS.items() if _is_text(table, name)},
        **{name: tuple(values) for name, values in STATES.items() if name in table.schema.names},
        **{name: values for (owner, name), values in SETS_OF_ONE_TABLE.items() if owner == table.name},
    }
    if "delivery_state_name" in table.schema.names:
        values_of["delivery_state_name"] = STATE_NAMES
    for name, values in values_of.items():
        yield Rule(
            table=table.name,
            name=f"{name}_is_known",
            kind=RANGES,
            level=WARNING if name in OF_A_LATER_KAFKA else BLOCKING,
            expectation=IN_SET,
            arguments={"column": name, "value_set": list(values)},
            meaning=f"`{name}` is one of {', '.join(map(str, values))}",
        )


def _is_text(table: Table, name: str) -> bool:
    return name in table.schema.names and pa.types.is_string(table.schema.field(name).type)


def _pairs(table: Table) -> Iterator[Rule]:
    for low, high, level in NOT_AFTER:
        if low in table.schema.names and high in table.schema.names:
            yield Rule(
                table=table.name,
                name=f"{low}_is_not_after_{high}",
                kind=RANGES,
                level=level,
                expectation=NOT_BELOW,
                arguments={
                    "column_A": high,
                    "column_B": low,
                    "or_equal": True,
                    "ignore_row_if": "either_value_is_missing",
                },
                meaning=f"`{low}` is never above `{high}`",
                needs=(low, high),
            )


def _agreements(table: Table) -> Iterator[Rule]:
    for columns, name, condition, meaning in AGREEMENTS:
        if set(columns) <= set(table.schema.names) and _is_text(table, columns[0]) | (columns[0] == "is_open"):
            yield Rule(
                table=table.name,
                name=name,
                kind=RANGES,
                level=BLOCKING,
                expectation=IN_SET,
                arguments={"column": name, "value_set": [True]},
                meaning=meaning,
                computed=condition,
            )


def _stage(name: str) -> Iterator[Rule]:
    if name in UNLISTED or name.startswith("bronze."):
        return
    yield Rule(
        table=name,
        name="stage_is_done",
        kind=STAGE,
        level=BLOCKING,
        expectation=MAX_BETWEEN,
        arguments={"column": "runs_behind", "min_value": 0, "max_value": 0},
        meaning="its stage has run since the stage before it last wrote, so that all tables have the same records",
        about_facts=True,
    )


def _freshness(name: str, limits: Limits) -> Iterator[Rule]:
    if name != "bronze.ingest_extent":
        return
    for level, most_ms in ((WARNING, limits.fresh_ms), (BLOCKING, limits.stale_ms)):
        if most_ms is None:
            continue
        yield Rule(
            table=name,
            name=f"evidence_is_{'fresh' if level == WARNING else 'not_stale'}",
            kind=FRESHNESS,
            level=level,
            expectation=BETWEEN,
            arguments={"column": "evidence_age_ms", "max_value": most_ms},
            meaning=f"the newest share-state record of every cluster is at most {most_ms // 60_000} minutes old",
            about_facts=True,
        )


def _audit(name: str, limits: Limits) -> Iterator[Rule]:
    """A warning about errors, or what closes the gate."""
    if name != FINDINGS:
        return
    severities = (ERROR, WARNING_FINDING) if limits.audit_blocks == WARNING_FINDING else (ERROR,)
    for severity in severities:
        yield Rule(
            table=name,
            name=f"no_{severity}_stands",
            kind=AUDIT,
            level=WARNING if limits.audit_blocks is None else BLOCKING,
            expectation=MAX_BETWEEN,
            arguments={"column": f"standing_{severity}s", "min_value": 0, "max_value": 0},
            meaning=f"no finding of severity {severity} stands that no suppression covers",
            about_facts=True,
        )


def _volume(name: str, limits: Limits) -> Iterator[Rule]:
    if name in UNLISTED:
        return
    yield Rule(
        table=name,
        name="volume_is_usual",
        kind=VOLUME,
        level=WARNING,
        expectation=BETWEEN,
        arguments={"column": "volume_ratio", "min_value": limits.volume_low, "max_value": limits.volume_high},
        meaning=(
            f"the slice has {limits.volume_low:g} to {limits.volume_high:g} times the median rows of the checks before"
        ),
        about_facts=True,
    )
