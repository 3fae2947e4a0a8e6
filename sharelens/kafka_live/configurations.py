"""Groups of a cluster and their settings: ListGroups and DescribeConfigs.

A resource that one may not describe is left out, as if nothing were known about it.
"""

from collections.abc import Iterable, Mapping, Set
from typing import Any, NamedTuple

from kafka.protocol.admin import DescribeConfigsRequest, ListGroupsRequest

from sharelens.kafka_live.connection import Connection

BROKER, GROUP = 4, 32
"""Types of resources (org.apache.kafka.common.config.ConfigResource)."""
SOURCES = {
    1: "dynamic_topic_config",
    2: "dynamic_broker_config",
    3: "dynamic_default_broker_config",
    4: "static_broker_config",
    5: "default_config",
    8: "dynamic_group_config",
}
"""Names of sources (org.apache.kafka.common.requests.DescribeConfigsResponse.ConfigSource)."""


class Value(NamedTuple):
    """The value of a setting and the source that it comes from."""

    value: str
    source: str


def group_ids(connection: Connection) -> Set[str]:
    """The groups that one may describe."""
    groups = set()
    for node in connection.nodes():
        request = ListGroupsRequest(states_filter=[], types_filter=[], max_version=5)
        groups |= connection.ask(node, request, lambda answer: {group.group_id for group in answer.groups})
    return groups


def group_settings(connection: Connection, groups: Iterable[str]) -> Mapping[str, Mapping[str, Value]]:
    """The settings of each group by name, defaults among them; groups that one may not describe are left out."""
    return _settings(connection, connection.nodes()[0], GROUP, groups)


def broker_settings(connection: Connection) -> Mapping[str, Value]:
    """The settings of a broker by name; none where one may not describe it."""
    node = connection.nodes()[0]
    return _settings(connection, node, BROKER, [str(node)]).get(str(node), {})


def _settings(connection: Connection, node: int, kind: int, names: Iterable[str]) -> Mapping[str, Mapping[str, Value]]:
    """Secrets have no value in an answer (`sensitive`), so they are left out."""
    resource = DescribeConfigsRequest.DescribeConfigsResource
    resources = [resource(resource_type=kind, resource_name=name, configuration_keys=None) for name in sorted(names)]
    if not resources:
        return {}
    request = DescribeConfigsRequest(
        resources=resources, include_synonyms=False, include_documentation=False, max_version=4
    )
    return connection.ask(node, request, _values)


def _values(answer: Any) -> Mapping[str, Mapping[str, Value]]:
    return {
        result.resource_name: {
            config.name: Value(config.value, SOURCES.get(config.config_source, "unknown"))
            for config in result.configs
            if config.value is not None and not config.is_sensitive
        }
        for result in answer.results
        if not result.error_code
    }
