"""Share partitions on a log and a share coordinator in memory, for tests that say what clients do."""

from dataclasses import dataclass, replace

from sharelens.broker.errors import OffsetOutOfRangeError
from sharelens.broker.ports import BatchSpan, Fetched, Record, ShareGroupSettings, Topic, TopicPartition
from sharelens.broker.share.acknowledgement import AcknowledgementBatch, AcknowledgeType
from sharelens.broker.share.acquisition import AcquireMode
from sharelens.broker.share.manager import FetchTerms, SharePartitions, share_partition_key
from sharelens.broker.share.share_partition import SharePartition
from state_model import coordinator, machine
from state_model.answers import ErrorCode, ReadAnswer, SummaryAnswer
from state_model.share_records import SharePartitionKey, StateBatch
from tests.broker_parts.broker_memory import ManualTimers

TOPIC_ID = "AAECAwQFBgcICQoLDA0ODw"
KEY = SharePartitionKey(group_id="g", topic_id=TOPIC_ID, partition=0)
LOCK_MS = 30_000
TERMS = FetchTerms(max_records=500, batch_size=500)
GAP, ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType


class BatchLog:
    """A log of batches whose bytes tell their offsets: `0-9;`."""

    def __init__(self, topic="t", partition=0, topic_id=TOPIC_ID):
        self.topic_partition = TopicPartition(topic, partition)
        self.topic_id = topic_id
        self.leader_epoch = 0
        self.log_start_offset = 0
        self.high_watermark = 0
        self.first_unstable_offset = None
        self.spans = []
        self.aborted = []
        self.timestamps = {}
        self.listeners = []

    @property
    def last_stable_offset(self):
        return self.high_watermark if self.first_unstable_offset is None else self.first_unstable_offset

    def append(self, count, *, producer_id=-1, is_control=False):
        """A batch of so many records; returns its first offset."""
        first = self.high_watermark
        span = BatchSpan(
            first_offset=first,
            last_offset=first + count - 1,
            size_bytes=len(self._bytes(first, first + count - 1)),
            is_control=is_control,
            is_transactional=producer_id >= 0,
            producer_id=producer_id,
        )
        self.spans.append(span)
        self.high_watermark += count
        for listener in list(self.listeners):
            listener()
        return first

    def skip(self, count):
        """Offsets that compaction has left without records."""
        self.high_watermark += count

    def compact_away(self, first_offset):
        """The batch that began at this offset is no longer there."""
        self.spans = [span for span in self.spans if span.first_offset != first_offset]

    @staticmethod
    def _bytes(first, last):
        return f"{first}-{last};".encode()

    def read(self, offset, *, max_bytes, end_offset=None):
        if not self.log_start_offset <= offset <= self.high_watermark:
            raise OffsetOutOfRangeError(f"{offset} is outside of {self.topic_partition}")
        end = self.high_watermark if end_offset is None else end_offset
        chosen, size = [], 0
        for span in self.spans:
            if span.last_offset < offset or span.first_offset >= end:
                continue
            if chosen and size + span.size_bytes > max_bytes:
                break
            chosen.append(span)
            size += span.size_bytes
        data = b"".join(self._bytes(span.first_offset, span.last_offset) for span in chosen)
        return Fetched(data=data, spans=tuple(chosen))

    def records(self, first_offset, last_offset):
        return [
            Record(key=b"k%d" % offset, value=b"v%d" % offset, offset=offset)
            for span in self.spans
            for offset in range(max(span.first_offset, first_offset), min(span.last_offset, last_offset) + 1)
        ]

    def aborted_transactions(self, first_offset, last_offset):
        return [
            transaction
            for transaction in self.aborted
            if transaction.first_offset <= last_offset and transaction.last_offset >= first_offset
        ]

    def offset_for_timestamp(self, timestamp_ms):
        return min(((t, o) for t, o in self.timestamps.items() if t >= timestamp_ms), default=None)

    def delete_records(self, before_offset):
        self.log_start_offset = max(self.log_start_offset, before_offset)
        self.spans = [span for span in self.spans if span.last_offset >= self.log_start_offset]
        return self.log_start_offset

    def subscribe(self, listener):
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)


