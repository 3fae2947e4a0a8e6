"""The share partitions of this broker: created on the first fetch, kept while their group has sessions (§2, §9).

Everything here is synchronous. After a fetch without results the request's handler waits for a change.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from sharelens.broker.errors import CorruptBatchError, StorageError
from sharelens.broker.metrics import BrokerMetrics
from sharelens.broker.ports import DeadLetterSink, GroupSettings, Log, Logs, Persister, Timers, Topics
from sharelens.broker.share.acknowledgement import AcknowledgementBatch
from sharelens.broker.share.acquisition import AcquireMode
from sharelens.broker.share.codes import ShareErrorCode
from sharelens.broker.share.sessions import ShareSession, ShareSessions, TopicIdPartition
from sharelens.broker.share.share_partition import NO_ACQUISITION, Acquired, SharePartition, Status
from state_model.share_records import SharePartitionKey

_NONE = ShareErrorCode.NONE
MAX_SESSIONS = 2_000
"""Default of group.share.max.share.sessions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchTerms:
    """The limits of a ShareFetch, over all of its partitions together."""

    max_records: int
    batch_size: int
    min_bytes: int = 1
    max_bytes: int = 1 << 31
    mode: AcquireMode = AcquireMode.BATCH_OPTIMIZED


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFetch:
    """The result of one partition: records, an error, or neither."""

    acquired: Acquired = NO_ACQUISITION
    error: ShareErrorCode = ShareErrorCode.NONE

    @property
    def is_news(self) -> bool:
        """Whether the answer must have the partition."""
        return bool(self.acquired.ranges) or self.error is not ShareErrorCode.NONE


NO_NEWS = PartitionFetch()


def share_partition_key(group_id: str, place: TopicIdPartition) -> SharePartitionKey:
    """The share partition of a group on a partition."""
    return SharePartitionKey(group_id=group_id, topic_id=place[0], partition=place[1])


