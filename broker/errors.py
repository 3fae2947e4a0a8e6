"""What the broker raises. The message is one line that says what, where and what to do."""

from state_model.errors import SharelensError, UsageError


class BrokerError(SharelensError):
    """Raised when the broker can't do what it was asked; the base of all below."""


class ConfigError(BrokerError):
    """Raised when a configuration can't be used; the message names the key and what it takes."""


class OptionError(ConfigError, UsageError):
    """Raised when the text of an option can't be meant at all."""


class DirectoryError(BrokerError):
    """Raised when this broker must not or can't use a log directory."""


class StorageError(BrokerError):
    """Raised when the disk refuses a write; the log is as it was before."""


class CorruptBatchError(BrokerError):
    """Raised when record batches that a client sent don't hold together (CORRUPT_MESSAGE)."""


class InvalidRecordError(CorruptBatchError):
    """Raised when batches are whole, but nothing that a client may send (INVALID_RECORD)."""


class InvalidTimestampError(BrokerError):
    """Raised when the topic does not take a batch's timestamps (INVALID_TIMESTAMP)."""


class RecordListTooLargeError(BrokerError):
    """Raised when a batch is larger than a whole segment of the topic (RECORD_LIST_TOO_LARGE)."""


class RecordTooLargeError(BrokerError):
    """Raised when a batch is above max.message.bytes (MESSAGE_TOO_LARGE)."""


class OffsetOutOfRangeError(BrokerError):
    """Raised when a read lies outside of the log (OFFSET_OUT_OF_RANGE)."""


class OutOfOrderSequenceError(BrokerError):
    """Raised when an idempotent producer skipped a sequence number (OUT_OF_ORDER_SEQUENCE_NUMBER)."""


class ProducerFencedError(BrokerError):
    """Raised when a producer's epoch is older than one seen before (INVALID_PRODUCER_EPOCH)."""


class InvalidTransactionStateError(BrokerError):
    """Raised when a write does not fit the transaction that its producer has open (INVALID_TXN_STATE)."""


class CoordinatorFencedError(BrokerError):
    """Raised when a marker comes from an earlier transaction coordinator (TRANSACTION_COORDINATOR_FENCED)."""


class InvalidTopicError(BrokerError):
    """Raised when a topic can't have the name that is asked for (INVALID_TOPIC_EXCEPTION)."""


class TopicExistsError(BrokerError):
    """Raised when a topic of that name is there already (TOPIC_ALREADY_EXISTS)."""


class UnknownTopicError(BrokerError):
    """Raised when there is no topic of that name (UNKNOWN_TOPIC_OR_PARTITION)."""


class InvalidPartitionsError(BrokerError):
    """Raised when a topic can't have that number of partitions (INVALID_PARTITIONS)."""


class FrameError(BrokerError):
    """Raised when bytes on a connection are no request; the connection is closed."""
