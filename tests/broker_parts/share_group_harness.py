"""Share groups on logs in memory, driven by hand: clock, topics, storage failures, restarts."""

from dataclasses import replace

from sharelens.broker.coordinators.group_log import GroupLog
from sharelens.broker.coordinators.share_coordinator import ShareCoordinator, ShareCoordinatorSettings
from sharelens.broker.coordinators.share_groups import ShareGroupCoordinatorSettings, ShareGroups
from sharelens.broker.coordinators.share_membership import Heartbeat
from sharelens.broker.coordinators.share_offsets import ShareOffsets
from sharelens.broker.ports import ShareGroupSettings
from state_model import group_records, share_records
from state_model.group_schemas import GroupKind
from state_model.rule_sets import KAFKA_4_3
from state_model.topics import OFFSETS_TOPIC, STATE_TOPIC
from tests.broker_parts.broker_memory import DISK_FULL, ManualTimers, MemoryCluster


class ShareGroupHarness:
    """One broker's share groups and share coordinator. Members heartbeat with the epoch they were told last."""

    def __init__(self, rules=KAFKA_4_3, partitions=3, **settings):
        self.timers = ManualTimers()
        self.cluster = MemoryCluster(self.timers, internal_partitions=partitions)
        self.group_settings = ShareGroupSettings()
        self._settings = ShareGroupCoordinatorSettings(rules=rules, **settings)
        self._rules = rules
        self.epochs = {}
        self.restart()

    def restart(self):
        """A new process on the same logs; timers of the old one are gone."""
        self.timers.forget()
        self.state = ShareCoordinator(
            self.cluster, self.cluster, self.timers, ShareCoordinatorSettings(rules=self._rules)
        )
        self.log = GroupLog(self.cluster, self.cluster)
        self.groups = ShareGroups(
            log=self.log,
            topics=self.cluster,
            persister=self.state,
            timers=self.timers,
            group_settings=lambda group_id: self.group_settings,
            settings=self._settings,
        )
        self.offsets = ShareOffsets(self.groups, topics=self.cluster, logs=self.cluster, persister=self.state)
        self.log.load({GroupKind.SHARE: self.groups.replay})
        self.groups.start()

    def configure(self, **changes):
        self.group_settings = replace(self.group_settings, **changes)

    def beat(self, member="m", topics=None, group="g", epoch=None, client=None, rack=None):
        """One heartbeat; what falls due at once runs behind it."""
        epoch = self.epochs.get((group, member), 0) if epoch is None else epoch
        answer = self.groups.heartbeat(
            Heartbeat(
                group_id=group,
                member_id=member,
                member_epoch=epoch,
                rack_id=rack,
                subscribed_topic_names=None if topics is None else tuple(topics.split()),
                client_id=client or member,
                client_host="/127.0.0.1",
            )
        )
        self.epochs[group, member] = answer.beat.member.epoch
        self.timers.advance(0)
        return answer

    def leave(self, member="m", group="g"):
        self.groups.leave(group, member)
        self.epochs.pop((group, member), None)

    def settle(self, member="m", topics=None, group="g", beats=3):
        """Heartbeats until nothing is new."""
        for _ in range(beats):
            answer = self.beat(member, topics, group)
            topics = None
            self.timers.advance(self.group_settings.assignment_interval_ms)
        return answer

    def assigned(self, member="m", group="g"):
        """{topic name: partitions} of a member."""
        assigned = self.groups.get(group).members[member].assigned
        return {self.cluster.by_id(topic_id).name: set(partitions) for topic_id, partitions in assigned.items()}

    def delete_topic(self, name):
        topic = self.cluster.delete(name)
        self.groups.topics_deleted([topic.topic_id])
        self.state.delete_topics([topic.topic_id])

    def batches(self, group="g"):
        """The group's records as Kafka's formatter prints them, batch by batch."""
        decoded = [
            [group_records.decode_record(record.key, record.value) for record in batch]
            for batch in self.log.log_for(group).batches
        ]
        group_batches = [[each for each in batch if each.group_id == group] for batch in decoded]
        return [[group_records.to_formatter_json(each) for each in batch] for batch in group_batches if batch]

    def types(self, group="g"):
        """`10 11 14X`: the types of each batch, X behind a tombstone."""
        return [
            " ".join(f"{each['key']['type']}{'' if each['value'] else 'X'}" for each in batch)
            for batch in self.batches(group)
        ]

    def last(self, record_type, group="g"):
        """The data of the last record of a type."""
        actual = [each for batch in self.batches(group) for each in batch if each["key"]["type"] == record_type]
        return actual[-1]["value"] and actual[-1]["value"]["data"]

    def state_values(self, group="g"):
        """The values of the group's state records, by (topic name or id, partition)."""
        actual = {}
        for batch in self.cluster.batches(STATE_TOPIC):
            for record in batch:
                decoded = share_records.decode_record(record.key, record.value)
                if decoded.key.group_id == group:
                    topic = self.cluster.by_id(decoded.key.topic_id)
                    name = decoded.key.topic_id if topic is None else topic.name
                    actual.setdefault((name, decoded.key.partition), []).append(decoded.value)
        return actual

    def refuse(self, *, groups=False, state=False):
        """Whether appends to the two logs fail from now on."""
        self.cluster.refuse_appends(OFFSETS_TOPIC, DISK_FULL if groups else None)
        self.cluster.refuse_appends(STATE_TOPIC, DISK_FULL if state else None)
