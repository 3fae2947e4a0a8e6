"""The decisions of the authorizer for one client."""

import ipaddress
from functools import lru_cache
from typing import Final

from sharelens.broker.security.authorization.authorizer import SUPPORTED_OPERATIONS, Authorizer
from sharelens.broker.security.authorization.entries import CLUSTER_NAME, Operation, ResourceType

ALL_BITS: Final = {
    resource_type: sum(1 << operation for operation in operations)
    for resource_type, operations in SUPPORTED_OPERATIONS.items()
}
"""The bits of all operations on resources of a type."""


class Rights:
    """What a client may do. Without an authorizer it may do everything."""

    __slots__ = ("_authorizer", "_host", "_principal")

    def __init__(self, authorizer: Authorizer | None = None, principal: str = "", host: str = "") -> None:
        """principal: TYPE:NAME. host: the text of its IP address, as Java writes it."""
        self._authorizer = authorizer
        self._principal = principal
        self._host = host

    def has(self, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        """Whether the client may do an operation on a resource."""
        authorizer = self._authorizer
        return authorizer is None or authorizer.is_allowed(self._principal, self._host, operation, resource_type, name)

    def topic(self, operation: Operation, name: str) -> bool:
        """Whether the client may do an operation on a topic."""
        return self.has(operation, ResourceType.TOPIC, name)

    def cluster(self, operation: Operation) -> bool:
        """Whether the client may do an operation on the cluster."""
        return self.has(operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def may_create_topic(self, name: str) -> bool:
        """Whether the client may create a topic: with the right to the topic, or to the cluster."""
        return self.cluster(Operation.CREATE) or self.topic(Operation.CREATE, name)

    def some_topic(self, operation: Operation) -> bool:
        """Whether the client may do an operation on some topic."""
        authorizer = self._authorizer
        return authorizer is None or authorizer.is_allowed_for_some(
            self._principal, self._host, operation, ResourceType.TOPIC
        )

    def bits(self, resource_type: ResourceType, name: str) -> int:
        """The bits (1 << operation) of what the client may do with a resource of type TOPIC, GROUP or CLUSTER."""
        if self._authorizer is None:
            return ALL_BITS[resource_type]
        return self._authorizer.authorized_operations(self._principal, self._host, resource_type, name)

    def cluster_bits(self) -> int:
        """The bits of what the client may do with the cluster; 0 when it may not describe it."""
        return self.bits(ResourceType.CLUSTER, CLUSTER_NAME) if self.cluster(Operation.DESCRIBE) else 0


EVERY_RIGHT: Final = Rights()
"""The rights of each client of a broker without an authorizer."""


@lru_cache(maxsize=1024)
def host_text(client_host: str) -> str:
    """A client's address ("/IP") as Java writes it (InetAddress.getHostAddress): IPv6 without abbreviations."""
    text = client_host.removeprefix("/").partition("%")[0]
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text
    if isinstance(address, ipaddress.IPv4Address):
        return text
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":"))
