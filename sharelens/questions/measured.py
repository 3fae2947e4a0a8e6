"""What the answers of measures share: rows of measures at a cut, without misplaced ones; names, the closing line.

Histories come in parts of whole share partitions (`Scope.parts`), so that memory goes by a part and by what is found.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from evidence.as_of import LogPrefix
from measures.catalog import MEASURES
from measures.inputs import NO_SETTINGS, Inputs
from measures.lives import PLACE
from measures.parts import stretches
from measures.settings import GroupSettings
from measures.topics import TopicPartition, topic_partitions
from sharelens.filters import KeyFilter
from sharelens.output import Answer, Column
from sharelens.questions.completeness import check_cut, cut_of, evidence_line, incomplete_rows, misplaced_warnings
from sharelens.questions.evidence import PLACED, Evidence, Keys, Span
from sharelens.questions.measure_inputs import EvidenceInputs, Part
from sharelens.questions.misplaced import misplaced_places
from sharelens.questions.naming import ensure_known, resolve
from sharelens.questions.shape import constant, topic_column
from sharelens.request import CutChoice
from state_model.columnar.keys import PLACE_KEY, SHARE_PARTITION_KEY

MARKS = ["completeness", "completeness_reason"]
PART_ROWS = 1 << 17
"""Records of the history in a part, about; a share partition with more is a part of its own."""
PART_ORDER = [(name, "ascending") for name in ("state_partition", *SHARE_PARTITION_KEY)]
PLACE_ORDER = [(name, "ascending") for name in PLACE_KEY]


@dataclass(frozen=True, kw_only=True)
class Scope:
    """The share partitions asked about: PLACED rows that are not misplaced, and those that are."""

    evidence: Evidence
    keys: Keys
    cut: LogPrefix
    places: pa.Table
    misplaced: pa.Table
    warnings: tuple[str, ...]

    def parts(self) -> Iterator[Part]:
        """The histories of all places, one part at least; what fits one part is read once."""
        if len(self._stretches) == 1:
            yield self._one
            return
        for places in self._stretches:
            yield self._read(places)

    def inputs(self, part: Part, settings: GroupSettings = NO_SETTINGS, window: Span | None = None) -> EvidenceInputs:
        """What measures read of a part."""
        return EvidenceInputs(self.evidence, self.cut, part, settings, window)

    @property
    def user_partitions(self) -> set[TopicPartition]:
        """The user partitions in which a place has a start offset; of others nothing is needed."""
        started = pc.fill_null(pc.greater_equal(self.places.column("start_offset"), 0), False)
        return set(topic_partitions(self.places.filter(started)))

    def stretches(self) -> list[pa.Table]:
        """The places of each part of `parts`."""
        return self._stretches

    def only(self, places: pa.Table) -> "Scope":
        """The same question about some of the places."""
        return replace(self, places=places)

    @cached_property
    def _stretches(self) -> list[pa.Table]:
        ordered = self.places.sort_by(PART_ORDER)
        return list(stretches(ordered, ordered.column("records").to_numpy(), PART_ROWS)) or [ordered]

    @cached_property
    def _one(self) -> Part:
        return self._read(self.places)

    def _read(self, places: pa.Table) -> Part:
        history, deliveries = self.evidence.histories(places, self.cut)
        return Part(places=places, history=history, deliveries=deliveries)


def in_parts(evidence: Evidence, keys: Keys, cut: LogPrefix, places: pa.Table) -> Iterator[Part]:
    """The histories of places (PLACED), misplaced or not, by state partition and share partition."""
    none = PLACED.empty_table()
    return Scope(evidence=evidence, keys=keys, cut=cut, places=places, misplaced=none, warnings=()).parts()


def scope(evidence: Evidence, wanted: KeyFilter, asked: CutChoice) -> Scope:
    """Which share partitions are meant; those in a state partition that does not hold their state are left out.

    Raises:
        UsageError: nothing bears the names that were typed.
        SharelensError: the cut lies before the evidence.
    """
    keys, cut = resolve(evidence, wanted), cut_of(asked)
    places = evidence.places(keys)
    if places.num_rows == 0:
        ensure_known(evidence, wanted, keys)
    aside = misplaced_places(evidence, keys, places).select(PLACE_KEY)
    warnings = check_cut(evidence, cut)
    misplaced = PLACED.empty_table()
    if aside.num_rows:
        warnings += misplaced_warnings(aside, evidence.names(aside.column("topic_id").unique().to_pylist()))
        misplaced = places.join(aside, keys=PLACE_KEY, join_type="left semi")
        places = places.join(aside, keys=PLACE_KEY, join_type="left anti")
    return Scope(evidence=evidence, keys=keys, cut=cut, places=places, misplaced=misplaced, warnings=tuple(warnings))


def rows_of(asked: Scope, rows: Callable[[Inputs], pa.Table], settings: GroupSettings = NO_SETTINGS) -> pa.Table:
    """The rows of a measure from the histories, by share partition and state partition."""
    return of_parts(asked, lambda part: rows(asked.inputs(part, settings)))


def stream_of(
    asked: Scope, rows: Callable[[Inputs], pa.Table], settings: GroupSettings = NO_SETTINGS
) -> Iterator[pa.Table]:
    """The rows of a measure from the histories, part by part."""
    return (rows(asked.inputs(part, settings)) for part in asked.parts())


def kept_stream(asked: Scope, name: str, columns: Sequence[str] | None = None) -> Iterator[pa.Table] | None:
    """The rows of `kept_rows` in bounded tables; `columns`: only these."""
    measure = MEASURES[name]
    if not asked.cut.is_whole or measure.table is None:
        return None
    schema = measure.schema if columns is None else pa.schema([measure.schema.field(column) for column in columns])
    return asked.evidence.measured_stream(measure.table, schema, asked.keys)


def kept_rows(asked: Scope, name: str) -> pa.Table | None:
    """The rows of a measure that a run kept, in any order; None where the cut is an earlier one or no run kept them."""
    tables = kept_stream(asked, name)
    return None if tables is None else pa.concat_tables(list(tables))


def of_parts(asked: Scope, measure: Callable[[Part], pa.Table]) -> pa.Table:
    """What a measure tells of all parts, by share partition and state partition; those of one keep their order."""
    return pa.concat_tables([measure(part) for part in asked.parts()]).sort_by(PLACE_ORDER)


def marked(table: pa.Table, history: pa.Table) -> pa.Table:
    """The rows with the completeness of their share partition's state at the cut."""
    newest = history.sort_by([("log_offset", "ascending")]).group_by(PLACE, use_threads=False)
    marks = newest.aggregate([(name, "last", pc.ScalarAggregateOptions(skip_nulls=False)) for name in MARKS])
    joined = table.append_column("row", pa.array(range(table.num_rows), pa.int64())).join(marks, keys=PLACE)
    joined = joined.sort_by("row").drop_columns(["row"])
    return joined.rename_columns({f"{name}_last": name for name in MARKS})


def described(evidence: Evidence, table: pa.Table) -> pa.Table:
    """The rows with cluster_id in front and, where there is a topic_id, the topic's name behind it."""
    if "topic_id" in table.column_names:
        names = evidence.names(table.column("topic_id").unique().to_pylist())
        index = table.column_names.index("topic_id") + 1
        table = table.add_column(index, pa.field("topic", pa.string()), topic_column(table.column("topic_id"), names))
    return table.add_column(
        0, pa.field("cluster_id", pa.string()), constant(evidence.cluster_id, table.num_rows, pa.string())
    )


def answer(
    evidence: Evidence,
    table: pa.Table,
    columns: Sequence[Column],
    *,
    told: str,
    warnings: Sequence[str] = (),
    none: str,
) -> Answer:
    """The answer of a measure: `table` with names, `told` as its own closing line above that of the evidence."""
    closing = evidence_line(evidence.cover(), incomplete_rows(table.column("completeness")))
    return Answer(
        table=described(evidence, table),
        columns=tuple(columns),
        summary=f"{told}\n{closing}",
        warnings=tuple(warnings),
        none=none,
    )
