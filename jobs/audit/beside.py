"""The audit of a state partition beside its states: the records and counters that rules on other evidence need."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from jobs.audit import counters, records
from jobs.audit.counters import Configs, Counters
from jobs.audit.records import Topics
from jobs.audit.topics import LakeTopics
from jobs.lake_settings import stored
from sharelens.lake.lake import Lake
from sharelens.lake.slices import PartitionKey
from sharelens.measures.settings.coordinator import coordinator_config
from state_model.audit.columnar.across import PLACE
from state_model.audit.columnar.configured import NO_COUNTERS, ConfiguredAudit
from state_model.audit.columnar.kept_records import KnownTopics, RecordKeeper
from state_model.audit.columnar.partitions import PartitionsAudit

NO_ROWS: Final = {records.RECORDS: records.STORED.empty_table(), counters.TABLE: counters.STORED.empty_table()}
"""The tables beside gold.audit_state, without rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What tasks know beside the state log: by cluster user topics and the coordinator's configuration; counters."""

    known_topics: Mapping[str, KnownTopics]
    configs: Configs
    counters: Mapping[PartitionKey, Counters]


def look_beside(
    lake: Lake, clusters: Iterable[str], kept_records: pa.Table, audited: pa.Table, before: int
) -> tuple[Beside, Topics, set[PartitionKey]]:
    """What a lake has beside the state log, its user topics, and the state partitions that have to start over for it.

    `kept_records`: records.stored_others; `audited`: rows of gold.audit_state; `before`: the last run whose audit is
    complete.
    """
    topics = {cluster: LakeTopics(lake, cluster) for cluster in clusters}
    beside = Beside(
        known_topics={cluster: of_cluster.known_topics for cluster, of_cluster in topics.items()},
        configs={cluster: coordinator_config(stored(lake, cluster)) for cluster in topics},
        counters=counters.stored_counters(lake),
    )
    unfit = records.to_start_over(lake, topics, kept_records, audited, before)
    places = zip(*(audited.column(name).to_pylist() for name in ("cluster_id", *PLACE)), strict=True)
    offsets = dict(zip(places, audited.column("last_log_offset").to_pylist(), strict=True))
    return beside, topics, unfit | counters.to_start_over(beside.counters, offsets, beside.configs)


def commit_beside(
    lake: Lake,
    run: int,
    topics: Topics,
    kept_records: pa.Table,
    fresh: Sequence[Mapping[str, pa.Table]],
    audited: set[PartitionKey],
    begins: Mapping[PartitionKey, int],
) -> pa.Table:
    """Commits the rows that tasks of a run have beside their states (`BesideAudit.rows`); `kept_records` after it.

    `kept_records`: records.stored_others. `begins`: of the audited state partitions that started over the log offset
    below which earlier rows stay.
    """
    rows = {name: pa.concat_tables([none, *(tables[name] for tables in fresh)]) for name, none in NO_ROWS.items()}
    counters.commit_counters(lake, run, rows[counters.TABLE], audited)
    return records.commit_records(lake, run, topics, kept_records, rows[records.RECORDS], audited, begins)


class BesideAudit:
    """Takes the records of state partitions that their audit takes.

    `log`: their cluster and topic id. `resumed`: the state partitions with a stored state from which the audit goes on,
    ascending; so do their counters.
    """

    def __init__(
        self, beside: Beside, log: tuple[str, str], audit: PartitionsAudit, *, resumed: Sequence[int] = ()
    ) -> None:
        self._log = log
        self._audit = audit
        self._keeper = RecordKeeper(beside.known_topics[log[0]], audit)
        self._config = beside.configs[log[0]]
        self._configured: ConfiguredAudit | None = None
        if self._config is not None:
            stored = [beside.counters[*log, number].state for number in resumed]
            self._configured = ConfiguredAudit(self._config, audit, np.concatenate([NO_COUNTERS.ravel(), *stored]))

    def take(self, decoded: pa.Table) -> None:
        """The next records (SHARE_RECORD), after the audit has taken them; its tally gets their violations."""
        self._keeper.take(decoded)
        if self._configured is not None:
            self._configured.take(decoded)

    def rows(self) -> dict[str, pa.Table]:
        """Rows of the tables of NO_ROWS; call it when the audit is closed."""
        rows = {records.RECORDS: records.of_log(self._keeper.rows(), *self._log)}
        if self._config is not None and self._configured is not None:
            rows[counters.TABLE] = counters.counter_rows(self._log, self._config, self._configured, self._audit)
        return rows
