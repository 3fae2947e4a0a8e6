"""Whether the evidence has what other logs list: facts about a slice, and the rules that judge them."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from jobs.quality.rule import BLOCKING, EVIDENCE, MAX_BETWEEN, WARNING, Rule
from jobs.quality.slices import Scope
from sharelens.evidence.conditions import all_of
from sharelens.evidence.schemas import DECODED_FROM
from sharelens.lake.tables import TABLES
from sharelens.tables.lakes.missing import missing_of_lake
from sharelens.tables.missing import MissingEvidence
from state_model.topics import OFFSETS_TOPIC, STATE_TOPIC

STATES = "gold.share_partition_state"
LACKS_STATE_LOG, LACKS_STATES, UNDECODED = (
    "initialized_without_state_log",
    "initialized_without_state",
    "undecoded_logs",
)
RULES = {
    LACKS_STATE_LOG: (
        "state_log_is_there",
        BLOCKING,
        "where groups list share partitions as initialized, a state partition was read",
    ),
    UNDECODED: (
        "state_log_is_decoded",
        BLOCKING,
        "where records of the state log were read, one at least can be decoded",
    ),
    LACKS_STATES: (
        "initialized_partitions_have_state",
        WARNING,
        "every share partition that a group lists as initialized has a record of its state",
    ),
}
"""By the fact that a rule judges, which must be 0: its name, its level, its meaning."""


def rules_of(table: str) -> Iterator[Rule]:
    """The rules of a table."""
    for fact, (name, level, meaning) in RULES.items() if table == STATES else ():
        yield Rule(
            table=table,
            name=name,
            kind=EVIDENCE,
            level=level,
            expectation=MAX_BETWEEN,
            arguments={"column": fact, "min_value": 0, "max_value": 0},
            meaning=meaning,
            about_facts=True,
        )


def facts(scope: Scope) -> Iterator[tuple[str, list[int], str]]:
    """The name of each fact, its number for each cluster, and its detail."""
    of_logs = pc.field("topic").isin([STATE_TOPIC, OFFSETS_TOPIC])
    extents = scope.dataset("bronze.ingest_extent").to_table(columns=["cluster_id"], filter=of_logs)
    clusters = sorted(extents.column("cluster_id").unique().to_pylist())
    missing = [_missing(scope, cluster) for cluster in clusters]
    undecoded = [_undecoded(scope, cluster) for cluster in clusters]
    lacks_log = [evidence.initialized or 0 if evidence.lacks_state_log else 0 for evidence in missing]
    yield LACKS_STATE_LOG, lacks_log, f"copy {STATE_TOPIC}-*" if any(lacks_log) else ""
    yield LACKS_STATES, [evidence.states.count for evidence in missing], _detail(missing)
    yield UNDECODED, [count for count, _ in undecoded], next((detail for count, detail in undecoded if count), "")


def _detail(missing: list[MissingEvidence]) -> str:
    """How many of how many, by reason, of the first cluster that lacks state."""
    for evidence in missing:
        if evidence.states.count:
            reasons = ", ".join(f"{reason} {count}" for reason, count in evidence.reasons.items())
            return f"{evidence.states.count} of {evidence.initialized} initialized share partitions: {reasons}"
    return ""


def _of_cluster(scope: Scope, cluster: str, table: str, columns: list[str], where: pc.Expression | None) -> pa.Table:
    schema = pa.schema([TABLES[table].schema.field(name) for name in columns])
    condition = all_of(pc.field("cluster_id") == cluster, where)
    return scope.dataset(table).to_table(columns=columns, filter=condition).cast(schema)


def _missing(scope: Scope, cluster: str) -> MissingEvidence:
    def scan(table: str, columns: list[str], where: pc.Expression | None) -> pa.Table:
        return _of_cluster(scope, cluster, table, columns, where)

    return missing_of_lake(scan, ())


def _undecoded(scope: Scope, cluster: str) -> tuple[int, str]:
    """The records of the state log that can't be decoded where none can; and the first one's detail."""
    is_undecoded = (pc.field("topic") == STATE_TOPIC) & (pc.field("file") == DECODED_FROM)
    rows = _of_cluster(scope, cluster, "bronze.quarantine", ["detail"], is_undecoded)
    decoded = scope.dataset("silver.share_record").count_rows(filter=pc.field("cluster_id") == cluster)
    if rows.num_rows == 0 or decoded:
        return 0, ""
    return rows.num_rows, f"none of {rows.num_rows} records could be decoded: {rows.column('detail')[0].as_py()}"
