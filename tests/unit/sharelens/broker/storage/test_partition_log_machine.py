"""A partition's log against a plain list: appends, rolls, deletions, stops, kills with a torn tail, in any order."""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sharelens.broker.errors import OffsetOutOfRangeError, StorageError
from sharelens.broker.ports import Record, TopicPartition
from sharelens.broker.storage import record_batch as rb
from sharelens.broker.storage.partition_log import PartitionLog
from tests.logs.broker_logs import Clock, open_log, produced

PRODUCERS = st.integers(1, 3)
CODECS = st.integers(0, 4)


class FailingDisk:
    """Refuses or tears every write while `keeps` is set."""

    keeps: int | None = None

    def lost_offsets(self, topic_partition: TopicPartition) -> int:
        return 0

    def before_append(self, topic_partition: TopicPartition, data: bytes) -> bytes:
        return data if self.keeps is None else data[: self.keeps]

    def after_append(self, topic_partition: TopicPartition) -> None:
        if self.keeps is not None:
            raise OSError(5, "Input/output error")


class LogMachine(RuleBasedStateMachine):
    """`values[offset]` is what the log must hold; None for a marker."""

    @initialize(segment_bytes=st.sampled_from([300, 1000, 1 << 20]), interval_bytes=st.sampled_from([1, 200, 4096]))
    def begin(self, segment_bytes: int, interval_bytes: int) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="sharelens-log-"))
        self.options = {"segment_bytes": segment_bytes, "index_interval_bytes": interval_bytes}
        self.clock, self.disk = Clock(), FailingDisk()
        self.values: list[bytes | None] = []
        self.times: list[int] = []
        self.start = 0
        self.sequences: dict[int, int] = {}
        self.last_batch: dict[int, tuple[bytes, int]] = {}
        self.open_from: dict[int, int] = {}
        self.aborted: list[tuple[int, int, int]] = []
        self.open(is_clean=True)

    def open(self, *, is_clean: bool, recovery_point: int = 0) -> None:
        self.log: PartitionLog = open_log(
            self.folder,
            clock=self.clock,
            is_clean=is_clean,
            recovery_point=recovery_point,
            log_start_offset=self.start,
            faults=self.disk,
            **self.options,
        )

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.log.abandon()
            shutil.rmtree(self.folder)

    @rule(texts=st.lists(st.binary(max_size=60), min_size=1, max_size=4), codec=CODECS, step_ms=st.integers(-50, 50))
    def append_own(self, texts: list[bytes], codec: int, step_ms: int) -> None:
        time_ms = self.clock.now_ms() + step_ms
        records = [Record(key=None, value=text, timestamp_ms=time_ms) for text in texts]
        assert self.log.append_records(records, codec=codec) == len(self.values)
        self.values += texts
        self.times += [time_ms] * len(texts)

    @rule(producer_id=PRODUCERS, text=st.text("ab", max_size=40), codec=CODECS, transactional=st.booleans())
    def append_client(self, producer_id: int, text: str, codec: int, transactional: bool) -> None:
        transactional = transactional or producer_id in self.open_from
        sequence = self.sequences.get(producer_id, 0)
        batch = produced(text, producer_id=producer_id, sequence=sequence, codec=codec, transactional=transactional)
        offset = len(self.values)
        assert self.log.append_client(batch).base_offset == offset
        self.values.append(text.encode())
        self.times.append(rb.max_timestamp_of(batch))
        self.sequences[producer_id] = sequence + 1
        self.last_batch[producer_id] = (batch, offset)
        if transactional:
            self.open_from.setdefault(producer_id, offset)

    @precondition(lambda self: self.last_batch)
    @rule(data=st.data())
    def repeat_the_last_batch(self, data: st.DataObject) -> None:
        batch, offset = self.last_batch[data.draw(st.sampled_from(sorted(self.last_batch)))]
        appended = self.log.append_client(batch)
        assert (appended.base_offset, appended.is_duplicate) == (offset, True)

    @rule(producer_id=PRODUCERS, commit=st.booleans())
    def end_transaction(self, producer_id: int, commit: bool) -> None:
        offset = self.log.append_marker(producer_id, 0, commit=commit, coordinator_epoch=0)
        assert offset == len(self.values)
        self.values.append(None)
        self.times.append(self.clock.now_ms())
        first = self.open_from.pop(producer_id, None)
        if first is not None and not commit:
            self.aborted.append((producer_id, first, offset))

    @rule(keeps=st.integers(0, 40))
    def fail_to_append(self, keeps: int) -> None:
        self.disk.keeps = keeps
        with pytest.raises(StorageError):
            self.log.append_client(produced("never there"))
        self.disk.keeps = None

    @rule(duration_ms=st.integers(0, 200))
    def time_passes(self, duration_ms: int) -> None:
        self.clock.pass_ms(duration_ms)

    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        self.start = data.draw(st.integers(self.start, len(self.values)))
        assert self.log.delete_records(self.start) == self.start

    @rule()
    def flush(self) -> None:
        self.log.flush()

    @rule()
    def stop_and_start(self) -> None:
        self.log.close()
        self.open(is_clean=True)

    @rule(torn=st.binary(max_size=80), use_recovery_point=st.booleans(), is_whole_batch=st.booleans())
    def kill_and_start(self, torn: bytes, use_recovery_point: bool, is_whole_batch: bool) -> None:
        """What was being written when the process died lies torn behind the last acknowledged batch."""
        self.log.abandon()
        active = max(self.folder.glob("*.log"))
        if is_whole_batch:
            torn = rb.build([Record(key=None, value=b"unacknowledged")], base_offset=len(self.values))[: len(torn)]
        with active.open("ab") as file:
            file.write(torn)
        self.open(is_clean=False, recovery_point=self.log.recovery_point if use_recovery_point else 0)

    @invariant()
    def ends_are_right(self) -> None:
        assert (self.log.log_start_offset, self.log.high_watermark) == (self.start, len(self.values))
        assert self.log.last_stable_offset == min(self.open_from.values(), default=len(self.values))

    @rule(data=st.data())
    def read(self, data: st.DataObject) -> None:
        first = data.draw(st.integers(0, len(self.values)))
        last = data.draw(st.integers(first, len(self.values)))
        expected = [
            (offset, self.values[offset])
            for offset in range(max(first, self.start), min(last + 1, len(self.values)))
            if self.values[offset] is not None
        ]
        assert [(record.offset, record.value) for record in self.log.records(first, last)] == expected
        if first < self.start:
            with pytest.raises(OffsetOutOfRangeError):
                self.log.read(first, max_bytes=1)
        elif first < len(self.values):
            max_bytes = data.draw(st.integers(0, 500))
            fetched = self.log.read(first, max_bytes=max_bytes, end_offset=max(last, first + 1))
            assert fetched.spans[0].first_offset <= first <= fetched.spans[0].last_offset
            assert all(span.first_offset < max(last, first + 1) for span in fetched.spans)
            assert len(fetched.data) == sum(span.size_bytes for span in fetched.spans)
            assert len(fetched.data) <= max_bytes or len(fetched.spans) == 1

    @rule(data=st.data())
    def look_for_aborted_transactions(self, data: st.DataObject) -> None:
        first = data.draw(st.integers(self.start, len(self.values)))
        last = data.draw(st.integers(first, len(self.values)))
        actual = self.log.aborted_transactions(first, last)
        answer = [(entry.producer_id, entry.first_offset, entry.last_offset) for entry in actual]
        assert answer == [entry for entry in self.aborted if entry[2] >= first and entry[1] <= last]

    @rule(step_ms=st.integers(-100, 300))
    def look_for_a_time(self, step_ms: int) -> None:
        expected = self.clock.now_ms() + step_ms
        actual = [(time, offset) for offset, time in enumerate(self.times) if time >= expected and offset >= self.start]
        assert self.log.offset_for_timestamp(expected) == (actual[0] if actual else None)


TestLogMachine = LogMachine.TestCase
TestLogMachine.settings = settings(stateful_step_count=40)
