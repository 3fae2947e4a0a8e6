"""What a user may not see of a cluster, which some answers leave out without a word.

ListGroups leaves out groups, and Metadata of all topics leaves out topics, without an error code
(org.apache.kafka.server.AuthHelper). The operations that one may do on the cluster, and Metadata by name, say so.
"""

from collections.abc import Iterable, Sequence, Set
from typing import Any

from kafka.protocol.admin import DescribeClusterRequest
from kafka.protocol.metadata import MetadataRequest

from sharelens.kafka_live.configurations import broker_settings
from sharelens.kafka_live.connection import Connection
from sharelens.kafka_live.errors import ClusterError

READ, DESCRIBE, DESCRIBE_CONFIGS = 3, 8, 10
"""Numbers of operations (org.apache.kafka.common.acl.AclOperation)."""
TOPIC_AUTHORIZATION_FAILED = 29
EFFECTS = {
    (DESCRIBE, "Describe"): "groups that it may not describe one by one are left out",
    (DESCRIBE_CONFIGS, "DescribeConfigs"): "settings of brokers are unknown",
}


def missing_rights(connection: Connection) -> Sequence[str]:
    """A line if answers of the cluster may be incomplete: which operation is not allowed, and what is left out.

    Brokers name no operation to a user without DESCRIBE, so that another request tells about DESCRIBE_CONFIGS.
    """
    request = DescribeClusterRequest(include_cluster_authorized_operations=True, max_version=1)
    missing = connection.ask(connection.nodes()[0], request, _missing)
    if any(operation == DESCRIBE for operation, _ in missing) and broker_settings(connection):
        missing = {key: text for key, text in missing.items() if key[0] != DESCRIBE_CONFIGS}
    if not missing:
        return []
    operations = " ".join(f"--operation {name}" for _, name in missing)
    line = (
        f"{connection.bootstrap_server}: answers may be incomplete: this user lacks rights on the cluster "
        f"({'; '.join(missing.values())}); add them with kafka-acls.sh --add --allow-principal User:NAME "
        f"{operations} --cluster"
    )
    return [line]


def _missing(answer: Any) -> dict[tuple[int, str], str]:
    allowed = answer.authorized_operations
    return {} if allowed is None else {key: text for key, text in EFFECTS.items() if key[0] not in allowed}


def ensure_visible(connection: Connection, topics: Iterable[str]) -> None:
    """Raises ClusterError if one may not describe one of the topics, which Metadata of all topics left out."""
    for name, error_code, _ in _described(connection, topics):
        if error_code == TOPIC_AUTHORIZATION_FAILED:
            raise ClusterError(
                f"--bootstrap-server {connection.bootstrap_server}: no right to describe topic {name}; add "
                f"it with kafka-acls.sh --add --allow-principal User:NAME --operation Read --topic {name}"
            )


def unreadable(connection: Connection, topics: Iterable[str]) -> list[str]:
    """Those of the topics that one may not read."""
    return [name for name, _, operations in _described(connection, topics) if READ not in operations]


def _described(connection: Connection, topics: Iterable[str]) -> Sequence[tuple[str, int, Set[int]]]:
    """Name, error code and the operations that one may do, by Metadata of topics by name."""
    topic: Any = MetadataRequest.MetadataRequestTopic
    named = [topic(name=name) for name in topics]
    if not named:
        return []
    request = MetadataRequest(
        topics=named,
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=True,
        max_version=9,
    )
    return connection.ask(
        connection.nodes()[0],
        request,
        lambda answer: [
            (topic.name, topic.error_code, frozenset(topic.authorized_operations or ())) for topic in answer.topics
        ],
    )
