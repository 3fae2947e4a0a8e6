"""One share partition at its leader: the in-flight window, its locks, writes to the share coordinator.

Rules: share-partition §1-§8 and §11 (kafka.server.share.SharePartition). Everything is synchronous: a write is durable
or refused when it returns, so no partial change is visible.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from sharelens.broker.errors import OffsetOutOfRangeError
from sharelens.broker.ports import (
    DeadLetters,
    DeadLetterSink,
    Fetched,
    Handle,
    Log,
    Persister,
    ShareGroupSettings,
    Timers,
)
from sharelens.broker.share import acknowledgement, acquisition, codes, loading
from sharelens.broker.share.acknowledgement import AcknowledgementBatch
from sharelens.broker.share.acquisition import AcquiredRange, AcquireMode, Terms
from sharelens.broker.share.codes import ShareErrorCode
from sharelens.broker.share.transitions import Changes, Ending, start_release
from sharelens.broker.share.window import CachedBatch, Run, Window
from state_model.coordinator import WriteRequest
from state_model.share_records import DeliveryState, SharePartitionKey
from state_model.tuples import maker

# Looked up once: this is the work of every acknowledgement.
_NONE = ShareErrorCode.NONE
_write_request = maker(WriteRequest)


class Status(Enum):
    """The status of a share partition (SharePartitionState); the last two are final."""

    EMPTY = "empty"
    ACTIVE = "active"
    FAILED = "failed"
    FENCED = "fenced"


_ACTIVE = Status.ACTIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class Acquired:
    """The result of an acquisition: whole log batches with the bytes of the segment, and the acquired offsets in them.

    The batches may hold other offsets too; clients drop those.
    """

    data: bytes = b""
    ranges: tuple[AcquiredRange, ...] = ()


NO_ACQUISITION = Acquired()
NO_RECORDS = Fetched(data=b"", spans=())
MAX_READS = 16
"""Bound of the reads of one acquisition, whose batches may be out of range or aborted."""


class SharePartition:
    """The state machine of one share partition.

    Args:
        leader_epoch: of the log's leader at the creation of this share partition; it fences older ones.
        settings: returns the group's current configuration.
        dead_letters: receives records that the group gave up while it has a dead-letter topic; None: dropped.
        on_change: called after records became available or the start offset moved without a request.
        on_fenced: called once, when this share partition must no longer be used.
    """

    def __init__(
        self,
        key: SharePartitionKey,
        *,
        leader_epoch: int,
        log: Log,
        persister: Persister,
        settings: Callable[[], ShareGroupSettings],
        timers: Timers,
        dead_letters: DeadLetterSink | None = None,
        on_change: Callable[["SharePartition"], None] = lambda _: None,
        on_fenced: Callable[["SharePartition"], None] = lambda _: None,
    ) -> None:
        self.key = key
        self.leader_epoch = leader_epoch
        self.log = log
        self.status = Status.EMPTY
        self.state_epoch = 0
        self.window = Window(0)
        self._persister = persister
        self._settings = settings
        self._timers = timers
        self._dead_letters = dead_letters
        self._on_change = on_change
        self._on_fenced = on_fenced
        self._timer: Handle | None = None
        self._timer_deadline_ms = 0
        self._last_ending: tuple[ShareGroupSettings, Ending] | None = None
        self._finished_letters: list[DeadLetters] = []

    def initialize(self) -> ShareErrorCode:
        """Load the state from the share coordinator; after an error this instance must not be used.

        An undetermined start offset follows share.auto.offset.reset and is not persisted before the first write. Dead
        letters that the last leader did not complete are sent again.
        """
        answer = self._persister.read(self.key, leader_epoch=self.leader_epoch)
        error = codes.of_persister(answer.error_code)
        settings = self._settings()
        if error is ShareErrorCode.NONE:
            start_offset = loading.resolve_start(answer.start_offset, settings, self.log, self._timers.now_ms())
            window = loading.load(start_offset, answer.state_batches)
            if window is not None:
                self.window = window
                self.state_epoch = answer.state_epoch
                self.status = Status.ACTIVE
                window.advance()
                self._resume_dead_letters(settings)
                return ShareErrorCode.NONE
            error = ShareErrorCode.UNKNOWN_SERVER_ERROR
        self.status = Status.FAILED
        return error

    def can_acquire(self) -> bool:
        """Whether a fetch may acquire records: the window has available offsets, or room for new ones."""
        if self.status is not _ACTIVE:
            return False
        window = self.window
        return window.next_offset() != window.new_offset or window.size < self._settings().partition_max_record_locks

    def read(self, max_bytes: int) -> Fetched:
        """Whole log batches from the next offset on, up to the group's isolation level; no records are acquired.

        Where the log begins above the start offset, the window follows it, and there are no records this time.
        """
        log, offset = self.log, self.window.next_offset()
        is_committed = self._settings().isolation_level == "read_committed"
        end_offset = log.last_stable_offset if is_committed else log.high_watermark
        if log.log_start_offset <= offset >= end_offset:
            return NO_RECORDS
        try:
            return log.read(offset, max_bytes=max_bytes, end_offset=end_offset if is_committed else None)
        except OffsetOutOfRangeError:
            if self.window.raise_start(log.log_start_offset):
                self._on_change(self)
            return NO_RECORDS

    def acquire(
        self,
        member_id: str,
        *,
        max_records: int,
        batch_size: int,
        max_bytes: int,
        mode: AcquireMode = AcquireMode.BATCH_OPTIMIZED,
    ) -> Acquired:
        """Acquire records for a member, if there are any; `max_records` and `max_bytes` are soft limits."""
        for _ in range(MAX_READS):
            if max_records <= 0 or not self.can_acquire():
                return NO_ACQUISITION
            offset = self.window.next_offset()
            fetched = self.read(max_bytes)
            acquired = self._acquire(fetched, member_id, max_records, batch_size, mode)
            if acquired.ranges or self.window.next_offset() == offset:
                return acquired
        return NO_ACQUISITION

    def _acquire(
        self, fetched: Fetched, member_id: str, max_records: int, batch_size: int, mode: AcquireMode
    ) -> Acquired:
        if not fetched.spans:
            return NO_ACQUISITION
        settings, window = self._settings(), self.window
        terms = Terms(
            member_id=member_id,
            deadline_ms=self._timers.now_ms() + settings.record_lock_duration_ms,
            max_records=max_records,
            batch_size=max(1, batch_size),
            mode=mode,
            delivery_count_limit=settings.delivery_count_limit,
            max_record_locks=settings.partition_max_record_locks,
        )
        ranges = acquisition.acquire(window, fetched.spans, window.next_offset(), terms)
        if ranges and settings.isolation_level == "read_committed":
            ranges = self._without_aborted(fetched, ranges)
        if not ranges:
            return NO_ACQUISITION
        self._arm(terms.deadline_ms)
        data = _around(fetched, ranges[0].first_offset, ranges[-1].last_offset)
        return Acquired(data=data, ranges=tuple(ranges))

    def _without_aborted(self, fetched: Fetched, ranges: list[AcquiredRange]) -> list[AcquiredRange]:
        if not any(span.is_transactional for span in fetched.spans):
            return ranges
        aborted = self.log.aborted_transactions(ranges[0].first_offset, ranges[-1].last_offset)
        return acquisition.archive_aborted(self.window, fetched.spans, aborted, ranges)

    def acknowledge(self, member_id: str, batches: Sequence[AcknowledgementBatch]) -> ShareErrorCode:
        """Apply all of a request's acknowledgements, or none; NONE means that they are durable.

        The batches have passed `acknowledgement.validate`.
        """
        if self.status is not _ACTIVE:
            return ShareErrorCode.NOT_LEADER_OR_FOLLOWER
        self._end_late_locks()
        settings = self._settings()
        change_plan = acknowledgement.plan(self.window, member_id, batches, self._ending(settings))
        if change_plan.error is not _NONE:
            return change_plan.error
        error = self._write(change_plan.changes, settings, change_plan.rejected)
        if error is _NONE and change_plan.renewed:
            deadline_ms = self._timers.now_ms() + settings.record_lock_duration_ms
            for run in change_plan.renewed:
                run.deadline_ms = deadline_ms
            self._arm(deadline_ms)
        change_plan.changes.tidy()
        return error

    def release_member(self, member_id: str) -> ShareErrorCode:
        """Release all records of a member whose session or connection was closed."""
        settings, changes = self._settings(), Changes(self.window)
        ending = self._ending(settings)
        for batch in self.window:
            for run in list(batch.runs):
                if run.state is DeliveryState.ACQUIRED and run.member_id == member_id:
                    start_release(self.window, batch, run, ending, changes)
        error = self._write(changes, settings)
        changes.tidy()
        return error

    def fence(self) -> None:
        """Stop the use of this instance. Its locks still time out; another leader fences the writes."""
        if self.status is not Status.FENCED:
            self.status = Status.FENCED
            self._on_fenced(self)

    def _ending(self, settings: ShareGroupSettings) -> Ending:
        if self._last_ending is None or self._last_ending[0] is not settings:
            ending = Ending(
                delivery_count_limit=settings.delivery_count_limit,
                has_dead_letters=self._dead_letters is not None and settings.dead_letter_topic is not None,
            )
            self._last_ending = (settings, ending)
        return self._last_ending[1]

    def _write(
        self, changes: Changes, settings: ShareGroupSettings, rejected: set[int] | frozenset[int] = frozenset()
    ) -> ShareErrorCode:
        """Write changes as one request; commit them and their effects, or roll them back."""
        if not changes.runs:
            return _NONE
        error = self._persist(changes)
        if error is not _NONE:
            ended = changes.roll_back(self._timers.now_ms(), self._ending(settings))
            self._fence_after(error)
            if ended:
                self._on_change(self)
            return error
        letters = self._letters(changes, rejected) if self._ending(settings).has_dead_letters else []
        changes.commit()
        self.window.advance()
        if letters:
            self._submit(letters)
        self._on_change(self)
        return _NONE

    def _persist(self, changes: Changes) -> ShareErrorCode:
        window = self.window
        request = _write_request(
            (
                self.state_epoch,
                self.leader_epoch,
                window.start_offset,
                changes.state_batches(),
                window.delivery_complete_count,
            )
        )
        return codes.of_persister(self._persister.write(self.key, request))

    def _fence_after(self, error: ShareErrorCode) -> None:
        if error in codes.FENCING:
            self.fence()

    def _arm(self, deadline_ms: int) -> None:
        """Keep one timer for all locks, at the earliest known timeout."""
        if self._timer is not None:
            if self._timer_deadline_ms <= deadline_ms:
                return
            self._timer.cancel()
        self._timer_deadline_ms = deadline_ms
        self._timer = self._timers.after_ms(max(0, deadline_ms - self._timers.now_ms()), self._on_timer)

    def _arm_again(self) -> None:
        deadlines = [run.deadline_ms for batch in self.window for run in batch.runs if run.deadline_ms]
        if deadlines:
            self._arm(min(deadlines))

    def _end_late_locks(self) -> None:
        """End timed-out locks although their timer, which waits behind a request, has not fired yet."""
        if self._timer is not None and self._timer_deadline_ms < self._timers.now_ms():
            self._timer.cancel()
            self._on_timer()

    def _on_timer(self) -> None:
        self._timer = None
        now_ms = self._timers.now_ms()
        expired = sorted(
            (
                (run.deadline_ms, run.first, run.last, batch)
                for batch in self.window
                for run in batch.runs
                if run.state is DeliveryState.ACQUIRED and run.deadline_ms <= now_ms
            ),
            key=lambda lock: lock[:2],
        )
        for _, first, last, batch in expired:
            self._expire(batch, first, last)
        self._arm_again()
        if expired:
            self.window.advance()
            self._on_change(self)

    def _expire(self, batch: CachedBatch, first: int, last: int) -> None:
        """End timed-out locks: one write for a batch, or for each offset where the state is by offset.

        State moves on whether the write succeeds or not (§6). The start offset follows when all of a moment's locks
        have ended: Kafka's timers fire together, before the first of the writes has been answered.
        """
        ending = self._ending(self._settings())
        for run in batch.singles(first, last) if batch.by_offset else batch.cover(first, last):
            changes = Changes(self.window)
            start_release(self.window, batch, run, ending, changes)
            self._submit(self._write_regardless(changes))
        batch.coalesce()

    def _write_regardless(self, changes: Changes) -> list[DeadLetters]:
        """Write and commit, whatever the answer; returns the dead letters."""
        self._fence_after(self._persist(changes))
        letters = self._letters(changes, frozenset())
        changes.commit()
        return letters

    def _letters(self, changes: Changes, rejected: set[int] | frozenset[int]) -> list[DeadLetters]:
        return [
            self._letter(run, is_rejected=run.first in rejected)
            for run in changes.runs
            if run.target is DeliveryState.ARCHIVING
        ]

    def _letter(self, run: Run, *, is_rejected: bool) -> DeadLetters:
        return DeadLetters(
            key=self.key,
            first_offset=run.first,
            last_offset=run.last,
            delivery_count=run.count,
            is_rejected=is_rejected,
        )

    def _submit(self, letters: Sequence[DeadLetters]) -> None:
        for letter in letters:
            if self._dead_letters is None:
                self._finish_soon(letter)
            else:
                self._dead_letters.submit(letter, lambda letter=letter: self._finish_soon(letter))  # type: ignore[misc]

    def _resume_dead_letters(self, settings: ShareGroupSettings) -> None:
        """Dead letters that the last leader did not complete; the count implies their cause (§11.4)."""
        self._submit(
            [
                self._letter(run, is_rejected=run.count < settings.delivery_count_limit)
                for batch in self.window
                for run in batch.runs
                if run.state is DeliveryState.ARCHIVING
            ]
        )

    def _finish_soon(self, letter: DeadLetters) -> None:
        """Collect the letters that end at one moment."""
        self._finished_letters.append(letter)
        if len(self._finished_letters) == 1:
            self._timers.after_ms(0, self._finish_letters)

    def _finish_letters(self) -> None:
        """Archive dead-lettered records, whether their letters and this write succeed or not."""
        letters, self._finished_letters = self._finished_letters, []
        for letter in letters:
            first, last = letter.first_offset, letter.last_offset
            for batch in self.window.overlapping(first, last):
                for run in batch.singles(first, last) if batch.by_offset else batch.cover(first, last):
                    if run.state is DeliveryState.ARCHIVING:
                        changes = Changes(self.window)
                        changes.start(batch, run, DeliveryState.ARCHIVED)
                        self._write_regardless(changes)
                batch.coalesce()
        self.window.advance()
        self._on_change(self)


def _around(fetched: Fetched, first: int, last: int) -> bytes:
    """The data of the batches that hold offsets from `first` to `last`; the same bytes when that is all of them."""
    begin = end = 0
    for span in fetched.spans:
        if span.last_offset < first:
            begin += span.size_bytes
        if span.first_offset > last:
            break
        end += span.size_bytes
    return fetched.data if (begin, end) == (0, len(fetched.data)) else fetched.data[begin:end]
