"""What the check of a journal finds, and what it must let pass."""

import pytest

from sharelens.workloads.check import check

GROUP, TOPIC = "g", "t"


def begin(limit=3, **configs):
    return [
        {"event": "begin", "at_ms": 0, "topic": TOPIC, "groups": [GROUP]},
        {"event": "group_config", "at_ms": 0, "group": GROUP, "delivery_count_limit": limit, "configs": configs},
    ]


def delivery(offset, count=1, at_ms=10, since_ms=None, record_id=None):
    return {
        "event": "delivery",
        "at_ms": at_ms,
        "since_ms": at_ms - 1 if since_ms is None else since_ms,
        "group": GROUP,
        "member": "m",
        "topic": TOPIC,
        "partition": 0,
        "offset": offset,
        "delivery_count": count,
        "id": offset if record_id is None else record_id,
    }


def ack(offset, kind="accept", outcome="confirmed", count=1, at_ms=20):
    at = {"group": GROUP, "member": "m", "topic": TOPIC, "partition": 0}
    return {"event": "ack", "at_ms": at_ms, "type": kind, "outcome": outcome, "offsets": [offset]} | at | {
        "delivery_counts": [count]
    }  # fmt: skip


def produce(offset, outcome="acknowledged", **fields):
    at = {"topic": TOPIC, "partition": 0, "offset": offset, "id": offset}
    return {"event": "produce", "at_ms": 1, "outcome": outcome} | at | fields


def reset(start, outcome="done"):
    at = {"group": GROUP, "topic": TOPIC, "partition": 0}
    return {"event": "reset", "at_ms": 25, "start_offset": start, "outcome": outcome} | at


def log(*offsets):
    return [
        {"event": "log", "at_ms": 90, "topic": TOPIC, "partition": 0, "offsets": list(offsets), "ids": list(offsets)},
        {"event": "log_read", "at_ms": 91, "topic": TOPIC},
    ]


def codes(*entries):
    return [finding.code for finding in check(enumerate(entries, 1)).findings]


def test_an_application_must_count_each_acknowledged_record_once():
    counted = [
        {"event": "counted", "at_ms": 80, "group": "app", "ids": [1, 2], "counts": [1, 2]},
        {"event": "counts_read", "at_ms": 81, "group": "app"},
    ]
    sent = [produce(1), produce(2), produce(3), produce(4, "unanswered")]
    assert codes(*sent, *counted) == ["counted_twice", "not_counted"]
    assert codes(*sent) == codes(produce(1), *counted) == []


@pytest.mark.parametrize("kind", ["accept", "reject"])
def test_a_delivery_after_a_confirmed_end_is_found_with_both_lines(kind):
    (finding,) = check(enumerate([*begin(), delivery(0), ack(0, kind), delivery(0, 2, at_ms=30)], 1)).findings
    assert (finding.code, finding.where, finding.line) == ("delivered_after_end", "g/t-0@0", 5)
    assert "line 4" in finding.why


@pytest.mark.parametrize(
    "answer",
    [ack(0, "release"), ack(0, outcome="failed"), ack(0, outcome="unanswered"), ack(0, "reject", outcome="failed")],
    ids=["released", "failed", "unanswered", "failed reject"],
)
def test_a_delivery_after_a_release_or_an_unconfirmed_end_is_none(answer):
    assert codes(*begin(), delivery(0), answer, delivery(0, 2, at_ms=30)) == []


def test_a_count_that_restarts_after_a_confirmed_end_is_a_finding():
    assert codes(*begin(), delivery(0, 2), ack(0, count=2), delivery(0, 1, at_ms=30)) == ["delivered_after_end"]


def test_a_delivery_that_a_client_may_have_buffered_since_before_the_end_is_ambiguous():
    checked = check(enumerate([*begin(), delivery(0, 2), ack(0, count=2), delivery(0, 1, at_ms=30, since_ms=15)], 1))
    assert checked.findings == ()
    assert checked.counts["deliveries_ambiguous"] == 1


def test_a_later_delivery_count_after_the_end_can_not_be_older():
    assert codes(*begin(), delivery(0), ack(0), delivery(0, 2, at_ms=30, since_ms=15)) == ["delivered_after_end"]


@pytest.mark.parametrize("outcome", ["asked", "done"])
def test_a_reset_begins_a_new_initialisation(outcome):
    assert codes(*begin(), delivery(0), ack(0), reset(0, outcome), delivery(0, 1, at_ms=30)) == []


def test_a_count_above_every_limit_so_far_is_found():
    lowered = begin(limit=2)[1] | {"at_ms": 5}
    raised = begin(limit=4)[1] | {"at_ms": 5}
    assert codes(*begin(3), delivery(0, 4)) == ["count_above_limit"]
    assert codes(*begin(3), lowered, delivery(0, 3)) == []
    assert codes(*begin(3), raised, delivery(0, 4)) == []


def test_an_acknowledged_record_that_the_log_lacks_is_found():
    entries = [*begin(), produce(0), produce(1), delivery(0), delivery(1)]
    assert codes(*entries, *log(0)) == ["produce_missing"]
    assert codes(*entries, *log(0, 1)) == []


def test_another_record_at_the_offset_is_found():
    assert codes(*begin(), produce(0), delivery(0, record_id=7)) == ["other_record"]


@pytest.mark.parametrize("outcome", ["failed", "unanswered"])
def test_a_produce_that_was_not_acknowledged_may_be_missing(outcome):
    assert codes(*begin(), produce(0, outcome), *log()) == []


def test_a_record_that_never_reached_a_group_is_found():
    assert codes(*begin(), produce(0), *log(0)) == ["undelivered"]


def test_records_below_a_reset_need_not_be_delivered_again_and_those_above_must():
    entries = [*begin(), produce(0), produce(1), delivery(0), delivery(1), reset(1)]
    assert codes(*entries, *log(0, 1)) == ["undelivered"]
    assert codes(*entries, delivery(1, at_ms=30), *log(0, 1)) == []


def test_a_killed_run_has_no_log_to_compare_with_and_says_so():
    checked = check(enumerate([*begin(), produce(0)], 1))
    assert (checked.findings, checked.counts["produced_unchecked"]) == ((), 1)


def transaction(outcome):
    return {"event": "transaction", "at_ms": 5, "transaction": 4, "outcome": outcome}


def test_a_record_of_an_aborted_transaction_must_be_neither_seen_nor_there():
    committed = begin(**{"share.isolation.level": "read_committed"})
    record = produce(0, transaction=4)
    assert codes(*committed, record, transaction("aborted"), *log()) == []
    assert codes(*committed, record, transaction("aborted"), delivery(0), *log(0)) == [
        "aborted_delivered",
        "aborted_visible",
    ]
    assert codes(*begin(), record, transaction("aborted"), delivery(0), *log()) == []
    assert codes(*committed, record, transaction("committed"), *log()) == ["produce_missing", "undelivered"]
    assert codes(*committed, record, transaction("unanswered"), *log()) == []
