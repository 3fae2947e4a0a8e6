"""Facts about a slice, counted by DuckDB: repeated keys, references, shape, age, volume.

A fact is a column of a small frame, of its own length (the rest is null), and one expectation looks at each.
DuckDB reads the tables through Arrow, in bounded memory and into a folder that goes away with the check.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from jobs import books, retained
from jobs.quality import evidence, references
from jobs.quality.results import earlier_volumes
from jobs.quality.rule import AUDIT, EVIDENCE, FRESHNESS, KEYS, REFERENCES, SHAPE, STAGE, VOLUME, Reference, Rule
from jobs.quality.slices import Scope
from jobs.quality.suites import field_text
from sharelens.lake.commit import required_columns
from sharelens.lake.lake import Lake
from sharelens.lake.tables import TABLES
from state_model.audit.columnar.suppressed import sifted
from state_model.audit.severities import ERROR, WARNING
from state_model.audit.suppression import Suppression
from state_model.topics import STATE_TOPIC

MEMORY = "1GB"
SHOWN = 20
"""Repeated keys that are shown at most."""
OFFSETS = ("offset", "base_offset", "log_offset", "valid_from_log_offset")
PARTITION_COLUMNS = ("cluster_id", "topic_id", "log_topic_id", "partition", "state_partition")
FEWEST = 1000
"""Fewest rows for which a volume is compared."""


@dataclass(slots=True)
class Facts:
    """Columns by name with their types, and one line of detail by column.

    `shape_is_known`: the table has the columns that are declared, or the check did not compare them.
    """

    columns: dict[str, pa.Array] = field(default_factory=dict)
    details: dict[str, str] = field(default_factory=dict)
    shape_is_known: bool = True

    def put(self, name: str, values: Sequence[object], kind: pa.DataType) -> None:
        """One fact."""
        self.columns[name] = pa.array(values, kind)

    def table(self) -> pa.Table:
        """The facts side by side, padded with nulls."""
        length = max((len(column) for column in self.columns.values()), default=0)
        padded = {
            name: pa.concat_arrays([column, pa.nulls(length - len(column), column.type)])
            for name, column in self.columns.items()
        }
        return pa.table(padded)


@contextmanager
def counting() -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB of its own, with bounded memory."""
    with (
        tempfile.TemporaryDirectory(prefix="sharelens-check-") as folder,
        duckdb.connect(":memory:", config={"memory_limit": MEMORY, "temp_directory": folder}) as connection,
    ):
        connection.execute("SET preserve_insertion_order = false")
        yield connection


def facts_of(
    scope: Scope,
    table: str,
    rules: Sequence[Rule],
    now_ms: int,
    connection: duckdb.DuckDBPyConnection,
    suppressions: Sequence[Suppression] = (),
) -> Facts:
    """The facts that the rules of a table look at, counted in `connection` (`counting`).

    Of a table of another shape it is its columns alone: nothing else can be read of it. `suppressions`: findings of the
    audit that don't count.
    """
    facts = Facts()
    kinds = {rule.kind for rule in rules}
    if SHAPE in kinds:
        _shape(facts, scope, table)
        if not facts.shape_is_known:
            return facts
    if KEYS in kinds:
        _repeated_keys(facts, scope, table, connection)
    for rule in rules:
        if rule.kind == REFERENCES and rule.reference is not None:
            _missing(facts, scope, table, rule.reference, connection)
    counted: dict[str, Callable[[], None]] = {
        STAGE: lambda: facts.put("runs_behind", [_runs_behind(scope.lake, table)], pa.int64()),
        FRESHNESS: lambda: _evidence_age(facts, scope, now_ms),
        VOLUME: lambda: _volume(facts, scope, table),
        EVIDENCE: lambda: _missing_evidence(facts, scope),
        AUDIT: lambda: _standing_findings(facts, scope, table, suppressions, now_ms),
    }
    for kind in counted.keys() & kinds:
        counted[kind]()
    return facts


def _missing_evidence(facts: Facts, scope: Scope) -> None:
    for name, numbers, detail in evidence.facts(scope):
        facts.put(name, numbers, pa.int64())
        facts.details[name] = detail


