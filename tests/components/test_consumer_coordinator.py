"""Heartbeats of consumer groups answered as Kafka's own coordinator does: GroupCoordinatorShard of 4.3.1, step by step.

Random histories of a group run on both, each with its own assignors. Members of a history that prefer an assignor
prefer the same: where preferences are equally frequent, Kafka takes the one that a hash table has first. Records are
compared in their order, but for the targets of members, which Kafka writes in the order of a hash table. Kafka then
replays our records without an objection.
"""

import random

import pytest

from state_model.consumer.assignors import ASSIGNORS
from state_model.consumer.heartbeat import ErrorCode
from state_model.consumer.soft_state import Settings
from tests.components.consumer_histories import OPERATIONS, History
from tests.components.kafka_group_coordinator import Kafka

pytestmark = pytest.mark.components

HISTORIES, STEPS = 100, 30
CLASSIC_CODES = {
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.MEMBER_ID_REQUIRED,
}
"""Codes for members of the classic protocol."""


def test_random_histories_are_those_of_kafka(machine):
    steps: list[str] = []
    codes, record_types = set(), set()
    for seed in range(HISTORIES):
        dice = random.Random(seed)
        settings = Settings(ASSIGNORS, assignment_interval_ms=dice.choice([0, 1_000]), max_size=dice.choice([2, 9, 9]))
        history = History(Kafka(machine, settings), settings, dice)
        steps += [history.step() for _ in range(STEPS)]
        codes |= history.codes
        record_types |= {-each.record_type if each.is_tombstone else each.record_type for each in history.log}
        restarted = Kafka(machine, settings)
        for record in history.log:
            restarted.replay_record(record)
    assert set(steps) == set(OPERATIONS)
    assert set(ErrorCode) - codes == {ErrorCode.UNKNOWN_SERVER_ERROR} | CLASSIC_CODES
    assert record_types == {3, 4, -4, 5, -5, 6, 7, -7, 8, -8, 16, -16}
