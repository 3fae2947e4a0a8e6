"""Kafka's internal topics, by name."""

from typing import Final

STATE_TOPIC: Final = "__share_group_state"
OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTION_TOPIC: Final = "__transaction_state"
METADATA_TOPIC: Final = "__cluster_metadata"
"""Its log holds secrets: no bytes of it are kept, so it is not among INTERNAL_TOPICS."""
RECORD_TOPICS: Final = (STATE_TOPIC, OFFSETS_TOPIC)
"""The internal topics whose records sharelens reads."""
INTERNAL_TOPICS: Final = frozenset({STATE_TOPIC, OFFSETS_TOPIC, TRANSACTION_TOPIC})
UNKNOWN_CLUSTER: Final = "unknown"
"""Cluster id of log directories without a `meta.properties`."""
