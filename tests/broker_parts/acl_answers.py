"""ACL entries from numbers, and what two brokers' answers to a client with some rights have in common."""

from kio.schema.errors import ErrorCode

from sharelens.broker.security.authorization.entries import AclEntry, Operation, PatternType, Permission, ResourceType

REFUSED = (
    ErrorCode.topic_authorization_failed,
    ErrorCode.group_authorization_failed,
    ErrorCode.cluster_authorization_failed,
    ErrorCode.transactional_id_authorization_failed,
)
NAMES = {"name", "topic", "topic_name", "group_id", "key", "transactional_id", "partition_index", "partition", "index"}
NAMES |= {"resource_name", "resource_type", "pattern_type", "principal", "operation", "permission_type"}
ELSEWHERE = {"brokers", "members", "topology", "node_endpoints", "aborted_transactions", "throttle_time"}
"""Fields that other tests compare."""


def entry(principal, host, resource_type, name, pattern_type, operation, permission):
    return AclEntry(
        ResourceType(resource_type),
        name,
        PatternType(pattern_type),
        principal,
        host,
        Operation(operation),
        Permission(permission),
    )


def facts(answer):
    """Names, error codes and authorized operations; of what is refused all fields."""
    if isinstance(answer, list):
        return sorted((facts(each) for each in answer if is_common(each)), key=repr)
    if not isinstance(answer, dict):
        return answer
    is_whole = answer.get("error_code") in REFUSED
    compared_fields = {}
    for name, value in answer.items():
        is_list = isinstance(value, list) and name not in ELSEWHERE
        is_code = name.endswith(("error_code", "authorized_operations"))
        if is_list or is_code or name in NAMES or (is_whole and name not in ELSEWHERE):
            compared_fields[name] = facts(value)
    return compared_fields


def is_common(part):
    """Whether both brokers can have it: a consumer group and loggers are not in the light broker."""
    return not isinstance(part, dict) or (part.get("group_id") != "cg" and part.get("resource_type") != 8)
