"""Start offsets that pass records without an outcome: a violation where the topic's log, read late enough, has them."""

import numpy as np
import pytest

from state_model.audit.columnar.auditor import Auditor
from state_model.audit.columnar.passed_offsets import LOG_START_MS, NO_RECORD, PassedOffsets
from state_model.audit.columnar.proofs import Proofs
from state_model.audit.table import RULES
from state_model.share_records import SharePartitionKey, ShareSnapshot, ShareUpdate, StateBatch
from tests.logs.replay_logs import table

SEVERITIES = {rule.id: rule.severity for rule in RULES if rule.severity}
KEY = SharePartitionKey(group_id="g", topic_id="T" * 22, partition=0)
CREATED = ShareSnapshot(
    snapshot_epoch=0, state_epoch=1, leader_epoch=0, start_offset=0, create_timestamp_ms=0, write_timestamp_ms=0,
    state_batches=(), delivery_complete_count=0,
)  # fmt: skip


def write(start, first, last, state=2):
    batches = (StateBatch(first, last, state, 1),)
    return ShareUpdate(
        snapshot_epoch=0, leader_epoch=0, start_offset=start, state_batches=batches, delivery_complete_count=1
    )


def findings(*writes, until_ms=LOG_START_MS + 1_000, records=range(100)):
    """Each record of the state log in a chunk of its own; records are 10 ms apart."""
    rows = table([(KEY, value, False) for value in (CREATED, *writes)])
    proofs, auditor = Proofs(), Auditor(is_from_zero=True)

    def records_in(place, firsts, lasts):
        spans = zip(firsts.tolist(), lasts.tolist(), strict=True)
        return np.array([next((at for at in records if first <= at <= last), NO_RECORD) for first, last in spans])

    passed = PassedOffsets(
        proofs, known_until_ms=lambda place: until_ms, records_in=records_in, topic_of=lambda place: "orders"
    )
    for row in range(rows.num_rows):
        auditor.take(rows.slice(row, 1))
        passed.take(auditor.passed)
    return proofs.findings(SEVERITIES).to_pylist()


def test_the_finding_names_the_first_record_that_is_passed():
    (row,) = findings(write(0, 0, 4), write(8, 8, 9), write(12, 12, 12))
    assert (row["rule"], row["severity"], row["count"]) == ("start_offset_passes_record", "warning", 2)
    assert (row["field"], row["expected"], row["seen"]) == ("start_offset", "<= 5", "8")
    assert (row["first_offset"], row["last_offset"], row["first_log_offset"], row["last_log_offset"]) == (5, 7, 2, 3)
    places = [(record["topic"], record["offset"]) for record in row["records"]]
    assert places == [("__share_group_state", offset) for offset in range(4)] + [("orders", 5)]


def test_a_record_counts_once_whatever_it_passes():
    (row,) = findings(write(0, 2, 2), write(9, 9, 9))
    assert (row["expected"], row["count"]) == ("<= 0", 1)


@pytest.mark.parametrize("offsets", [[], [0, 4, 8, 9], [5000]])
def test_offsets_without_a_record_may_be_passed(offsets):
    assert findings(write(0, 0, 4), write(8, 8, 9), records=offsets) == []


@pytest.mark.parametrize(("until_ms", "count"), [(None, 0), (LOG_START_MS + 19, 0), (LOG_START_MS + 20, 1)])
def test_the_topic_has_to_be_known_for_two_minutes_behind_the_record(until_ms, count):
    assert len(findings(write(0, 0, 4), write(8, 8, 9), until_ms=until_ms)) == count