class MemoryPersister:
    """A share coordinator over state_model's machine, without a log.

    `refuses` is answered to each write and nothing is kept; `forgets_answer` is answered although the write is kept.
    """

    def __init__(self, timers):
        self._timers = timers
        self.state = machine.PartitionState()
        self.log_offset = 0
        self.writes = []
        self.refuses = None
        self.forgets_answer = None

    def _append(self, records):
        for record in records:
            self.state = machine.apply(self.state, self.log_offset, self._timers.now_ms(), record)
            self.log_offset += 1

    def initialize(self, key, *, state_epoch, start_offset):
        outcome = coordinator.initialize(
            self.state, key, state_epoch=state_epoch, start_offset=start_offset, now_ms=self._timers.now_ms()
        )
        self._append(outcome.records)
        return outcome.error_code

    def read(self, key, *, leader_epoch):
        if self.refuses is not None:
            return ReadAnswer(error_code=self.refuses)
        outcome = coordinator.read(self.state, key, leader_epoch=leader_epoch, now_ms=self._timers.now_ms())
        self._append(outcome.records)
        return outcome.answer

    def write(self, key, request):
        if self.refuses is not None:
            return self.refuses
        outcome = coordinator.write(self.state, key, request, now_ms=self._timers.now_ms())
        self._append(outcome.records)
        if outcome.error_code is ErrorCode.NONE:
            self.writes.append(request)
        if self.forgets_answer is not None:
            return self.forgets_answer
        return outcome.error_code

    def delete(self, key):
        outcome = coordinator.delete(self.state, key)
        self._append(outcome.records)
        return outcome.error_code

    def read_summary(self, key):
        return SummaryAnswer()

    def share_partition(self, key=KEY):
        return self.state.share_partitions.get(key)


class LetterBox:
    """A dead-letter sink that keeps what it gets until `deliver`."""

    def __init__(self):
        self.letters = []
        self._done = []

    def submit(self, letters, done):
        self.letters.append(letters)
        self._done.append(done)

    def deliver(self):
        done, self._done = self._done, []
        for callback in done:
            callback()


@dataclass
class Acquired:
    """What a member got, as tests compare it: batches as text, ranges as triples."""

    data: str
    ranges: list


