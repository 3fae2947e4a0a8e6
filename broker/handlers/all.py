"""All handlers: importing this module registers them."""

from broker.handlers import (
    api_versions,
    configs,
    consumer_groups,
    fetch,
    group_offsets,
    metadata,
    offsets,
    produce,
    share,
    topics,
    transactions,
)

MODULES = (
    api_versions,
    configs,
    consumer_groups,
    fetch,
    group_offsets,
    metadata,
    offsets,
    produce,
    share,
    topics,
    transactions,
)
"""One module for each family of APIs."""
