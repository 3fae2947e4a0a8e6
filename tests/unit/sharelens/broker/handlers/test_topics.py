"""Deletion of topics: the answers of Kafka 4.3.1 to the same requests."""

import pytest

from tests.broker_parts.dispatched_broker import DispatchedBroker

DELETE_TOPICS = 20
NONE, UNKNOWN_TOPIC, INVALID_REQUEST = 0, 3, 42


@pytest.fixture
def broker(tmp_path):
    """Has two topics."""
    served = DispatchedBroker(tmp_path / "log")
    served.create("orders", 1)
    served.create("mail", 1)
    yield served
    served.close()


def topic_id(broker, name):
    return broker.broker.catalog.by_name(name).topic_id


def deleted(broker, *topics):
    """Name and code of each answer; `topics`: names with ids."""
    named = [{"name": name, "topic_id": id_text} for name, id_text in topics]
    responses = broker.call(DELETE_TOPICS, 6, topics=named)["responses"]
    return [(each["name"], int(each["error_code"])) for each in responses]


def test_a_topic_is_deleted_by_its_name_or_by_its_id(broker):
    assert deleted(broker, ("orders", None), (None, topic_id(broker, "mail"))) == [("orders", NONE), ("mail", NONE)]
    assert dict(broker.broker.catalog.topics) == {}


def test_a_name_and_an_id_in_one_entry_are_refused(broker):
    orders, mail = topic_id(broker, "orders"), topic_id(broker, "mail")
    assert deleted(broker, ("orders", orders), ("orders", mail), ("", mail)) == [
        ("orders", INVALID_REQUEST),
        ("orders", INVALID_REQUEST),
        ("", INVALID_REQUEST),
    ]
    assert set(broker.broker.catalog.topics) == {"orders", "mail"}


def test_an_entry_without_name_and_id_is_refused(broker):
    assert deleted(broker, (None, None)) == [(None, INVALID_REQUEST)]


def test_a_topic_that_is_named_several_times_stays(broker):
    mail = topic_id(broker, "mail")
    assert deleted(broker, ("orders", None), (None, mail), ("orders", None), (None, mail)) == [
        ("orders", INVALID_REQUEST),
        (None, INVALID_REQUEST),
    ]
    assert deleted(broker, ("mail", None), (None, mail)) == [("mail", INVALID_REQUEST), (None, INVALID_REQUEST)]
    assert set(broker.broker.catalog.topics) == {"orders", "mail"}


@pytest.mark.parametrize("version", [1, 5])
def test_older_versions_refuse_names_that_are_there_twice(broker, version):
    responses = broker.call(DELETE_TOPICS, version, topic_names=["orders", "orders", "no-such-topic"])["responses"]
    assert [(each["name"], int(each["error_code"])) for each in responses] == [
        ("orders", INVALID_REQUEST),
        ("no-such-topic", UNKNOWN_TOPIC),
    ]