def _standing_findings(
    facts: Facts, scope: Scope, table: str, suppressions: Sequence[Suppression], now_ms: int
) -> None:
    """The number of findings that stand, of all runs, by severity; the rules of each in the detail."""
    stands = pc.field("withdrawn_run_id").is_null()
    for severity in (ERROR, WARNING):
        rows = scope.dataset(table).to_table(filter=stands & (pc.field("severity") == severity))
        parted = sifted(rows, suppressions, datetime.fromtimestamp(now_ms / 1000, UTC).date())
        name = f"standing_{severity}s"
        facts.put(name, [parted.counting.num_rows], pa.int64())
        rules = sorted(set(parted.counting.column("rule").to_pylist()))
        notes = [", ".join(rules[:SHOWN]), *parted.warnings]
        facts.details[name] = "; ".join(note for note in notes if note)


def _shape(facts: Facts, scope: Scope, table: str) -> None:
    """The columns as the table has them now, not as we declare them."""
    version = scope.versions[table]
    scope.lake.snapshot(table, version)
    texts = [field_text(column) for column in scope.lake.schema(table, version)]
    facts.put("field", texts, pa.string())
    declared = {field_text(column) for column in TABLES[table].schema}
    facts.shape_is_known = {field_text(column) for column in required_columns(table)} <= set(texts) <= declared


def _repeated_keys(facts: Facts, scope: Scope, table: str, connection: duckdb.DuckDBPyConnection) -> None:
    """Each repeated key of the slice and of earlier rows, as often as it occurs."""
    key = TABLES[table].key
    offset = next((name for name in OFFSETS if name in key), None)
    rows = scope.dataset(table)
    named = ", ".join(_quoted(name) for name in key)
    if offset is None:
        source = rows.scanner(columns=list(key))
        connection.register("reach", source.to_reader())
        query = f"SELECT {named}, count(*) FROM reach GROUP BY ALL HAVING count(*) > 1 LIMIT {SHOWN}"  # noqa: S608
    else:
        place = [name for name in key if name in PARTITION_COLUMNS]
        began = rows.scanner(columns=[*place, offset], filter=scope.where).to_reader()
        connection.register("slice", began)
        grouped = ", ".join(_quoted(name) for name in place)
        began_at = f"SELECT {grouped}, min({_quoted(offset)}) AS begin_ FROM slice GROUP BY ALL"  # noqa: S608
        connection.execute(f"CREATE OR REPLACE TEMP TABLE begun AS {began_at}")
        ((least,),) = connection.execute("SELECT min(begin_) FROM begun").fetchall()
        if least is None:
            facts.put("repeated_key", [], pa.string())
            return
        connection.register("reach", rows.scanner(columns=list(key), filter=pc.field(offset) >= int(least)).to_reader())
        query = (
            f"SELECT {named}, count(*) FROM reach JOIN begun USING ({grouped}) "  # noqa: S608
            f"WHERE {_quoted(offset)} >= begin_ GROUP BY {named} HAVING count(*) > 1 LIMIT {SHOWN}"
        )
    keys = connection.execute(query).fetchall()
    texts = [_key_text(key, row[:-1]) for row in keys for _ in range(min(int(row[-1]), 3))]
    facts.put("repeated_key", texts, pa.string())


def _missing(
    facts: Facts, scope: Scope, table: str, reference: Reference, connection: duckdb.DuckDBPyConnection
) -> None:
    """How many rows of the slice have no like in the parent, and one of them."""
    fact = references.fact_of(reference)
    where = scope.where if reference.only is None else scope.where & reference.only
    child = scope.dataset(table).scanner(columns=list(reference.columns), filter=where)
    connection.register("child_rows", child.to_reader())
    connection.execute("CREATE OR REPLACE TEMP TABLE child AS SELECT DISTINCT * FROM child_rows")
    last = _quoted(reference.columns[-1])
    ((lowest, highest),) = connection.execute(f"SELECT min({last}), max({last}) FROM child").fetchall()  # noqa: S608
    if lowest is None:
        facts.put(fact, [0], pa.int64())
        return
    inside = reference.parent_only
    if reference.ordered:
        name = pc.field(reference.parent_columns[-1])
        between = (name >= int(lowest)) & (name <= int(highest))
        inside = between if inside is None else inside & between
    columns = [*reference.parent_columns, *(reference.covers or ())]
    parent = scope.dataset(reference.parent).scanner(columns=columns, filter=inside)
    connection.register("parent", parent.to_reader() if reference.or_later is None else parent.to_table())
    query = f"FROM child ANTI JOIN parent ON {_match(reference)}"
    if reference.or_later is not None:  # most rows have an equal one, which a hash join looks up
        query = f"FROM ({query}) child ANTI JOIN parent ON {_match(reference, or_later=True)}"
    connection.execute(f"CREATE OR REPLACE TEMP TABLE lost AS {query}")
    if reference.ordered:
        _forgive_dropped(scope.lake, reference, connection)
    ((count,),) = connection.execute("SELECT count(*) FROM lost").fetchall()
    facts.put(fact, [int(count)], pa.int64())
    for row in connection.execute("FROM lost ORDER BY ALL LIMIT 1").fetchall():
        facts.details[fact] = f"the first: {_key_text(reference.columns, row)}"


