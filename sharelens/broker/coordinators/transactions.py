"""The transaction coordinator: producers of transactional ids, and the ends of transactions.

The rules and error codes are those of Kafka's TransactionCoordinator with transaction.version 0: partitions are added
before they are written to, the producer epoch rises when a producer is initialised or fenced. Every step is in the log
before it takes effect. An end is a prepare record, then a marker in every partition, then a complete record. A prepared
end is completed, after a restart too; markers that the disk refuses are retried.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import cast

from kio.schema.errors import ErrorCode

from sharelens.broker.coordinators.transaction_log import NO_PRODUCER, Transaction, TransactionLog, TransactionStatus
from sharelens.broker.errors import BrokerError, RecordTooLargeError, StorageError
from sharelens.broker.ports import Logs, Timers, TopicPartition, TransactionalLog
from state_model.topics import OFFSETS_TOPIC

MAX_PRODUCER_EPOCH = 32_767
RETRY_MARKERS_MS = 1_000
"""Delay before refused markers are retried."""
MAX_TRANSACTIONAL_IDS = 100_000
"""Bound of transactional ids, which clients create: others wait until some expire."""
_EXHAUSTED_EPOCH = MAX_PRODUCER_EPOCH - 1

_PREPARED = (TransactionStatus.PREPARE_COMMIT, TransactionStatus.PREPARE_ABORT)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSettings:
    """The broker's configuration for transactions, under Kafka's names: transaction.max.timeout.ms,
    transaction.abort.timed.out.transaction.cleanup.interval.ms, transactional.id.expiration.ms and
    transaction.remove.expired.transaction.cleanup.interval.ms.
    """

    max_timeout_ms: int = 900_000
    abort_timed_out_interval_ms: int = 10_000
    id_expiration_ms: int = 604_800_000
    remove_expired_interval_ms: int = 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerAnswer:
    """Answer to InitProducerId."""

    error_code: ErrorCode = ErrorCode.none
    producer_id: int = NO_PRODUCER
    producer_epoch: int = -1


TransactionEnded = Callable[[int, int, bool], None]
"""Called for each marker in `__consumer_offsets`: the partition, the producer id, whether it commits."""


class Transactions:
    """All transactional ids of this broker.

    `new_producer_id` allocates unused ids. `offsets_ended` is the group coordinator's.
    """

    def __init__(
        self,
        log: TransactionLog,
        logs: Logs,
        timers: Timers,
        *,
        new_producer_id: Callable[[], int],
        offsets_ended: TransactionEnded,
        settings: TransactionSettings | None = None,
    ) -> None:
        self._log = log
        self._logs = logs
        self._timers = timers
        self._new_producer_id = new_producer_id
        self._offsets_ended = offsets_ended
        self._settings = settings or TransactionSettings()
        self._transactions: dict[str, Transaction] = {}
        self._ids: dict[int, str] = {}

    def start(self) -> None:
        """Load the log, complete prepared ends, start the periodic checks."""
        for transaction in self._log.load().values():
            self._keep(transaction)
        for transaction in list(self):
            if transaction.status in _PREPARED:
                self._complete(transaction)
        self._timers.after_ms(self._settings.abort_timed_out_interval_ms, self._look_after_timeouts)
        self._timers.after_ms(self._settings.remove_expired_interval_ms, self._look_after_expiry)

    def __iter__(self) -> Iterator[Transaction]:
        return iter(list(self._transactions.values()))

    def get(self, transactional_id: str) -> Transaction | None:
        """The state of a transactional id."""
        return self._transactions.get(transactional_id)

    # Requests of producers

    def init_producer_id(
        self, transactional_id: str | None, timeout_ms: int, *, producer_id: int = NO_PRODUCER, producer_epoch: int = -1
    ) -> ProducerAnswer:
        """InitProducerId: a new producer, or the next epoch of a known transactional id.

        An open transaction of an older incarnation is aborted. A producer that names its id and epoch goes on with the
        next epoch, unless another one took over in the meantime.
        """
        if transactional_id is None:
            return ProducerAnswer(producer_id=self._new_producer_id(), producer_epoch=0)
        if not transactional_id:
            return ProducerAnswer(error_code=ErrorCode.invalid_request)
        if not 0 < timeout_ms <= self._settings.max_timeout_ms:
            return ProducerAnswer(error_code=ErrorCode.invalid_transaction_timeout)
        if (producer_id < 0) is not (producer_epoch < 0):
            return ProducerAnswer(error_code=ErrorCode.invalid_request)
        transaction = self._transactions.get(transactional_id)
        if transaction is None:
            if len(self._transactions) >= MAX_TRANSACTIONAL_IDS:
                return ProducerAnswer(error_code=ErrorCode.coordinator_not_available)
            # A caller with a producer id and epoch had a transactional id that expired: it continues as a new producer.
            producer_epoch = -1
            transaction = Transaction(
                transactional_id=transactional_id,
                producer_id=self._new_producer_id(),
                producer_epoch=-1,
                timeout_ms=timeout_ms,
            )
        elif not _is_own(transaction, producer_id, producer_epoch):
            return ProducerAnswer(error_code=ErrorCode.producer_fenced)
        return self._init_known(transaction, timeout_ms, producer_epoch)

    def _init_known(self, transaction: Transaction, timeout_ms: int, expected_epoch: int) -> ProducerAnswer:
        if transaction.status is TransactionStatus.ONGOING:
            error = self._abort_fenced(transaction)
            if error is not ErrorCode.none:
                return ProducerAnswer(error_code=error)
            transaction = self._transactions[transaction.transactional_id]
        if transaction.status in _PREPARED:
            return ProducerAnswer(error_code=ErrorCode.concurrent_transactions)
        bumped = self._bumped(transaction, expected_epoch)
        if bumped is None:
            return ProducerAnswer(error_code=ErrorCode.producer_fenced)
        now_ms = self._timers.now_ms()
        error = self._store(
            replace(
                bumped,
                timeout_ms=timeout_ms,
                status=TransactionStatus.EMPTY,
                partitions=frozenset(),
                updated_ms=now_ms,
                started_ms=-1,
            )
        )
        if error is not ErrorCode.none:
            return ProducerAnswer(error_code=error)
        return ProducerAnswer(producer_id=bumped.producer_id, producer_epoch=bumped.producer_epoch)

    def _bumped(self, transaction: Transaction, expected_epoch: int) -> Transaction | None:
        """The state with the next epoch, or a new producer id after the last epoch; None when the caller is fenced."""
        if expected_epoch not in (-1, transaction.producer_epoch):
            # The retry of a call whose answer was lost: the epoch is already bumped.
            return transaction if expected_epoch == transaction.last_producer_epoch else None
        if transaction.producer_epoch >= _EXHAUSTED_EPOCH:
            transaction = replace(
                transaction,
                previous_producer_id=transaction.producer_id,
                producer_id=self._new_producer_id(),
                producer_epoch=-1,
            )
        return replace(transaction, producer_epoch=transaction.producer_epoch + 1, last_producer_epoch=expected_epoch)

    def add_partitions(
        self, transactional_id: str, producer_id: int, producer_epoch: int, partitions: Iterable[TopicPartition]
    ) -> ErrorCode:
        """AddPartitionsToTxn of existing partitions: begins a transaction, or adds to the open one."""
        transaction = self._transactions.get(transactional_id)
        error = _producer_error(transaction, transactional_id, producer_id, producer_epoch)
        if error is not ErrorCode.none or transaction is None:
            return error
        if transaction.status in _PREPARED:
            return ErrorCode.concurrent_transactions
        now_ms = self._timers.now_ms()
        is_ongoing = transaction.status is TransactionStatus.ONGOING
        before = transaction.partitions if is_ongoing else frozenset()
        after = before.union(partitions)
        if is_ongoing and after == before:
            return ErrorCode.none
        return self._store(
            replace(
                transaction,
                status=TransactionStatus.ONGOING,
                partitions=after,
                updated_ms=now_ms,
                started_ms=transaction.started_ms if is_ongoing else now_ms,
            )
        )

    def end(self, transactional_id: str, producer_id: int, producer_epoch: int, *, is_commit: bool) -> ErrorCode:
        """EndTxn: the end is prepared, and completed before the call returns unless the disk refuses."""
        transaction = self._transactions.get(transactional_id)
        error = _producer_error(transaction, transactional_id, producer_id, producer_epoch)
        if error is not ErrorCode.none or transaction is None:
            return error
        if transaction.status is TransactionStatus.ONGOING:
            return self._decide(transaction, is_commit=is_commit)
        done = TransactionStatus.COMPLETE_COMMIT if is_commit else TransactionStatus.COMPLETE_ABORT
        doing = TransactionStatus.PREPARE_COMMIT if is_commit else TransactionStatus.PREPARE_ABORT
        if transaction.status is done:
            return ErrorCode.none
        return ErrorCode.concurrent_transactions if transaction.status is doing else ErrorCode.invalid_txn_state

    def verify(self, producer_id: int, producer_epoch: int, partitions: Iterable[TopicPartition]) -> ErrorCode:
        """Whether a producer may write to partitions: its transaction is open and has them.

        Without this check a late batch would open a transaction that has no end
        (KIP-890, transaction.partition.verification.enable).
        """
        transaction = self._transactions.get(self._ids.get(producer_id, ""))
        if transaction is None or transaction.producer_id != producer_id:
            return ErrorCode.invalid_producer_id_mapping
        if transaction.producer_epoch != producer_epoch:
            return ErrorCode.invalid_producer_epoch
        if transaction.status is not TransactionStatus.ONGOING or not transaction.partitions.issuperset(partitions):
            return ErrorCode.invalid_txn_state
        return ErrorCode.none

    # Ends of transactions

    def _abort_fenced(self, transaction: Transaction) -> ErrorCode:
        """Abort a transaction and fence its producer by a bumped epoch."""
        epoch = min(transaction.producer_epoch + 1, MAX_PRODUCER_EPOCH)
        return self._decide(replace(transaction, producer_epoch=epoch, last_producer_epoch=-1), is_commit=False)

    def _decide(self, transaction: Transaction, *, is_commit: bool) -> ErrorCode:
        status = TransactionStatus.PREPARE_COMMIT if is_commit else TransactionStatus.PREPARE_ABORT
        decided = replace(transaction, status=status, updated_ms=self._timers.now_ms())
        error = self._store(decided)
        if error is ErrorCode.none:
            self._complete(decided)
        return error

    def _complete(self, decided: Transaction) -> None:
        """Write the missing markers, then the complete record; refused writes are retried later."""
        is_commit = decided.status is TransactionStatus.PREPARE_COMMIT
        missing = frozenset(at for at in sorted(decided.partitions) if not self._mark(decided, at, is_commit=is_commit))
        rest = replace(decided, partitions=missing)
        if not missing:
            status = TransactionStatus.COMPLETE_COMMIT if is_commit else TransactionStatus.COMPLETE_ABORT
            if self._store(replace(rest, status=status, updated_ms=self._timers.now_ms())) is ErrorCode.none:
                return
        self._keep(rest)
        self._timers.after_ms(RETRY_MARKERS_MS, lambda: self._complete(rest))

    def _mark(self, transaction: Transaction, at: TopicPartition, *, is_commit: bool) -> bool:
        """Whether a partition has its marker, or was deleted."""
        log = self._logs.get(at.topic, at.partition)
        if log is None:
            return True
        epoch = self._log.coordinator_epoch(transaction.transactional_id)
        producer_id, producer_epoch = transaction.producer_id, transaction.producer_epoch
        try:
            cast(TransactionalLog, log).append_marker(
                producer_id, producer_epoch, commit=is_commit, coordinator_epoch=epoch
            )
        except StorageError as error:
            _log.warning("the marker of %s in %s was refused: %s", transaction.transactional_id, at, error)
            return False
        except BrokerError as error:
            # A newer epoch of this producer has written here: a marker of the older one has no effect.
            _log.warning("the marker of %s in %s is too late: %s", transaction.transactional_id, at, error)
            return True
        if at.topic == OFFSETS_TOPIC:
            self._offsets_ended(at.partition, transaction.producer_id, is_commit)
        return True

    def _look_after_timeouts(self) -> None:
        now_ms = self._timers.now_ms()
        for transaction in self:
            is_late = transaction.started_ms + transaction.timeout_ms < now_ms
            if transaction.status is TransactionStatus.ONGOING and is_late:
                _log.info("aborted the transaction of %s, open too long", transaction.transactional_id)
                self._abort_fenced(transaction)
        self._timers.after_ms(self._settings.abort_timed_out_interval_ms, self._look_after_timeouts)

    def _look_after_expiry(self) -> None:
        """Remove expired ids."""
        oldest_ms = self._timers.now_ms() - self._settings.id_expiration_ms
        for transaction in self:
            is_busy = transaction.status is TransactionStatus.ONGOING or transaction.status in _PREPARED
            if is_busy or transaction.updated_ms > oldest_ms:
                continue
            try:
                self._log.remove(transaction.transactional_id)
            except (StorageError, RecordTooLargeError) as error:
                _log.warning("the id %s could not be removed: %s", transaction.transactional_id, error)
                break
            del self._transactions[transaction.transactional_id]
            self._ids.pop(transaction.producer_id, None)
        self._timers.after_ms(self._settings.remove_expired_interval_ms, self._look_after_expiry)

    def _store(self, transaction: Transaction) -> ErrorCode:
        try:
            self._log.append(transaction)
        except (StorageError, RecordTooLargeError) as error:
            _log.warning("the state of %s could not be written: %s", transaction.transactional_id, error)
            return ErrorCode.coordinator_not_available
        self._keep(transaction)
        return ErrorCode.none

    def _keep(self, transaction: Transaction) -> None:
        before = self._transactions.get(transaction.transactional_id)
        if before is not None and before.producer_id != transaction.producer_id:
            self._ids.pop(before.producer_id, None)
        self._transactions[transaction.transactional_id] = transaction
        self._ids[transaction.producer_id] = transaction.transactional_id


def _producer_error(
    transaction: Transaction | None, transactional_id: str, producer_id: int, producer_epoch: int
) -> ErrorCode:
    if not transactional_id:
        return ErrorCode.invalid_request
    if transaction is None or transaction.producer_id != producer_id:
        return ErrorCode.invalid_producer_id_mapping
    if transaction.producer_epoch != producer_epoch:
        return ErrorCode.producer_fenced
    return ErrorCode.none


def _is_own(transaction: Transaction, producer_id: int, producer_epoch: int) -> bool:
    """Whether the caller of InitProducerId is the current producer of the transactional id."""
    if producer_id in (NO_PRODUCER, transaction.producer_id):
        return True
    return producer_id == transaction.previous_producer_id and producer_epoch >= _EXHAUSTED_EPOCH
