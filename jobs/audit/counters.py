"""The coordinator's counters of updates by state partition (gold.audit_counter), where its configuration is known.

Rules that need the configuration start over for a state partition whose counters are not those of its audit, or were
counted under another configuration.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import pyarrow as pa

from jobs import books
from sharelens.lake.lake import Lake
from sharelens.lake.parquet import write_rows
from sharelens.lake.slices import PartitionKey
from sharelens.lake.tables import TABLES
from state_model.audit.columnar.across import LOG
from state_model.audit.columnar.configured import ConfiguredAudit
from state_model.audit.columnar.continuation import matrix_of
from state_model.audit.columnar.kept_schema import AUDIT_COUNTER
from state_model.audit.columnar.partitions import PartitionsAudit
from state_model.audit.coordinator_config import CoordinatorConfig
from state_model.columnar.keys import Ints

TABLE: Final = "gold.audit_counter"
STORED: Final = pa.schema([*(pa.field(name, pa.string()) for name in LOG), *AUDIT_COUNTER])
Configs = Mapping[str, CoordinatorConfig | None]
"""The share coordinator's configuration by cluster; None: unknown."""


class Counters(NamedTuple):
    """The counters of a state partition after the record with a log offset."""

    last_log_offset: int
    config: CoordinatorConfig
    state: Ints


def stored_counters(lake: Lake) -> dict[PartitionKey, Counters]:
    """The counters of the lake."""
    rows = lake.snapshot(TABLE).rows(STORED.names)
    columns = (*LOG, "state_partition", "last_log_offset", *CoordinatorConfig._fields)
    values = zip(*(rows.column(name).to_pylist() for name in columns), strict=True)
    return {
        (cluster_id, topic_id, number): Counters(
            last_log_offset, CoordinatorConfig(*config), matrix_of(rows.slice(row, 1), "counters", 1).ravel()
        )
        for row, (cluster_id, topic_id, number, last_log_offset, *config) in enumerate(values)
    }


def to_start_over(
    counters: Mapping[PartitionKey, Counters], audited: Mapping[PartitionKey, int], configs: Configs
) -> set[PartitionKey]:
    """Audited state partitions whose counters don't fit; `audited`: the last audited log offset of each."""
    result = set()
    for key, last_log_offset in audited.items():
        partition_counters, config = counters.get(key), configs.get(key[0])
        stored_position = (
            None if partition_counters is None else (partition_counters.last_log_offset, partition_counters.config)
        )
        if stored_position != (None if config is None else (last_log_offset, config)):
            result.add(key)
    return result


def counter_rows(
    log: tuple[str, str], config: CoordinatorConfig, configured: ConfiguredAudit, audit: PartitionsAudit
) -> pa.Table:
    """STORED with a row for each state partition after an audit; `log`: their cluster and topic id."""
    numbers = zip(audit.state_partitions.tolist(), audit.last_offsets.tolist(), configured.by_log(), strict=True)
    constants = {**dict(zip(LOG, log, strict=True)), **config._asdict()}
    rows = [
        {**constants, "state_partition": number, "last_log_offset": last_offset, "counters": counters}
        for number, last_offset, counters in numbers
    ]
    return pa.Table.from_pylist(rows, schema=STORED)


def commit_counters(lake: Lake, run: int, fresh: pa.Table, audited: set[PartitionKey]) -> None:
    """Commits the rows of the state partitions that a run audited (STORED); others stay."""
    if books.is_committed(lake, TABLE, "audit", run):
        return
    kept_files, removes = books.rewritten_without(
        lake, TABLE, books.of_partitions(audited, "log_topic_id", "state_partition")
    )
    files = write_rows(lake, TABLES[TABLE], fresh, {"run_id": run})
    if files or removes:
        books.commit(lake, TABLE, "audit", run, [*files, *kept_files], removes)
