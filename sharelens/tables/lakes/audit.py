"""The findings of a lake: those that its runs stored and no run withdrew (gold.audit_finding)."""

from collections import Counter
from collections.abc import Mapping, Sequence, Set

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.conditions import all_of, filter_rows
from sharelens.lake.errors import LakeError
from sharelens.measures.settings.coordinator import coordinator_config
from sharelens.tables.lakes.metadata import LakeMetadata
from sharelens.tables.lakes.published import PublishedLake
from sharelens.tables.lakes.rows import LakeRows
from sharelens.tables.lakes.settings import LakeSettings
from sharelens.tables.where import Span
from state_model.audit.columnar.explained import of_rules, with_causes
from state_model.audit.columnar.finding_schema import FINDING, worst_first
from state_model.audit.rule import Need, Rule
from state_model.audit.table import BY_ID
from state_model.errors import UsageError
from state_model.topics import OFFSETS_TOPIC

TABLE, EXTENTS = "gold.audit_finding", "bronze.ingest_extent"


class LakeAudit:
    """The findings of a lake; of a span those that were seen in it: it overlaps the time from first to last seen.

    Raises:
        LakeError: no run has audited the lake.
        UsageError: the command line has other settings of groups than the lake.
    """

    def __init__(
        self, origin: PublishedLake, settings: LakeSettings, metadata: LakeMetadata, rows: LakeRows, span: Span
    ) -> None:
        place = f"lake {origin.lake.lake}"
        if settings.answering.groups != settings.measured.groups:
            raise UsageError(
                f"audit: the findings of {place} are those under the settings that it keeps; store others "
                "with `sharelens run --lake DIR --settings DIR`, or ask --log-dir"
            )
        if TABLE not in origin.lake.versions:
            raise LakeError(f"{place}: no run has audited it; run `sharelens run --lake DIR --log-dir DIR`")
        self._rows = rows.scan(TABLE, FINDING.names, all_of(rows.of_log(TABLE), _stands(span))).cast(FINDING)
        self._origin, self._settings, self._metadata = origin, settings, metadata
        self.has_state_log = bool(rows.published)

    @property
    def available(self) -> frozenset[Need]:
        """The needs that the lake's tables meet."""
        history = self._metadata.history
        by_need = {
            Need.GROUP_COORDINATOR: self._has_rows(EXTENTS, pc.field("topic") == OFFSETS_TOPIC),
            Need.USER_TOPIC: self._has_rows(EXTENTS, pc.field("content") == "topic_batch"),
            Need.METADATA: history is not None and history.has_beginning,
            Need.COORDINATOR_CONFIG: coordinator_config(self._settings.stored) is not None,
        }
        return frozenset(need for need, is_met in by_need.items() if is_met)

    @property
    def proven(self) -> Set[int]:
        """None: a lake keeps clusters apart."""
        return frozenset()

    def _has_rows(self, table: str, where: pc.Expression) -> bool:
        """Whether a table has such rows of the cluster."""
        rows = self._origin.lake.dataset(table)
        where &= pc.field("cluster_id") == self._origin.cluster
        return rows is not None and rows.count_rows(filter=where) > 0

    def counts(self, severities: Mapping[int, str], condition: pc.Expression | None) -> Counter[str]:
        """The number of findings by severity."""
        return Counter(filter_rows(self._of(severities), condition).column("severity").to_pylist())

    def rows(self, severities: Mapping[int, str], listed: Set[int]) -> pa.Table:
        """FINDING rows of the rules `listed`, the worst first.

        Causes are inferred again: they depend on the severities.
        """
        return worst_first(of_rules(with_causes(self._of(severities)), listed))

    def _of(self, severities: Mapping[int, str]) -> pa.Table:
        """The rows of the rules with a severity, with this severity."""
        codes = pa.array([BY_ID[rule].code for rule in severities], pa.string())
        place = pc.index_in(self._rows.column("rule"), value_set=codes)
        severity = pa.array(list(severities.values()), pa.string()).take(place)
        column = FINDING.get_field_index("severity")
        return self._rows.set_column(column, FINDING.field(column), severity).filter(place.is_valid())

    def warnings(self, rules: Sequence[Rule]) -> Sequence[str]:
        """None: the evidence line names what the lake lacks."""
        return ()


def _stands(span: Span) -> pc.Expression:
    """Findings that stand and were seen in a span."""
    condition = pc.field("withdrawn_run_id").is_null()
    if span.from_ms is not None:
        condition &= pc.field("last_seen_ms") >= span.from_ms
    if span.to_ms is not None:
        condition &= pc.field("first_seen_ms") < span.to_ms
    return condition
