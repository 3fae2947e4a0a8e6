"""Who deleted share state, by what the group coordinator wrote at that time."""

import json

import pyarrow as pa

from sharelens.evidence.schemas import GROUP_RECORD
from sharelens.groups.replay import STATE_PARTITIONS
from sharelens.measures.deletions import deleted_by

ORDERS, AUDIT = "orders-id", "audit-id"


def state_partitions(*, initialized=(), initializing=(), deleting=()):
    """A value of ShareGroupStatePartitionMetadata."""
    return {
        "initializedTopics": [{"topicId": topic_id, "topicName": "n", "partitions": [0]} for topic_id in initialized],
        "initializingTopics": [{"topicId": topic_id, "topicName": "n", "partitions": [0]} for topic_id in initializing],
        "deletingTopics": [{"topicId": topic_id, "topicName": "n"} for topic_id in deleting],
    }


def records(*entries, group="g"):
    """GROUP_RECORD rows of (timestamp, value; None: tombstone), one log offset apart."""
    rows = [
        {
            "log_topic_id": "t",
            "partition": 0,
            "log_offset": offset,
            "timestamp_ms": at_ms,
            "record_type": STATE_PARTITIONS,
            "record_name": "ShareGroupStatePartitionMetadata",
            "group_id": group,
            "is_tombstone": value is None,
            "value_json": None if value is None else json.dumps(value),
            "below_log_start": False,
            "uncommitted": False,
        }
        for offset, (at_ms, value) in enumerate(entries)
    ]
    return pa.Table.from_pylist(rows, schema=GROUP_RECORD)


def causes(rows, *moments, event="deleted", topic=ORDERS):
    events = [{"event": event, "group_id": "g", "topic_id": topic, "log_time_ms": at_ms} for at_ms in moments]
    return deleted_by(pa.Table.from_pylist(events), rows).to_pylist()


def test_a_topic_that_is_gone_without_a_request_was_deleted():
    rows = records((10, state_partitions(initialized=[ORDERS, AUDIT])), (100, state_partitions(initialized=[AUDIT])))
    assert causes(rows, 103) == ["topic"]
    assert causes(rows, 103, topic=AUDIT) == [None]


def test_a_request_that_leaves_the_group_was_about_its_offsets_of_the_topic():
    rows = records(
        (10, state_partitions(initialized=[ORDERS])),
        (100, state_partitions(deleting=[ORDERS])),
        (105, state_partitions()),
        (150, state_partitions(initialized=[ORDERS])),
    )
    assert causes(rows, 103) == ["group_offsets"]


def test_a_request_before_the_groups_own_end_was_about_the_group():
    assert causes(
        records((10, state_partitions(initialized=[ORDERS])), (100, state_partitions(deleting=[ORDERS])), (105, None)),
        103,
    ) == ["group"]
    assert causes(records((10, state_partitions(initialized=[ORDERS])), (105, None)), 103) == ["group"]


def test_each_deletion_goes_by_the_record_nearest_to_it():
    rows = records(
        (10, state_partitions(initializing=[ORDERS])),
        (1000, state_partitions(deleting=[ORDERS])),
        (1010, state_partitions()),
        (2000, state_partitions(initialized=[ORDERS])),
        (3000, state_partitions()),
    )
    assert causes(rows, 1003, 3003) == ["group_offsets", "topic"]


def test_what_was_compacted_away_or_lies_far_is_not_told():
    assert causes(records((100, state_partitions())), 103) == [None]
    assert causes(
        records((10, state_partitions(initialized=[ORDERS])), (100, state_partitions(deleting=[ORDERS]))), 103
    ) == [None]
    assert causes(records((10, state_partitions(initialized=[ORDERS])), (100, state_partitions())), 60_101) == [None]
    assert causes(
        records((10, state_partitions(initialized=[ORDERS])), (100, state_partitions()), group="other"), 103
    ) == [None]
    assert causes(records(), 103) == [None]


def test_other_events_have_no_deletion():
    assert causes(
        records((10, state_partitions(initialized=[ORDERS])), (100, state_partitions())), 103, event="reset"
    ) == [None]
