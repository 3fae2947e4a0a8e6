"""Transactions under any interleaving, with kills in the middle, against a plain list of what was promised."""

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from sharelens.broker.coordinators.classic_groups import MemberCall
from sharelens.broker.coordinators.classic_records import CommittedOffset
from sharelens.broker.ports import ProducerIdentity, TopicPartition
from state_model.topics import OFFSETS_TOPIC
from tests.broker_parts.broker_transactions import USER_TOPIC, Coordinators, CrashError

TIMEOUT_MS = 60_000
CHECK_MS = 10_000
PARTITIONS = st.integers(0, 1)
GROUPS = st.sampled_from(["g1", "g2"])
AT = TopicPartition(USER_TOPIC, 0)


@dataclass
class Work:
    """One transaction as the model knows it. `outcome` is open, committed or aborted."""

    started_ms: int
    outcome: str = "open"
    offsets: dict = field(default_factory=dict)


@dataclass
class Producer:
    """One incarnation of a transactional id; it does not know when another one has taken over."""

    transactional_id: str
    identity: ProducerIdentity
    work: Work | None = None


class TransactionsMachine(RuleBasedStateMachine):
    producers = Bundle("producers")

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.broker = Coordinators(self.folder)
        self.restarted_ms = self.now_ms()
        self.current = {}
        self.records = ([], [])
        self.committed = {}
        self.commits = 0
        self.names = 0

    def teardown(self):
        self.broker.cluster.close()
        shutil.rmtree(self.folder)

    def now_ms(self):
        return self.broker.timers.now_ms()

    def restart(self):
        self.broker.restart()
        self.restarted_ms = self.now_ms()

    def close_work(self, producer, outcome):
        work, producer.work = producer.work, None
        if work is None:
            return
        work.outcome = outcome
        if outcome == "committed":
            for group, (number, offset) in work.offsets.items():
                if self.committed.get(group, (0, 0))[0] < number:
                    self.committed[group] = (number, offset)

    def is_current(self, producer):
        return self.current.get(producer.transactional_id) is producer

    @rule(target=producers, transactional_id=st.sampled_from(["a", "b"]))
    def init(self, transactional_id):
        before = self.current.get(transactional_id)
        answer = self.broker.transactions.init_producer_id(transactional_id, TIMEOUT_MS)
        assert answer.error_code.name == "none"
        if before is not None:
            self.close_work(before, "aborted")
            assert answer.producer_epoch > before.identity.producer_epoch
        identity = ProducerIdentity(answer.producer_id, answer.producer_epoch)
        self.current[transactional_id] = Producer(transactional_id, identity)
        return self.current[transactional_id]

    def begin(self, producer, at):
        """Whether the producer may go on with its transaction, or begin one, in a partition."""
        error = self.broker.transactions.add_partitions(producer.transactional_id, *producer.identity, [at])
        if not self.is_current(producer):
            assert error.name == "producer_fenced"
            return False
        assert error.name == "none"
        producer.work = producer.work or Work(self.now_ms())
        return True

    @rule(producer=producers, partition=PARTITIONS)
    def produce(self, producer, partition):
        self.names += 1
        value = f"v{self.names}"
        if self.begin(producer, TopicPartition(USER_TOPIC, partition)):
            assert isinstance(self.broker.produce(producer.identity, partition, value), int)
            self.records[partition].append((value, producer.work))

    @rule(producer=producers, partition=PARTITIONS)
    def produce_without_asking(self, producer, partition):
        """What arrives late or from the dead must not open anything."""
        if producer.work is None:
            assert not isinstance(self.broker.produce(producer.identity, partition, "late"), int)

    @rule(producer=producers, group=GROUPS, offset=st.integers(0, 99))
    def commit_offset(self, producer, group, offset):
        at = TopicPartition(OFFSETS_TOPIC, self.broker.group_log.partition_for(group))
        if self.begin(producer, at):
            call = MemberCall(group_id=group, member_id="", generation_id=-1)
            offsets = {AT: CommittedOffset(offset=offset)}
            codes = self.broker.commits.commit_in_transaction(call, offsets, producer.identity)
            assert codes[AT].name == "none"
            self.commits += 1
            producer.work.offsets[group] = (self.commits, offset)

    @rule(group=GROUPS, offset=st.integers(0, 99))
    def commit_offset_outside(self, group, offset):
        call = MemberCall(group_id=group, member_id="", generation_id=-1)
        assert self.broker.commits.commit(call, {AT: CommittedOffset(offset=offset)})[AT].name == "none"
        self.commits += 1
        self.committed[group] = (self.commits, offset)

    @rule(producer=producers, is_commit=st.booleans())
    def end(self, producer, is_commit):
        error = self.broker.transactions.end(producer.transactional_id, *producer.identity, is_commit=is_commit)
        if not self.is_current(producer):
            assert error.name == "producer_fenced"
        elif producer.work is not None:
            assert error.name == "none"
            self.close_work(producer, "committed" if is_commit else "aborted")

    @rule(producer=producers, is_commit=st.booleans(), appends=st.integers(0, 4))
    def end_and_be_killed(self, producer, is_commit, appends):
        """The first append is the decision: what comes after it must not change what readers see."""
        if producer.work is None or not self.is_current(producer):
            return
        self.broker.cluster.disk.crash_at = appends
        try:
            self.broker.transactions.end(producer.transactional_id, *producer.identity, is_commit=is_commit)
        except CrashError:
            if appends > 0:
                self.close_work(producer, "committed" if is_commit else "aborted")
        else:
            self.close_work(producer, "committed" if is_commit else "aborted")
        self.restart()

    @rule()
    def be_killed(self):
        self.restart()

    @rule(producer=producers, is_commit=st.booleans())
    def end_on_a_full_disk(self, producer, is_commit):
        if producer.work is not None and self.is_current(producer):
            self.broker.cluster.disk.is_full = True
            error = self.broker.transactions.end(producer.transactional_id, *producer.identity, is_commit=is_commit)
            self.broker.cluster.disk.is_full = False
            assert error.name == "coordinator_not_available"

    @rule(milliseconds=st.sampled_from([1, 5_000, 20_000, 61_000, 80_000]))
    def wait(self, milliseconds):
        self.broker.timers.advance(milliseconds)
        for transactional_id, producer in list(self.current.items()):
            if producer.work is None:
                continue
            age_ms = self.now_ms() - producer.work.started_ms
            is_fenced = self.broker.transactions.get(transactional_id).producer_epoch > producer.identity.producer_epoch
            # Checks come at intervals that begin when the broker starts.
            due_ms = max(producer.work.started_ms + TIMEOUT_MS, self.restarted_ms)
            assert is_fenced or self.now_ms() <= due_ms + CHECK_MS
            assert not is_fenced or age_ms > TIMEOUT_MS
            if is_fenced:
                self.close_work(producer, "aborted")
                del self.current[transactional_id]

    @invariant()
    def readers_see_what_was_promised(self):
        for partition, records in enumerate(self.records):
            log = self.broker.cluster.get(USER_TOPIC, partition)
            before_open = []
            for value, work in records:
                if work.outcome == "open":
                    break
                before_open.append((value, work))
            assert self.broker.visible(partition) == [
                value for value, work in before_open if work.outcome == "committed"
            ]
            if len(before_open) == len(records):
                assert log.last_stable_offset == log.high_watermark

    @invariant()
    def groups_have_the_offsets_that_count(self):
        offsets = self.broker.groups.offsets
        for group in ("g1", "g2"):
            actual = offsets.get(group, AT)
            assert (None if actual is None else actual.offset) == self.committed.get(group, (0, None))[1]
            works = [producer.work for producer in self.current.values() if producer.work is not None]
            assert offsets.waiting(group) == ({AT} if any(group in work.offsets for work in works) else set())


TestTransactions = TransactionsMachine.TestCase
TestTransactions.settings = settings(stateful_step_count=30)
