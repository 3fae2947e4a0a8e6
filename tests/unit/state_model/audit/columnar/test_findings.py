"""Findings over all state partitions: misplaced share partitions, a changed number, the worst first."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sharelens.evidence.decoding import decode_rows
from state_model.audit.columnar.findings import finding_counts, findings, misplacements
from state_model.audit.columnar.partition import PartitionAudit
from state_model.audit.columnar.violations import violation_rows
from state_model.audit.table import RULES
from state_model.java import partition_for
from state_model.share_records import SharePartitionKey, ShareRecord, ShareSnapshot, encode_record
from tests.audit.histories import START_MS, TOPIC_ID, Entry
from tests.audit.mutations import log_records

KEYS = [SharePartitionKey(group_id=f"group-{number}", topic_id=TOPIC_ID, partition=number % 5) for number in range(40)]
NO_BOUNDS = (None, None)


def creation(**fields):
    times = {"create_timestamp_ms": START_MS, "write_timestamp_ms": START_MS}
    return ShareSnapshot(
        **{"snapshot_epoch": 0, "state_epoch": 1, "leader_epoch": 0, "start_offset": -1, "state_batches": ()}
        | times
        | fields
    )


def audits(places):
    """The audits of state partitions, each with creations of its share partitions."""
    by_partition: dict[int, list[ShareRecord]] = {}
    for key, state_partition in places:
        by_partition.setdefault(state_partition, []).append(ShareRecord(key=key, value=creation()))
    result = []
    for number, records in sorted(by_partition.items()):
        entries = [Entry(offset, START_MS, *encode_record(record)) for offset, record in enumerate(records)]
        audit = PartitionAudit(number, first_offset=0, log_start_offset=0, has_newest=True)
        rows = log_records(entries)
        times = rows.column("timestamp_ms").to_numpy()
        decoded = decode_rows(pa.Table.from_batches([rows]), times)
        audit.take(rows, times, decoded.records, decoded.problems)
        audit.close()
        result.append(audit)
    return result


def findings_of(places):
    parts = audits(places)
    misplacements(parts, NO_BOUNDS)
    return findings(parts, {rule.id: rule.severity for rule in RULES if rule.severity}).to_pylist()


@pytest.mark.slow
@pytest.mark.parametrize("count", [4, 50])
def test_a_healthy_cluster_has_no_finding(count):
    assert findings_of([(key, partition_for(*key, count)) for key in KEYS]) == []


@pytest.mark.slow
def test_a_misplaced_share_partition_is_named_with_the_place_where_it_belongs():
    places = [(key, partition_for(*key, 50)) for key in KEYS]
    wrong = (places[3][1] + 1) % 50
    (row,) = findings_of([*places[:3], (KEYS[3], wrong), *places[4:]])
    assert (row["rule"], row["severity"], row["group_id"]) == ("misplaced_share_partition", "error", "group-3")
    assert (row["expected"], row["seen"], row["state_partition"]) == (str(places[3][1]), str(wrong), wrong)
    assert row["records"][0]["partition"] == wrong


@pytest.mark.slow
def test_a_changed_number_of_state_partitions_is_one_cause():
    places = [(key, partition_for(*key, 60 if number < 8 else 50)) for number, key in enumerate(KEYS)]
    rows = findings_of(places)
    assert {row["rule"] for row in rows} == {"state_partition_count_changed"}
    assert {(row["expected"], row["seen"]) for row in rows} == {("50", "60")}


def test_findings_about_the_log_count_where_no_share_partition_is_chosen():
    parts = audits([(key, 0) for key in KEYS[:2]])
    parts[0].tally.add(violation_rows(rule=31, log_offset=7, log_time_ms=START_MS, field=16, expected=3, seen=7))
    parts[0].tally.add(violation_rows(rule=100, share_partition=1, log_offset=9, log_time_ms=START_MS, field=1))
    severities = {31: "warning", 100: "error"}
    assert finding_counts(parts, severities) == {"warning": 1, "error": 1}
    for group, counts in ((KEYS[0].group_id, {}), (KEYS[1].group_id, {"error": 1})):
        condition = pc.field("group_id") == group
        assert finding_counts(parts, severities, lambda rows, chosen=condition: rows.filter(chosen)) == counts


def test_errors_come_before_warnings():
    (audit,) = audits([(KEYS[0], 0)])
    severities = {80: "warning", 100: "error"}
    rows = log_records(
        [
            Entry(1, START_MS, *encode_record(ShareRecord(key=KEYS[1], value=creation(snapshot_epoch=4)))),
            Entry(2, START_MS, *encode_record(ShareRecord(key=KEYS[0], value=creation(snapshot_epoch=9)))),
        ]
    )
    times = rows.column("timestamp_ms").to_numpy()
    decoded = decode_rows(pa.Table.from_batches([rows]), times)
    audit.take(rows, times, decoded.records, decoded.problems)
    assert [(row["severity"], row["number"]) for row in findings([audit], severities).to_pylist()] == [
        ("error", 10),
        ("warning", 8),
    ]


def test_violations_of_rules_that_are_not_listed_have_no_rows():
    parts = audits([(KEYS[0], 0)])
    parts[0].tally.add(violation_rows(rule=31, log_offset=7, log_time_ms=START_MS, field=16, expected=3, seen=7))
    assert findings(parts, {31: "warning"}).num_rows == 1
    assert findings(parts, {31: "warning"}, listed=set()).num_rows == 0
