import pytest

from state_model import answers
from state_model.answers import ErrorCode, ReadAnswer, SummaryAnswer
from state_model.machine import PartitionState, apply
from state_model.rule_sets import KAFKA_4_3, KAFKA_4_4, RULE_SETS
from state_model.share_records import SharePartitionKey, ShareRecord, ShareSnapshot, ShareUpdate, StateBatch

KEY = SharePartitionKey(group_id="g", topic_id="A" * 22, partition=0)
ABSENT = SharePartitionKey(group_id="nobody", topic_id="A" * 22, partition=0)
NEGATIVE = SharePartitionKey(group_id="g", topic_id="A" * 22, partition=-1)
BATCHES = (StateBatch(first_offset=5, last_offset=9, delivery_state=2, delivery_count=1),)
BOTH_RULE_SETS = pytest.mark.parametrize("rules", RULE_SETS.values(), ids=RULE_SETS)


def coordinator_state(rules):
    """State epoch 2; the largest leader epoch seen is 3, the state's own is 0."""
    first = ShareSnapshot(
        snapshot_epoch=0,
        state_epoch=2,
        leader_epoch=3,
        start_offset=5,
        create_timestamp_ms=1,
        write_timestamp_ms=1,
        state_batches=BATCHES,
        delivery_complete_count=5,
    )
    update = ShareUpdate(snapshot_epoch=0, leader_epoch=0, start_offset=-1, state_batches=(), delivery_complete_count=6)
    state = apply(PartitionState(rules=rules), 0, 1, ShareRecord(key=KEY, value=first))
    return apply(state, 1, 2, ShareRecord(key=KEY, value=update))


@BOTH_RULE_SETS
@pytest.mark.parametrize("leader_epoch", [3, 4])
def test_read_answers_the_state(rules, leader_epoch):
    answer = answers.read(coordinator_state(rules), KEY, leader_epoch=leader_epoch)
    assert answer == ReadAnswer(state_epoch=2, start_offset=5, state_batches=BATCHES)


@BOTH_RULE_SETS
def test_the_summary_answers_the_scalars_and_looks_at_no_epoch(rules):
    answer = answers.read_summary(coordinator_state(rules), KEY)
    assert answer == SummaryAnswer(state_epoch=2, leader_epoch=0, start_offset=5, delivery_complete_count=6)


@BOTH_RULE_SETS
def test_a_share_partition_that_was_never_initialised_is_invalid_to_read_and_undetermined_in_the_summary(rules):
    assert answers.read(coordinator_state(rules), ABSENT, leader_epoch=9) == ReadAnswer(
        error_code=ErrorCode.INVALID_REQUEST
    )
    assert answers.read_summary(coordinator_state(rules), ABSENT) == SummaryAnswer(start_offset=-1)


# In the order of the checks: the earlier one wins.
READ_ERRORS = [
    (KAFKA_4_3, NEGATIVE, -1, False, ErrorCode.INVALID_REQUEST),
    (KAFKA_4_3, ABSENT, 0, False, ErrorCode.INVALID_REQUEST),
    (KAFKA_4_3, KEY, 2, False, ErrorCode.FENCED_LEADER_EPOCH),
    (KAFKA_4_3, KEY, -2, True, ErrorCode.FENCED_LEADER_EPOCH),
    (KAFKA_4_3, KEY, 3, False, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    (KAFKA_4_3, KEY, -1, True, ErrorCode.NONE),
    (KAFKA_4_4, KEY, -1, True, ErrorCode.INVALID_REQUEST),
    (KAFKA_4_4, KEY, 0, True, ErrorCode.FENCED_LEADER_EPOCH),
    (KAFKA_4_4, KEY, 2, False, ErrorCode.FENCED_LEADER_EPOCH),
]


@pytest.mark.parametrize(("rules", "key", "leader_epoch", "exists", "error"), READ_ERRORS)
def test_read_is_refused_in_the_order_of_the_checks(rules, key, leader_epoch, exists, error):
    answer = answers.read(coordinator_state(rules), key, leader_epoch=leader_epoch, topic_partition_exists=exists)
    assert answer.error_code is error


def test_the_summary_is_refused_for_no_partition_and_for_an_unknown_topic():
    state = coordinator_state(KAFKA_4_3)
    assert answers.read_summary(state, NEGATIVE).error_code is ErrorCode.INVALID_REQUEST
    unknown = answers.read_summary(state, ABSENT, topic_partition_exists=False)
    assert unknown.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_the_codes_are_kafkas():
    assert {code.name: code.value for code in ErrorCode} == {
        "UNKNOWN_SERVER_ERROR": -1,
        "NONE": 0,
        "UNKNOWN_TOPIC_OR_PARTITION": 3,
        "COORDINATOR_LOAD_IN_PROGRESS": 14,
        "COORDINATOR_NOT_AVAILABLE": 15,
        "NOT_COORDINATOR": 16,
        "INVALID_REQUEST": 42,
        "FENCED_LEADER_EPOCH": 74,
        "FENCED_STATE_EPOCH": 124,
    }
