"""Random histories of streams groups that the write side makes: no rule of severity error speaks of them."""

from hypothesis import given
from hypothesis import strategies as st

from state_model.audit.streams.history import History
from state_model.audit.streams.table import CHECKS
from state_model.group_topics import TopicMetadata
from state_model.streams.coordinator import delayed_target, fence, group_tombstones, heartbeat, leave
from state_model.streams.group import apply
from state_model.streams.heartbeat import Heartbeat, HeartbeatError
from state_model.streams.soft_state import Settings, SoftState
from state_model.streams.values import NO_TASKS_BY_TYPE, Subtopology, TopicInfo, Topology
from tests.audit.written_records import errors_in

TOPOLOGY = Topology(0, (Subtopology("0", ("in",)), Subtopology("1", ("in",), (), (TopicInfo("log"),))))
MEMBERS = ("a1", "a2", "b1", "b2", "c1")
"""Members by process."""
NAMES = st.sampled_from(MEMBERS)
ACTIONS = st.one_of(
    st.tuples(st.just("beat"), NAMES, st.sampled_from(["assigned", "as before", "silent"])),
    st.tuples(st.sampled_from(["join", "leave", "fence"]), NAMES),
    st.tuples(st.just("wait"), st.sampled_from([10, 900, 4_000])),
    st.tuples(st.just("standbys"), st.integers(0, 2)),
    st.tuples(st.just("partitions are"), st.sampled_from([0, 2, 4])),
    st.tuples(st.sampled_from(["delay over", "restart", "delete"])),
)


class Writer:
    """A coordinator with one group, its topics, its members' tasks and its log."""

    def __init__(self, delay_ms: int, interval_ms: int) -> None:
        self.settings = Settings(initial_rebalance_delay_ms=delay_ms, assignment_interval_ms=interval_ms)
        self.partitions, self.now_ms = 2, 1_000_000
        self.group, self.soft, self.log = None, SoftState(), []
        self.epochs, self.owned, self.answered = {}, {}, {}

    def do(self, action) -> None:
        kind, *arguments = action
        try:
            getattr(self, kind.replace(" ", "_"))(*arguments)
        except HeartbeatError:
            self.now_ms += 1

    def join(self, name):
        self.owned[name] = NO_TASKS_BY_TYPE
        fields = {"topology": TOPOLOGY, "process_id": name[0], "rebalance_timeout_ms": 60_000, "client_tags": ()}
        self._send(name, 0, NO_TASKS_BY_TYPE, **fields)

    def beat(self, name, says):
        if name not in self.epochs:
            return
        if says == "assigned":
            self.owned[name] = self.answered.get(name, NO_TASKS_BY_TYPE)
        self._send(name, self.epochs[name], None if says == "silent" else self.owned[name])

    def _send(self, name, epoch, owned, **fields):
        active, standby, warmup = owned or (None, None, None)
        tasks = {"active_tasks": active, "standby_tasks": standby, "warmup_tasks": warmup}
        request = Heartbeat("g", name, epoch, "c", "/h", **tasks, **fields)
        outcome = heartbeat(self.group, self.soft, request, self._topic, self.settings, self.now_ms)
        self._take(outcome)
        self.epochs[name] = outcome.answer.member_epoch
        if outcome.answer.tasks is not None:
            self.answered[name] = outcome.answer.tasks

    def leave(self, name):
        if self.group is not None:
            self._take(leave(self.group, self.soft, Heartbeat("g", name, -1)))
            self.epochs.pop(name, None)

    def fence(self, name):
        if self.group is not None and name in self.group.members:
            self._take(fence("g", self.group, self.soft, name))

    def wait(self, lasts_ms):
        self.now_ms += lasts_ms

    def standbys(self, replicas):
        self.settings = self.settings._replace(num_standby_replicas=replicas)

    def partitions_are(self, count):
        self.partitions, self.soft = count, self.soft._replace(is_stale=True)

    def delay_over(self):
        if self.group is not None and self.soft.is_delayed:
            records = delayed_target("g", self.group, self.soft, self.settings, self.now_ms)
            self.soft = self.soft._replace(is_delayed=False)
            self._append(records)

    def restart(self):
        self.soft = SoftState()

    def delete(self):
        if self.group is not None and not self.group.members:
            self._append(group_tombstones("g"))
            self.soft = SoftState()

    def _topic(self, name):
        return TopicMetadata(name, name.encode().ljust(16), self.partitions) if self.partitions else None

    def _take(self, outcome):
        self._append(outcome.records)
        self.soft = outcome.soft
        assert self.group == outcome.group

    def _append(self, records):
        for record in records:
            self.group = apply(self.group, record)
            self.log.append((record, self.now_ms))
        self.now_ms += 1


@given(st.sampled_from([0, 3_000]), st.sampled_from([0, 1_000]), st.lists(ACTIONS, min_size=5, max_size=60))
def test_random_histories_of_the_write_side_have_no_error(delay_ms, interval_ms, actions):
    writer = Writer(delay_ms, interval_ms)
    for action in [("join", "a1"), *actions]:
        writer.do(action)
    assert errors_in(History(), CHECKS, writer.log) == []
