"""Any history of a streams group on a broker that is restarted now and then, beside one that is not.

Epochs never go back, clients never own a task twice, fenced members write nothing, and a restart changes nothing.
"""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.broker.coordinators.group_log import GroupLog
from state_model.group_records import decode_record
from state_model.streams.records import METADATA
from tests.broker_parts.dispatched_broker import DispatchedBroker
from tests.depths import examples

pytestmark = pytest.mark.slow

HEARTBEAT, DESCRIBE, COMMIT, CONFIGURE = (88, 0), (89, 0), (8, 9), (44, 1)
AT_ONCE = {"group_streams_initial_rebalance_delay_ms": 0, "group_streams_assignment_interval_ms": 0}
TASK_LISTS = ("active_tasks", "standby_tasks", "warmup_tasks")
NO_LISTS = dict.fromkeys((*TASK_LISTS, "task_offsets", "task_end_offsets", "client_tags"))
NO_TASKS = dict.fromkeys(TASK_LISTS, ())
LOG = {"name": "log", "replication_factor": -1, "topic_configs": []}
TOPOLOGY = {
    "epoch": 0,
    "subtopologies": [{"subtopology_id": "0", "source_topics": ["in"], "state_changelog_topics": [LOG]}],
}
PROCESSES = {"a1": "a", "a2": "a", "b1": "b", "c1": "c"}
HALF_MS = 30_000
"""Two of these are longer than a session."""


class World:
    """A broker and the clients of a group; a client knows its epoch and its tasks, and goes on when it is fenced."""

    def __init__(self, folder):
        self.broker = DispatchedBroker(folder, **AT_ONCE)
        self.broker.create("in", 3)
        self.broker.create("log", 3)
        self.epochs, self.answered, self.owned, self.fenced = {}, {}, {}, set()

    def step(self, operation, member):
        """The answers of an operation, in a form that two brokers share."""
        self.broker.timers.advance(1_000)
        is_member = member in self.epochs
        match operation:
            case "join":
                self.fenced.discard(member)
                self.owned[member] = NO_TASKS
                joined = {"topology": TOPOLOGY, "process_id": PROCESSES[member], "client_tags": ()}
                return [self._beat(member, 0, rebalance_timeout=10_000_000, **NO_TASKS, **joined)]
            case "beat" if is_member:
                return [self._beat(member, self.epochs[member], **self.owned[member])]
            case "silent" if is_member:
                return [self._beat(member, self.epochs[member])]
            case "work" if is_member:
                self.owned[member] = self.answered.get(member, NO_TASKS)
            case "leave" if is_member:
                self._forget(member)
                return [self._beat(member, -1)]
            case "commit" if is_member:
                return [self._commit(member, self.epochs[member]), self._commit(member, self.epochs[member] - 1)]
            case "expire" if is_member and member not in self.fenced:
                return self._expire(member)
            case "standby":
                return [self._configure(PROCESSES[member])]
        return []

    def _beat(self, member, epoch, **fields):
        body = {"group_id": "g", "member_id": member, "member_epoch": epoch}
        answer = self.broker.call(*HEARTBEAT, **NO_LISTS | body | fields)
        code = answer["error_code"].value
        if code == 0 and epoch >= 0:
            assert epoch == 0 or answer["member_epoch"] >= epoch, "epochs never go back"
            self.epochs[member] = answer["member_epoch"]
            if answer["active_tasks"] is not None:
                self.answered[member] = {name: answer[name] for name in TASK_LISTS}
        return answer

    def _forget(self, member):
        for state_by_member in (self.epochs, self.answered, self.owned):
            state_by_member.pop(member, None)
        self.fenced.discard(member)

    def _expire(self, member):
        """A member that is silent for longer than its session, while the others go on."""
        other_members = [other for other in self.epochs if other != member and other not in self.fenced]
        answers = [self._beat(each, self.epochs[each]) for each in (member, *other_members)]
        for _ in range(2):
            self.broker.timers.advance(HALF_MS)
            answers += [self._beat(other, self.epochs[other]) for other in other_members]
        self.fenced.add(member)
        return answers

    def _commit(self, member, epoch):
        partitions = [{"partition_index": 0, "committed_offset": 5}]
        body = {"group_id": "g", "member_id": member, "generation_id_or_member_epoch": epoch}
        answer = self.broker.call(*COMMIT, **body, topics=[{"name": "in", "partitions": partitions}])
        return answer["topics"][0]["partitions"][0]["error_code"]

    def _configure(self, process):
        configs = [{"name": "streams.num.standby.replicas", "config_operation": 0, "value": str(int(process == "a"))}]
        resources = [{"resource_type": 32, "resource_name": "g", "configs": configs}]
        return self.broker.call(*CONFIGURE, resources=resources)["responses"][0]["error_code"]

    def records(self):
        """All records of the group but for the hash of its topics, whose ids are random."""
        log = GroupLog(self.broker.broker.catalog, self.broker.broker.logs).log_for("g")
        decoded = [decode_record(each.key, each.value) for each in log.records(0, log.high_watermark - 1)]
        return [_without_hash(record) for record in decoded]

    def check(self):
        """No task is owned by two clients that the group knows, and what a fenced client sends writes nothing."""
        owned = [
            (each["subtopology_id"], partition)
            for member in self.epochs.keys() - self.fenced
            for each in self.owned[member]["active_tasks"]
            for partition in each["partitions"]
        ]
        assert len(owned) == len(set(owned)), "a task has one owner"
        before = self.records() if self.fenced else None
        for member in self.fenced:
            beat = self._beat(member, self.epochs[member], **self.owned[member])["error_code"].value
            assert (beat, self._commit(member, self.epochs[member]).value) == (25, 25)
        assert not self.fenced or self.records() == before


def _without_hash(record):
    value = record.value
    if record.record_type == METADATA and value is not None:
        value = {name: each for name, each in value.items() if name != "metadata_hash"}
    return record.record_type, record.key, value


OPERATIONS = ["join", "join", "beat", "beat", "beat", "work", "work", "silent", "leave", "commit", "expire", "standby"]
histories = st.lists(
    st.tuples(st.sampled_from(OPERATIONS), st.sampled_from(sorted(PROCESSES)), st.booleans()), min_size=5, max_size=40
)


@given(histories)
@examples("broker", shrink=False)
def test_a_restart_changes_nothing_and_fenced_members_write_nothing(history):
    with tempfile.TemporaryDirectory() as folder:
        steady, restarted = (World(Path(folder) / name) for name in ("steady", "restarted"))
        for operation, member, restarts in history:
            if restarts:
                restarted.broker.restart()
            answers = [world.step(operation, member) for world in (steady, restarted)]
            assert answers[0] == answers[1]
            steady.check()
            restarted.check()
        assert steady.records() == restarted.records()
        steady.broker.close()
        restarted.broker.close()
