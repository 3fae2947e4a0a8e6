"""The cuts of retention: rows of bronze.ingest_extent with the status `dropped`, and the states at the cuts.

    log of a state partition   [ ... dropped, but for what still counts ... | kept ... ]
                                                                            ^ cut: an offset of the log
    gold.share_partition_base: the states after all records before the cut, which a rebuild folds on

A cut never goes back. Records that arrive late below a cut are ignored.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from jobs import books
from sharelens.lake.lake import Lake
from sharelens.lake.slices import PartitionKey

BASE = "gold.share_partition_base"
DROPPED = "dropped"
BRONZE, SILVER, HISTORY, MEASURES, CHECKS = "bronze", "silver", "history", "measures", "checks"
GROUPS = (BRONZE, SILVER, HISTORY, MEASURES, CHECKS)
"""The groups of tables with an age, as `--retain` names them; `content` of a row in the books."""

STAYS = {
    "bronze.topic_batch": "a dropped header looks like an offset without a record; ages, gaps and end offsets need it",
    "bronze.ingest_extent": "the extents that runs ingested, lost and dropped",
    "bronze.quarantine": "evidence of a loss: without it incomplete state would look complete",
    "bronze.setting": "no log has the settings that were in force when records were archived",
    "silver.odd_group_record": "no release of Kafka writes such a record",
    "silver.dlq_record": "no log says whether somebody has processed a dead letter",
    "silver.metadata_record": "the histories start over from its records; idle ones are not kept",
    "silver.name": "the only place with the name of a deleted topic",
    "silver.topic_start": "one row a user partition and state partition",
    "gold.share_partition_state": "the newest state",
    "gold.share_partition_base": "one row a share partition; a rebuild starts from it",
    "gold.life_event": "a few rows a life; the only trace of lives that retention cut from the histories",
    "gold.progress": "one row a share partition; the next run continues from it",
    "gold.measure_base": "one row a share partition: rows of measures below it are kept",
    "gold.dlq_reconciliation": "refers to dead letters, which are kept",
    "gold.configuration_history": "the settings in force when old records were delivered",
    "gold.topic_history": "the epochs in force when old records were delivered",
    "gold.group_history": "a group's rows start over from silver.group_record at its next record",
    "gold.member_history": "as gold.group_history",
    "gold.task_history": "as gold.group_history",
    "gold.share_initialization_history": "as gold.group_history",
    "gold.lag": "one row a share partition",
    "gold.audit_state": "one row a state partition; the next run continues from it",
    "gold.audit_record": "a few rows a share partition; later evidence is compared with them",
    "gold.audit_counter": "as gold.audit_state",
    "gold.audit_finding": "a finding stands until evidence refutes it, also when its records are gone",
    "gold.publication": "one row a run: the published cuts",
}  # fmt: skip
"""Tables that keep their rows whatever their age, and why. `jobs.upkeep.retention.RULES` has the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Rows of a log partition below `offset` were dropped by run `run`: they are older than `time_ms` (log time)."""

    offset: int
    time_ms: int
    run: int


def group_of(table: str) -> str:
    """The group of tables whose cuts a table with log offsets follows."""
    layer = table.partition(".")[0]
    return layer if layer in (BRONZE, SILVER) else HISTORY


def cuts(lake: Lake, group: str) -> dict[PartitionKey, Cut]:
    """The newest cut of each log partition that retention has cut for a group of tables."""
    rows = books.extents(lake, (pc.field("status") == DROPPED) & (pc.field("content") == group))
    cuts_by_partition: dict[PartitionKey, Cut] = {}
    for row in sorted(rows, key=lambda row: int(row["run_id"])):
        key = (row["cluster_id"], row["topic_id"], row["partition"])
        cuts_by_partition[key] = Cut(offset=row["end_offset_exclusive"], time_ms=row["log_time_ms"], run=row["run_id"])
    return cuts_by_partition


def offsets(cuts_by_partition: dict[PartitionKey, Cut]) -> dict[PartitionKey, int]:
    """The offsets of the cuts."""
    return {key: cut.offset for key, cut in cuts_by_partition.items()}


def bases(lake: Lake, keys: Iterable[PartitionKey]) -> dict[PartitionKey, pa.Table]:
    """The states at the silver cut of each of the state partitions that has one: rows of gold.share_partition_base."""
    silver = cuts(lake, SILVER)
    cuts_by_partition = {key: silver[key] for key in keys if key in silver}
    if not cuts_by_partition:
        return {}
    rows = lake.snapshot(BASE).dataset().to_table()
    return {
        key: rows.filter(
            (pc.field("cluster_id") == key[0])
            & (pc.field("log_topic_id") == key[1])
            & (pc.field("state_partition") == key[2])
            & (pc.field("run_id") == cut.run)
        )
        for key, cut in cuts_by_partition.items()
    }


def joined(rows: pa.Table, names: tuple[str, ...]) -> pa.ChunkedArray:
    """Columns as one key; every part is led by its length, so that no two keys look alike."""
    parts = []
    for name in names:
        column = rows.column(name)
        text = pc.fill_null(column.cast(pa.string()), "\0")
        parts += [pc.binary_length(text.cast(pa.binary())).cast(pa.string()), text]
    return pc.binary_join_element_wise(*parts, ":").cast(pa.binary())


def derived_again(
    keys: Iterable[PartitionKey], topic_id: str, partition: str, offset: str, begins: dict[PartitionKey, int]
) -> pc.Expression | None:
    """Rows of log partitions that start over, from `begins` on where retention has cut; None for no partition."""
    expression: pc.Expression | None = None
    for key in sorted(keys):
        this = books.of_partitions({key}, topic_id, partition)
        assert this is not None
        if key in begins:
            this = this & (pc.field(offset) >= begins[key])
        expression = this if expression is None else expression | this
    return expression
