"""ACL entries and filters, with the numbers of the wire (org.apache.kafka.common.acl, .resource; KIP-290)."""

from enum import IntEnum
from typing import Final, NamedTuple

ANY_NAME: Final = "*"
ANY_PRINCIPAL: Final = "User:*"
ANY_HOST: Final = "*"
CLUSTER_NAME: Final = "kafka-cluster"
"""The only name of a resource of type CLUSTER."""


class ResourceType(IntEnum):
    """Kinds of resources; ANY is for filters."""

    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How an entry's name is compared with a resource's; ANY and MATCH are for filters."""

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    """What a client does with a resource; ANY is for filters."""

    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(IntEnum):
    """Whether an entry allows or denies; ANY is for filters."""

    ANY = 1
    DENY = 2
    ALLOW = 3


class AclEntry(NamedTuple):
    """One rule: a principal (`TYPE:NAME`) from a host may, or must not, do an operation on the resources of a pattern.

    Neither type nor pattern nor operation nor permission is one of those for filters.
    """

    resource_type: ResourceType
    name: str
    pattern_type: PatternType
    principal: str
    host: str
    operation: Operation
    permission: Permission

    def applies_to(self, name: str) -> bool:
        """Whether the entry's pattern covers a resource of its type."""
        if self.pattern_type is PatternType.PREFIXED:
            return name.startswith(self.name)
        return self.name in (name, ANY_NAME)


class AclFilter(NamedTuple):
    """A condition on entries. Null or ANY: no condition. Principals and hosts are compared as texts.

    A number without a meaning is a condition that no entry meets.
    """

    resource_type: int
    name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission: int

    def matches(self, entry: AclEntry) -> bool:
        """Whether an entry meets the condition (AclBindingFilter.matches)."""
        return (
            self.resource_type in (ResourceType.ANY, entry.resource_type)
            and self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (Operation.ANY, entry.operation)
            and self.permission in (Permission.ANY, entry.permission)
            and self._matches_pattern(entry)
        )

    def _matches_pattern(self, entry: AclEntry) -> bool:
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, entry.pattern_type):
            return False
        if self.name is None:
            return True
        if self.pattern_type == PatternType.MATCH:
            return entry.applies_to(self.name)
        return self.name == entry.name
