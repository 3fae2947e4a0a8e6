"""Error codes of share partitions and share sessions (share-partition §2 and §10)."""

from enum import IntEnum

from state_model.answers import ErrorCode


class ShareErrorCode(IntEnum):
    """Kafka's error codes (org.apache.kafka.common.protocol.Errors), of ShareFetch and ShareAcknowledge."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    NOT_LEADER_OR_FOLLOWER = 6
    COORDINATOR_NOT_AVAILABLE = 15
    TOPIC_AUTHORIZATION_FAILED = 29
    UNSUPPORTED_VERSION = 35
    INVALID_REQUEST = 42
    KAFKA_STORAGE_ERROR = 56
    GROUP_ID_NOT_FOUND = 69
    UNKNOWN_TOPIC_ID = 100
    INVALID_RECORD_STATE = 121
    SHARE_SESSION_NOT_FOUND = 122
    INVALID_SHARE_SESSION_EPOCH = 123
    SHARE_SESSION_LIMIT_REACHED = 133


# Looked up once: members of an enumeration cost more than names of a module, and their hashes more still.
_FINE, _DONE = ErrorCode.NONE, ShareErrorCode.NONE
_OF_PERSISTER = {
    ErrorCode.NONE: ShareErrorCode.NONE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ShareErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ShareErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ShareErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR: ShareErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.FENCED_LEADER_EPOCH: ShareErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ShareErrorCode.NOT_LEADER_OR_FOLLOWER,
}
FENCING = frozenset(
    (
        ShareErrorCode.NOT_LEADER_OR_FOLLOWER,
        ShareErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ShareErrorCode.GROUP_ID_NOT_FOUND,
    )
)
"""Errors of a write after which the share partition leaves the cache; the next fetch begins with what is persisted."""


def of_persister(code: ErrorCode) -> ShareErrorCode:
    """The error code for clients when the share coordinator answers `code`."""
    return _DONE if code is _FINE else _OF_PERSISTER.get(code, ShareErrorCode.UNKNOWN_SERVER_ERROR)
