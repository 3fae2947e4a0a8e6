"""Rules on the records of __consumer_offsets: what breaks each, what is near it, and what compaction hides."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.broker.coordinators.assignor import assign
from sharelens.evidence.schemas import GROUP_RECORD, ODD_GROUP_RECORD
from state_model.audit.columnar.group_audit import audit_groups
from state_model.audit.columnar.proofs import Proofs
from state_model.audit.columnar.topic_metadata import TopicMetadata
from state_model.audit.periods import BEGINNING, END, Period
from state_model.audit.table import RULES
from state_model.java import partition_for_group
from tests.logs.group_logs import (
    CREATED,
    DELETED,
    LEAVE_ENTRIES,
    assigned,
    assignment_epoch,
    compacted,
    epoch,
    group_log,
    initialized,
    joined,
    operated,
    subscribed,
    target,
)

SEVERITIES = {rule.id: rule.severity for rule in RULES if rule.severity}
FIRST = (initialized(0, 1), *CREATED)
ENDED_STREAMS = (17, None, None)
"""The end of a streams group."""


def of_state(state):
    """The current assignment of the member in a state."""
    kind, member, value = assigned("m", 2, 0, 1)
    return kind, member, {**value, "state": state}


def findings(records, odd=(), *, count=None, metadata=None):
    proofs = Proofs()
    odd_records = pa.Table.from_pylist(list(odd), ODD_GROUP_RECORD)
    audit_groups(records, odd_records, frozenset({0}), proofs, count=count, metadata=metadata)
    return proofs.findings(SEVERITIES).to_pylist()


def rules(*entries):
    return [row["rule"] for row in findings(group_log(*entries))]


@pytest.mark.parametrize(
    ("entries", "rule"),
    [
        ((*FIRST, epoch(3), epoch(3)), "group_epoch_skips"),
        ((*FIRST, epoch(3), epoch(2)), "group_epoch_skips"),
        ((*FIRST, epoch(3), epoch(4), epoch(6)), "group_epoch_skips"),
        ((epoch(2), epoch(7)), "group_epoch_skips"),
        ((*FIRST, assignment_epoch(3)), "epochs_out_of_order"),
        ((*FIRST, assigned("m", 3, 0)), "epochs_out_of_order"),
        ((*FIRST, epoch(3), assigned("m", 3, 0)), "epochs_out_of_order"),
        ((*FIRST, target("m", 2)), "assigned_without_state"),
        ((*FIRST, initialized(0), target("m", 0, 1)), "assigned_without_state"),
        ((*FIRST, initialized(0, initializing=[1]), target("m", 1)), "assigned_without_state"),
        ((*FIRST, of_state(1)), "member_state"),
        ((*FIRST, of_state(2)), "member_state"),
        ((*FIRST, of_state(127)), "member_state"),
        ((*FIRST, assigned("m", 2, 0, 1, 7)), "assigned_beyond_target"),
        ((*FIRST, target("m", 0), assigned("m", 2, 0, 1)), "assigned_beyond_target"),
        ((FIRST[2], FIRST[3], FIRST[4], assigned("m", 2, 7)), "assigned_beyond_target"),  # no list of partitions
        ((*FIRST, assigned("m", 2, 1)), "target_not_assigned"),
        ((*FIRST, assigned("m", 2)), "target_not_assigned"),
        ((*FIRST, initialized(0, initializing=[1]), target("m", 0), assigned("m", 2)), "target_not_assigned"),
        ((*FIRST, epoch(3), joined("n"), assigned("n", 2), (10, "n", None)), "member_tombstones_out_of_order"),
        ((*FIRST, epoch(3), joined("n"), target("n", 0), (10, "n", None)), "member_tombstones_out_of_order"),
        ((*FIRST, epoch(3), joined("n"), (11, None, None)), "member_tombstones_out_of_order"),
        ((*FIRST, epoch(3), target("m", 0), (12, None, None)), "member_tombstones_out_of_order"),
    ],
)
def test_a_broken_rule_is_a_finding(entries, rule):
    assert rules(*entries) == [rule]


@pytest.mark.parametrize(
    "entries",
    [
        (*FIRST, epoch(3), epoch(4)),
        (epoch(7), epoch(8)),  # compaction took the epochs before
        (*FIRST, *LEAVE_ENTRIES, *DELETED, *FIRST),
        (*FIRST, epoch(3), epoch(4), assignment_epoch(4), assigned("m", 3, 0)),
        (assignment_epoch(5), assigned("m", 5, 0)),  # compaction took the group epoch
        (*FIRST, target("m", 0)),
        (*FIRST, initialized(0), target("m", 0)),
        (target("m", 5),),  # compaction took the list of partitions
        (*FIRST, of_state(0)),
        (*FIRST, assigned("m", 1, 7)),  # of another epoch than the target
        (*FIRST, subscribed("m", "mail"), assigned("m", 2)),
        (*FIRST, initialized(), assigned("m", 2)),  # the topic is gone
        (*FIRST[2:], assigned("m", 2)),  # compaction took subscription and list of partitions
        (*FIRST, *LEAVE_ENTRIES),
        (*FIRST, *LEAVE_ENTRIES, *DELETED),
        (joined("m"), (10, "m", None)),  # compaction took the assignment with its tombstone
    ],
)
def test_what_is_near_is_none(entries):
    assert rules(*entries) == []


def shared(*targets, listed=(0, 1), subscriptions=None, group_epoch=2):
    """A group whose members m0, m1, ... have these targets, up to the end of the assignment of epoch 2."""
    names = subscriptions or [("orders",)] * len(targets)
    members = [subscribed(f"m{number}", *names[number]) for number in range(len(targets))]
    assignment = [target(f"m{number}", *partitions) for number, partitions in enumerate(targets)]
    return (initialized(*listed), *members, epoch(group_epoch), *assignment, assignment_epoch(2))


@pytest.mark.parametrize(
    ("entries", "max_members", "member_count"),
    [
        (shared((0,), (0,)), 1, 2),
        (shared((0,), (0,), (0,)), 2, 3),
        (shared((0, 1), (1,)), 1, 2),
        (shared((0,), (0,), subscriptions=[("orders",), ("orders", "mail")]), 1, 2),
        (shared((0,), (0,), (), subscriptions=[("orders",), ("orders",), ("mail",)]), 1, 2),
    ],
)
def test_a_partition_has_no_more_members_than_needed(entries, max_members, member_count):
    rows = [(row["rule"], row["expected"], row["seen"]) for row in findings(group_log(*entries))]
    assert rows == [("assigned_unevenly", f"<= {max_members}", str(member_count))]


@pytest.mark.parametrize(
    "entries",
    [
        shared((0,), (1,)),
        shared((0,), (0,), (1,)),
        shared((0,), (0,), listed=(0,)),
        shared((0,), (0,), listed=(0,), subscriptions=[("orders",), ("orders", "mail")]),
        shared((0, 1), ()),  # members with fewer partitions than others: a place stays free
        shared((0,), (0,), group_epoch=3),  # a member may have left since: compaction took the epoch before
        shared((0,), (0,))[:-1],  # the assignment goes on
        shared((0,), (0,))[1:],  # compaction took the list of partitions
        (*shared((0,), (1,)), target("m9", 0), epoch(3), assignment_epoch(3)),  # the subscription of m9 is not there
    ],
)
def test_members_share_partitions_where_there_are_fewer(entries):
    assert rules(*entries) == []


@given(
    st.dictionaries(st.sampled_from("abcdefg"), st.sets(st.sampled_from("xyz"), min_size=1), min_size=1),
    st.dictionaries(st.sampled_from("xyz"), st.integers(1, 4), min_size=1),
    st.integers(0, 3),
)
def test_the_brokers_assignor_spreads_evenly(subscriptions, counts, joining):
    """Members join one by one; each assignment goes out from the one before."""
    listed = {"initializedTopics": [
        {"topicId": name, "topicName": name, "partitions": list(range(count))} for name, count in counts.items()
    ]}  # fmt: skip
    entries, current = [(15, None, listed)], {}
    for number, last in enumerate(sorted(subscriptions)[joining:], 1):
        members = {member: subscriptions[member] for member in sorted(subscriptions) if member <= last}
        current = assign(members, {name: range(count) for name, count in counts.items()}, current)
        entries += [subscribed(member, *topics) for member, topics in members.items()]
        entries.append(epoch(number))
        for member, places in current.items():
            topics = [{"topicId": name, "partitions": [at for of, at in places if of == name]} for name in counts]
            entries.append((13, member, {"topicPartitions": topics}))
        entries.append(assignment_epoch(number))
    assert rules(*entries) == []


def test_a_finding_cites_the_records_of_the_offsets_topic():
    (row,) = findings(group_log(*FIRST, epoch(3), epoch(9)))
    assert (row["group_id"], row["topic_id"], row["state_partition"]) == ("g", None, None)
    assert (row["expected"], row["seen"], row["first_log_offset"]) == ("4", "9", 7)
    assert row["records"] == [{"topic": "__consumer_offsets", "partition": 0, "offset": offset} for offset in (6, 7)]


def test_a_group_belongs_to_the_partition_of_its_hash():
    groups = ["orders", "payments", "audit", "mail", "search", "stock", "fraud", "billing"]
    logs = []
    for group in groups:
        rows = group_log(epoch(1), group=group).to_pylist()
        logs += [row | {"partition": partition_for_group(group, 50)} for row in rows]
    assert findings(pa.Table.from_pylist(logs, GROUP_RECORD)) == []
    logs[3]["partition"] = (logs[3]["partition"] + 1) % 50
    (row,) = findings(pa.Table.from_pylist(logs, GROUP_RECORD))
    assert (row["rule"], row["group_id"]) == ("misplaced_group", "mail")
    assert findings(pa.Table.from_pylist(logs, GROUP_RECORD), count=50) == [row]


@pytest.mark.parametrize(
    ("of_first", "of_second"),
    [((epoch(1), epoch(2)), (initialized(0),)), ((epoch(1),), ((11, None, None),)), ((ENDED_STREAMS,), (epoch(1),))],
)
def test_a_group_in_two_partitions_is_one_finding_whatever_their_number(of_first, of_second):
    first, second = (group_log(*entries).to_pylist() for entries in (of_first, of_second))
    rows = [row | {"partition": 7} for row in first] + [row | {"partition": 3, "timestamp_ms": 999} for row in second]
    (row,) = findings(pa.Table.from_pylist(rows, GROUP_RECORD))
    assert (row["rule"], row["group_id"], row["field"]) == ("group_in_many_partitions", "g", "group_partitions")
    assert (row["expected"], row["seen"], row["first_seen_ms"], row["count"]) == ("1", "2", 999, 1)
    assert row["records"] == [{"topic": "__consumer_offsets", "partition": at, "offset": 0} for at in (3, 7)]


@pytest.mark.parametrize("entry", [target("m", 0, 1), (14, "m", assigned("m", 1, 0, 1)[2]), initialized(0, 1)])
@pytest.mark.parametrize(
    ("created_ms", "until_ms", "is_named"),
    [
        (None, 60_100, True),
        (None, 60_099, False),  # it may be created yet
        (60_101, 99_999, True),
        (60_100, 99_999, False),
    ],
)
def test_groups_name_partitions_that_topics_have(entry, created_ms, until_ms, is_named):
    epochs = {("T", 0): [(0, 0)]} | ({} if created_ms is None else {("T", 1): [(created_ms, 0)]})
    metadata = TopicMetadata(BEGINNING, until_ms, topics={"T": Period(BEGINNING, END)}, epochs=epochs)
    rows = findings(group_log(entry), metadata=metadata)
    assert [(row["rule"], row["topic_id"], row["partition"]) for row in rows] == (
        [("partition_not_in_topic", "T", 1)] if is_named else []
    )
    of_others = TopicMetadata(BEGINNING, until_ms, topics={"S": Period(BEGINNING, END)})
    assert findings(group_log(entry), metadata=of_others) == []


def test_records_of_preview_builds_and_undecodable_ones_are_findings():
    place = {"partition": 0, "timestamp_ms": 5, "group_id": "g"}
    odd = [
        {**place, "log_offset": 3, "record_type": 9, "reason": None},
        {**place, "log_offset": 4, "record_type": 18, "reason": None},
        {**place, "log_offset": 5, "record_type": 15, "reason": "truncated_value"},
    ]
    listed = findings(group_log(*FIRST), odd)
    rows = [(row["rule"], row["count"], row["seen"]) for row in listed]
    assert rows == [("undecodable_group_record", 1, "truncated_value"), ("preview_record_type", 2, "type 9")]


def test_the_title_of_an_undecodable_record_of_a_streams_group_is_true_of_it():
    odd = {"partition": 0, "timestamp_ms": 5, "group_id": "app", "log_offset": 5}
    (row,) = findings(group_log(*FIRST), [{**odd, "record_type": 17, "reason": "truncated_value"}])
    assert row["rule"] == "undecodable_group_record"
    assert "share group" not in row["title"] or "streams group" in row["title"]


OPERATION = st.tuples(st.sampled_from(["join", "leave"]), st.sampled_from(["a", "b", "c"]), st.integers(0, 3))


@given(st.lists(OPERATION, max_size=12), st.lists(st.integers(0, 60), max_size=3).map(sorted), st.booleans())
def test_no_round_of_the_log_cleaner_makes_a_finding(operations, ends, keep_tombstones):
    """Epochs of `operated` rise by 1 and stay in order, and members leave in order."""
    log = group_log(*(entry for batch in operated(operations) for entry in batch))
    assert findings(log) == []
    for end in ends:
        log = compacted(log, end, keep_tombstones=keep_tombstones)
        assert findings(log) == []
