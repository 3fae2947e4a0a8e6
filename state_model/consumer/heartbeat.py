"""Heartbeats of consumer groups: the request with its checks, and the answer (KIP-848).

The rules are those of GroupCoordinatorService.throwIfConsumerGroupHeartbeatRequestIsInvalid of Kafka 4.3.1.
"""

from collections.abc import Collection
from enum import IntEnum
from typing import Final, NamedTuple

from state_model.consumer.reconciliation import Partitions
from state_model.errors import SharelensError
from state_model.group_heartbeat import JOINING, LEAVING, LEAVING_STATIC, UNCHANGED_TIMEOUT

MEMBER_ID_OF_CLIENT_VERSION: Final = 1
"""The first version of the request in which the client makes the member id."""


class ErrorCode(IntEnum):
    """Kafka's error codes for requests of members of consumer groups."""

    UNKNOWN_SERVER_ERROR = -1
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    UNKNOWN_MEMBER_ID = 25
    REBALANCE_IN_PROGRESS = 27
    INVALID_REQUEST = 42
    GROUP_ID_NOT_FOUND = 69
    MEMBER_ID_REQUIRED = 79
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    INVALID_REGULAR_EXPRESSION = 128


class HeartbeatError(SharelensError):
    """Raised when a consumer group refuses a request of a member; nothing has changed then."""

    def __init__(self, code: ErrorCode, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class Heartbeat(NamedTuple):
    """A ConsumerGroupHeartbeat. Null fields mean: as in the heartbeat before.

    Attributes:
        member_id: of the client; in version 0 a member that joins sends an empty text, and the broker makes the id
            after `check`.
        owned: the partitions that the member has; None when it does not say.
    """

    group_id: str
    member_id: str
    member_epoch: int
    client_id: str = ""
    client_host: str = ""
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = UNCHANGED_TIMEOUT
    subscribed_topic_names: frozenset[str] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    owned: Partitions | None = None

    @property
    def is_full(self) -> bool:
        """Whether the request has all that a member sends when it joins, or after an error."""
        has_subscription = self.subscribed_topic_names is not None or self.subscribed_topic_regex is not None
        return self.rebalance_timeout_ms != UNCHANGED_TIMEOUT and has_subscription and self.owned is not None


class Answer(NamedTuple):
    """The answer to a heartbeat. `assigned` is None when the partitions have not changed."""

    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int = 0
    assigned: Partitions | None = None


def check(request: Heartbeat, version: int, assignors: Collection[str]) -> None:
    """Raise HeartbeatError for a request that is invalid for any group, in Kafka's order.

    Args:
        version: of the request.
        assignors: the names of the broker's assignors.
    """
    epoch = request.member_epoch
    if version >= MEMBER_ID_OF_CLIENT_VERSION or epoch > JOINING or epoch == LEAVING:
        _refuse_blank("MemberId", request.member_id)
    _refuse_blank("GroupId", request.group_id)
    _refuse_blank("InstanceId", request.instance_id)
    _refuse_blank("RackId", request.rack_id)
    if epoch == JOINING:
        _check_join(request)
    elif epoch == LEAVING_STATIC and request.instance_id is None:
        raise _invalid("InstanceId can't be null.")
    elif epoch < LEAVING_STATIC:
        raise _invalid("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise HeartbeatError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(assignors)}.",
        )


def _check_join(request: Heartbeat) -> None:
    """An empty list of names or an empty regular expression is a subscription: to no topics."""
    if request.rebalance_timeout_ms == UNCHANGED_TIMEOUT:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    if request.owned is None or request.owned:
        raise _invalid("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise _invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")


def _refuse_blank(name: str, value: str | None) -> None:
    if value is not None and not value.strip():
        raise _invalid(f"{name} can't be empty.")


def _invalid(text: str) -> HeartbeatError:
    return HeartbeatError(ErrorCode.INVALID_REQUEST, text)
