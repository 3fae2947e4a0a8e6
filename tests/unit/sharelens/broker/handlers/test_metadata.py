"""Metadata of topics by id: the answers of Kafka 4.3.1 to the same requests."""

import pytest

from tests.broker_parts.dispatched_broker import DispatchedBroker

METADATA = 3
NONE, INVALID_REQUEST, UNKNOWN_ID = 0, 42, 100
NOBODYS_ID = "AAECAwQFBgcICQoLDA0ODw"


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


def described(broker, version, *topics):
    """Name and code of each topic of the answer; `topics`: names with ids."""
    named = [{"name": name, "topic_id": id_text} for name, id_text in topics]
    answer = broker.call(METADATA, version, topics=named, allow_auto_topic_creation=False)
    return [(topic["name"], int(topic["error_code"])) for topic in answer["topics"]]


@pytest.mark.parametrize("version", [12, 13])
@pytest.mark.parametrize("name", [None, "", "mail", "no-such-topic"])
def test_beside_an_id_no_name_counts(broker, version, name):
    assert described(broker, version, (name, topic_id(broker, "orders"))) == [("orders", NONE)]
    assert described(broker, version, (name, NOBODYS_ID)) == [(None, UNKNOWN_ID)]


def test_as_soon_as_a_topic_has_an_id_those_without_one_are_left_out(broker):
    mail = ("", topic_id(broker, "mail"))
    topics = [("orders", None), mail, ("no-such-topic", None), (None, NOBODYS_ID), mail]
    assert sorted(described(broker, 12, *topics), key=repr) == [("mail", NONE), (None, UNKNOWN_ID)]


@pytest.mark.parametrize("version", [10, 11])
def test_versions_that_can_not_ask_by_id_refuse_ids(broker, version):
    assert described(broker, version, ("orders", topic_id(broker, "mail")), ("mail", None)) == [
        ("orders", INVALID_REQUEST),
        ("mail", NONE),
    ]
