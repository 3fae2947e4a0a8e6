"""The coordinators of groups and transactions over real logs, with a disk that refuses or ends the process at will."""

import itertools

from sharelens.broker.coordinators.classic_groups import ClassicGroups
from sharelens.broker.coordinators.group_log import GroupLog
from sharelens.broker.coordinators.offset_commits import OffsetCommits
from sharelens.broker.coordinators.transaction_log import TransactionLog
from sharelens.broker.coordinators.transactions import Transactions, TransactionSettings
from sharelens.broker.ports import Topic, TopicPartition
from sharelens.broker.storage import record_batch as rb
from sharelens.broker.storage.files import OpenFiles
from sharelens.broker.storage.log_config import LogConfig
from sharelens.broker.storage.partition_log import PartitionLog
from state_model.group_schemas import GroupKind
from state_model.uuids import uuid_text
from tests.broker_parts.broker_groups import epoch_groups
from tests.broker_parts.broker_memory import ManualTimers
from tests.logs.broker_logs import produced

USER_TOPIC = "ledger"


class CrashError(Exception):
    """Raised where the process would have ended."""


class Disk:
    """Refuses appends while `is_full`; ends the process at the append number `crash_at` from now on."""

    def __init__(self):
        self.is_full = False
        self.crash_at = None

    def lost_offsets(self, topic_partition):
        return 0

    def before_append(self, topic_partition, data):
        if self.is_full:
            raise OSError(28, "No space left on device")
        if self.crash_at is not None:
            self.crash_at -= 1
            if self.crash_at < 0:
                raise CrashError
        return data

    def after_append(self, topic_partition):
        """Nothing."""


class RealCluster:
    """Topics and logs in a folder; `reopen` is what a start after a kill finds."""

    def __init__(self, folder, timers, partitions=2):
        self.folder = folder
        self.timers = timers
        self.disk = Disk()
        self._partitions = partitions
        self._topics = {}
        self._logs = {}
        self.ensure_internal(USER_TOPIC)

    def by_name(self, name):
        return self._topics.get(name)

    def by_id(self, topic_id):
        return next((topic for topic in self._topics.values() if topic.topic_id == topic_id), None)

    def ensure_internal(self, name):
        if name not in self._topics:
            topic_id = uuid_text(name.encode().ljust(16, b"-")[:16])
            self._topics[name] = Topic(name=name, topic_id=topic_id, partitions=self._partitions)
            self._open(name)
        return self._topics[name]

    def get(self, topic, partition):
        return self._logs.get((topic, partition))

    def reopen(self):
        for log in self._logs.values():
            log.abandon()
        self.disk = Disk()
        for name in self._topics:
            self._open(name)

    def close(self):
        for log in self._logs.values():
            log.abandon()

    def _open(self, name):
        for partition in range(self._partitions):
            self._logs[name, partition] = PartitionLog(
                self.folder / f"{name}-{partition}",
                TopicPartition(name, partition),
                topic_id=self._topics[name].topic_id,
                config=LogConfig(),
                timers=self.timers,
                files=OpenFiles(),
                faults=self.disk,
            )


class Coordinators:
    """Groups and transactions; `restart` drops what is in memory and begins from the logs."""

    def __init__(self, folder, **settings):
        self.timers = ManualTimers(1_700_000_000_000)
        self.cluster = RealCluster(folder, self.timers)
        self.settings = TransactionSettings(**settings)
        self._producer_ids = itertools.count(1000)
        self._start()

    def _start(self):
        cluster = self.cluster
        self.group_log = GroupLog(cluster, cluster)
        self.groups = ClassicGroups(self.group_log, self.timers)
        self.epoch_groups = epoch_groups(cluster, self.group_log, self.timers, self.groups)
        self.commits = OffsetCommits(self.group_log, self.groups, self.epoch_groups, self.timers)
        offsets = self.groups.offsets
        self.group_log.load({GroupKind.CLASSIC: self.groups.replay}, offsets)
        self.groups.start()
        self.transactions = Transactions(
            TransactionLog(cluster, cluster),
            cluster,
            self.timers,
            new_producer_id=lambda: next(self._producer_ids),
            offsets_ended=lambda partition, producer_id, is_commit: offsets.end_transaction(
                partition, producer_id, is_commit=is_commit
            ),
            settings=self.settings,
        )
        self.transactions.start()

    def restart(self):
        now_ms = self.timers.now_ms()
        self.timers = self.cluster.timers = ManualTimers(now_ms)
        self.cluster.reopen()
        self._start()

    def produce(self, producer, partition, value):
        """A transactional batch of one record, as the produce handler lets it in; its offset, or the error's name."""
        at = TopicPartition(USER_TOPIC, partition)
        error = self.transactions.verify(producer.producer_id, producer.producer_epoch, [at])
        if error.name != "none":
            return error.name
        log = self.cluster.get(USER_TOPIC, partition)
        entry = dict(log.producers.items()).get(producer.producer_id)
        sequence = entry.last_sequence + 1 if entry and entry.epoch == producer.producer_epoch else 0
        data = produced(
            value,
            producer_id=producer.producer_id,
            epoch=producer.producer_epoch,
            sequence=sequence,
            transactional=True,
        )
        return log.append_client(data).base_offset

    def visible(self, partition):
        """What a reader of committed records sees: below the last stable offset, without aborted ones."""
        log = self.cluster.get(USER_TOPIC, partition)
        end = log.last_stable_offset
        aborted = log.aborted_transactions(0, end)
        values = []
        data = log.read(0, max_bytes=1 << 30).data
        for header in rb.split(data) if data else ():
            is_aborted = any(
                each.producer_id == header.producer_id and each.first_offset <= header.base_offset <= each.last_offset
                for each in aborted
            )
            if header.base_offset < end and not header.is_control and not is_aborted:
                values += [record.value.decode() for record in rb.parse(data, header)]
        return values
