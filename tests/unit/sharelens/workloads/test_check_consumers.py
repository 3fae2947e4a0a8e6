"""What the check finds in the entries of members of consumer groups, and what it must let pass."""

import pytest

from sharelens.workloads.check import check

AT = {"group": "g", "topic": "t", "partition": 0}


def member(event, name, at_ms, **fields):
    return {"event": event, "at_ms": at_ms, "group": "g", "member": name} | fields


def change(event, name, at_ms):
    return member(event, name, at_ms, partitions=[["t", 0]])


def read(name, at_ms, *offsets):
    return member("read", name, at_ms, **AT, offsets=list(offsets), ids=list(offsets))


def commit(name, since_ms, offset, outcome="confirmed"):
    return member("commit", name, since_ms + 2, **AT, offset=offset, since_ms=since_ms, outcome=outcome)


def findings(*entries):
    return [(each.code, each.where, each.line) for each in check(enumerate(entries, 1)).findings]


ONE_OWNER = [change("assigned", "a", 10), read("a", 12, 0, 1), commit("a", 13, 2), change("revoked", "a", 20)]


def test_a_handover_is_fine_in_any_order_of_the_lines():
    handover = [*ONE_OWNER, change("assigned", "b", 20), read("b", 25, 2), commit("b", 26, 3)]
    assert findings(*handover) == []
    assert findings(*handover[4:], *handover[:4]) == []
    counts = check(enumerate(handover, 1)).counts
    assert (counts["assignments"], counts["reads"], counts["commits_confirmed"]) == (2, 3, 2)


@pytest.mark.parametrize("end", ["left", "killed"])
def test_a_member_that_is_gone_owns_nothing(end):
    assert findings(change("assigned", "a", 10), member(end, "a", 15), change("assigned", "b", 15)) == []


@pytest.mark.parametrize(
    "end", [[], [change("revoked", "a", 21)], [member("left", "a", 21)]], ids=["", "revoked", "left"]
)
def test_a_partition_with_two_owners_is_found(end):
    assert findings(change("assigned", "a", 10), change("assigned", "b", 20), *end) == [("owned_twice", "g/t-0", 2)]


def test_a_member_that_lost_its_partitions_did_not_know_it_before():
    entries = [change("assigned", "a", 10), change("assigned", "b", 20), change("lost", "a", 25)]
    assert findings(*entries) == []
    assert check(enumerate(entries, 1)).counts["ownerships_ambiguous"] == 1


def test_a_record_read_again_after_its_commit_is_found():
    assert findings(*ONE_OWNER, change("assigned", "b", 20), read("b", 25, 1)) == [("read_again", "g/t-0@1", 6)]
    unknown = [commit("a", 13, 2, "failed") if each["event"] == "commit" else each for each in ONE_OWNER]
    assert findings(*unknown, change("assigned", "b", 20), read("b", 25, 1)) == []
    assert findings(*ONE_OWNER, change("assigned", "b", 14), read("b", 25, 1))[1:] == []


def test_only_the_first_read_of_an_owner_begins_at_the_committed_offset():
    assert findings(*ONE_OWNER, change("assigned", "b", 20), read("b", 25, 3), read("b", 26, 4)) == []


@pytest.mark.parametrize(("since_ms", "is_found"), [(19, False), (20, False), (21, True)])
def test_a_confirmed_commit_of_a_fenced_member_is_found(since_ms, is_found):
    entries = [change("assigned", "a", 10), change("assigned", "b", 20), change("lost", "a", 30)]
    late = commit("a", since_ms, 1)
    assert findings(*entries, late) == ([("fenced_commit", "g/t-0@1", 4)] if is_found else [])
    assert findings(*entries, late | {"outcome": "failed", "error": "UNKNOWN_MEMBER_ID"}) == []
    assert findings(*entries, commit("b", since_ms + 5, 1)) == []


def test_records_that_no_member_read_are_undelivered_in_all_topics():
    begin = {"event": "begin", "at_ms": 0, "topic": "t", "topics": ["t", "u"], "groups": ["g"]}
    sent = [
        {
            "event": "produce",
            "at_ms": 1,
            "topic": topic,
            "partition": 0,
            "offset": 0,
            "id": 0,
            "outcome": "acknowledged",
        }
        for topic in ("t", "u")
    ]
    logs = [
        entry
        for topic in ("t", "u")
        for entry in (
            {"event": "log", "at_ms": 90, "topic": topic, "partition": 0, "offsets": [0], "ids": [0]},
            {"event": "log_read", "at_ms": 91, "topic": topic},
        )
    ]
    assert findings(begin, *sent, read("a", 5, 0), *logs) == [("undelivered", "g/u-0@0", None)]
    assert findings(begin, *sent, read("a", 5, 0) | {"ids": [7]}, *logs[:2]) == [("other_record", "g/t-0@0", 4)]
