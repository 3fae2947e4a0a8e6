"""Any history of a streams group on a broker that is restarted now and then, beside one that is not.

Epochs never go back, clients never own a task twice, fenced members write nothing, and a restart changes nothing.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.broker_parts.epoch_group_worlds import COMMON_OPERATIONS, GroupWorld, run_history
from tests.depths import examples

pytestmark = pytest.mark.slow

HEARTBEAT = (88, 0)
AT_ONCE = {"group_streams_initial_rebalance_delay_ms": 0, "group_streams_assignment_interval_ms": 0}
TASK_LISTS = ("active_tasks", "standby_tasks", "warmup_tasks")
NO_LISTS = dict.fromkeys((*TASK_LISTS, "task_offsets", "task_end_offsets", "client_tags"))
LOG = {"name": "log", "replication_factor": -1, "topic_configs": []}
TOPOLOGY = {
    "epoch": 0,
    "subtopologies": [{"subtopology_id": "0", "source_topics": ["in"], "state_changelog_topics": [LOG]}],
}
PROCESSES = {"a1": "a", "a2": "a", "b1": "b", "c1": "c"}


class StreamsWorld(GroupWorld):
    """The clients own active tasks; the number of standby replicas changes now and then."""

    nothing_owned = dict.fromkeys(TASK_LISTS, ())

    def __init__(self, folder):
        super().__init__(folder, **AT_ONCE)
        self.broker.create("in", 3)
        self.broker.create("log", 3)

    def heartbeat(self, member, epoch, **fields):
        body = {"group_id": "g", "member_id": member, "member_epoch": epoch}
        return self.broker.call(*HEARTBEAT, **NO_LISTS | body | fields)

    def join_fields(self, member):
        joined = {"topology": TOPOLOGY, "process_id": PROCESSES[member], "client_tags": ()}
        return {"rebalance_timeout": 10_000_000, **joined}

    def assigned_fields(self, answer):
        return None if answer["active_tasks"] is None else {name: answer[name] for name in TASK_LISTS}

    def parts_of(self, fields):
        return [(each["subtopology_id"], number) for each in fields["active_tasks"] for number in each["partitions"]]

    def own_step(self, operation, member):
        if operation != "standby":
            return []
        return [self.configure("streams.num.standby.replicas", str(int(PROCESSES[member] == "a")))]


histories = st.lists(
    st.tuples(st.sampled_from([*COMMON_OPERATIONS, "standby"]), st.sampled_from(sorted(PROCESSES)), st.booleans()),
    min_size=5,
    max_size=40,
)


@given(histories)
@examples("broker", shrink=False)
def test_a_restart_changes_nothing_and_fenced_members_write_nothing(history):
    run_history(StreamsWorld, history)
