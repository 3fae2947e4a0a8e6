"""What the broker raises. The message is one line that says what, where and what to do."""

from state_model.errors import SharelensError


class BrokerError(SharelensError):
    """Base of all of them."""


class ConfigError(BrokerError):
    """Raised for a configuration that can't be used; the message names the key and what it takes."""


class DirectoryError(BrokerError):
    """Raised for a log directory that this broker must not or can't use."""


class StorageError(BrokerError):
    """Raised when the disk refuses a write; the log is as it was before."""


class CorruptBatchError(BrokerError):
    """Raised for record batches that a client sent and that don't hold together (CORRUPT_MESSAGE)."""


class InvalidRecordError(CorruptBatchError):
    """Raised for batches that are whole and that a client must not send (INVALID_RECORD)."""


class InvalidTimestampError(BrokerError):
    """Raised for timestamps that the topic does not take (INVALID_TIMESTAMP)."""


class RecordListTooLargeError(BrokerError):
    """Raised for a batch larger than a whole segment of the topic (RECORD_LIST_TOO_LARGE)."""


class RecordTooLargeError(BrokerError):
    """Raised for a batch above max.message.bytes (MESSAGE_TOO_LARGE)."""


class OffsetOutOfRangeError(BrokerError):
    """Raised for a read outside of the log (OFFSET_OUT_OF_RANGE)."""


class OutOfOrderSequenceError(BrokerError):
    """Raised when an idempotent producer skipped a sequence number (OUT_OF_ORDER_SEQUENCE_NUMBER)."""


class ProducerFencedError(BrokerError):
    """Raised for a producer epoch older than one seen before (INVALID_PRODUCER_EPOCH)."""


class InvalidTransactionStateError(BrokerError):
    """Raised for a write that does not fit the transaction that its producer has open (INVALID_TXN_STATE)."""


class CoordinatorFencedError(BrokerError):
    """Raised for a marker of an earlier transaction coordinator (TRANSACTION_COORDINATOR_FENCED)."""


class InvalidTopicError(BrokerError):
    """Raised when a topic can't have the name that is asked for (INVALID_TOPIC_EXCEPTION)."""


class TopicExistsError(BrokerError):
    """Raised when a topic of that name is there already (TOPIC_ALREADY_EXISTS)."""


class UnknownTopicError(BrokerError):
    """Raised when there is no topic of that name (UNKNOWN_TOPIC_OR_PARTITION)."""


class InvalidPartitionsError(BrokerError):
    """Raised when a topic can't have that number of partitions (INVALID_PARTITIONS)."""


class FrameError(BrokerError):
    """Raised for bytes on a connection that are no request; the connection is closed."""
