"""Decisions on requests from the ACL entries (org.apache.kafka.metadata.authorizer.StandardAuthorizerData).

Denying entries are stronger than allowing ones; the order of the entries has no meaning.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from sharelens.broker.security.authorization.entries import (
    ANY_HOST,
    ANY_NAME,
    ANY_PRINCIPAL,
    AclEntry,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)

_IMPLIED_BY: Final = {
    Operation.DESCRIBE: frozenset({Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.ALTER_CONFIGS}),
}
"""The operations that an allowing entry may have instead; a denying entry implies none."""

SUPPORTED_OPERATIONS: Final = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
}
"""The operations in the authorized operations of an answer (AclEntry.supportedOperations)."""


_PROBED_NAME: Final = "hardcode"
"""A right to a resource of this name counts as a right to some resource: Kafka recognizes super users by it."""


class Authorizer:
    """The decisions for a set of entries. It never changes: other entries make another authorizer.

    A decision costs a few look-ups, independent of the number of entries for other principals and names.
    """

    __slots__ = ("_allow_everyone", "_by_principal", "_patterns", "_super_users", "entries")

    def __init__(
        self, entries: Iterable[AclEntry] = (), *, super_users: Collection[str] = (), allow_everyone: bool = False
    ) -> None:
        """Index the entries.

        super_users: principals that may do everything, as TYPE:NAME.
        allow_everyone: whether a resource that no entry covers is open to everyone (allow.everyone.if.no.acl.found).
        """
        self.entries = tuple(dict.fromkeys(entries))
        self._super_users = frozenset(super_users)
        self._allow_everyone = allow_everyone
        self._by_principal: dict[tuple[str, ResourceType], _Patterns] = {}
        self._patterns: dict[ResourceType, _Patterns] = {}
        for entry in self.entries:
            self._by_principal.setdefault((entry.principal, entry.resource_type), _Patterns()).add(entry)
            self._patterns.setdefault(entry.resource_type, _Patterns()).add(entry)

    def with_entries(self, entries: Iterable[AclEntry]) -> "Authorizer":
        """The authorizer of other entries."""
        return Authorizer(entries, super_users=self._super_users, allow_everyone=self._allow_everyone)

    def is_allowed(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        """Whether a principal at a host may do an operation on a resource.

        host: the text of the client's IP address.
        """
        if principal in self._super_users:
            return True
        is_allowed = False
        for entry in self._entries_for(principal, resource_type, name):
            if entry.host not in (ANY_HOST, host):
                continue
            if entry.permission is Permission.DENY:
                if entry.operation in (Operation.ALL, operation):
                    return False
            elif _allows(entry.operation, operation):
                is_allowed = True
        return is_allowed or (self._allow_everyone and not self._has_entries(resource_type, name))

    def is_allowed_for_some(self, principal: str, host: str, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether a principal may do an operation on some resource of a type (Authorizer.authorizeByResourceType).

        An allowing entry does not count when an entry denies its name, or a prefix of it.
        """
        if self.is_allowed(principal, host, operation, resource_type, _PROBED_NAME):
            return True
        allowing: list[AclEntry] = []
        denying = _Patterns()
        for candidate in (principal, ANY_PRINCIPAL):
            for entry in self._by_principal.get((candidate, resource_type), _NO_PATTERNS):
                if entry.host not in (ANY_HOST, host) or entry.operation not in (Operation.ALL, operation):
                    continue
                if entry.permission is Permission.DENY:
                    denying.add(entry)
                else:
                    allowing.append(entry)
        return any(not _is_denied(entry, denying) for entry in allowing)

    def authorized_operations(self, principal: str, host: str, resource_type: ResourceType, name: str) -> int:
        """The bits (1 << operation) of what a principal may do with a resource, of the operations that its type has."""
        return sum(
            1 << operation
            for operation in SUPPORTED_OPERATIONS[resource_type]
            if self.is_allowed(principal, host, operation, resource_type, name)
        )

    def _entries_for(self, principal: str, resource_type: ResourceType, name: str) -> Iterator[AclEntry]:
        for candidate in (principal, ANY_PRINCIPAL):
            patterns = self._by_principal.get((candidate, resource_type))
            if patterns is not None:
                yield from patterns.covering(name)

    def _has_entries(self, resource_type: ResourceType, name: str) -> bool:
        return any(True for _ in self._patterns.get(resource_type, _NO_PATTERNS).covering(name))


class _Patterns:
    """Entries by the names of their patterns."""

    __slots__ = ("_lengths", "_literal", "_prefixed")

    def __init__(self) -> None:
        self._literal: dict[str, list[AclEntry]] = {}
        self._prefixed: dict[str, list[AclEntry]] = {}
        self._lengths: set[int] = set()

    def __iter__(self) -> Iterator[AclEntry]:
        for by_name in (self._literal, self._prefixed):
            for entries in by_name.values():
                yield from entries

    def add(self, entry: AclEntry) -> None:
        """Add an entry."""
        if entry.pattern_type is PatternType.PREFIXED:
            self._prefixed.setdefault(entry.name, []).append(entry)
            self._lengths.add(len(entry.name))
        else:
            self._literal.setdefault(entry.name, []).append(entry)

    def covering(self, name: str) -> Iterator[AclEntry]:
        """The entries whose patterns cover a name; by the lengths of the prefixes, which are few."""
        yield from self._literal.get(name, ())
        if name != ANY_NAME:
            yield from self._literal.get(ANY_NAME, ())
        yield from self.prefixes(name)

    def prefixes(self, name: str) -> Iterator[AclEntry]:
        """The entries for prefixes of a name."""
        for length in self._lengths:
            if length <= len(name):
                yield from self._prefixed.get(name[:length], ())

    def literal(self, name: str) -> Collection[AclEntry]:
        """The entries for this name literally."""
        return self._literal.get(name, ())


_NO_PATTERNS: Final = _Patterns()


def _allows(granted: Operation, operation: Operation) -> bool:
    return granted in (Operation.ALL, operation) or granted in _IMPLIED_BY.get(operation, ())


def _is_denied(allowing: AclEntry, denying: _Patterns) -> bool:
    """Whether denying entries cover the whole pattern of an allowing entry."""
    if denying.literal(ANY_NAME):
        return True
    if allowing.pattern_type is PatternType.LITERAL:
        if allowing.name == ANY_NAME:
            return False
        if denying.literal(allowing.name):
            return True
    return any(True for _ in denying.prefixes(allowing.name))
