"""A share partition against a plain model of one entry for each offset, under everything that can happen to it."""

from dataclasses import dataclass
from itertools import pairwise

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from sharelens.broker.share.acquisition import AcquireMode
from sharelens.broker.share.codes import ShareErrorCode
from state_model.answers import ErrorCode
from tests.logs.share_partitions import ACCEPT, GAP, KEY, LOCK_MS, REJECT, RELEASE, RENEW, LetterBox, Scene

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVING, ARCHIVED = range(5)
TERMINAL = (ACKNOWLEDGED, ARCHIVED)
MEMBERS = st.sampled_from(["a", "b"])
KINDS = (GAP, ACCEPT, ACCEPT, RELEASE, RELEASE, REJECT)
FAILING = ErrorCode.COORDINATOR_NOT_AVAILABLE


@dataclass
class Offset:
    """What the leader knows of one offset."""

    state: int
    count: int
    owner: str = ""
    deadline_ms: int = 0

    def end(self, state):
        self.state, self.owner, self.deadline_ms = state, "", 0


class Model:
    """Offsets in memory, and what has been written of them; the rules as they stand in the specification."""

    def __init__(self, start):
        self.start = start
        self.memory = {}
        self.written = {}
        self.written_start = start
        self.confirmed = set()

    def complete(self):
        return sum(1 for offset, each in self.memory.items() if offset >= self.start and each.state in TERMINAL)

    def write(self, changes, start):
        """A durable write: the larger (count, state) stays, what lies below the written start offset goes."""
        self.written_start = max(start, self.written_start)
        for offset, state in changes:
            entry = (self.memory[offset].count, state)
            self.written[offset] = max(entry, self.written.get(offset, entry))
        self.written = {offset: entry for offset, entry in self.written.items() if offset >= self.written_start}

    def advance(self):
        while self.start in self.memory and self.memory[self.start].state in TERMINAL:
            self.start += 1
        self.forget()

    def forget(self):
        self.memory = {
            offset: each
            for offset, each in self.memory.items()
            if offset >= self.start or each.state in (ACQUIRED, ARCHIVING)
        }

    def reload(self):
        """What another leader finds: holes between written offsets are offsets that nobody ever delivered."""
        self.start = self.written_start
        self.memory = {offset: Offset(state, count) for offset, (count, state) in self.written.items()}
        self.advance()


