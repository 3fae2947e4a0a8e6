"""Rules about lives of share partitions."""

from typing import Any

from sharelens.findings import lives
from sharelens.findings.finding import ERROR, INFO, WARNING
from sharelens.findings.thresholds import Thresholds
from tests.findings import NOW_MS, TOPIC, signs_with, stall

THRESHOLDS = Thresholds()
NEW_TOPIC = "AAAAAAAAAAAAAAAAAAAAAg"


def event(name: str, **values: Any) -> dict[str, Any]:
    return {"event": name, "log_time_ms": NOW_MS - 1_000, "start_offset_after": 9} | values


def test_a_topic_that_begins_above_an_unfinished_offset_lost_records() -> None:
    (row,) = lives.records_skipped(signs_with(stalls=[stall(0)], log_starts={(TOPIC, 0): 8}), THRESHOLDS)
    assert (row.severity, row.size) == (ERROR, 3)
    assert row.text == "orders-0 begins at offset 8, and offset 5 was not finished"
    for start in (5, 0):
        assert (
            list(lives.records_skipped(signs_with(stalls=[stall(0)], log_starts={(TOPIC, 0): start}), THRESHOLDS)) == []
        )


def test_a_reset_over_unfinished_records_is_a_warning() -> None:
    skipping = event("reset", skipped_first_offset=10, skipped_last_offset=19, settled_skipped=4)
    (row,) = lives.records_skipped(signs_with(events=[skipping]), THRESHOLDS)
    assert (row.severity, row.size) == (WARNING, 6)
    finished = skipping | {"settled_skipped": 10}
    assert list(lives.records_skipped(signs_with(events=[finished]), THRESHOLDS)) == []


def test_resets_and_creations_name_the_partition() -> None:
    read = signs_with(events=[event("reset"), event("recreated", partition=1)])
    assert [row.text.partition(" at ")[0] for row in lives.reset(read, THRESHOLDS)] == [
        "orders-0 was reset to start offset 9"
    ]
    assert [row.text.partition(" at ")[0] for row in lives.recreated(read, THRESHOLDS)] == [
        "orders-1 was deleted and created again"
    ]


def test_state_that_is_gone_says_who_deleted_it() -> None:
    gone = [event("deleted", partition=number, deleted_by_inferred="topic") for number in range(4)]
    (row,) = lives.state_deleted(signs_with(events=gone, groups=({"group_id": "g"},)), THRESHOLDS)
    assert row.severity == INFO
    assert row.text.startswith("lost all 4 share partitions of orders at ")
    assert row.text.endswith(": topic orders was deleted")
    by_hand = [row | {"deleted_by_inferred": "group_offsets"} for row in gone]
    (row,) = lives.state_deleted(signs_with(events=by_hand), THRESHOLDS)
    assert row.text.endswith(": an administrator deleted its offsets")
    assert list(lives.state_deleted(signs_with(events=gone, lag=[{"lag": 0}]), THRESHOLDS)) == []


def test_whether_members_still_subscribe_is_unknown_without_the_coordinators_log() -> None:
    (row,) = lives.state_deleted(signs_with(events=[event("deleted")], groups=None), THRESHOLDS)
    assert (row.severity, row.remedy) == (WARNING, "copy __consumer_offsets-3")
    by_hand = event("deleted", deleted_by_inferred="group_offsets")
    (row,) = lives.state_deleted(signs_with(events=[by_hand], groups=None), THRESHOLDS)
    assert (row.severity, row.remedy) == (INFO, None)


def test_members_that_still_subscribe_make_it_a_warning() -> None:
    member = {
        "member_id": "m",
        "client_id": "c",
        "client_host": "h",
        "member_epoch": 1,
        "subscribed_topics": ["orders"],
    }
    read = signs_with(events=[event("deleted")], groups=({"group_id": "g", "members": [member]},))
    assert [row.severity for row in lives.state_deleted(read, THRESHOLDS)] == [WARNING]
    created_again = {"names": {TOPIC: "orders", NEW_TOPIC: "orders"}, "lag": [{"topic_id": NEW_TOPIC, "lag": 0}]}
    read = signs_with(events=[event("deleted")], groups=({"group_id": "g", "members": [member]},), **created_again)
    assert [row.severity for row in lives.state_deleted(read, THRESHOLDS)] == [INFO]
