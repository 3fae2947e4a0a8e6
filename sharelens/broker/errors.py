"""Errors of the broker. The message is one line: what is wrong, where, what to do."""

import os

from state_model.errors import SharelensError, UsageError


class BrokerError(SharelensError):
    """Raised when the broker can't do what a caller requests; the base of all below."""


class ConfigError(BrokerError):
    """Raised when a configuration can't be used; the message names the key and what it takes."""


class OptionError(ConfigError, UsageError):
    """Raised when the text of an option can't be parsed."""


class DirectoryError(BrokerError):
    """Raised when this broker must not or can't use a log directory."""


class StorageError(BrokerError):
    """Raised when the disk refuses a write; the log is as it was before."""


class CorruptBatchError(BrokerError):
    """Raised when record batches of a client are corrupt (CORRUPT_MESSAGE)."""


class InvalidRecordError(CorruptBatchError):
    """Raised when batches are intact, but a client must not send them (INVALID_RECORD)."""


class InvalidTimestampError(BrokerError):
    """Raised when the topic's configuration refuses a batch's timestamps (INVALID_TIMESTAMP)."""


class RecordListTooLargeError(BrokerError):
    """Raised when a batch is larger than a whole segment of the topic (RECORD_LIST_TOO_LARGE)."""


class RecordTooLargeError(BrokerError):
    """Raised when a batch is above max.message.bytes (MESSAGE_TOO_LARGE)."""


class OffsetOutOfRangeError(BrokerError):
    """Raised when a read lies outside of the log (OFFSET_OUT_OF_RANGE)."""


class OutOfOrderSequenceError(BrokerError):
    """Raised when an idempotent producer skipped a sequence number (OUT_OF_ORDER_SEQUENCE_NUMBER)."""


class ProducerFencedError(BrokerError):
    """Raised when a producer's epoch is older than the newest epoch (INVALID_PRODUCER_EPOCH)."""


class InvalidTransactionStateError(BrokerError):
    """Raised when a write does not fit the transaction that its producer has open (INVALID_TXN_STATE)."""


class CoordinatorFencedError(BrokerError):
    """Raised when a marker comes from an earlier transaction coordinator (TRANSACTION_COORDINATOR_FENCED)."""


class InvalidTopicError(BrokerError):
    """Raised when a topic name is invalid (INVALID_TOPIC_EXCEPTION)."""


class TopicExistsError(BrokerError):
    """Raised when a topic of that name exists already (TOPIC_ALREADY_EXISTS)."""


class UnknownTopicError(BrokerError):
    """Raised when no topic has that name (UNKNOWN_TOPIC_OR_PARTITION)."""


class InvalidPartitionsError(BrokerError):
    """Raised when a topic can't have that number of partitions (INVALID_PARTITIONS)."""


class FrameError(BrokerError):
    """Raised when bytes on a connection can't be decoded as a request; the connection is closed."""


def listen_problem(host: str, port: int, error: OSError) -> str:
    """Why an address can't be bound, in the words of the system: asyncio's repeat the address."""
    number = error.errno or 0
    reason = os.strerror(number) if number > 0 else error.strerror or error
    return f"can't listen on {host}:{port}: {reason}; give another address"
