"""The audit of a state partition: bytes, batches, offsets, the log start, and what only the end of the log shows."""

import itertools

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.evidence.decoding import decode_rows
from state_model.audit.columnar.continuation import AUDIT_STATE
from state_model.audit.columnar.findings import findings
from state_model.audit.columnar.partition import PartitionAudit
from state_model.audit.delivery import PENDING_MS
from state_model.audit.table import RULES
from state_model.share_records import (
    SharePartitionKey,
    ShareRecord,
    ShareSnapshot,
    ShareUpdate,
    StateBatch,
    Tombstone,
    encode_record,
)
from tests.audit.histories import START_MS, TOPIC_ID, Entry, History
from tests.audit.mutations import log_records
from tests.logs.replay_logs import HOSTILE_LOGS, LOGS

KEY, OTHER = (SharePartitionKey(group_id="g", topic_id=TOPIC_ID, partition=number) for number in range(2))
SEVERITIES = {rule.id: rule.severity for rule in RULES if rule.severity}


def snapshot(**fields):
    values = {"snapshot_epoch": 0, "state_epoch": 1, "leader_epoch": 0, "start_offset": 0, "delivery_complete_count": 0}
    times = {"create_timestamp_ms": START_MS, "write_timestamp_ms": START_MS, "state_batches": ()}
    return ShareSnapshot(**{**values, **times, **fields})


def update(*batches, **fields):
    values = {"snapshot_epoch": 0, "leader_epoch": 0, "start_offset": 0, "delivery_complete_count": 0}
    return ShareUpdate(**{**values, **fields, "state_batches": tuple(StateBatch(*batch) for batch in batches)})


def entry(log_offset, value, key=KEY, after_ms=0):
    return Entry(log_offset, START_MS + after_ms, *encode_record(ShareRecord(key=key, value=value)))


def audited(entries, *, columns=None, chunk=None, **options):
    """Codes of the rules with first log offset and seen value, in the order of findings."""
    audit = PartitionAudit(0, **{"first_offset": 0, "log_start_offset": 0, "has_newest": True, **options})
    rows = log_records(entries)
    for name, values in (columns or {}).items():
        index = rows.schema.get_field_index(name)
        rows = rows.set_column(index, rows.schema.field(index), pa.array(values, rows.schema.field(index).type))
    for begin in range(0, rows.num_rows, chunk or len(entries)):
        part = rows.slice(begin, chunk or len(entries))
        times = part.column("timestamp_ms").to_numpy()
        decoded = decode_rows(pa.Table.from_batches([part]), times)
        audit.take(part, times, decoded.records, decoded.problems)
    audit.close()
    return [(row["rule"], row["first_log_offset"], row["seen"]) for row in findings([audit], SEVERITIES).to_pylist()]


def test_a_healthy_log_has_no_finding():
    assert audited([entry(0, snapshot()), entry(1, update((0, 4, 2, 1), delivery_complete_count=5))]) == []


def test_offsets_that_are_missing_or_go_back():
    log = [entry(0, snapshot()), entry(3, update(delivery_complete_count=0, leader_epoch=1)), entry(2, Tombstone())]
    assert audited(log) == [("log_offset_goes_back", 2, "2"), ("log_offsets_missing", 3, "3")]


def test_a_state_behind_a_hole_is_not_compared_until_the_next_snapshot():
    log = [
        entry(0, snapshot()),
        entry(5, update(snapshot_epoch=7)),
        entry(6, snapshot(snapshot_epoch=8, leader_epoch=1)),
        entry(7, update((0, 0, 2, 1), snapshot_epoch=7, leader_epoch=1, delivery_complete_count=1)),
    ]
    assert audited(log) == [("update_of_other_snapshot", 7, "7"), ("log_offsets_missing", 5, "5")]


@pytest.mark.one_in(3)
@pytest.mark.slow
@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_chunks_make_no_difference(chunk):
    log = History(7).run(80).entries
    damaged = [*log[:20], *log[21:]]
    assert audited(damaged, chunk=chunk) == audited(damaged) != []


@pytest.mark.parametrize(
    ("columns", "actual"),
    [
        ({"attributes": [0, 16]}, "16"),
        ({"producer_id": [-1, 7]}, "7"),
        ({"headers": [[], [{"key": "a", "value": b"b"}]]}, "1"),
    ],
)
def test_batches_that_no_coordinator_writes(columns, actual):
    log = [entry(0, snapshot()), entry(1, snapshot(snapshot_epoch=1))]
    assert audited(log, columns=columns) == [("odd_record_batch", 1, actual)]


def test_the_log_start_is_a_snapshot_or_a_tombstone():
    log = [entry(0, snapshot()), entry(1, update((0, 0, 0, 1))), entry(2, snapshot(snapshot_epoch=1))]
    assert audited(log, log_start_offset=2) == []
    assert audited(log, log_start_offset=1) == [("log_starts_inside_history", 1, "update")]


def test_a_needed_snapshot_below_the_log_start():
    log = [entry(0, snapshot()), entry(1, snapshot(), OTHER), entry(2, snapshot(snapshot_epoch=1))]
    pruned = ("needed_snapshot_pruned", 1, "1")
    assert audited(log, log_start_offset=2) == [pruned]
    assert audited(log, log_start_offset=2, has_newest=False) == []
    assert audited(log, log_start_offset=1) == []