class SharePartitionMachine(RuleBasedStateMachine):
    @initialize(start=st.integers(0, 3), has_dead_letters=st.booleans(), limit=st.integers(2, 5))
    def begin(self, start, has_dead_letters, limit):
        self.scene = Scene(
            4,
            3,
            start_offset=start,
            delivery_count_limit=limit,
            partition_max_record_locks=20,
            dead_letter_topic="dlq.t" if has_dead_letters else None,
        )
        self.model = Model(start)
        self.has_dead_letters = has_dead_letters
        self.highest_limit = limit
        self.state_epoch = 2
        self.start_seen = start

    # What the model says of each trigger.

    def given_up(self):
        return ARCHIVING if self.has_dead_letters else ARCHIVED

    def released(self, offset):
        if offset < self.model.start:
            return ARCHIVED
        limit = self.scene.settings.delivery_count_limit
        return AVAILABLE if self.model.memory[offset].count < limit else self.given_up()

    def is_refused(self):
        return self.scene.persister.refuses is not None

    def is_answered(self):
        return not self.is_refused() and self.scene.persister.forgets_answer is None

    def change(self, changes, *, goes_on_anyway=False, advances=True):
        """One write of the leader; without an answer nothing has changed in its memory, unless it goes on anyway."""
        model = self.model
        if changes and not self.is_refused():
            model.write(changes, model.start)
        if self.is_answered() or goes_on_anyway:
            for offset, state in changes:
                model.memory[offset].end(state)
            if changes and advances:
                model.advance()

    # What happens.

    @rule(count=st.integers(1, 6))
    def produce(self, count):
        self.scene.log.append(count)

    @rule(
        member=MEMBERS,
        max_records=st.integers(1, 9),
        batch_size=st.integers(1, 9),
        max_bytes=st.sampled_from([1, 12, 1000]),
        mode=st.sampled_from(AcquireMode),
        new_records=st.integers(0, 3),
    )
    def acquire(self, member, max_records, batch_size, max_bytes, mode, new_records):
        model, scene = self.model, self.scene
        if new_records:
            scene.log.append(new_records)
        if scene.log.log_start_offset > model.start and self.reaches_log_start():
            self.raise_start()
        takeable = self.takeable()
        got = scene.acquire(member, max_records=max_records, batch_size=batch_size, max_bytes=max_bytes, mode=mode)
        acquired = [offset for first, last, _ in got.ranges for offset in range(first, last + 1)]
        assert acquired == sorted(set(acquired))
        assert bool(acquired) == bool(takeable)
        assert set(acquired) <= takeable
        if mode is AcquireMode.RECORD_LIMIT:
            assert len(acquired) <= max_records
        for first, last, count in got.ranges:
            for offset in range(first, last + 1):
                before = model.memory.get(offset, Offset(AVAILABLE, 0))
                assert count == before.count + 1
                assert count <= self.highest_limit
                assert offset not in model.confirmed
                model.memory[offset] = Offset(ACQUIRED, count, member, scene.timers.now_ms() + LOCK_MS)
        for offset in range(model.start, self.scene.partition.window.end_offset + 1):
            if offset not in model.memory and self.is_cached(offset):
                model.memory[offset] = Offset(AVAILABLE, 0)

    def is_cached(self, offset):
        """Record-limit mode caches the rest of a log batch: available, never delivered."""
        return any(batch.first <= offset <= batch.last for batch in self.scene.partition.window)

    def takeable(self):
        """Offsets that may be delivered now; below the end of the window and inside it there is always room."""
        model, scene = self.model, self.scene
        window_offsets = [offset for offset in model.memory if offset >= model.start]
        end = max(window_offsets, default=model.start - 1) + 1
        inside = {
            offset
            for offset in range(model.start, end)
            if offset not in model.memory or model.memory[offset].state == AVAILABLE
        }
        is_full = bool(window_offsets) and end - model.start >= scene.settings.partition_max_record_locks
        beyond = set() if is_full else set(range(end, scene.log.high_watermark))
        return inside | beyond

    def reaches_log_start(self):
        """Whether the next read would begin below the log."""
        takeable = self.takeable() or {self.scene.log.high_watermark}
        window_offsets = [offset for offset in self.model.memory if offset >= self.model.start]
        is_idle = not self.scene.partition.can_acquire()
        return not is_idle and min(*takeable, max(window_offsets, default=self.model.start - 1) + 1) < (
            self.scene.log.log_start_offset
        )

    def raise_start(self):
        self.model.start = self.scene.log.log_start_offset
        self.model.forget()

    @rule(member=MEMBERS, data=st.data())
    def acknowledge_anything(self, member, data):
        model = self.model
        end = self.scene.partition.window.end_offset
        first = data.draw(st.integers(max(0, model.start - 2), end + 1))
        last = data.draw(st.integers(first, min(first + 8, end + 2)))
        self.acknowledge_range(member, first, last, data)

    @rule(data=st.data())
    def accept_something_held(self, data):
        self.acknowledge_held(data, (ACCEPT,))

    @rule(data=st.data())
    def acknowledge_something_held(self, data):
        self.acknowledge_held(data)

    def acknowledge_held(self, data, kinds=KINDS):
        owners = {offset: each.owner for offset, each in sorted(self.model.memory.items()) if each.owner}
        if owners:
            first = last = data.draw(st.sampled_from(list(owners)))
            while owners.get(last + 1) == owners[first] and data.draw(st.integers(0, 3)):
                last += 1
            self.acknowledge_range(owners[first], first, last, data, kinds)

    def acknowledge_range(self, member, first, last, data, kinds=KINDS):
        model = self.model
        size = data.draw(st.sampled_from([1, last - first + 1]))
        types = data.draw(st.lists(st.sampled_from(kinds), min_size=size, max_size=size))
        error = self.scene.acknowledge(first, last, *types, member=member)
        touched = range(max(first, model.start), last + 1)
        known_offsets = [offset for offset in touched if offset in model.memory]
        are_held = all(model.memory[offset].owner == member for offset in known_offsets)
        if error in (ShareErrorCode.INVALID_RECORD_STATE, ShareErrorCode.INVALID_REQUEST):
            assert not are_held or len(known_offsets) < len(touched)
            return
        assert are_held
        is_written = bool(known_offsets)
        assert error is (ShareErrorCode.NONE if self.is_answered() or not is_written else error)
        kinds = types if len(types) > 1 else types * (last - first + 1)
        states = {GAP: ARCHIVED, ACCEPT: ACKNOWLEDGED, REJECT: self.given_up()}
        changes = [(offset, states.get(kinds[offset - first], self.released(offset))) for offset in known_offsets]
        self.change(changes)
        if error is ShareErrorCode.NONE:
            model.confirmed.update(offset for offset, state in changes if state == ACKNOWLEDGED)

    @rule(member=MEMBERS)
    def renew(self, member):
        stored = sorted(offset for offset, each in self.model.memory.items() if each.owner == member)
        stored = [offset for offset in stored if offset >= self.model.start][:1]
        if stored:
            assert self.scene.acknowledge(stored[0], stored[0], RENEW, member=member) is ShareErrorCode.NONE
            self.model.memory[stored[0]].deadline_ms = self.scene.timers.now_ms() + LOCK_MS

    @rule(milliseconds=st.sampled_from([1, LOCK_MS // 2, LOCK_MS]))
    def pass_time(self, milliseconds):
        timers, model = self.scene.timers, self.model
        deadlines = {each.deadline_ms for each in model.memory.values() if each.state == ACQUIRED}
        end = timers.now_ms() + milliseconds
        for moment in sorted(deadline for deadline in deadlines if deadline <= end):
            timers.advance(moment - timers.now_ms())
            over = sorted(
                o for o, each in model.memory.items() if each.state == ACQUIRED and each.deadline_ms <= moment
            )
            self.change([(offset, self.released(offset)) for offset in over], goes_on_anyway=True)
        timers.advance(end - timers.now_ms())

    @rule(member=MEMBERS)
    def leave(self, member):
        error = self.scene.partition.release_member(member)
        stored = sorted(offset for offset, each in self.model.memory.items() if each.owner == member)
        assert (error is ShareErrorCode.NONE) == (self.is_answered() or not stored)
        self.change([(offset, self.released(offset)) for offset in stored])

    @rule(data=st.data())
    def something_rarer(self, data):
        happens = data.draw(
            st.sampled_from(
                [
                    self.crash_and_restart,
                    self.deliver_letters,
                    self.deliver_letters,
                    lambda: self.coordinator_fails(data.draw(st.sampled_from(["none", "refused", "ambiguous"]))),
                    lambda: self.change_limit(data.draw(st.integers(2, 5))),
                    lambda: self.delete_records(data.draw(st.integers(0, 6))),
                    lambda: self.reset(data.draw(st.integers(0, 10))),
                ]
            )
        )
        happens()

    def deliver_letters(self):
        model = self.model
        lettered = sorted(offset for offset, each in model.memory.items() if each.state == ARCHIVING)
        output = {
            offset
            for letter in self.scene.letter_box.letters
            for offset in range(letter.first_offset, letter.last_offset + 1)
        }
        assert set(lettered) <= output
        self.scene.letter_box.deliver()
        self.scene.timers.advance()
        self.change([(offset, ARCHIVED) for offset in lettered], goes_on_anyway=True)

    def coordinator_fails(self, failure):
        self.scene.persister.refuses = FAILING if failure == "refused" else None
        self.scene.persister.forgets_answer = FAILING if failure == "ambiguous" else None

    def change_limit(self, limit):
        self.scene.set(delivery_count_limit=limit)
        self.highest_limit = max(limit, self.highest_limit)

    def delete_records(self, back):
        self.scene.log.delete_records(max(0, self.scene.log.high_watermark - back))

    def crash_and_restart(self):
        self.coordinator_fails("none")
        self.lead_anew()
        self.model.reload()

    def reset(self, offset):
        self.coordinator_fails("none")
        self.state_epoch += 1
        self.scene.persister.initialize(KEY, state_epoch=self.state_epoch, start_offset=offset)
        self.lead_anew()
        self.model = Model(offset)

    def lead_anew(self):
        self.scene.timers._waiting.clear()
        self.scene.letter_box = LetterBox()
        self.scene.log.leader_epoch += 2
        self.scene.lead()
        self.start_seen = 0

    # What always holds.

    @invariant()
    def memory_is_as_the_model_says(self):
        window = self.scene.partition.window
        assert window.start_offset == self.model.start
        assert window.delivery_complete_count == self.model.complete()
        real = {
            offset: Offset(int(run.state), run.count, run.member_id, run.deadline_ms)
            for batch in window
            for run in batch.runs
            for offset in range(run.first, run.last + 1)
            if offset >= window.start_offset or run.state in (ACQUIRED, ARCHIVING)
        }
        assert real == self.model.memory

    @invariant()
    def the_coordinator_holds_what_was_written(self):
        stored = self.scene.persister.share_partition()
        real = {
            offset: (batch.delivery_count, batch.delivery_state)
            for batch in stored.state_batches
            for offset in range(batch.first_offset, batch.last_offset + 1)
        }
        assert real == self.model.written
        assert stored.start_offset == self.model.written_start

    @invariant()
    def the_start_offset_never_goes_back(self):
        assert self.scene.start >= self.start_seen
        self.start_seen = self.scene.start

    @invariant()
    def cached_batches_are_ascending_without_overlap(self):
        runs = [run for batch in self.scene.partition.window for run in batch.runs]
        assert all(run.first <= run.last and run.target is None for run in runs)
        assert all(before.last < after.first for before, after in pairwise(runs))


SharePartitionMachine.TestCase.settings = settings(stateful_step_count=40, suppress_health_check=list(HealthCheck))
TestSharePartitionAgainstThePlainModel = SharePartitionMachine.TestCase
