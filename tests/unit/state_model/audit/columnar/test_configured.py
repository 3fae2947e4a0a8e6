"""Rules that need the share coordinator's configuration: the counter of updates and the age of cold snapshots."""

import numpy as np
import pyarrow as pa
import pytest

from sharelens.evidence.decoding import decode_rows
from state_model.audit.columnar.configured import ConfiguredAudit
from state_model.audit.columnar.findings import findings
from state_model.audit.columnar.partition import PartitionAudit
from state_model.audit.columnar.partitions import LogFacts, PartitionsAudit
from state_model.audit.columnar.violations import of_log
from state_model.audit.coordinator_config import CoordinatorConfig
from state_model.audit.table import RULES
from state_model.share_records import SharePartitionKey, ShareSnapshot, ShareUpdate, StateBatch, Tombstone
from tests.audit.histories import History
from tests.audit.mutations import log_records
from tests.logs.replay_logs import table

SEVERITIES = {rule.id: rule.severity for rule in RULES if rule.severity}
KEY = SharePartitionKey(group_id="g", topic_id="T" * 22, partition=0)
CONFIG = CoordinatorConfig(least_updates=2, most_updates=2, interval_ms=100, from_ms=0)
BATCH = (StateBatch(0, 0, 2, 1),)


def snapshot(create_ms=0, write_ms=None, batches=()):
    return ShareSnapshot(
        snapshot_epoch=0, state_epoch=1, leader_epoch=0, start_offset=-1, create_timestamp_ms=create_ms,
        write_timestamp_ms=create_ms if write_ms is None else write_ms, state_batches=batches,
        delivery_complete_count=-1,
    )  # fmt: skip


UPDATE = ShareUpdate(snapshot_epoch=0, leader_epoch=0, start_offset=0, state_batches=BATCH, delivery_complete_count=1)
OVER = [("update_over_limit", "2"), ("more_updates_than_configured", "3")]
CREATION, WRITE, COLD, TOMBSTONE = snapshot(), snapshot(batches=BATCH), snapshot(0, 150), Tombstone()


def audit_of(is_from_zero=True):
    return PartitionAudit(0, first_offset=0 if is_from_zero else 1, log_start_offset=0, has_newest=False)


def rules(*values, config=CONFIG, is_from_zero=True):
    audit = audit_of(is_from_zero)
    configured = ConfiguredAudit(config, audit)
    for value in table([(KEY, value, False) for value in values]).to_batches(max_chunksize=2):
        records = pa.Table.from_batches([value])
        audit.auditor.take(records)
        configured.take(records)
        configured = ConfiguredAudit(config, audit, *configured.by_log())
    return [(row["rule"], row["seen"]) for row in findings([audit], SEVERITIES).to_pylist()]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((CREATION, UPDATE, UPDATE, UPDATE), OVER),
        ((CREATION, UPDATE, snapshot(0, 150), UPDATE, UPDATE), [("update_over_limit", "2")]),
        ((CREATION, UPDATE, UPDATE, WRITE, UPDATE, UPDATE, UPDATE), OVER),
        ((CREATION, UPDATE, WRITE), [("early_write_snapshot", "1")]),
        ((CREATION, snapshot(0, 99)), [("cold_snapshot_too_early", "99")]),
        ((CREATION, COLD, snapshot(0, 249)), [("cold_snapshot_too_early", "249")]),
        ((snapshot(50), UPDATE, snapshot(50, 149)), [("cold_snapshot_too_early", "149")]),
    ],
)  # fmt: skip
def test_a_broken_rule_is_a_finding(values, expected):
    assert rules(*values) == expected


@pytest.mark.parametrize(
    "values",
    [
        (CREATION, UPDATE, UPDATE, WRITE, UPDATE, UPDATE, WRITE),
        (CREATION, UPDATE, UPDATE, COLD, UPDATE, UPDATE),
        (CREATION, UPDATE, TOMBSTONE, CREATION, UPDATE, UPDATE),
        (CREATION, COLD, snapshot(0, 250)),
        (CREATION, TOMBSTONE, snapshot(0, 99)),
    ],
)
def test_what_is_near_is_none(values):
    assert rules(*values) == []


def test_the_counter_needs_the_log_from_offset_0_and_one_limit():
    over = (CREATION, UPDATE, COLD, UPDATE, UPDATE)
    assert rules(*over) == [("update_over_limit", "2")]
    assert rules(*over, is_from_zero=False) == []
    assert rules(*over, config=CONFIG._replace(most_updates=3)) == []


@pytest.mark.parametrize("from_ms", [1, 20, 1000])
def test_nothing_counts_that_began_before_the_configuration_is_known(from_ms):
    over = (CREATION, UPDATE, UPDATE, UPDATE, snapshot(0, 99))
    expected = [("cold_snapshot_too_early", "99")] if from_ms <= 20 else []
    assert rules(*over, config=CONFIG._replace(from_ms=from_ms)) == expected


@pytest.mark.parametrize("seed", range(3))
def test_histories_of_the_coordinator_keep_its_configuration(seed):
    history = History(seed, limit=5).run(150)
    rows = log_records(history.entries)
    decoded = decode_rows(pa.Table.from_batches([rows]), rows.column("timestamp_ms").to_numpy())
    for limit, has_findings in ((5, False), (4, True)):
        config, audit = CoordinatorConfig(limit, limit, 1000, 0), audit_of()
        audit.auditor.take(decoded.records)
        ConfiguredAudit(config, audit).take(decoded.records)
        codes = {row["rule"] for row in findings([audit], SEVERITIES).to_pylist()}
        assert ("update_over_limit" in codes) == has_findings
        assert "cold_snapshot_too_early" not in codes


def test_records_behind_a_missing_one_are_not_tested():
    audit = audit_of()
    records = table([(KEY, value, False) for value in (CREATION, UPDATE, UPDATE, UPDATE, UPDATE)])
    audit.auditor.take(records)
    audit.first_losses = {-1: int(records.column("log_offset")[4].as_py())}
    ConfiguredAudit(CONFIG, audit).take(records)
    assert [row["count"] for row in findings([audit], SEVERITIES).to_pylist()] == [1, 1]


def test_state_partitions_are_counted_each_for_itself():
    values = [(KEY, value, False) for value in (CREATION, UPDATE, COLD, UPDATE, UPDATE)]
    logs = [
        LogFacts(state_partition=number, first_offset=first, log_start_offset=0, has_newest=False)
        for number, first in ((0, 0), (3, 0), (4, 1))  # that of 3 lacks a record; 4 is not there from offset 0 on
    ]
    audit = PartitionsAudit(logs)
    audit.first_losses = {of_log(1): 0}
    configured = ConfiguredAudit(CONFIG, audit)
    for rows in (table(values[:2]), table(values[2:], 2)):
        index = rows.schema.get_field_index("state_partition")
        numbers = [pa.repeat(pa.scalar(log.state_partition, pa.int32()), rows.num_rows) for log in logs]
        parts = [rows.set_column(index, rows.schema.field(index), number) for number in numbers]
        records = pa.concat_tables(parts)
        audit.auditor.take_logs(records, audit.logs_of(records), {})
        configured.take(records)
        configured = ConfiguredAudit(CONFIG, audit, np.concatenate(configured.by_log()))
    rows = findings([audit], SEVERITIES).to_pylist()
    assert [(row["state_partition"], row["rule"]) for row in rows] == [(0, "update_over_limit")]