class SharePartitions:
    """Creates, serves and drops share partitions; keeps the share sessions.

    Args:
        persister: the share coordinator. settings: the current configuration of each group.
        dead_letters: receives records that groups gave up; None: dropped.
        metrics: counts what happens.
    """

    def __init__(
        self,
        *,
        logs: Logs,
        topics: Topics,
        persister: Persister,
        settings: GroupSettings,
        timers: Timers,
        dead_letters: DeadLetterSink | None = None,
        max_sessions: int = MAX_SESSIONS,
        metrics: BrokerMetrics | None = None,
    ) -> None:
        self.metrics = metrics or BrokerMetrics()
        self.sessions = ShareSessions(max_sessions)
        self.settings = settings
        self._logs = logs
        self._topics = topics
        self._persister = persister
        self._timers = timers
        self._dead_letters = dead_letters
        self._partitions: dict[SharePartitionKey, SharePartition] = {}
        self._groups: dict[str, dict[SharePartitionKey, SharePartition]] = {}
        self._bound: set[tuple[int, str]] = set()
        self._ends: dict[SharePartitionKey, Callable[[], None]] = {}
        self._waiting: dict[SharePartitionKey, dict[Callable[[], None], None]] = {}

    def __len__(self) -> int:
        return len(self._partitions)

    def get(self, key: SharePartitionKey) -> SharePartition | None:
        """The share partition if it is in use; its log may have been replaced since."""
        return self._partitions.get(key)

    def fetch(
        self,
        session: ShareSession,
        terms: FetchTerms,
        *,
        is_last_try: bool = True,
        refused: Collection[TopicIdPartition] = (),
    ) -> dict[TopicIdPartition, PartitionFetch]:
        """Try once to acquire records for a session, in the order of all its partitions but the refused ones.

        Without results the request may wait and retry; before the last try it also waits for `min_bytes`.
        """
        fetched: dict[TopicIdPartition, PartitionFetch] = {}
        ready: list[tuple[TopicIdPartition, SharePartition]] = []
        for place in session.rotated():
            if place in refused:
                continue
            partition = self._find_or_make(share_partition_key(session.group_id, place))
            if isinstance(partition, ShareErrorCode):
                fetched[place] = PartitionFetch(error=partition)
            else:
                fetched[place] = NO_NEWS
                if partition.can_acquire():
                    ready.append((place, partition))
        if not ready or terms.max_records <= 0:
            return fetched
        max_bytes = max(1, terms.max_bytes // len(ready))
        has_errors = any(partition_fetch.is_news for partition_fetch in fetched.values())
        may_wait = terms.min_bytes > 1 and not is_last_try and not has_errors
        if may_wait and not self._has_bytes((partition for _, partition in ready), terms.min_bytes, max_bytes):
            return fetched
        self._acquire(session.member_id, ready, terms, max_bytes, fetched)
        return fetched

    def acknowledge(
        self, key: SharePartitionKey, member_id: str, batches: Sequence[AcknowledgementBatch]
    ) -> ShareErrorCode:
        """Apply a member's acknowledgements, which have passed `acknowledgement.validate`."""
        partition = self._partitions.get(key)
        if partition is None:
            return ShareErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        error = partition.acknowledge(member_id, batches)
        if error is _NONE:
            self.metrics.acknowledged(batches)
        return error

    def place_error(self, place: TopicIdPartition) -> ShareErrorCode:
        """Whether a topic and a partition of it exist."""
        topic = self._topics.by_id(place[0])
        if topic is None:
            return ShareErrorCode.UNKNOWN_TOPIC_ID
        if not 0 <= place[1] < topic.partitions:
            return ShareErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ShareErrorCode.NONE

    def leader_epoch(self, place: TopicIdPartition) -> int:
        """The leader epoch of a partition's log, -1 when there is none."""
        log = self._logs.by_id(*place)
        return -1 if log is None else log.leader_epoch

    def open_session(
        self, group_id: str, member_id: str, connection_id: int, on_close: Callable[[Callable[[], None]], None]
    ) -> ShareSession | None:
        """A new session that lives as long as a connection; None when there are too many.

        Args:
            on_close: registers a callback for the end of the connection.
        """
        session = self.sessions.open(group_id, member_id, connection_id)
        if session is not None and (connection_id, group_id) not in self._bound:
            self._bound.add((connection_id, group_id))
            on_close(lambda: self.connection_closed(connection_id, group_id))
        return session

    def close_session(self, session: ShareSession) -> dict[TopicIdPartition, ShareErrorCode]:
        """Close a session and release all records of its member, in every partition of the group.

        Returns the errors of writing that, by partition.
        """
        self.sessions.close(session)
        errors: dict[TopicIdPartition, ShareErrorCode] = {}
        for partition in self._of_group(session.group_id):
            error = partition.release_member(session.member_id)
            if error is not ShareErrorCode.NONE:
                errors[partition.key.topic_id, partition.key.partition] = error
        return errors

    def connection_closed(self, connection_id: int, group_id: str) -> None:
        """The connection of a client was closed: its sessions end.

        The share partitions of a group without sessions are dropped. The next fetch loads the persisted state,
        which makes it safe to alter the offsets of an empty group.
        """
        self._bound.discard((connection_id, group_id))
        for session in self.sessions.of_connection(connection_id):
            self.close_session(session)
        if not self.sessions.has_group(group_id):
            self.evict(partition.key for partition in self._of_group(group_id))

    def topic_deleted(self, topic_id: str) -> None:
        """Drop all share partitions of a topic."""
        self.evict([key for key in self._partitions if key.topic_id == topic_id])

    def evict(self, keys: Iterable[SharePartitionKey]) -> None:
        """Drop share partitions; the next fetch creates new ones."""
        for key in list(keys):
            partition = self._partitions.get(key)
            if partition is not None:
                partition.fence()

    def watch(self, session: ShareSession, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` after each change that a fetch of the session may see, and at its end.

        The returned function ends that.
        """
        keys = [share_partition_key(session.group_id, place) for place in session.partitions]
        for key in keys:
            self._waiting.setdefault(key, {})[wake] = None
        session.waiting[wake] = None

        def end() -> None:
            session.waiting.pop(wake, None)
            for key in keys:
                waiting = self._waiting.get(key)
                if waiting is not None:
                    waiting.pop(wake, None)
                    if not waiting:
                        del self._waiting[key]

        return end

    def _of_group(self, group_id: str) -> list[SharePartition]:
        return list(self._groups.get(group_id, {}).values())

    def _find_or_make(self, key: SharePartitionKey) -> SharePartition | ShareErrorCode:
        log = self._logs.by_id(key.topic_id, key.partition)
        partition = self._partitions.get(key)
        if partition is not None:
            if partition.log is log and partition.status is Status.ACTIVE:
                return partition
            partition.fence()
        if log is None:
            return self.place_error((key.topic_id, key.partition)) or ShareErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return self._make(key, log)

    def _make(self, key: SharePartitionKey, log: Log) -> SharePartition | ShareErrorCode:
        load = self.metrics.share_partition_load
        begun_s = load.clock()
        partition = SharePartition(
            key,
            leader_epoch=log.leader_epoch,
            log=log,
            persister=self._persister,
            settings=lambda: self.settings(key.group_id),
            timers=self._timers,
            dead_letters=self._dead_letters,
            on_change=self._wake,
            on_fenced=self._forget,
        )
        error = partition.initialize()
        if error is not ShareErrorCode.NONE:
            return error
        load.took(begun_s)
        self._partitions[key] = partition
        self._groups.setdefault(key.group_id, {})[key] = partition
        self._ends[key] = log.subscribe(lambda: self._wake(partition))
        return partition

    def _forget(self, partition: SharePartition) -> None:
        key = partition.key
        if self._partitions.get(key) is not partition:
            return
        del self._partitions[key]
        del self._groups[key.group_id][key]
        if not self._groups[key.group_id]:
            del self._groups[key.group_id]
        self._ends.pop(key)()
        self._wake(partition)

    def _wake(self, partition: SharePartition) -> None:
        waiting = self._waiting.get(partition.key)
        if waiting:
            for wake in list(waiting):
                wake()

    @staticmethod
    def _has_bytes(partitions: Iterable[SharePartition], min_bytes: int, max_bytes: int) -> bool:
        size_bytes = 0
        for partition in partitions:
            try:
                size_bytes += len(partition.read(max_bytes).data)
            except (StorageError, CorruptBatchError):
                return True  # the acquisition returns the error
            if size_bytes >= min_bytes:
                return True
        return False

    @staticmethod
    def _acquire(
        member_id: str,
        ready: list[tuple[TopicIdPartition, SharePartition]],
        terms: FetchTerms,
        max_bytes: int,
        fetched: dict[TopicIdPartition, PartitionFetch],
    ) -> None:
        remaining_records = terms.max_records
        for place, partition in ready:
            if remaining_records <= 0:
                return
            try:
                acquired = partition.acquire(
                    member_id,
                    max_records=remaining_records,
                    batch_size=terms.batch_size,
                    max_bytes=max_bytes,
                    mode=terms.mode,
                )
            except StorageError:
                fetched[place] = PartitionFetch(error=ShareErrorCode.KAFKA_STORAGE_ERROR)
                continue
            except CorruptBatchError:
                fetched[place] = PartitionFetch(error=ShareErrorCode.CORRUPT_MESSAGE)
                continue
            if acquired.ranges:
                fetched[place] = PartitionFetch(acquired=acquired)
                remaining_records -= sum(each.last_offset - each.first_offset + 1 for each in acquired.ranges)
