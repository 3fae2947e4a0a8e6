"""All handlers: importing this module registers them."""

from broker.handlers import (
    acls,
    api_versions,
    configs,
    consumer_groups,
    features,
    fetch,
    group_offsets,
    groups,
    metadata,
    offsets,
    produce,
    share,
    share_groups,
    share_state,
    streams_groups,
    topics,
    transaction_listing,
    transactions,
)

MODULES = (
    acls,
    api_versions,
    configs,
    consumer_groups,
    features,
    fetch,
    group_offsets,
    groups,
    metadata,
    offsets,
    produce,
    share,
    share_groups,
    share_state,
    streams_groups,
    topics,
    transaction_listing,
    transactions,
)
"""One module for each family of APIs."""
