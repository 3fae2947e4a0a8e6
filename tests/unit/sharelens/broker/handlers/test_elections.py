"""ElectLeaders: the answers of Kafka 4.3.1 to the same requests."""

import pytest

from tests.broker_parts.dispatched_broker import DispatchedBroker

ELECT_LEADERS = 43
NONE, UNKNOWN_TOPIC, INVALID_REQUEST, NOT_NEEDED = 0, 3, 42, 84
PREFERRED, UNCLEAN = 0, 1
NAMED = [
    {"topic": "orders", "partitions": [0, 1, 2]},
    {"topic": "mail", "partitions": [0]},
    {"topic": "orders", "partitions": []},
]


@pytest.fixture
def broker(tmp_path):
    """Has a topic of two partitions."""
    served = DispatchedBroker(tmp_path / "log")
    served.create("orders", 2)
    yield served
    served.close()


def elect(broker, version, named, election_type=PREFERRED):
    """The code of the whole answer, and each topic with the codes of its partitions."""
    kind = {"election_type": election_type} if version > 0 else {}
    answer = broker.call(ELECT_LEADERS, version, topic_partitions=named, **kind)
    results = [
        (topic["topic"], [(each["partition_id"], int(each["error_code"])) for each in topic["partition_result"]])
        for topic in answer["replica_election_results"]
    ]
    return int(answer.get("error_code", NONE)), results


@pytest.mark.parametrize(("version", "election_type"), [(0, PREFERRED), (1, PREFERRED), (2, PREFERRED), (2, UNCLEAN)])
def test_no_partition_needs_an_election_and_unknown_ones_are_named(broker, version, election_type):
    assert elect(broker, version, NAMED, election_type) == (
        NONE,
        [
            ("orders", [(0, NOT_NEEDED), (1, NOT_NEEDED), (2, UNKNOWN_TOPIC)]),
            ("mail", [(0, UNKNOWN_TOPIC)]),
            ("orders", []),
        ],
    )


@pytest.mark.parametrize("version", [0, 1, 2])
def test_of_all_topics_those_partitions_are_answered_that_had_an_election(broker, version):
    assert elect(broker, version, None) == (NONE, [("orders", [])])


def test_messages_name_what_does_not_exist(broker):
    answer = broker.call(ELECT_LEADERS, 2, topic_partitions=NAMED)
    messages = [
        each["error_message"] for topic in answer["replica_election_results"] for each in topic["partition_result"]
    ]
    assert messages[2:] == ["No such partition as orders-2", "No such topic as mail"]


def test_an_unknown_type_of_election_is_refused(broker):
    code, results = elect(broker, 2, NAMED, election_type=5)
    assert code == INVALID_REQUEST
    assert {code for _, partitions in results for _, code in partitions} == {INVALID_REQUEST}
    assert elect(broker, 2, None, election_type=5) == (INVALID_REQUEST, [])