def test_updates_without_a_snapshot_are_orphans():
    log = [entry(5, update((0, 9, 2, 1), snapshot_epoch=4)), entry(6, snapshot(snapshot_epoch=9, leader_epoch=2))]
    assert audited(log, first_offset=5, log_start_offset=5) == [("log_starts_inside_history", 5, "update")]
    assert [rule for rule, *_ in audited(log[:1], first_offset=5, log_start_offset=5)] == [
        "needed_snapshot_pruned",
        "log_starts_inside_history",
    ]


def test_archiving_that_lasts_is_a_finding_at_the_end():
    log = [entry(0, snapshot()), entry(1, update((3, 3, 3, 2)))]
    later = entry(2, snapshot(), OTHER, after_ms=PENDING_MS + 1)
    archiving = "archiving_before_4_4"
    assert [rule for rule, *_ in audited([*log, later])] == [archiving, "archiving_too_long", "written_at_other_time"]
    assert [rule for rule, *_ in audited(log)] == [archiving]
    done = entry(2, update((3, 3, 4, 2), delivery_complete_count=1))
    assert [rule for rule, *_ in audited([*log, done, later._replace(log_offset=3)])] == [
        archiving,
        "written_at_other_time",
    ]


def test_violations_outside_the_interval_do_not_count():
    log = [entry(0, snapshot()), *(entry(at, update((at, at, 1, 1)), after_ms=at) for at in range(1, 6))]
    (finding,) = audited(log, between_ms=(START_MS + 2, START_MS + 4))
    assert finding == ("acquired_state_written", 2, "ACQUIRED")


def test_the_replay_is_compared(monkeypatch):
    from state_model.columnar import replay

    honest = replay.replay_states

    def forgetful(records, *, seed):
        state = honest(records, seed=seed)
        index = state.schema.get_field_index("start_offset")
        return state.set_column(index, state.schema.field(index), pa.array([99] * state.num_rows, pa.int64()))

    monkeypatch.setattr(replay, "replay_states", forgetful)
    assert audited([entry(0, snapshot(start_offset=4))]) == [("replay_disagrees", 0, "99")]


def without_tags(value):
    if isinstance(value, Tombstone):
        return value
    batches = tuple(batch._replace(unknown_tags=()) for batch in value.state_batches)
    return value._replace(state_batches=batches, unknown_tags=())


@pytest.mark.slow
@given(LOGS | HOSTILE_LOGS, st.none() | st.integers(1, 3))
def test_two_implementations_of_the_merge_agree_on_any_log(log, chunk):
    records = [ShareRecord(key=key, value=without_tags(value)) for key, value, _ in log]
    entries = [Entry(offset, START_MS, *encode_record(record)) for offset, record in enumerate(records)]
    assert "replay_disagrees" not in {rule for rule, *_ in audited(entries, chunk=chunk)}


def test_a_content_of_the_replay_that_differs_is_named_by_its_offset(monkeypatch):
    from state_model.columnar import replay

    honest = replay.replay_states
    log = [entry(0, snapshot()), entry(1, update((0, 4, 2, 1), delivery_complete_count=5))]

    def without_last_update(records, *, seed):
        return honest(records.slice(0, records.num_rows - 1), seed=seed)

    monkeypatch.setattr(replay, "replay_states", without_last_update)
    assert [rule for rule, *_ in audited(log)] == ["replay_disagrees"]


def finding_rows(entries, **options):
    audit = PartitionAudit(0, **{"first_offset": 0, "log_start_offset": 0, "has_newest": True, **options})
    rows = log_records(entries)
    times = rows.column("timestamp_ms").to_numpy()
    decoded = decode_rows(pa.Table.from_batches([rows]), times)
    audit.take(rows, times, decoded.records, decoded.problems)
    return closed_findings(audit)


def test_a_finding_names_the_records_that_it_can_have_affected():
    starts = (20, 16, 20, 12)
    log = [entry(0, snapshot()), *(entry(at, update(start_offset=start)) for at, start in enumerate(starts, 1))]
    (row,) = (row for row in finding_rows(log) if row["severity"] == "error")
    assert (row["rule"], row["count"], row["impact"]) == ("start_offset_goes_back", 2, "delivered_again")
    assert (row["first_offset"], row["last_offset"]) == (12, 19)
    assert row["impact_text"] == "records 12-19 may have been delivered again after their outcome"


def test_findings_behind_missing_records_are_of_incomplete_evidence():
    batch = update((3, 3, 1, 1))
    (row,) = finding_rows([entry(0, snapshot()), entry(1, batch)])
    assert (row["rule"], row["completeness"]) == ("acquired_state_written", "complete")
    rows = finding_rows([entry(0, snapshot()), entry(2, batch)])
    assert {row["rule"]: row["completeness"] for row in rows} == {
        "acquired_state_written": "incomplete",
        "log_offsets_missing": "incomplete",
    }


