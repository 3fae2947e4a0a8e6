"""What one may not see of a cluster is said, though the cluster leaves it out without a word."""

import pytest
from kafka.protocol.admin import DescribeClusterResponse, DescribeConfigsRequest, DescribeConfigsResponse
from kafka.protocol.metadata import MetadataResponse

from sharelens.kafka_live.errors import ClusterError
from sharelens.kafka_live.rights import ensure_visible, missing_rights, unreadable

ALL, NOT_TOLD = 8096, -(1 << 31)
"""All operations on a cluster, as brokers without an authorizer answer, and no answer."""
DESCRIBE, DESCRIBE_CONFIGS = 1 << 8, 1 << 10


class ScriptedConnection:
    """Answers every request with one answer, but for those about settings, and keeps the requests."""

    bootstrap_server = "scripted:9092"

    def __init__(self, answer=None, settings=None):
        self.answer = answer
        self.settings = settings
        self.requests = []

    def nodes(self):
        return [1]

    def ask(self, node, request, read):
        self.requests.append(request)
        return read(self.settings if isinstance(request, DescribeConfigsRequest) else self.answer)


def described(allowed):
    """The library's answer with these bits, which are the last of its fields."""
    answer = DescribeClusterResponse(cluster_id="c", brokers=[], authorized_operations=set()).encode(version=1)
    bits = (allowed & 0xFFFFFFFF).to_bytes(4, "big")
    return DescribeClusterResponse.decode(bytes(answer[:-5]) + bits + b"\0", version=1)


def broker_settings(error_code):
    """The answer about the settings of broker 1."""
    result = DescribeConfigsResponse.DescribeConfigsResult
    config = result.DescribeConfigsResourceResult(name="n", value="v", config_source=5, is_sensitive=False)
    configs = [] if error_code else [config]
    return DescribeConfigsResponse(results=[result(error_code=error_code, resource_name="1", configs=configs)])


FORBIDDEN = 31


@pytest.mark.parametrize(
    ("allowed", "settings_error", "texts"),
    [
        (ALL, 0, []),
        (NOT_TOLD, 0, []),
        (DESCRIBE | DESCRIBE_CONFIGS, 0, []),
        (DESCRIBE, FORBIDDEN, ["(settings of brokers are unknown)", "NAME --operation DescribeConfigs --cluster"]),
        (0, 0, ["(groups that it may not describe one by one are left out)", "NAME --operation Describe --cluster"]),
        (
            0,
            FORBIDDEN,
            ["are left out; settings of brokers", "--operation Describe --operation DescribeConfigs --cluster"],
        ),
    ],
)
def test_rights_that_a_user_lacks_on_the_cluster_are_one_line(allowed, settings_error, texts):
    lines = missing_rights(ScriptedConnection(described(allowed), broker_settings(settings_error)))
    assert len(lines) == bool(texts)
    assert all(text in lines[0] for text in texts)


def topics(**codes):
    topic = MetadataResponse.MetadataResponseTopic
    return MetadataResponse(topics=[topic(name=name, error_code=code) for name, code in codes.items()])


def test_a_log_that_one_may_not_see_is_one_line_with_the_right_to_add():
    connection = ScriptedConnection(topics(__consumer_offsets=3, __share_group_state=29))
    with pytest.raises(ClusterError, match="describe topic __share_group_state; .*--operation Read"):
        ensure_visible(connection, ["__consumer_offsets", "__share_group_state"])
    assert connection.requests[0].allow_auto_topic_creation is False


def test_a_log_that_does_not_exist_yet_is_no_error():
    ensure_visible(ScriptedConnection(topics(__consumer_offsets=3)), ["__consumer_offsets"])
    unused = ScriptedConnection()
    ensure_visible(unused, [])
    assert unused.requests == []


def test_topics_that_one_may_only_describe_are_unreadable():
    topic, read, describe = MetadataResponse.MetadataResponseTopic, 3, 8
    answer = MetadataResponse(
        topics=[
            topic(name="a", error_code=0, authorized_operations={read, describe}),
            topic(name="b", error_code=0, authorized_operations={describe}),
        ]
    )
    connection = ScriptedConnection(answer)
    assert unreadable(connection, ["a", "b"]) == ["b"]
    assert connection.requests[0].include_topic_authorized_operations is True
