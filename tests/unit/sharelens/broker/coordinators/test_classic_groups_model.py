"""Classic groups under any order of joins, silence, leaving and restarts, held to what a group promises its members."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from sharelens.broker.coordinators.classic_group import GroupState
from tests.broker_parts.broker_groups import Coordinator
from tests.broker_parts.broker_memory import ManualTimers, MemoryCluster

SESSION_MS = 10_000
NAMES = st.sampled_from(["a", "b", "c", "d"])


class GroupMachine(RuleBasedStateMachine):
    """Up to four clients of one group. `heard_ms` is when the coordinator last heard of each."""

    def __init__(self):
        super().__init__()
        self.timers = ManualTimers()
        self.coordinator = Coordinator(MemoryCluster(self.timers, internal_partitions=2), self.timers)
        self.clients = {}
        self.heard_ms = {}
        self.generations = [0]
        self.leaders = {}

    def group(self):
        return self.coordinator.groups.get("g")

    def members(self):
        """Of the group; an empty one is forgotten after a while, and a new one of its name begins again."""
        group = self.group()
        return {} if group is None else group.members

    def heard(self, name):
        self.heard_ms[name] = self.timers.now_ms()

    @rule(name=NAMES, topics=st.sampled_from([b"one", b"two"]))
    def join(self, name, topics):
        if name not in self.clients:
            self.clients[name] = self.coordinator.member()
        client = self.clients[name]
        if client.joined is None and client.member_id and client.member_id in self.waiting():
            return
        client.join(protocols=(("range", topics),))
        self.heard(name)
        if client.joined is not None and client.joined.error_code.name == "unknown_member_id":
            del self.clients[name]

    def waiting(self):
        """The members that the group still owes an answer to JoinGroup."""
        group = self.group()
        return set() if group is None else {member.member_id for member in group.members.values() if member.join}

    @rule(name=NAMES)
    def sync(self, name):
        client = self.clients.get(name)
        if client is None or client.joined is None or client.joined.error_code.name != "none":
            return
        client.sync()
        self.heard(name)
        if client.synced is not None and client.synced.error_code.name == "none" and client.synced.assignment:
            assert client.synced.assignment == client.member_id.encode()

    @rule(name=NAMES)
    def beat(self, name):
        client = self.clients.get(name)
        if client is None or client.generation < 0:
            return
        group = self.group()
        is_member = client.member_id in self.members()
        output = client.heartbeat()
        if not is_member:
            assert output == "unknown_member_id"
        elif client.generation != group.generation:
            assert output == "illegal_generation"
        else:
            is_open = group.state is GroupState.PREPARING_REBALANCE
            assert output == ("rebalance_in_progress" if is_open else "none")
            self.heard(name)

    @rule(name=NAMES)
    def leave(self, name):
        client = self.clients.pop(name, None)
        if client is None or not client.member_id:
            return
        client.leave()
        assert client.member_id not in self.members()
        assert client.joined is not None, "who waited was answered"

    @rule(name=NAMES)
    def vanish(self, name):
        """The client is gone without a word: its sessions run out."""
        self.clients.pop(name, None)

    @rule(milliseconds=st.sampled_from([1, 1_000, 3_000, 9_000, 31_000]))
    def wait(self, milliseconds):
        self.timers.advance(milliseconds)

    @rule()
    def restart(self):
        """What waited for an answer is lost with the connection; the stable group of before is there again."""
        before = self.group()
        is_stable = before is not None and before.state is GroupState.STABLE
        stable = {member_id: member.assignment for member_id, member in before.members.items()} if is_stable else None
        self.timers = self.coordinator.timers = self.coordinator.cluster.timers = ManualTimers(self.timers.now_ms())
        self.coordinator.restart()
        after = self.group()
        if stable is not None:
            assert {member_id: member.assignment for member_id, member in after.members.items()} == stable
            assert after.generation == before.generation
        self.clients = {name: client for name, client in self.clients.items() if client.joined is not None}
        self.generations = [0 if after is None else after.generation]
        self.leaders = {}

    @rule()
    def settle(self):
        """Everybody does as asked for long enough: then each client is a member of one generation with its share."""
        for _ in range(60):
            self.timers.advance(2_000)
            for name, client in list(self.clients.items()):
                self.step(name, client)
        group = self.group()
        if not self.clients:
            assert group is None or group.state is GroupState.EMPTY
            return
        assert group.state is GroupState.STABLE
        assert set(group.members) == {client.member_id for client in self.clients.values()}
        for client in self.clients.values():
            assert client.generation == group.generation
            assert client.synced.assignment == client.member_id.encode()

    def step(self, name, client):
        """What a real client does next."""
        if client.member_id in self.waiting() or (client.joined is None and client.member_id):
            return
        if client.joined is None or client.joined.error_code.name != "none":
            client.member_id, client.generation = "", -1
            client.join()
        elif client.synced is None and self.is_syncing(client):
            return
        elif client.synced is None:
            client.sync()
        elif client.synced.error_code.name != "none" or client.heartbeat() != "none":
            if client.member_id not in self.members():
                client.member_id, client.generation = "", -1
            client.join()

    def is_syncing(self, client):
        member = self.members().get(client.member_id)
        return member is not None and member.sync is not None

    @invariant()
    def generations_rise(self):
        group = self.group()
        if group is None:
            self.generations = [0]
            return
        assert group.generation >= self.generations[-1]
        self.generations.append(group.generation)

    @invariant()
    def a_generation_has_one_leader_that_is_a_member(self):
        group = self.group()
        if group is None or group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
            return
        assert group.leader in group.members
        # A restart forgets a generation that was not stored, and its number is given again: who was in it is no member.
        of_group = [client for client in self.clients.values() if client.member_id in group.members]
        joined = [client for client in of_group if client.generation == group.generation]
        assert all(client.joined is None or client.joined.leader == group.leader for client in joined)

    @invariant()
    def an_empty_group_has_nobody_and_another_has_somebody(self):
        group = self.group()
        if group is not None and group.state is not GroupState.PREPARING_REBALANCE:
            assert (group.state is GroupState.EMPTY) == (not group.members)

    @invariant()
    def silence_ends_a_membership(self):
        group = self.group()
        for member in group.members.values() if group is not None else ():
            assert member.is_waiting or member.session is not None


TestClassicGroups = GroupMachine.TestCase
TestClassicGroups.settings = settings(stateful_step_count=30)
