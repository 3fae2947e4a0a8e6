"""Dead letters: records that a share group gave up, written to its dead-letter topic (KIP-1191).

A letter is one record for each offset, even if the source record was deleted. Its partition is the source partition
modulo the number of partitions. A failure after five attempts is logged and counted: the share partition archives its
records in any case (share-partition §11).
"""

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from sharelens.broker.errors import BrokerError, OffsetOutOfRangeError, RecordTooLargeError, StorageError
from sharelens.broker.ports import (
    DeadLetters,
    GroupSettings,
    Log,
    Logs,
    Record,
    ShareGroupSettings,
    Timers,
    Topic,
    Topics,
)
from state_model.errors import SharelensError

ATTEMPTS = 5
FIRST_DELAY_MS = 1_000
LONGEST_DELAY_MS = 30_000
PORTION_RECORDS = 100
"""Offsets that are copied and appended together; bounds the memory and the duration of one step."""
PORTION_BYTES = 1 << 19
"""Keys and values that are appended as one batch, well below the usual max.message.bytes."""
REJECTED = "Offset rejected by client."
DELIVERED_TOO_OFTEN = "Offset delivery count exceeded the threshold."

_log = logging.getLogger(__name__)


class DeadLetterRefusedError(BrokerError):
    """Raised when the dead-letter topic of a group may not be used; a retry would fail too."""


class DeadLetterTopics(Protocol):
    """The rules for dead-letter topics, and their creation."""

    @property
    def name_prefix(self) -> str:
        """errors.deadletterqueue.topic.name.prefix; empty: any name."""

    @property
    def creates_topics(self) -> bool:
        """errors.deadletterqueue.auto.create.topics.enable."""

    def takes_dead_letters(self, topic: Topic) -> bool:
        """The topic's errors.deadletterqueue.group.enable."""

    def create(self, name: str) -> Topic:
        """Create a dead-letter topic, with the default number of partitions and CreateTime.

        Raises a SharelensError when that is impossible.
        """


@dataclass(slots=True)
class _Parcel:
    """Letters in progress: the range that remains, and the attempt."""

    letters: DeadLetters
    done: Callable[[], None]
    next_offset: int
    attempt: int = 1


