"""The producer of a workload: records, their rate, and their outcomes."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from sharelens.workloads.journal import Write
from sharelens.workloads.profiles import Kind, Profile
from sharelens.workloads.values import Value, write_value

FLUSH_S: Final = 60.0
MESSAGE_TIMEOUT_MS: Final = 30_000
SLICE_S: Final = 0.02
BURST: Final = 500
ABORTS_EVERY: Final = 4
TRANSACTION_RECORDS: Final = 20
_UNKNOWN: Final = frozenset({KafkaError._MSG_TIMED_OUT, KafkaError._TIMED_OUT, KafkaError._PURGE_INFLIGHT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """The size of a load: `records` or `duration_s`, whichever ends first; at most `rate` records a second."""

    records: int | None = None
    duration_s: float | None = None
    rate: float | None = None

    def due(self, sent: int, passed_s: float) -> int | None:
        """The number of records that may be sent now; None at the end."""
        remaining_records = BURST if self.records is None else self.records - sent
        if remaining_records <= 0 or (self.duration_s is not None and passed_s >= self.duration_s):
            return None
        allowed = BURST if self.rate is None else int(passed_s * self.rate) - sent
        return max(0, min(remaining_records, allowed, BURST))


class Load:
    """Produces in the thread that calls `run`; ids continue from one run to the next."""

    def __init__(self, bootstrap: str, profile: Profile, topic: str, seed: int, write: Write) -> None:
        self._profile, self._topic, self._write = profile, topic, write
        self._random = random.Random(f"{seed} load")
        self._next_id = 0
        self._transactions = 0
        config: dict[str, str | int | float | bool] = {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "linger.ms": 5,
            "socket.timeout.ms": 10_000,
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
        }
        if profile.is_transactional:
            config |= {"transactional.id": f"{topic}-{seed}", "transaction.timeout.ms": MESSAGE_TIMEOUT_MS}
        else:
            config |= {"message.timeout.ms": MESSAGE_TIMEOUT_MS}
        self._producer = Producer(config)
        if profile.is_transactional:
            self._producer.init_transactions(FLUSH_S)

    def run(self, amount: Amount, is_over: Callable[[], bool]) -> None:
        """Produce the amount and wait until each record was answered or timed out. Raises KafkaException."""
        send = self._transaction if self._profile.is_transactional else self._send
        begun_s, sent = time.monotonic(), 0
        while not is_over():
            due = amount.due(sent, time.monotonic() - begun_s)
            if due is None:
                break
            if due:
                sent += send(due)
            self._producer.poll(0 if due == BURST else SLICE_S)
        self._producer.flush(FLUSH_S)

    def _send(self, count: int, transaction: int | None = None) -> int:
        for _ in range(count):
            value = Value(id=self._next_id, kind=self._kind())
            self._next_id += 1
            self._producer.produce(
                self._topic,
                write_value(value),
                key=str(value.id),
                partition=self._random.randrange(self._profile.partitions),
                on_delivery=self._answer(value.id, transaction),
            )
            self._producer.poll(0)
        return count

    def _answer(self, record_id: int, transaction: int | None) -> Callable[[KafkaError | None, Message], None]:
        def answered(error: KafkaError | None, message: Message) -> None:
            fields: dict[str, object] = {"topic": self._topic, "partition": message.partition(), "id": record_id}
            if transaction is not None:
                fields["transaction"] = transaction
            if error is None:
                self._write("produce", **fields, offset=message.offset(), outcome="acknowledged")
            else:
                outcome = "unanswered" if error.code() in _UNKNOWN else "failed"
                self._write("produce", **fields, outcome=outcome, error=error.name())

        return answered

    def _transaction(self, count: int) -> int:
        """Produce a transaction of at most `count` records; their number."""
        number, self._transactions = self._transactions, self._transactions + 1
        wants_abort = number % ABORTS_EVERY == ABORTS_EVERY - 1
        records = min(count, self._random.randint(1, TRANSACTION_RECORDS))
        self._producer.begin_transaction()
        self._send(records, number)
        try:
            self._producer.flush(FLUSH_S)
            if wants_abort:
                self._producer.abort_transaction(FLUSH_S)
            else:
                self._producer.commit_transaction(FLUSH_S)
        except KafkaException as error:
            self._give_up(error, number)
        else:
            self._write("transaction", transaction=number, outcome="aborted" if wants_abort else "committed")
        return records

    def _give_up(self, error: KafkaException, number: int) -> None:
        """Abort the transaction. Raises KafkaException when the producer must not be used any more."""
        reason: KafkaError = error.args[0]
        if not reason.txn_requires_abort():
            self._write("transaction", transaction=number, outcome="unanswered", error=reason.name())
            raise error
        self._producer.abort_transaction(FLUSH_S)
        self._write("transaction", transaction=number, outcome="aborted", error=reason.name())

    def _kind(self) -> Kind:
        dice = self._random.random()
        for kind, share in self._profile.shares.items():
            dice -= share
            if dice < 0:
                return kind
        return Kind.ORDINARY
