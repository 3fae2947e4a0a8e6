"""ApiVersions: the registered APIs."""

from typing import TYPE_CHECKING, Any

from sharelens.broker.protocol.registry import Answer, RequestContext, handles, registered
from sharelens.kafka_formats.messages.api_keys import ApiKey

if TYPE_CHECKING:
    from sharelens.broker.broker import Broker

FIRST_VERSION_WITH_ZERO_MINIMA = 4
LISTED_FROM = {ApiKey.PRODUCE: 0}
"""Lowest versions that Kafka lists and refuses: without them librdkafka compresses with zstd alone (KAFKA-18659)."""


@handles(ApiKey.API_VERSIONS, (0, 4))
def api_versions(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """The registered APIs with their versions, and the features from version 3 on.

    Before version 4 a feature whose lowest level is 0 is left out (KIP-584, KAFKA-17011).
    """
    supported = [
        {"name": name, "min_version": levels.lowest, "max_version": levels.highest}
        for name, levels in broker.features.supported.items()
        if levels.lowest > 0 or context.api_version >= FIRST_VERSION_WITH_ZERO_MINIMA
    ]
    finalized = [
        {"name": name, "max_version_level": level, "min_version_level": level}
        for name, level in broker.features.finalized().items()
        if level > 0
    ]
    return {
        "api_keys": [
            {
                "api_key": api.key,
                "min_version": LISTED_FROM.get(ApiKey(api.key), api.first_version),
                "max_version": api.last_version,
            }
            for api in sorted(registered().values(), key=lambda api: api.key)
        ],
        "supported_features": supported,
        "finalized_features": finalized,
        "finalized_features_epoch": broker.features.epoch,
    }
