"""Groups that change between the classic and the consumer protocol as with Kafka's own coordinator of 4.3.1.

Records, answers, error codes and timers of random histories are equal, but for the order of hash tables. Kafka then
replays the records without an objection.
"""

import random
from collections import Counter

import pytest

from state_model.consumer.assignors import ASSIGNORS
from state_model.consumer.classic_members import Join
from state_model.consumer.heartbeat import ErrorCode, Heartbeat
from state_model.consumer.soft_state import MigrationPolicy, Settings
from tests.components.classic_clients import ClassicClient
from tests.components.kafka_group_coordinator import Kafka
from tests.components.mixed_histories import MIXED_OPERATIONS, MixedHistory
from tests.consumer_subscriptions import subscription_bytes

pytestmark = pytest.mark.components

HISTORIES, STEPS = 100, 100


def settings_of(dice: random.Random) -> Settings:
    return Settings(
        {"range": ASSIGNORS["range"]},  # the other one depends on the order of hash tables, here of random member ids
        assignment_interval_ms=dice.choice([0, 0, 1_000]),
        max_size=dice.choice([2, 9, 9, 9]),
        classic_max_size=dice.choice([1, 9, 9, 9]),
        migration_policy=dice.choice([*MigrationPolicy, MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.BIDIRECTIONAL]),
    )


def test_random_histories_with_classic_members_are_those_of_kafka(machine):
    steps: set[str] = set()
    codes, events = set(), Counter[str]()
    for seed in range(HISTORIES):
        dice = random.Random(seed)
        settings = settings_of(dice)
        history = MixedHistory(Kafka(machine, settings), settings, dice)
        steps |= {history.step() for _ in range(STEPS)}
        codes |= history.codes
        events.update(history.events)
        restarted = Kafka(machine, settings)
        for record in history.log:
            restarted.replay_record(record)
    assert steps == set(MIXED_OPERATIONS)
    assert codes == set(ErrorCode)
    assert events.keys() >= {"replaced classic", "upgraded 1", "joined", "synced", "rejoin True", "rejoin False"}
    assert events["downgraded, rebalances True"]


def test_a_classic_member_that_replaces_the_last_consumer_downgrades_the_group_as_in_kafka(machine):
    settings = settings_of(random.Random(1))._replace(max_size=9, classic_max_size=9, assignment_interval_ms=0)
    settings = settings._replace(migration_policy=MigrationPolicy.BIDIRECTIONAL)
    history = MixedHistory(Kafka(machine, settings), settings, random.Random(1))
    client = history.classic["m"] = ClassicClient(instance_id="i")
    names = frozenset({"t1"})
    joining = Heartbeat("g", "c", 0, "c", "/127.0.0.1", "i", None, 60_000, names, owned=frozenset())
    history.send(joining)
    subscription = subscription_bytes(1, names)
    request = Join("g", "new", 6_000, 60_000, "consumer", (("range", subscription),), "c", "/127.0.0.1", "i")
    history.join(client, request._replace(is_new_id=True, needs_known_id=False))
    assert history.events == ["downgraded, rebalances False", "joined"]
    assert history.group is None
    assert client.generation == 2
