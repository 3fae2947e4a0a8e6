"""The broker's surroundings in memory: logs that can refuse an append, topics, and a clock that the test moves."""

import heapq
import itertools
from dataclasses import replace

from sharelens.broker.errors import OffsetOutOfRangeError, StorageError
from sharelens.broker.ports import BatchSpan, Fetched, Topic, TopicPartition
from sharelens.broker.storage import record_batch
from state_model.uuids import uuid_text


class ManualTimers:
    """Virtual time: `advance` moves the clock and runs what falls due, in order of time, then of being set."""

    def __init__(self, now_ms=1_000_000):
        self._now_ms = now_ms
        self._numbers = itertools.count()
        self._waiting = []

    def now_ms(self):
        return self._now_ms

    def after_ms(self, delay_ms, callback):
        timer = ManualTimer(callback)
        heapq.heappush(self._waiting, (self._now_ms + max(0, delay_ms), next(self._numbers), timer))
        return timer

    def forget(self):
        """Drop all timers: the process that set them is gone."""
        self._waiting.clear()

    def hold_up(self, milliseconds):
        """The clock goes on while nothing fires, as where the process got no time."""
        self._now_ms += milliseconds

    def advance(self, milliseconds=0):
        end = self._now_ms + milliseconds
        while self._waiting and self._waiting[0][0] <= end:
            due, _, timer = heapq.heappop(self._waiting)
            self._now_ms = max(self._now_ms, due)
            timer.fire()
        self._now_ms = end


class ManualTimer:
    def __init__(self, callback):
        self._callback = callback

    def cancel(self):
        self._callback = None

    def fire(self):
        if self._callback is not None:
            self._callback()


class MemoryLog:
    """A log of single records. `batches` holds the appended batches; what `refuses` holds is raised by appends."""

    def __init__(self, topic, partition, topic_id, timers):
        self.topic_partition = TopicPartition(topic, partition)
        self.topic_id = topic_id
        self.leader_epoch = 0
        self.log_start_offset = 0
        self.batches = []
        self.refuses = None
        self.codecs = set()
        self._timers = timers
        self._records = []

    @property
    def high_watermark(self):
        return len(self._records)

    @property
    def last_stable_offset(self):
        return len(self._records)

    def append_records(self, records, *, codec=0, base_sequence=-1):
        if self.refuses is not None:
            raise self.refuses
        if codec:
            self.codecs.add(codec)
        first = len(self._records)
        now_ms = self._timers.now_ms()
        for offset, record in enumerate(records, first):
            timestamp_ms = now_ms if record.timestamp_ms < 0 else record.timestamp_ms
            self._records.append(record._replace(offset=offset, timestamp_ms=timestamp_ms))
        self.batches.append(self._records[first:])
        return first

    def records(self, first_offset, last_offset):
        """As the real log does: whole batches are read, what lies outside of the range is left out."""
        if first_offset < self.log_start_offset or first_offset > self.high_watermark:
            raise OffsetOutOfRangeError(f"{first_offset} is outside of {self.topic_partition}")
        return self._records[first_offset : last_offset + 1]

    def read(self, offset, *, max_bytes, end_offset=None):
        """Whole batches in real bytes; one at least."""
        data, spans = b"", []
        for batch in self.batches:
            first, last = batch[0].offset, batch[-1].offset
            if last >= offset:
                built = record_batch.build(batch, base_offset=first, leader_epoch=self.leader_epoch)
                if data and len(data) + len(built) > max_bytes:
                    break
                data += built
                spans.append(BatchSpan(first_offset=first, last_offset=last, size_bytes=len(built)))
        return Fetched(data=data, spans=tuple(spans))

    def delete_records(self, before_offset):
        self.log_start_offset = max(self.log_start_offset, min(before_offset, self.high_watermark))
        return self.log_start_offset

    def cut_to(self, offset):
        """Forget the batches that end at `offset` or beyond: what a crash before their append would have left."""
        self.batches = [batch for batch in self.batches if batch[-1].offset < offset]
        self._records = [record for batch in self.batches for record in batch]

    def subscribe(self, listener):
        return lambda: None


class MemoryCluster:
    """Topics and their logs; internal topics have as many partitions as asked for."""

    def __init__(self, timers, internal_partitions=50):
        self.timers = timers
        self._internal_partitions = internal_partitions
        self.topics = {}
        self._logs = {}
        self._ids = itertools.count(1)

    def create(self, name, partitions, is_internal=False):
        topic_id = uuid_text(next(self._ids).to_bytes(16, "big"))
        self.topics[name] = Topic(name=name, topic_id=topic_id, partitions=partitions, is_internal=is_internal)
        self._add_logs(name)
        return self.topics[name]

    def grow(self, name, partitions):
        self.topics[name] = replace(self.topics[name], partitions=partitions)
        self._add_logs(name)

    def delete(self, name):
        topic = self.topics.pop(name)
        for partition in range(topic.partitions):
            del self._logs[name, partition]
        return topic

    def _add_logs(self, name):
        topic = self.topics[name]
        for partition in range(topic.partitions):
            if (name, partition) not in self._logs:
                self._logs[name, partition] = MemoryLog(name, partition, topic.topic_id, self.timers)

    def by_name(self, name):
        return self.topics.get(name)

    def ensure_internal(self, name):
        return self.topics.get(name) or self.create(name, self._internal_partitions, is_internal=True)

    def by_id(self, topic_id, partition=None):
        """Both `Topics.by_id(topic_id)` and `Logs.by_id(topic_id, partition)`."""
        topic = next((each for each in self.topics.values() if each.topic_id == topic_id), None)
        if partition is None or topic is None:
            return topic
        return self._logs.get((topic.name, partition))

    def get(self, topic, partition):
        return self._logs.get((topic, partition))

    def refuse_appends(self, topic, error=None):
        """Appends to all partitions of an internal topic fail from now on; None lets them pass again."""
        self.ensure_internal(topic)
        for log in self.logs(topic):
            log.refuses = error

    def logs(self, topic):
        return [log for (name, _), log in self._logs.items() if name == topic]

    def batches(self, topic):
        """All batches of a topic, by partition and offset."""
        return [batch for log in self.logs(topic) for batch in log.batches]


DISK_FULL = StorageError("no space left on device")
