"""Findings over runs: one that a run no longer has is withdrawn, not deleted; one that comes back stands again."""

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sharelens.lake.tables import TABLES
from state_model.audit.columnar.across import LOG_FINDING
from state_model.audit.columnar.partitions import PartitionsAudit
from state_model.audit.columnar.violations import COUNTED, log_of_violations
from state_model.audit.table import BY_ID

FINDINGS: Final = "gold.audit_finding"
IDENTITY: Final = list(TABLES[FINDINGS].key)
"""What makes two findings of two runs the same one."""
Identity = tuple[object, ...]
RULE_BITS: Final = 16
"""More than the id of a rule needs."""
NONE_UNCHANGED: Final = pa.schema([TABLES[FINDINGS].schema.field(name) for name in IDENTITY]).empty_table()
"""No identities."""


def identities(rows: pa.Table) -> list[Identity]:
    """The identity of each row."""
    return list(zip(*(rows.column(name).to_pylist() for name in IDENTITY), strict=True))


def leave_unchanged(
    audit: PartitionsAudit, is_stored: npt.NDArray[np.bool_], cluster_id: str, topic_id: str
) -> pa.Table:
    """Takes the share partitions whose violations are those that the audit has resumed out of the tally.

    `is_stored`: by log whether the findings of the resumed state are stored.

    Returns:
        The identities of their findings (IDENTITY).
    """
    counted, before = audit.tally.counted, audit.tally.resumed
    numbers = counted.column("share_partition").to_numpy()
    logs = log_of_violations(numbers, audit.auditor.log_of)
    is_same = _has_equal_row(counted, before)
    is_changed = np.isin(numbers, numbers[~is_same]) | (numbers < 0) | ~is_stored[logs]
    audit.tally.counted = counted.filter(pa.array(is_changed))
    same = counted.filter(pa.array(~is_changed))
    keys = audit.auditor.keys.take(same.column("share_partition"))
    rules = same.column("rule").combine_chunks().dictionary_encode()
    codes = pa.array([BY_ID[rule].code for rule in rules.dictionary.to_pylist()], pa.string())
    columns = {"cluster_id": pa.repeat(cluster_id, same.num_rows), "log_topic_id": pa.repeat(topic_id, same.num_rows)}
    columns |= {"rule": codes.take(rules.indices), **{name: keys.column(name) for name in keys.column_names}}
    columns["state_partition"] = pa.array(audit.state_partitions[logs[~is_changed]])
    return pa.table(columns).select(IDENTITY).cast(NONE_UNCHANGED.schema)


def _has_equal_row(counted: pa.Table, before: pa.Table) -> npt.NDArray[np.bool_]:
    """Whether each of the COUNTED rows is one of some rows with a subset of their rules and share partitions."""
    places = [
        rows.column("share_partition").to_numpy() << RULE_BITS | rows.column("rule").to_numpy()
        for rows in (counted, before)
    ]
    shared_rows = np.flatnonzero(np.isin(places[0], places[1]))
    shared_rows, there = shared_rows[np.argsort(places[0][shared_rows])], np.argsort(places[1])
    is_same = np.zeros(counted.num_rows, np.bool_)
    is_same[shared_rows] = True
    for name in COUNTED.names:
        is_same[shared_rows] &= counted.column(name).to_numpy()[shared_rows] == before.column(name).to_numpy()[there]
    return is_same


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
    stored_identities = identities(stored)
    first_runs = dict(zip(stored_identities, stored.column("first_run_id").to_pylist(), strict=True))
    keys = identities(fresh)
    standing = set(keys)
    has_no_fresh_row = pa.array([key not in standing for key in stored_identities], pa.bool_())
    kept_rows = stored.filter(has_no_fresh_row)
    is_judged = pa.array(judged, pa.bool_()).filter(has_no_fresh_row).to_pylist()
    before = zip(
        kept_rows.column("withdrawn_run_id").to_pylist(), is_judged, kept_rows.column("run_id").to_pylist(), strict=True
    )
    changes = [(run, run) if was_judged and since is None else (since, at) for since, was_judged, at in before]
    return pa.concat_tables(
        [
            _rows(fresh, [first_runs.get(key, run) for key in keys], [None] * len(keys), [run] * len(keys)),
            _rows(kept_rows, kept_rows.column("first_run_id").to_pylist(), *map(list, zip(*changes, strict=True)))
            if changes
            else _rows(kept_rows, [], [], []),
        ]
    )


def _rows(rows: pa.Table, first: list[int], withdrawn: list[int | None], runs: list[int]) -> pa.Table:
    table = rows.select(LOG_FINDING.names).cast(LOG_FINDING)
    for name, values in (("first_run_id", first), ("withdrawn_run_id", withdrawn), ("run_id", runs)):
        table = table.append_column(name, pa.array(values, pa.int64()))
    return table
