"""Rows of measures at a cut, without misplaced share partitions, and the answers made of them.

Histories come in bounded parts of whole share partitions (`Scope.parts`): a part and the answer bound the memory.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.as_of import LogPrefix
from sharelens.measures.catalog import STAGED
from sharelens.measures.inputs import Inputs
from sharelens.measures.settings.over_time import NO_SETTINGS, GroupSettings
from sharelens.measures.topics.extents import TopicPartition, names_of_topics, topic_partitions
from sharelens.output import Answer, RowCounts
from sharelens.output.layouts import Layout
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.answers.completeness import (
    check_cut,
    closing_line,
    incomplete_rows,
    misplaced_warnings,
    prefix_of,
)
from sharelens.questions.answers.naming import ensure_known, resolve
from sharelens.questions.answers.now import now_text
from sharelens.questions.answers.shape import constant
from sharelens.source.request import CutChoice
from sharelens.tables.measure_inputs import EvidenceInputs
from sharelens.tables.misplaced import misplaced_places
from sharelens.tables.parts import Part, Parts
from sharelens.tables.places import PLACED
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_places
from sharelens.tables.where import Keys, Span, Where
from state_model.columnar.keys import FULL_PLACE_KEY, PLACE_KEY
from state_model.columnar.schemas import plain

NO_SUMS = pa.table({})
MARKS = ["completeness", "completeness_reason"]
PLACE_ORDER = [(name, "ascending") for name in PLACE_KEY]


@dataclass(frozen=True, kw_only=True)
class Scope:
    """The share partitions of a question: PLACED rows that are not misplaced, and those that are."""

    evidence: Tables
    keys: Keys
    cut: LogPrefix
    places: pa.Table
    misplaced: pa.Table
    warnings: tuple[str, ...]

    @cached_property
    def parts(self) -> Parts:
        """The histories of all places."""
        return self.evidence.histories(self.places, self.cut)

    def inputs(self, part: Part, settings: GroupSettings = NO_SETTINGS, window: Span | None = None) -> EvidenceInputs:
        """The inputs of measures for a part."""
        return EvidenceInputs(self.evidence, self.cut, part, settings, window)

    @property
    def user_partitions(self) -> set[TopicPartition]:
        """The user partitions in which a place has a start offset; measures need no other."""
        started = pc.fill_null(pc.greater_equal(self.places.column("start_offset"), 0), False)
        return set(topic_partitions(self.places.filter(started)))

    def only(self, places: pa.Table) -> "Scope":
        """The same question about some of the places."""
        return replace(self, places=places)


def is_stored(scoped: Scope, table: str, settings: GroupSettings) -> bool:
    """Whether a run computed a measure at the cut of the question, with these settings of groups."""
    return scoped.cut.is_whole and settings == scoped.evidence.settings.groups and scoped.evidence.stored(table)


def scope(evidence: Tables, key_filter: KeyFilter, cut: CutChoice, other_groups: frozenset[str] = frozenset()) -> Scope:
    """The share partitions that the filter selects; misplaced ones are kept apart.

    `other_groups`: groups that the filter may name although they have no share state.

    Raises:
        UsageError: the evidence has none of the names.
        SharelensError: the cut lies before the evidence.
    """
    keys, prefix = resolve(evidence, key_filter), prefix_of(cut)
    places = read_places(evidence, keys)
    if places.num_rows == 0:
        ensure_known(evidence, key_filter, keys, other_groups)
    misplaced_keys = misplaced_places(evidence, keys, places).select(PLACE_KEY)
    warnings = check_cut(evidence, prefix)
    misplaced = PLACED.empty_table()
    if misplaced_keys.num_rows:
        topic_ids = misplaced_keys.column("topic_id").unique().to_pylist()
        warnings += misplaced_warnings(misplaced_keys, evidence.names(topic_ids))
        misplaced = places.join(misplaced_keys, keys=PLACE_KEY, join_type="left semi")
        places = places.join(misplaced_keys, keys=PLACE_KEY, join_type="left anti")
    return Scope(evidence=evidence, keys=keys, cut=prefix, places=places, misplaced=misplaced, warnings=tuple(warnings))


def rows_of(scoped: Scope, rows: Callable[[Inputs], pa.Table], settings: GroupSettings = NO_SETTINGS) -> pa.Table:
    """The rows of a measure from the histories, by share partition and state partition."""
    return of_parts(scoped, lambda part: rows(scoped.inputs(part, settings)))


def stream_of(
    scoped: Scope, rows: Callable[[Inputs], pa.Table], settings: GroupSettings = NO_SETTINGS
) -> Iterator[pa.Table]:
    """The rows of a measure from the histories, part by part."""
    return scoped.parts.stream(lambda part: rows(scoped.inputs(part, settings)))


def kept_stream(
    scoped: Scope, name: str, columns: Sequence[str] | None = None, where: pc.Expression | None = None
) -> Iterator[pa.Table] | None:
    """The rows of `kept_rows` in bounded tables; `columns`: only these; `where`: a condition on the table's columns."""
    measure = STAGED[name]
    if not scoped.cut.is_whole or not scoped.evidence.stored(measure.table):
        return None
    return scoped.evidence.scan(measure.table, columns or measure.schema.names, stored_rows(scoped, where))