class Scene:
    """One share partition, its log, its share coordinator, and the clock."""

    def __init__(self, *batches, start_offset=0, **settings):
        self.timers = ManualTimers()
        self.log = BatchLog()
        for count in batches:
            self.log.append(count)
        self.persister = MemoryPersister(self.timers)
        self.persister.initialize(KEY, state_epoch=2, start_offset=start_offset)
        self.settings = replace(ShareGroupSettings(record_lock_duration_ms=LOCK_MS), **settings)
        self.letter_box = LetterBox()
        self.fenced = []
        self.changes = 0
        self.partition = self.lead()

    def lead(self):
        """A new leader's instance, loaded from the share coordinator."""
        new_leader = SharePartition(
            KEY,
            leader_epoch=self.log.leader_epoch,
            log=self.log,
            persister=self.persister,
            settings=lambda: self.settings,
            timers=self.timers,
            dead_letters=self.letter_box,
            on_change=self._changed,
            on_fenced=self.fenced.append,
        )
        self.loaded = new_leader.initialize()
        self.partition = new_leader
        return new_leader

    def _changed(self, partition):
        self.changes += 1

    def set(self, **settings):
        self.settings = replace(self.settings, **settings)

    def acquire(self, member="m", max_records=500, batch_size=500, max_bytes=1 << 20, mode=AcquireMode.BATCH_OPTIMIZED):
        got = self.partition.acquire(
            member, max_records=max_records, batch_size=batch_size, max_bytes=max_bytes, mode=mode
        )
        return Acquired(data=got.data.decode(), ranges=[tuple(acquired_range) for acquired_range in got.ranges])

    def ranges(self, member="m", **options):
        return self.acquire(member, **options).ranges

    def acknowledge(self, first, last, *types, member="m"):
        return self.partition.acknowledge(
            member, [AcknowledgementBatch(first_offset=first, last_offset=last, types=types)]
        )

    def acknowledge_all(self, *batches, member="m"):
        """Several batches of one request, each (first, last, types)."""
        return self.partition.acknowledge(
            member, [AcknowledgementBatch(first_offset=f, last_offset=e, types=types) for f, e, types in batches]
        )

    @property
    def start(self):
        return self.partition.window.start_offset

    @property
    def complete(self):
        return self.partition.window.delivery_complete_count

    def cached(self):
        """The window as text: state letter, range and count of each run, cached batches in brackets."""
        return " ".join(
            "["
            + " ".join(f"{run.state.name[:4].lower()} {run.first}-{run.last} x{run.count}" for run in batch.runs)
            + "]"
            for batch in self.partition.window
        )

    def writes(self):
        """All writes since the start as (start offset, delivery complete count, [(first, last, state, count)])."""
        return [
            (
                write.start_offset,
                write.delivery_complete_count,
                [(b.first_offset, b.last_offset, int(b.delivery_state), b.delivery_count) for b in write.state_batches],
            )
            for write in self.persister.writes
        ]

    def last_write(self):
        return self.writes()[-1]


class House:
    """Two partitions of one topic, and what stands for connections."""

    def __init__(self, partitions=2, max_sessions=10, **settings):
        self.timers = ManualTimers()
        self.persister = MemoryPersister(self.timers)
        self.logs = {number: BatchLog(partition=number) for number in range(partitions)}
        self.settings = ShareGroupSettings(record_lock_duration_ms=LOCK_MS, **settings)
        self.topic = Topic(name="t", topic_id=TOPIC_ID, partitions=partitions)
        self.on_close = {}
        for number in self.logs:
            self.persister.initialize(self.key(number), state_epoch=1, start_offset=0)
        self.shares = SharePartitions(
            logs=self,
            topics=self,
            persister=self.persister,
            settings=lambda group_id: self.settings,
            timers=self.timers,
            max_sessions=max_sessions,
        )

    def key(self, partition=0):
        return share_partition_key("g", (TOPIC_ID, partition))

    def by_id(self, topic_id, partition=None):
        if topic_id != TOPIC_ID:
            return None
        return self.topic if partition is None else self.logs.get(partition)

    def open(self, member="m", connection=1, partitions=(0, 1)):
        session = self.shares.open_session("g", member, connection, self.on_close.setdefault(connection, []).append)
        session.update([(TOPIC_ID, number) for number in partitions], [])
        return session

    def disconnect(self, connection):
        for callback in self.on_close.pop(connection):
            callback()

    def fetch(self, session, terms=TERMS, **options):
        """Acquired ranges, or the error, by partition."""
        fetched = self.shares.fetch(session, terms, **options)
        return {
            partition: answer.error if answer.error else [tuple(acquired) for acquired in answer.acquired.ranges]
            for (_, partition), answer in sorted(fetched.items())
        }


def batches(*ranges):
    """State batches of (first, last, state, count)."""
    return tuple(
        StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
        for first, last, state, count in ranges
    )


def loaded_with(*ranges, start_offset=0, log=(), **settings):
    """A scene whose share coordinator already holds state batches of (first, last, state, count)."""
    scene = Scene(*log, start_offset=start_offset, **settings)
    scene.persister.write(
        KEY,
        coordinator.WriteRequest(
            state_epoch=2, leader_epoch=0, start_offset=start_offset, state_batches=batches(*ranges)
        ),
    )
    scene.lead()
    scene.persister.writes.clear()
    return scene
