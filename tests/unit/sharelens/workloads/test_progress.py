"""When a run is done, as its journal's entries tell."""

from sharelens.workloads.progress import Progress
from tests.unit.sharelens.workloads.test_check import ack, delivery, produce, reset


def progress(*entries):
    tracked = Progress(["g"], 3)
    for entry in entries:
        tracked.note(entry)
    return tracked


def test_a_record_is_settled_by_what_ends_it():
    assert not progress(produce(0)).is_settled()
    assert progress(produce(0), delivery(0), ack(0)).is_settled()
    assert progress(produce(0), delivery(0), ack(0, "reject")).is_settled()
    assert not progress(produce(0), delivery(0), ack(0, outcome="failed")).is_settled()
    assert not progress(produce(0), delivery(0), ack(0, "release", count=2)).is_settled()
    assert progress(produce(0), delivery(0, 3), ack(0, "release", count=3)).is_settled()


def test_records_of_a_transaction_count_once_it_is_committed():
    record = produce(0, transaction=1)
    assert progress(record).is_settled()
    assert progress(record, {"event": "transaction", "transaction": 1, "outcome": "aborted"}).is_settled()
    assert not progress(record, {"event": "transaction", "transaction": 1, "outcome": "committed"}).is_settled()


def test_a_reset_opens_again_what_lies_above_it():
    done = [produce(0), produce(1), delivery(0), delivery(1), ack(0), ack(1)]
    assert progress(*done).is_settled()
    assert not progress(*done, reset(1)).is_settled()
    assert progress(*done, reset(1), ack(1)).is_settled()
    assert progress(*done, reset(2)).is_settled()


def test_it_is_quiet_when_all_was_seen_and_nothing_came_since():
    events = [produce(0), delivery(0, at_ms=50)]
    assert progress(*events).is_quiet(51)
    assert not progress(*events).is_quiet(50)
    assert not progress(*events, produce(1)).is_quiet(51)


def test_ends_are_behind_the_last_record_of_each_partition():
    assert progress(produce(0), produce(4), produce(1, partition=2)).end_offsets() == {0: 5, 2: 2}
