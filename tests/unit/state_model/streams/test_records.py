import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_model.group_records import GroupRecord, decode_record, encode_record
from state_model.group_schemas import RECORD_TYPES, GroupKind
from state_model.group_targets import TargetMetadata
from state_model.streams.records import STREAMS_TYPES, record_of, value_of
from state_model.streams.values import (
    CopartitionGroup,
    Endpoint,
    GroupMetadata,
    MemberAssignment,
    MemberMetadata,
    MemberState,
    Subtopology,
    TaskId,
    TasksByType,
    TopicInfo,
    Topology,
)

NAMES = st.text("abc-", min_size=1, max_size=4)
INT32S = st.integers(-(2**31), 2**31 - 1)
INT64S = st.integers(-(2**63), 2**63 - 1)
PAIRS = st.lists(st.tuples(NAMES, NAMES), max_size=2).map(tuple)
TASK_IDS = st.builds(TaskId, st.sampled_from("01A"), st.integers(0, 12))
TASKS = st.builds(TasksByType, *[st.frozensets(TASK_IDS, max_size=6)] * 3)
TOPIC_NAMES = st.lists(NAMES, max_size=2).map(tuple)
TOPICS = st.lists(st.builds(TopicInfo, NAMES, INT32S, st.integers(0, 9), PAIRS), max_size=2).map(tuple)
INDEXES = st.lists(st.integers(0, 9), max_size=2).map(tuple)
COPARTITION = st.lists(st.builds(CopartitionGroup, INDEXES, INDEXES, INDEXES), max_size=2).map(tuple)
SUBTOPOLOGY = st.builds(Subtopology, NAMES, TOPIC_NAMES, TOPIC_NAMES, TOPICS, TOPIC_NAMES, TOPICS, COPARTITION)


@st.composite
def assignments(draw: st.DrawFn) -> MemberAssignment:
    assigned, pending = draw(TASKS), draw(TASKS)
    pending = pending._replace(active=pending.active - assigned.active)
    epochs = {task: draw(INT32S) for task in sorted(assigned.active | pending.active)}
    return MemberAssignment(
        draw(st.sampled_from([1, 2, 3, 127])), draw(INT32S), draw(INT32S), assigned, epochs, pending
    )


VALUES = st.one_of(
    st.tuples(st.just(17), st.builds(GroupMetadata, INT32S, INT64S, INT32S, st.none() | PAIRS, INT32S, INT32S)),
    st.tuples(
        st.just(19),
        st.builds(
            MemberMetadata,
            st.none() | NAMES,
            st.none() | NAMES,
            NAMES,
            NAMES,
            INT32S,
            INT32S,
            NAMES,
            st.none() | st.builds(Endpoint, NAMES, st.integers(0, 65535)),
            PAIRS,
        ),
    ),
    st.tuples(st.just(20), st.builds(TargetMetadata, INT32S, INT64S)),
    st.tuples(st.just(21), TASKS),
    st.tuples(st.just(22), assignments()),
    st.tuples(st.just(23), st.builds(Topology, INT32S, st.lists(SUBTOPOLOGY, max_size=2).map(tuple))),
)


@given(VALUES)
def test_a_value_is_read_back_from_the_bytes_of_its_record(case):
    record_type, value = case
    member_id = "m" if record_type in (19, 21, 22) else None
    record = record_of(record_type, "g", value, member_id)
    again = decode_record(*encode_record(record))
    assert value_of(again) == value_of(record) == value
    assert encode_record(again) == encode_record(record)
    assert (again.group_id, again.member_id) == ("g", member_id)


@pytest.mark.parametrize("record_type", STREAMS_TYPES)
def test_a_tombstone_has_no_value(record_type):
    member_id = "m" if record_type in (19, 21, 22) else None
    record = record_of(record_type, "g", None, member_id)
    assert encode_record(record)[1] is None
    assert value_of(record) is None


def test_the_types_are_those_of_streams_groups():
    kinds = {number: record_type.group_kind for number, record_type in RECORD_TYPES.items()}
    assert sorted(STREAMS_TYPES) == [number for number, kind in kinds.items() if kind is GroupKind.STREAMS]


@pytest.mark.parametrize("epochs", [(), None, (5,), (5, 6, 7)])
def test_assignment_epochs_that_are_not_one_a_partition_count_as_the_member_epoch(epochs):
    plain = record_of(22, "g", MemberAssignment(MemberState.STABLE, 9, 8), "m")
    tasks = ({"subtopology_id": "0", "partitions": (3, 1), "assignment_epochs": epochs},)
    record = GroupRecord(
        record_type=22, name=plain.name, key=plain.key, version=0, value=dict(plain.value or {}, active_tasks=tasks)
    )
    value = value_of(record)
    assert value.active_assignment_epochs == {TaskId("0", 1): 9, TaskId("0", 3): 9}


def test_tasks_are_written_sorted_by_subtopology_as_text_and_partition():
    tasks = frozenset({TaskId("10", 0), TaskId("9", 2), TaskId("9", 11), TaskId("10", 3)})
    tree = record_of(21, "g", TasksByType(active=tasks), "m").value
    assert tree["active_tasks"] == (
        {"subtopology_id": "10", "partitions": (0, 3)},
        {"subtopology_id": "9", "partitions": (2, 11)},
    )
