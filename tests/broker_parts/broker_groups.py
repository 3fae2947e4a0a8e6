"""Members of classic groups, as plain callers of the coordinator: they keep what they were answered."""

import itertools
from dataclasses import dataclass, field, replace
from functools import partial

from sharelens.broker.config.groups import ConsumerGroupSettings, StreamsGroupSettings
from sharelens.broker.coordinators.classic_groups import ClassicGroups, ClassicGroupSettings, JoinRequest, MemberCall
from sharelens.broker.coordinators.consumer_groups import ConsumerGroups
from sharelens.broker.coordinators.epoch_groups import GroupSurroundings, replace_by_classic
from sharelens.broker.coordinators.group_log import GroupLog
from sharelens.broker.coordinators.internal_topics import InternalTopics
from sharelens.broker.coordinators.offset_commits import OffsetCommits
from sharelens.broker.coordinators.streams_groups import StreamsGroups
from sharelens.broker.errors import ConfigError
from sharelens.broker.storage.catalog import new_id
from state_model.consumer.assignors import ASSIGNORS
from state_model.consumer.soft_state import Settings as ConsumerSettings
from state_model.group_schemas import GroupKind
from state_model.streams.soft_state import Settings

CONSUMER_SETTINGS = ConsumerGroupSettings(45_000, 600_000, ConsumerSettings(assignors=ASSIGNORS))
STREAMS_SETTINGS = StreamsGroupSettings(session_timeout_ms=45_000, machine=Settings(initial_rebalance_delay_ms=0))
RANGE = (("range", b"topics"),)


def epoch_groups(cluster, log, timers, classic_groups):
    """Consumer and streams groups over logs in memory; a classic group may take the id of an empty one."""
    surroundings = GroupSurroundings(
        log=log, topics=cluster, timers=timers, offsets=classic_groups.offsets, classic_groups=classic_groups
    )
    consumers = ConsumerGroups(
        surroundings,
        group_settings=lambda group_id: CONSUMER_SETTINGS,
        all_topics=lambda: cluster.topics.values(),
        new_id=new_id,
    )
    streams = StreamsGroups(
        surroundings,
        group_settings=lambda group_id: STREAMS_SETTINGS,
        internal_topics=InternalTopics(timers, lambda topic: create_topic(cluster, streams, topic)),
    )
    classic_groups.replace_foreign = partial(replace_by_classic, (consumers, streams))
    return consumers, streams


def create_topic(cluster, streams, topic):
    """As the broker does it: the groups hear of the topic."""
    if topic.replication_factor > 1:
        raise ConfigError("there is one broker")
    streams.topic_changed(cluster.create(topic.name, topic.partitions))


class Coordinator:
    """The coordinator of all groups with offsets, over logs in memory; `restart` loads another from those logs."""

    def __init__(self, cluster, timers, **settings):
        self.cluster = cluster
        self.timers = timers
        self.settings = ClassicGroupSettings(**settings)
        self._ids = itertools.count(1)
        self.restart()

    def restart(self):
        self.log = GroupLog(self.cluster, self.cluster)
        self.groups = ClassicGroups(self.log, self.timers, self.settings, new_id=lambda: str(next(self._ids)))
        kinds = epoch_groups(self.cluster, self.log, self.timers, self.groups)
        self.consumers, self.streams = kinds
        self.commits = OffsetCommits(self.log, self.groups, kinds, self.timers)
        replays = {GroupKind.CLASSIC: self.groups.replay} | {groups.kind: groups.replay for groups in kinds}
        self.log.load(replays, self.groups.offsets)
        for groups in (self.groups, *kinds):
            groups.start()
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
