"""Share groups by the records of the group coordinator."""

import json

import pyarrow as pa

from sharelens.evidence.schemas import GROUP_RECORD
from sharelens.groups.summary import groups


def records(*entries):
    """GROUP_RECORD rows of (record type, group, member, value or None), one millisecond apart."""
    rows = [
        {
            "log_topic_id": "t",
            "partition": 0,
            "log_offset": offset,
            "timestamp_ms": 100 + offset,
            "record_type": kind,
            "record_name": "r",
            "group_id": group,
            "member_id": member,
            "value_version": None if value is None else 0,
            "is_tombstone": value is None,
            "value_json": None if value is None else json.dumps(value),
            "below_log_start": False,
            "uncommitted": False,
        }
        for offset, (kind, group, member, value) in enumerate(entries)
    ]
    return pa.Table.from_pylist(rows, schema=GROUP_RECORD)


JOINED = {"rackId": None, "clientId": "c", "clientHost": "/127.0.0.1", "subscribedTopicNames": ["orders"]}


def test_a_group_with_a_member_is_stable():
    (row,) = groups(
        records(
            (10, "g", "m", JOINED),
            (11, "g", None, {"epoch": 3, "metadataHash": 1}),
            (12, "g", None, {"assignmentEpoch": 2}),
            (14, "g", "m", {"memberEpoch": 3}),
        )
    ).to_pylist()
    assert (row["state"], row["group_epoch"], row["assignment_epoch"], row["last_change_ms"]) == ("STABLE", 3, 2, 103)
    assert row["members"] == [
        {
            "member_id": "m",
            "client_id": "c",
            "client_host": "/127.0.0.1",
            "member_epoch": 3,
            "subscribed_topics": ["orders"],
        }
    ]


def test_a_group_whose_member_left_is_empty_and_a_deleted_one_dead():
    departure_log = [(10, "g", "m", JOINED), (11, "g", None, {"epoch": 3}), (10, "g", "m", None)]
    assert groups(records(*departure_log)).column("state").to_pylist() == ["EMPTY"]
    assert groups(records(*departure_log, (11, "g", None, None))).column("state").to_pylist() == ["DEAD"]


def test_a_group_that_only_had_its_offsets_altered_has_no_epoch():
    topics = {
        "initializingTopics": [],
        "initializedTopics": [{"topicId": "T", "partitions": [0, 1]}],
        "deletingTopics": [],
    }
    (row,) = groups(records((15, "g", None, topics))).to_pylist()
    assert (row["state"], row["group_epoch"], row["initialized_partitions"]) == ("EMPTY", None, 2)


def test_classic_groups_are_left_out():
    assert groups(records((2, "classic", None, {}))).num_rows == 0


def test_a_consumer_group_has_the_state_that_its_members_give_it():
    value = {
        "instanceId": None,
        "rackId": None,
        "clientId": "c",
        "clientHost": "/h",
        "subscribedTopicNames": ["u", "t"],
        "subscribedTopicRegex": None,
        "rebalanceTimeoutMs": 300_000,
        "serverAssignor": None,
        "classicMemberMetadata": None,
    }

    def assigned(epoch, state):
        empty = {"assignedPartitions": [], "partitionsPendingRevocation": []}
        return 8, "g", "m", {"memberEpoch": epoch, "previousMemberEpoch": 0, "state": state, **empty}

    entries = [(5, "g", "m", value), (3, "g", None, {"epoch": 2}), (6, "g", None, {"assignmentEpoch": 2})]
    entries += [assigned(2, 1), assigned(2, 0), (3, "g", None, {"epoch": 3}), (3, "g", None, None)]
    rows = [groups(records(*entries[:count])).to_pylist()[0] for count in range(1, len(entries) + 1)]
    states = ["RECONCILING", "ASSIGNING", "RECONCILING", "RECONCILING", "STABLE", "ASSIGNING", "DEAD"]
    assert [row["state"] for row in rows] == states
    assert [row["group_epoch"] for row in rows] == [None, 2, 2, 2, 2, 3, None]
    assert [row["assignment_epoch"] for row in rows] == [None, None, 2, 2, 2, 2, None]
    assert {row["group_type"] for row in rows} == {"consumer"}
    (member,) = rows[4]["members"]
    assert (member["client_id"], member["member_epoch"], member["subscribed_topics"]) == ("c", 2, ["t", "u"])


def test_a_group_of_another_type_follows_the_deleted_one_of_its_name():
    topology = {"epoch": 0, "subtopologies": []}
    rows = records((11, "g", None, {"epoch": 4}), (11, "g", None, None), (23, "g", None, topology))
    (row,) = groups(rows).to_pylist()
    assert (row["group_type"], row["state"], row["group_epoch"]) == ("streams", "EMPTY", 1)
    (row,) = groups(rows, 101).to_pylist()
    assert (row["group_type"], row["state"]) == ("share", "DEAD")


def test_an_earlier_moment_is_complete_only_for_groups_without_later_records():
    """Compaction may have removed what stood at the moment, and only a group that went on has lost anything."""
    rows = records(
        (11, "g", None, {"epoch": 3, "metadataHash": 1}),
        (11, "h", None, {"epoch": 1, "metadataHash": 1}),
        (11, "g", None, {"epoch": 4, "metadataHash": 1}),
        (11, "i", None, {"epoch": 1, "metadataHash": 1}),
    )
    completeness = [
        (row["group_id"], row["group_epoch"], row["completeness"], row["completeness_reason"])
        for row in groups(rows, 101).to_pylist()
    ]
    assert completeness == [("g", 3, "incomplete", "compacted"), ("h", 1, "complete", None)]
    assert [row["completeness"] for row in groups(rows, 103).to_pylist()] == ["complete"] * 3