def _match(reference: Reference, *, or_later: bool = False) -> str:
    """The SQL condition for a child and its parent; `or_later`: the parent has a larger value of that column."""
    matches = []
    for ours, theirs in zip(reference.columns, reference.parent_columns, strict=False):
        sign = "<" if or_later and ours == reference.or_later else "="
        matches.append(f"child.{_quoted(ours)} {sign} parent.{_quoted(theirs)}")
    if reference.covers is not None:
        last, (first, end) = _quoted(reference.columns[-1]), map(_quoted, reference.covers)
        matches.append(f"child.{last} >= parent.{first} AND child.{last} < parent.{end}")
    return " AND ".join(matches)


def _forgive_dropped(lake: Lake, reference: Reference, connection: duckdb.DuckDBPyConnection) -> None:
    """Takes rows out of `lost` whose like lay below the place where retention has cut the parent."""
    partition = "state_partition" if "state_partition" in reference.columns else "partition"
    names = ("cluster_id", "log_topic_id", partition)
    place = " AND ".join(f"{_quoted(name)} = ?" for name in names)
    statement = f"DELETE FROM lost WHERE {place} AND {_quoted(reference.columns[-1])} < ?"  # noqa: S608
    for key, cut in retained.cuts(lake, retained.group_of(reference.parent)).items():
        connection.execute(statement, [*key, cut.offset])


def _quoted(name: str) -> str:
    """A column's name in SQL; names are our own."""
    return f'"{name}"'


def _key_text(names: Sequence[str], values: Sequence[Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in zip(names, values, strict=True))


def _runs_behind(lake: Lake, table: str) -> int:
    """How many runs the table's stage has yet to take up; 0: it has seen all that was written before it."""
    from sharelens.measures.catalog import OF_TABLE

    if table.startswith("silver."):
        return max(0, books.done(lake, "ingest") - books.done(lake, "decode"))
    if table in books.AUDITED:
        return max(0, books.newest_to_audit(lake) - books.done(lake, "audit"))
    if table in OF_TABLE:
        return max(0, books.newest_to_measure(lake) - books.newest_run(lake, table, "measure"))
    return max(0, books.done(lake, "decode") - books.done(lake, "replay"))


def _evidence_age(facts: Facts, scope: Scope, now_ms: int) -> None:
    """How long ago the newest record of each cluster's state topic was written."""
    is_ingested = (pc.field("status") == "taken") & (pc.field("topic") == STATE_TOPIC)
    rows = scope.dataset("bronze.ingest_extent").to_table(columns=["cluster_id", "log_time_ms"], filter=is_ingested)
    newest = rows.group_by("cluster_id").aggregate([("log_time_ms", "max")]).sort_by("cluster_id")
    ages = [None if at_ms is None else max(0, now_ms - at_ms) for at_ms in newest.column("log_time_ms_max").to_pylist()]
    facts.put("evidence_age_ms", ages, pa.int64())
    by_cluster = zip(newest.column("cluster_id").to_pylist(), ages, strict=True)
    oldest = max(((age, cluster) for cluster, age in by_cluster if age is not None), default=None)
    if oldest is not None:
        facts.details["evidence_age_ms"] = f"cluster {oldest[1]}: {oldest[0] // 60_000} minutes"


def _volume(facts: Facts, scope: Scope, table: str) -> None:
    """The slice's rows as a ratio to the median of the checks before; null when too little is known."""
    before = earlier_volumes(scope.lake, table, scope.run)
    rows = scope.rows(table)
    ratio = None
    if len(before) >= 3:
        usual = sorted(before)[len(before) // 2]
        if max(usual, rows) >= FEWEST:
            ratio = rows / max(1, usual)
            facts.details["volume_ratio"] = f"{rows} rows, usually {usual}"
    facts.put("volume_ratio", [ratio], pa.float64())
