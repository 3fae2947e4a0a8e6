from dataclasses import replace

import pytest

from state_model.consumer.group import REPLAY as CONSUMER
from state_model.consumer.group_values import ConsumerGroup
from state_model.consumer.group_values import GroupMetadata as ConsumerMetadata
from state_model.group_forms import name_of
from state_model.group_records import group_record
from state_model.group_replay import Draft
from state_model.group_targets import TargetMetadata
from state_model.streams.group import REPLAY as STREAMS
from state_model.streams.values import NO_TASKS_BY_TYPE, StreamsGroup
from state_model.streams.values import GroupMetadata as StreamsMetadata

KINDS = pytest.mark.parametrize(
    ("replay", "new_group", "metadata", "first_type", "target"),
    [
        pytest.param(CONSUMER, ConsumerGroup(), ConsumerMetadata(4, 7), 3, frozenset(), id="consumer"),
        pytest.param(STREAMS, StreamsGroup(), StreamsMetadata(4, 7), 17, NO_TASKS_BY_TYPE, id="streams"),
    ],
)


@KINDS
def test_the_tombstone_of_the_metadata_ends_a_group_and_other_tombstones_make_none(
    replay, new_group, metadata, first_type, target
):
    record = replay.forms.record_of(first_type, "g", metadata)
    assert replay.apply(None, record) == new_group._replace(metadata=metadata)
    assert replay.apply(new_group, replay.forms.record_of(first_type, "g", None)) is None
    for record_type in replay.member_types:
        tombstone = replay.forms.record_of(record_type, "g", None, "m")
        assert replay.apply(None, tombstone) is None
        assert replay.apply(new_group, tombstone) == new_group


@KINDS
def test_a_value_of_an_unknown_version_changes_nothing(replay, new_group, metadata, first_type, target):
    record = replace(replay.forms.record_of(first_type, "g", metadata), version=1, value=None, undecoded=b"?")
    assert replay.apply(new_group, record) is new_group
    assert replay.apply(None, record) is None


@KINDS
def test_the_group_of_a_draft_is_that_of_its_records(replay, new_group, metadata, first_type, target):
    target_type = replay.member_types[1]
    draft = Draft(replay, "g", new_group)
    draft.add(first_type, metadata)
    draft.add(target_type, target, "m")
    draft.add(target_type, target, "n")
    draft.end_member("m")
    group = None
    for record in draft.records:
        group = replay.apply(group, record)
    assert group == draft.group
    assert list(group.targets) == ["n"]
    assert [(each.record_type, name_of(each)) for each in draft.records[3:]] == [
        (record_type, "m") for record_type in replay.member_types
    ]


def test_a_key_has_the_fields_of_its_type():
    assert group_record(2, "g", None).key == {"group": "g"}
    assert group_record(6, "g", None).key == {"group_id": "g"}
    assert group_record(8, "g", None, "m").key == {"group_id": "g", "member_id": "m"}
    assert group_record(16, "g", None, "r.*").key == {"group_id": "g", "regular_expression": "r.*"}
    assert group_record(6, "g", {"assignment_epoch": 1}).version == 0


def test_the_epoch_of_a_target_is_a_field_of_the_group():
    target = TargetMetadata(5, 99)
    group = CONSUMER.with_value(None, 6, None, target)
    assert group.target == target
    assert CONSUMER.without_value(group, 6, None).target == TargetMetadata(-1)
