"""Features of a cluster, by ApiVersions."""

from collections.abc import Iterable
from typing import Any

from kafka.protocol.metadata import ApiVersionsRequest

from sharelens.kafka_live.connection import CLIENT_ID, Connection
from sharelens.kafka_live.errors import ClusterError

SHARE_VERSION = "share.version"
SHARE_FETCH = 78


def ensure_share_groups(connection: Connection) -> None:
    """Raises ClusterError where a cluster has no share groups: its brokers are too old, or the feature is off.

    Brokers that name no finalized features are believed to have it on.
    """
    request = ApiVersionsRequest(client_software_name=CLIENT_ID, client_software_version="0", max_version=4)
    reason = connection.ask(connection.nodes()[0], request, _why_without)
    if reason is not None:
        raise ClusterError(
            f"--bootstrap-server {connection.bootstrap_server}: the cluster has no share groups: {reason}"
        )


def _why_without(answer: Any) -> str | None:
    """Why the cluster has no share groups; None: it has them."""
    if SHARE_FETCH not in {api.api_key for api in answer.api_keys}:
        return "its brokers do not know them; they came with Kafka 4.1"
    if answer.finalized_features and not _share_version(answer.finalized_features):
        return f"{SHARE_VERSION} is 0; turn them on with kafka-features.sh upgrade --feature {SHARE_VERSION}=1"
    return None


def _share_version(finalized: Iterable[Any]) -> int:
    return max((feature.max_version_level for feature in finalized if feature.name == SHARE_VERSION), default=0)
