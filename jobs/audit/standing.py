"""Findings over runs: one that a run no longer has is withdrawn, not deleted; one that comes back stands again."""

from typing import Final

import numpy as np
import pyarrow as pa

from jobs.audit.across import LOG_FINDING
from lake.tables import TABLES
from state_model.audit.columnar.continuation import rows_of
from state_model.audit.columnar.partition import PartitionAudit
from state_model.audit.columnar.violations import COUNTED, NONE
from state_model.audit.table import BY_ID

FINDINGS: Final = "gold.audit_finding"
IDENTITY: Final = list(TABLES[FINDINGS].key)
"""What makes two findings of two runs the same one."""
Identity = tuple[object, ...]
NONE_UNCHANGED: Final = pa.schema([TABLES[FINDINGS].schema.field(name) for name in IDENTITY]).empty_table()
"""No identities."""


def identities(rows: pa.Table) -> list[Identity]:
    """The identity of each row."""
    return list(zip(*(rows.column(name).to_pylist() for name in IDENTITY), strict=True))


def leave_unchanged(audit: PartitionAudit, stored: pa.Table, cluster_id: str, topic_id: str) -> pa.Table:
    """Takes the share partitions whose violations are those of the stored state out of the tally.

    Returns:
        The identities of their findings (IDENTITY).
    """
    counted = audit.tally.counted
    before = rows_of(stored, "violations", COUNTED)
    fresh = counted.join(before, keys=COUNTED.names, join_type="left anti", use_threads=False)
    numbers = counted.column("share_partition").to_numpy()
    is_changed = np.isin(numbers, np.append(fresh.column("share_partition").to_numpy(), NONE))
    audit.tally.counted = counted.filter(pa.array(is_changed))
    same = counted.filter(pa.array(~is_changed))
    keys = audit.auditor.keys.take(same.column("share_partition"))
    rules = pa.array([BY_ID[rule].code for rule in same.column("rule").to_pylist()], pa.string())
    place = {"cluster_id": cluster_id, "log_topic_id": topic_id, "state_partition": audit.number}
    columns = {name: pa.repeat(value, same.num_rows) for name, value in place.items()}
    columns |= {"rule": rules, **{name: keys.column(name) for name in keys.column_names}}
    return pa.table(columns).select(IDENTITY).cast(NONE_UNCHANGED.schema)


def parted(stored: pa.Table, unchanged: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The rows of gold.audit_finding that stay as they are by their identity, and the others."""
    numbered = stored.select(IDENTITY).append_column("row", pa.array(np.arange(stored.num_rows)))
    rows = numbered.join(unchanged, keys=IDENTITY, join_type="left semi", use_threads=False).column("row")
    is_same = np.isin(np.arange(stored.num_rows), rows.to_numpy())
    return stored.filter(pa.array(is_same)), stored.filter(pa.array(~is_same))


def merged(stored: pa.Table, fresh: pa.Table, judged: list[bool], run: int) -> pa.Table:
    """Rows of gold.audit_finding after a run, without topics and times.

    Args:
        stored: rows of gold.audit_finding before the run.
        fresh: LOG_FINDING rows of the run.
        judged: for each stored row whether the run judged its rule and place; then, without a fresh row, it does not
            stand.
    """
    known = identities(stored)
    first_runs = dict(zip(known, stored.column("first_run_id").to_pylist(), strict=True))
    keys = identities(fresh)
    standing = set(keys)
    here = pa.array([key not in standing for key in known], pa.bool_())
    kept = stored.filter(here)
    is_judged = pa.array(judged, pa.bool_()).filter(here).to_pylist()
    before = zip(kept.column("withdrawn_run_id").to_pylist(), is_judged, kept.column("run_id").to_pylist(), strict=True)
    changes = [(run, run) if mine and since is None else (since, at) for since, mine, at in before]
    return pa.concat_tables(
        [
            _rows(fresh, [first_runs.get(key, run) for key in keys], [None] * len(keys), [run] * len(keys)),
            _rows(kept, kept.column("first_run_id").to_pylist(), *map(list, zip(*changes, strict=True)))
            if changes
            else _rows(kept, [], [], []),
        ]
    )


def _rows(rows: pa.Table, first: list[int], withdrawn: list[int | None], runs: list[int]) -> pa.Table:
    table = rows.select(LOG_FINDING.names).cast(LOG_FINDING)
    for name, values in (("first_run_id", first), ("withdrawn_run_id", withdrawn), ("run_id", runs)):
        table = table.append_column(name, pa.array(values, pa.int64()))
    return table
