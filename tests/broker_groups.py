"""Members of classic groups, as plain callers of the coordinator: they keep what they were answered."""

import itertools
from dataclasses import dataclass, field, replace

from broker.coordinators.classic_groups import ClassicGroups, ClassicGroupSettings, JoinRequest, MemberCall
from broker.coordinators.group_log import GroupLog
from broker.coordinators.offset_commits import OffsetCommits
from state_model.group_schemas import GroupKind

RANGE = (("range", b"topics"),)


class Coordinator:
    """The coordinator of classic groups over logs in memory; `restart` loads another one from the same logs."""

    def __init__(self, cluster, timers, **settings):
        self.cluster = cluster
        self.timers = timers
        self.settings = ClassicGroupSettings(**settings)
        self._ids = itertools.count(1)
        self.restart()

    def restart(self):
        self.log = GroupLog(self.cluster, self.cluster)
        self.groups = ClassicGroups(self.log, self.timers, self.settings, new_id=lambda: str(next(self._ids)))
        self.commits = OffsetCommits(self.log, self.groups, self.timers)
        self.log.load({GroupKind.CLASSIC: self.groups.replay}, self.groups.offsets)
        self.groups.start()
        self.commits.start()

    def member(self, group_id="g", **changes):
        return GroupMember(self, group_id, changes)


@dataclass
class GroupMember:
    """One client. `joined` and `synced` are the answers of its newest calls, None while it waits."""

    coordinator: Coordinator
    group_id: str
    changes: dict = field(default_factory=dict)
    member_id: str = ""
    generation: int = -1
    joined: object = None
    synced: object = None

    def ask_for_id(self):
        """The member id that a newcomer is handed out, not yet used."""
        answers = []
        self.coordinator.groups.join(self._request({}), answers.append)
        return answers[0].member_id

    def join(self, **changes):
        """Join; a member id that is handed out on the way is used at once."""
        self.joined = self.synced = None
        self.coordinator.groups.join(self._request(changes), self._on_joined)
        if self.joined is not None and self.joined.error_code.name == "member_id_required":
            self.member_id = self.joined.member_id
            self.join(**changes)
        return self.joined

    def _request(self, changes):
        request = JoinRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            client_id="client",
            client_host="/127.0.0.1",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=30_000,
            protocol_type="consumer",
            protocols=RANGE,
        )
        return replace(request, **{**self.changes, **changes})

    def _on_joined(self, answer):
        self.joined = answer
        if answer.error_code.name == "none":
            self.member_id, self.generation = answer.member_id, answer.generation_id

    def call(self, **changes):
        call = MemberCall(
            group_id=self.group_id,
            member_id=self.member_id,
            generation_id=self.generation,
            group_instance_id=self.changes.get("group_instance_id"),
        )
        return replace(call, **changes)

    def sync(self, assignments=None):
        """Sync; a leader that is not told what to share out gives each member its own id."""
        self.synced = None
        if assignments is None:
            members = self.joined.members if self.joined is not None else ()
            assignments = {member.member_id: member.member_id.encode() for member in members}
        self.coordinator.groups.sync(self.call(), assignments, self._on_synced)
        return self.synced

    def _on_synced(self, answer):
        self.synced = answer

    def heartbeat(self):
        return self.coordinator.groups.heartbeat(self.call()).name

    def leave(self):
        return self.coordinator.groups.leave(self.group_id, self.member_id).name

    def is_leader(self):
        return self.joined is not None and self.joined.leader == self.member_id


def settle(*members):
    """All members join together and sync, the leader last."""
    for member in members:
        member.join()
    for _ in range(30):
        if all(member.joined is not None for member in members):
            break
        members[0].coordinator.timers.advance(1_000)
    for member in sorted(members, key=GroupMember.is_leader):
        member.sync()