class DeadLetterWriter:
    """Writes dead letters into this broker's own logs (sharelens.broker.ports.DeadLetterSink).

    Letters are written in order, in portions; those that wait for another attempt don't delay the others.

    Attributes:
        written: records written so far. failed: letters given up.
    """

    def __init__(
        self, *, logs: Logs, topics: Topics, rules: DeadLetterTopics, settings: GroupSettings, timers: Timers
    ) -> None:
        self.written = 0
        self.failed = 0
        self._logs = logs
        self._topics = topics
        self._rules = rules
        self._settings = settings
        self._timers = timers
        self._waiting: deque[_Parcel] = deque()
        self._is_set = False

    def submit(self, letters: DeadLetters, done: Callable[[], None]) -> None:
        """Schedule letters; `done` is called after their last attempt."""
        self._take(_Parcel(letters, done, letters.first_offset))

    def _take(self, parcel: _Parcel) -> None:
        self._waiting.append(parcel)
        if not self._is_set:
            self._is_set = True
            self._timers.after_ms(0, self._step)

    def _step(self) -> None:
        """Write one portion of the first letters; other work runs between portions."""
        self._is_set = False
        parcel = self._waiting.popleft()
        try:
            self._write_portion(parcel)
        except StorageError as error:
            self._try_later(parcel, error)
        except SharelensError as error:
            self._give_up(parcel, error)
        else:
            if parcel.next_offset <= parcel.letters.last_offset:
                self._waiting.appendleft(parcel)
            else:
                parcel.done()
        if self._waiting and not self._is_set:
            self._is_set = True
            self._timers.after_ms(0, self._step)

    def _write_portion(self, parcel: _Parcel) -> None:
        letters = parcel.letters
        settings = self._settings(letters.key.group_id)
        topic = self._topic(settings.dead_letter_topic)
        log = self._logs.get(topic.name, letters.key.partition % topic.partitions)
        if log is None:
            raise DeadLetterRefusedError(f"topic {topic.name} has no partition for dead letters")
        last = min(letters.last_offset, parcel.next_offset + PORTION_RECORDS - 1)
        records = self._records(letters, parcel.next_offset, last, settings)
        while records:
            portion = _within_bytes(records)
            _append(log, portion)
            records = records[len(portion) :]
            parcel.next_offset += len(portion)
            self.written += len(portion)

    def _topic(self, name: str | None) -> Topic:
        """The dead-letter topic of a group, created where that is allowed.

        Raises:
            DeadLetterRefusedError: it may not be used.
        """
        rules = self._rules
        if not name:
            raise DeadLetterRefusedError("the group names no topic for dead letters")
        if name.startswith("__"):
            raise DeadLetterRefusedError(f"topic {name} is internal and takes no dead letters")
        if not name.startswith(rules.name_prefix):
            raise DeadLetterRefusedError(f"topic {name} takes no dead letters: it must begin with {rules.name_prefix}")
        topic = self._topics.by_name(name)
        if topic is None:
            if not rules.creates_topics:
                raise DeadLetterRefusedError(
                    f"there is no topic {name}: create it, or set errors.deadletterqueue.auto.create.topics.enable"
                )
            return rules.create(name)
        if not rules.takes_dead_letters(topic):
            raise DeadLetterRefusedError(
                f"topic {name} takes no dead letters: set its errors.deadletterqueue.group.enable to true"
            )
        return topic

    def _records(self, letters: DeadLetters, first: int, last: int, settings: ShareGroupSettings) -> list[Record]:
        key = letters.key
        source_topic = self._topics.by_id(key.topic_id)
        sources = self._sources(letters, first, last) if settings.dead_letter_copy_record else {}
        message = REJECTED if letters.is_rejected else DELIVERED_TOO_OFTEN
        name = key.topic_id if source_topic is None else source_topic.name

        def record(offset: int) -> Record:
            texts = {
                "topic": name,
                "partition": str(key.partition),
                "offset": str(offset),
                "group": key.group_id,
                "delivery.count": str(letters.delivery_count),
                "message": message,
            }
            source = sources.get(offset)
            return Record(
                key=None if source is None else source.key,
                value=None if source is None else source.value,
                headers=tuple((f"__dlq.errors.{name}", text.encode()) for name, text in texts.items()),
            )

        return [record(offset) for offset in range(first, last + 1)]

    def _sources(self, letters: DeadLetters, first: int, last: int) -> dict[int, Record]:
        """The source records that were not deleted."""
        log = self._logs.by_id(letters.key.topic_id, letters.key.partition)
        if log is None or last < log.log_start_offset:
            return {}
        try:
            return {record.offset: record for record in log.records(max(first, log.log_start_offset), last)}
        except (OffsetOutOfRangeError, StorageError) as error:
            _log.warning("dead letters of %s go without their records: %s", letters.key, error)
            return {}

    def _try_later(self, parcel: _Parcel, error: StorageError) -> None:
        if parcel.attempt >= ATTEMPTS:
            self._give_up(parcel, error)
            return
        delay_ms = min(LONGEST_DELAY_MS, FIRST_DELAY_MS << (parcel.attempt - 1))
        parcel.attempt += 1
        self._timers.after_ms(delay_ms, lambda: self._take(parcel))

    def _give_up(self, parcel: _Parcel, error: SharelensError) -> None:
        letters = parcel.letters
        self.failed += 1
        _log.error(
            "dead letters of %s, offsets %d to %d, could not be written: %s",
            letters.key, parcel.next_offset, letters.last_offset, error,
        )  # fmt: skip
        parcel.done()


def _within_bytes(records: list[Record]) -> list[Record]:
    """The first records up to the bound of a batch, at least one."""
    size = 0
    for index, record in enumerate(records):
        size += len(record.key or b"") + len(record.value or b"")
        if index and size > PORTION_BYTES:
            return records[:index]
    return records


def _append(log: Log, records: list[Record]) -> None:
    """Append, as several batches where the topic's limit is lower; a larger record is written without content."""
    try:
        log.append_records(records)
    except RecordTooLargeError:
        if len(records) > 1:
            half = len(records) // 2
            _append(log, records[:half])
            _append(log, records[half:])
            return
        if records[0].key is None and records[0].value is None:
            raise
        log.append_records([records[0]._replace(key=None, value=None)])
