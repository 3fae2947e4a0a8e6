import pytest

from state_model.consumer.heartbeat import ErrorCode, Heartbeat, HeartbeatError, check
from state_model.consumer.reconciliation import Partition

JOIN = Heartbeat("g", "m", 0, rebalance_timeout_ms=9, subscribed_topic_names=frozenset("t"), owned=frozenset())
STAY = Heartbeat("g", "m", 3)
LEAVE = Heartbeat("g", "m", -1)
OWNED = frozenset({Partition("AAECAwQFBgcICQoLDA0ODw", 0)})
SUBSCRIPTION_TEXT = "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (JOIN, 1),
        (JOIN._replace(member_id=""), 0),
        (JOIN._replace(subscribed_topic_names=None, subscribed_topic_regex=""), 1),
        (JOIN._replace(subscribed_topic_names=frozenset(), server_assignor="range"), 1),
        (STAY, 0),
        (LEAVE, 0),
        (LEAVE._replace(member_epoch=-2, instance_id="i", member_id=""), 0),
    ],
)
def test_requests_of_clients_are_accepted(request_, version):
    check(request_, version, ["uniform", "range"])


@pytest.mark.parametrize(
    ("request_", "version", "text"),
    [
        (JOIN._replace(member_id=" "), 1, "MemberId can't be empty."),
        (STAY._replace(member_id=""), 0, "MemberId can't be empty."),
        (LEAVE._replace(member_id=""), 0, "MemberId can't be empty."),
        (STAY._replace(group_id=""), 1, "GroupId can't be empty."),
        (STAY._replace(instance_id=""), 1, "InstanceId can't be empty."),
        (STAY._replace(rack_id=""), 1, "RackId can't be empty."),
        (JOIN._replace(rebalance_timeout_ms=-1), 1, "RebalanceTimeoutMs must be provided in first request."),
        (JOIN._replace(owned=None), 1, "TopicPartitions must be empty when (re-)joining."),
        (JOIN._replace(owned=OWNED), 1, "TopicPartitions must be empty when (re-)joining."),
        (JOIN._replace(subscribed_topic_names=None), 1, SUBSCRIPTION_TEXT),
        (LEAVE._replace(member_epoch=-2), 1, "InstanceId can't be null."),
        (LEAVE._replace(member_epoch=-3), 1, "MemberEpoch is invalid."),
    ],
)
def test_invalid_requests_are_refused_with_kafkas_text(request_, version, text):
    with pytest.raises(HeartbeatError) as error:
        check(request_, version, ["uniform", "range"])
    assert (error.value.code, error.value.text) == (ErrorCode.INVALID_REQUEST, text)


def test_an_assignor_that_the_broker_lacks_is_refused():
    with pytest.raises(HeartbeatError) as error:
        check(STAY._replace(server_assignor="sticky"), 1, ["uniform", "range"])
    assert error.value.code is ErrorCode.UNSUPPORTED_ASSIGNOR
    assert error.value.text == "ServerAssignor sticky is not supported. Supported assignors: uniform, range."


def test_a_request_is_full_when_it_has_all_that_a_join_has():
    assert JOIN._replace(member_epoch=3, owned=OWNED).is_full
    assert not JOIN._replace(subscribed_topic_names=None).is_full
    assert not STAY.is_full
