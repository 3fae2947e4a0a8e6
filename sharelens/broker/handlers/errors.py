"""Kafka's error codes of the broker's errors."""

from kio.schema.errors import ErrorCode

from sharelens.broker.errors import (
    BrokerError,
    ConfigError,
    CoordinatorFencedError,
    CorruptBatchError,
    DirectoryError,
    InvalidPartitionsError,
    InvalidRecordError,
    InvalidTimestampError,
    InvalidTopicError,
    InvalidTransactionStateError,
    OffsetOutOfRangeError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    RecordListTooLargeError,
    RecordTooLargeError,
    StorageError,
    TopicExistsError,
    UnknownTopicError,
)

_CODES: dict[type, ErrorCode] = {
    BrokerError: ErrorCode.unknown_server_error,
    ConfigError: ErrorCode.invalid_config,
    CoordinatorFencedError: ErrorCode.transaction_coordinator_fenced,
    CorruptBatchError: ErrorCode.corrupt_message,
    DirectoryError: ErrorCode.kafka_storage_error,
    InvalidPartitionsError: ErrorCode.invalid_partitions,
    InvalidTopicError: ErrorCode.invalid_topic_exception,
    TopicExistsError: ErrorCode.topic_already_exists,
    UnknownTopicError: ErrorCode.unknown_topic_or_partition,
    InvalidRecordError: ErrorCode.invalid_record,
    InvalidTimestampError: ErrorCode.invalid_timestamp,
    InvalidTransactionStateError: ErrorCode.invalid_txn_state,
    OffsetOutOfRangeError: ErrorCode.offset_out_of_range,
    OutOfOrderSequenceError: ErrorCode.out_of_order_sequence_number,
    ProducerFencedError: ErrorCode.invalid_producer_epoch,
    RecordListTooLargeError: ErrorCode.record_list_too_large,
    RecordTooLargeError: ErrorCode.message_too_large,
    StorageError: ErrorCode.kafka_storage_error,
}


class RefusedError(BrokerError):
    """Raised when a handler refuses a part of a request with a code of its own."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def code_of(error: BrokerError) -> ErrorCode:
    """Kafka's code of an error."""
    if isinstance(error, RefusedError):
        return error.code
    return next(_CODES[kind] for kind in type(error).__mro__ if kind in _CODES)
