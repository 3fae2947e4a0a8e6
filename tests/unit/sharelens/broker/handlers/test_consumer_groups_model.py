"""Any history of a consumer group on a broker that is restarted now and then, beside one that is not.

Epochs never go back, clients never own a partition twice, fenced members write nothing, and a restart changes nothing.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.broker_parts.epoch_group_worlds import COMMON_OPERATIONS, GroupWorld, run_history
from tests.consumer_group_laws import assert_lawful
from tests.depths import examples

pytestmark = pytest.mark.slow

HEARTBEAT = (68, 1)
UNCHANGED = {
    "rebalance_timeout": -1,
    "subscribed_topic_names": None,
    "subscribed_topic_regex": None,
    "topic_partitions": None,
}
SUBSCRIPTIONS = {"a": ["in", "more"], "b": ["in"], "c": ["in", "more"], "d": ["more"]}
STATIC = {"a", "d"}


class ConsumerWorld(GroupWorld):
    """The clients own partitions of two topics; they subscribe to other topics, and static ones leave for a while."""

    nothing_owned = {"topic_partitions": []}

    def __init__(self, folder):
        super().__init__(folder, group_consumer_assignment_interval_ms=0)
        self.lives = dict.fromkeys(SUBSCRIPTIONS, 1)
        self.broker.create("in", 3)
        self.broker.create("more", 2)

    def heartbeat(self, member, epoch, **fields):
        body = {"group_id": "g", "member_id": self.member_id(member), "member_epoch": epoch}
        body["instance_id"] = member if member in STATIC else None
        return self.broker.call(*HEARTBEAT, **UNCHANGED | body | fields)

    def member_id(self, member):
        return f"{member}{self.lives[member]}"

    def join_fields(self, member):
        return {"rebalance_timeout": 10_000_000, "subscribed_topic_names": SUBSCRIPTIONS[member]}

    def assigned_fields(self, answer):
        return None if answer["assignment"] is None else dict(answer["assignment"])

    def parts_of(self, fields):
        return [(each["topic_id"], number) for each in fields["topic_partitions"] for number in each["partitions"]]

    def own_step(self, operation, member):
        match operation:
            case "subscribe" if member in self.epochs:
                names = SUBSCRIPTIONS[member][: 1 + self.epochs[member] % 2]
                fields = {"subscribed_topic_names": names, **self.owned[member]}
                return [self.heartbeat(member, self.epochs[member], **fields)["error_code"]]
            case "away" if member in STATIC & self.epochs.keys() - self.fenced:
                return [self._leave_for_a_while(member)]
        return []

    def _leave_for_a_while(self, member):
        """The next join is that of a new process in the same place."""
        answer = self.heartbeat(member, -2)
        assert answer["error_code"].value == 0
        self.forget(member)
        self.lives[member] += 1
        return answer


histories = st.lists(
    st.tuples(
        st.sampled_from([*COMMON_OPERATIONS, "subscribe", "away", "away"]),
        st.sampled_from(sorted(SUBSCRIPTIONS)),
        st.booleans(),
    ),
    min_size=5,
    max_size=40,
)


@given(histories)
@examples("broker", shrink=False)
def test_a_restart_changes_nothing_and_fenced_members_write_nothing(history):
    run_history(ConsumerWorld, history, assert_lawful)
