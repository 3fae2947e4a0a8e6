"""DescribeAcls, CreateAcls, DeleteAcls 1 to 3 (AclApis; AclControlManager.validateNewAcl)."""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, Final, Protocol, TypeVar

from kio.schema.errors import ErrorCode

from sharelens.broker.errors import BrokerError, FrameError
from sharelens.broker.handlers.errors import RefusedError, code_of
from sharelens.broker.protocol.registry import ELEMENTS_MAX_AT_ONCE, Answer, RequestContext, handles
from sharelens.broker.security.authorization.acl_store import AclStore
from sharelens.broker.security.authorization.entries import (
    CLUSTER_NAME,
    AclEntry,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from sharelens.kafka_formats.messages.api_keys import ApiKey

UNKNOWN: Final = 0
_FOR_FILTERS: Final = (ResourceType.ANY, PatternType.ANY, PatternType.MATCH, Operation.ANY, Permission.ANY)
_DISABLED: Final = {"error_code": ErrorCode.security_disabled, "error_message": "No Authorizer is configured."}
_NO_ERROR: Final = {"error_code": ErrorCode.none, "error_message": ""}
Number = TypeVar("Number", bound=IntEnum)


class AclServer(Protocol):
    """The part of the broker that these handlers use."""

    @property
    def acls(self) -> AclStore | None:
        """The ACL entries; None without an authorizer."""


@handles(ApiKey.DESCRIBE_ACLS, (1, 3))
def describe_acls(broker: AclServer, request: Any, context: RequestContext) -> Answer:
    """The entries that meet a condition, by resource pattern."""
    condition = _filter(request)
    if broker.acls is None:
        return _DISABLED
    by_pattern: dict[tuple[int, str, int], list[Mapping[str, Any]]] = {}
    for entry in broker.acls.matching(condition):
        acl = {
            "principal": entry.principal,
            "host": entry.host,
            "operation": entry.operation,
            "permission_type": entry.permission,
        }
        by_pattern.setdefault((entry.resource_type, entry.name, entry.pattern_type), []).append(acl)
    resources = [
        {"resource_type": resource_type, "resource_name": name, "pattern_type": pattern_type, "acls": acls}
        for (resource_type, name, pattern_type), acls in by_pattern.items()
    ]
    return {**_NO_ERROR, "resources": resources}


@handles(ApiKey.CREATE_ACLS, (1, 3), elements_max=ELEMENTS_MAX_AT_ONCE)
def create_acls(broker: AclServer, request: Any, context: RequestContext) -> Answer:
    """Add entries independently, each with its error; an entry that exists already is added without effect."""
    for creation in request.creations:
        _require_known(
            creation.resource_type, creation.resource_pattern_type, creation.operation, creation.permission_type
        )
    if broker.acls is None:
        return {"results": [_DISABLED for _ in request.creations]}
    entries: list[AclEntry] = []
    results: list[Answer] = []
    for creation in request.creations:
        try:
            entries.append(_entry(creation))
            results.append(_NO_ERROR)
        except RefusedError as error:
            results.append({"error_code": error.code, "error_message": str(error) or None})
    try:
        broker.acls.add(entries)
    except BrokerError as failed:
        results = [_failed(failed) if result is _NO_ERROR else result for result in results]
    return {"results": results}


@handles(ApiKey.DELETE_ACLS, (1, 3), elements_max=ELEMENTS_MAX_AT_ONCE)
def delete_acls(broker: AclServer, request: Any, context: RequestContext) -> Answer:
    """Remove the entries that meet conditions; each condition is answered with its entries."""
    conditions = [_filter(condition) for condition in request.filters]
    acls = broker.acls
    if acls is None:
        return {"filter_results": [{**_DISABLED, "matching_acls": []} for _ in conditions]}
    matching = [acls.matching(condition) for condition in conditions]
    try:
        acls.remove(entry for entries in matching for entry in entries)
    except BrokerError as failed:
        return {"filter_results": [{**_failed(failed), "matching_acls": []} for _ in conditions]}
    return {"filter_results": [_removed(entries) for entries in matching]}


def _removed(entries: Sequence[AclEntry]) -> Answer:
    removed = [
        {
            "error_code": ErrorCode.none,
            "error_message": None,
            "resource_type": entry.resource_type,
            "resource_name": entry.name,
            "pattern_type": entry.pattern_type,
            "principal": entry.principal,
            "host": entry.host,
            "operation": entry.operation,
            "permission_type": entry.permission,
        }
        for entry in entries
    ]
    return {"error_code": ErrorCode.none, "error_message": None, "matching_acls": removed}


def _failed(error: BrokerError) -> Answer:
    return {"error_code": code_of(error), "error_message": str(error)}


def _filter(sent: Any) -> AclFilter:
    _require_known(sent.resource_type_filter, sent.pattern_type_filter, sent.operation, sent.permission_type)
    return AclFilter(
        resource_type=sent.resource_type_filter,
        name=sent.resource_name_filter,
        pattern_type=sent.pattern_type_filter,
        principal=sent.principal_filter,
        host=sent.host_filter,
        operation=sent.operation,
        permission=sent.permission_type,
    )


def _require_known(*numbers: int) -> None:
    """Kafka closes the connection of a request with a number that says UNKNOWN. Raises FrameError."""
    if UNKNOWN in numbers:
        raise FrameError("an ACL or a filter of ACLs has an unknown type, operation or permission")


def _entry(creation: Any) -> AclEntry:
    """Raises RefusedError: INVALID_REQUEST with Kafka's text, UNKNOWN_SERVER_ERROR for numbers that are for filters."""
    resource_type = _member(ResourceType, "resourceType", creation.resource_type)
    name, principal = creation.resource_name, creation.principal
    if resource_type is ResourceType.CLUSTER and name != CLUSTER_NAME:
        raise _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not name:
        raise _invalid("Invalid empty resource name")
    if ":" not in principal:
        reason = "(no colon is present separating the principal type from the principal name)"
        raise _invalid(f"Could not parse principal from `{principal}` {reason}")
    return AclEntry(
        resource_type=resource_type,
        name=name,
        pattern_type=_member(PatternType, "patternType", creation.resource_pattern_type),
        principal=principal,
        host=creation.host,
        operation=_member(Operation, "operation", creation.operation),
        permission=_member(Permission, "permissionType", creation.permission_type),
    )


def _member(kind: type[Number], name: str, number: int) -> Number:
    try:
        member = kind(number)
    except ValueError:
        raise _invalid(f"Invalid {name} UNKNOWN") from None
    if any(member is other for other in _FOR_FILTERS):
        raise RefusedError(ErrorCode.unknown_server_error, "")
    return member


def _invalid(message: str) -> RefusedError:
    return RefusedError(ErrorCode.invalid_request, message)