def test_an_undecodable_record_leaves_the_evidence_of_others_complete():
    cut = entry(1, update((0, 0, 1, 1)), OTHER)
    log = [entry(0, snapshot()), cut._replace(value=cut.value[:5]), entry(2, update((3, 3, 1, 1)))]
    rows = {row["rule"]: row["completeness"] for row in finding_rows(log)}
    assert rows == {"undecodable_record": "incomplete", "acquired_state_written": "complete"}
    of_other = entry(3, update((3, 3, 1, 1)), OTHER)
    assert {row["completeness"] for row in finding_rows([*log[:2], of_other._replace(log_offset=2)])} == {"incomplete"}


def audit_in_runs(parts, **options):
    """The audit after all parts of a log, each taken by an audit that goes on from the stored state of the one before.

    The state goes through Python values, as through a file.
    """
    state = None
    for part in parts:
        audit = PartitionAudit(0, first_offset=0, has_newest=True, replays=False, state=state, **options)
        if part:
            rows = log_records(part)
            times = rows.column("timestamp_ms").to_numpy()
            decoded = decode_rows(pa.Table.from_batches([rows]), times)
            audit.take(rows, times, decoded.records, decoded.problems)
        state = pa.Table.from_pylist(audit.state().to_pylist(), schema=AUDIT_STATE)
    return audit, state


def closed_findings(audit):
    audit.close()
    return findings([audit], SEVERITIES).to_pylist()


@st.composite
def damaged_logs(draw):
    """Entries of a log, some of them lost or not decodable."""
    entries = []
    for offset, (key, value, is_lost) in enumerate(draw(LOGS | HOSTILE_LOGS)):
        key_bytes, value_bytes = encode_record(ShareRecord(key=key, value=without_tags(value)))
        if draw(st.sampled_from([False] * 7 + [True])):
            value_bytes = b"\0\7"
        if not (is_lost and draw(st.booleans())):
            entries.append(Entry(offset, START_MS + 10 * offset, key_bytes, value_bytes))
    return entries


@pytest.mark.slow
@given(damaged_logs(), st.lists(st.integers(0, 12), max_size=3), st.integers(0, 6))
def test_an_audit_in_several_runs_is_the_audit_in_one(entries, cuts, log_start):
    bounds = [0, *sorted(min(cut, len(entries)) for cut in cuts), len(entries)]
    parts = [entries[first:end] for first, end in itertools.pairwise(bounds)]
    full_audit, _ = audit_in_runs([entries], log_start_offset=log_start)
    in_runs, _ = audit_in_runs(parts, log_start_offset=log_start)
    assert closed_findings(in_runs) == closed_findings(full_audit)


@pytest.mark.slow
def test_a_history_audited_in_many_runs_is_the_audit_in_one():
    log = History(11).run(200).entries
    damaged = [entry for number, entry in enumerate(log) if number % 23 != 7]
    assert len(damaged) > 150
    full_audit, state = audit_in_runs([damaged], log_start_offset=0)
    in_runs, last_state = audit_in_runs([damaged[at : at + 9] for at in range(0, len(damaged), 9)], log_start_offset=0)
    assert last_state.equals(state)
    assert closed_findings(in_runs) == closed_findings(full_audit) != []


def test_a_log_start_that_moves_between_runs_is_looked_up_again():
    log = [entry(0, snapshot()), entry(1, update((0, 0, 0, 1))), entry(3, snapshot(snapshot_epoch=1))]
    _, state = audit_in_runs([log], log_start_offset=0)
    moved = PartitionAudit(0, first_offset=0, log_start_offset=1, has_newest=False, replays=False, state=state)
    rows = log_records(log)
    moved.take_log_start(decode_rows(pa.Table.from_batches([rows])).records)
    assert [row["rule"] for row in closed_findings(moved)] == ["log_offsets_missing", "log_starts_inside_history"]
    moved = PartitionAudit(0, first_offset=0, log_start_offset=3, has_newest=False, replays=False, state=state)
    assert closed_findings(moved) == []


def test_what_was_noted_below_the_records_that_are_left_stays():
    log = [
        entry(0, snapshot()),
        entry(1, update((0, 0, 1, 1))),
        entry(3, snapshot(start_offset=9), OTHER),
        entry(4, update((9, 9, 1, 1), start_offset=9), OTHER),
        entry(5, update((2, 2, 1, 1))),
        entry(6, update((3, 3, 1, 1))),
    ]
    _, state = audit_in_runs([log], log_start_offset=0)
    tail_audit = PartitionAudit(0, first_offset=5, log_start_offset=0, has_newest=True, replays=False)
    tail_audit.keep_below(state, 5)
    rows = log_records(log[4:])
    times = rows.column("timestamp_ms").to_numpy()
    decoded = decode_rows(pa.Table.from_batches([rows]), times)
    tail_audit.take(rows, times, decoded.records, decoded.problems)
    full_audit, _ = audit_in_runs([log], log_start_offset=0)
    assert tail_audit.state().column("violations").equals(full_audit.state().column("violations"))
    assert closed_findings(tail_audit) == closed_findings(full_audit) != []
    assert tail_audit.auditor.count.tolist() == [3, 2]