def stored_rows(scoped: Scope, columns: pc.Expression | None = None) -> Where:
    """The rows of a measure that are of the scope: a run may have measured a place that a later deletion misplaced."""
    places = scoped.places if scoped.misplaced.num_rows else None
    return Where(keys=scoped.keys, places=places, columns=columns)


def kept_rows(scoped: Scope, name: str) -> pa.Table | None:
    """The rows of a measure in its gold table, in any order; None at an earlier cut or where no run wrote them."""
    tables = kept_stream(scoped, name)
    return None if tables is None else pa.concat_tables(list(tables))


def of_parts(scoped: Scope, measure: Callable[[Part], pa.Table]) -> pa.Table:
    """A measure's rows of all parts, by share partition and state partition; rows of one place keep their order."""
    return by_place(scoped.parts.each(measure))


def by_place(tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of tables by share partition and state partition; rows of one place keep their order."""
    return pa.concat_tables(tables).sort_by(PLACE_ORDER)


def marked(table: pa.Table, history: pa.Table) -> pa.Table:
    """The rows with the completeness of their share partition's state at the cut."""
    rows = plain(history.select([*FULL_PLACE_KEY, *MARKS, "log_offset"]))
    newest = rows.sort_by([("log_offset", "ascending")]).group_by(FULL_PLACE_KEY, use_threads=False)
    marks = newest.aggregate([(name, "last", pc.ScalarAggregateOptions(skip_nulls=False)) for name in MARKS])
    joined = table.append_column("row", pa.array(range(table.num_rows), pa.int64())).join(marks, keys=FULL_PLACE_KEY)
    joined = joined.sort_by("row").drop_columns(["row"])
    return joined.rename_columns({f"{name}_last": name for name in MARKS})


def described(evidence: Tables, table: pa.Table) -> pa.Table:
    """The rows with cluster_id in front and, where there is a topic_id, the topic's name behind it."""
    if "topic_id" in table.column_names:
        names = evidence.names(table.column("topic_id").unique().to_pylist())
        index = table.column_names.index("topic_id") + 1
        table = table.add_column(
            index, pa.field("topic", pa.string()), names_of_topics(table.column("topic_id"), names)
        )
    return table.add_column(
        0, pa.field("cluster_id", pa.string()), constant(evidence.cluster_id, table.num_rows, pa.string())
    )


def answer(
    evidence: Tables,
    table: pa.Table,
    layout: Layout,
    *,
    totals: str,
    warnings: Sequence[str] = (),
    none: str,
    all_rows: RowCounts | None = None,
    sums: pa.Table = NO_SUMS,
    now_ms: int | None = None,
) -> Answer:
    """The answer of a measure: `table` with names, and `totals` as a line above the evidence line.

    `all_rows`: counts, where the table has only the first rows. `now_ms`: shown in the last line.
    """
    incomplete = incomplete_rows(table.column("completeness")) if all_rows is None else all_rows.incomplete
    closing = closing_line(evidence, incomplete)
    if now_ms is not None:
        closing += f"; {now_text(evidence, now_ms)}"
    table = described(evidence, table)
    return Answer(
        table=table,
        columns=layout.columns(table.column_names),
        summary=f"{totals}\n{closing}",
        warnings=tuple(warnings),
        none=none,
        all_rows=all_rows,
        sums=sums,
    )
