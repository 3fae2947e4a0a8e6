"""The group coordinator's share groups: kept in memory, changed after a record in `__consumer_offsets`.

An operation gives records; they are appended as one batch, then applied as a load applies them. A timer initializes the
state of share partitions after the answer, and records that.
"""

import logging
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from kio.schema.errors import ErrorCode

from sharelens.broker.coordinators import share_state_partitions
from sharelens.broker.coordinators.group_log import GroupLog
from sharelens.broker.coordinators.member_timers import MemberTimers
from sharelens.broker.coordinators.share_group import GroupError, NamedPartitions, ShareGroup, StatePartitions, apply
from sharelens.broker.coordinators.share_membership import Beat, Heartbeat, Membership, unknown_member
from sharelens.broker.errors import RecordTooLargeError, StorageError
from sharelens.broker.metrics import BrokerMetrics
from sharelens.broker.ports import GroupSettings, Persister, Timers, Topics
from state_model import answers
from state_model.group_heartbeat import JOINING
from state_model.group_records import GroupRecord, encode_record
from state_model.group_schemas import GroupKind
from state_model.rule_sets import KAFKA_4_3, RuleSet
from state_model.share_records import NOT_DETERMINED, SharePartitionKey

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupCoordinatorSettings:
    """Settings of the coordinator as a whole; those of one group are ShareGroupSettings.

    Attributes:
        max_size: group.share.max.size, members in a group.
        initialize_retry_interval_ms: group.share.initialize.retry.interval.ms.
        rules: where added partitions start, and the records of a group without members.
    """

    max_size: int = 200
    initialize_retry_interval_ms: int = 30_000
    rules: RuleSet = KAFKA_4_3


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatAnswer:
    """Answer to a heartbeat that was accepted."""

    beat: Beat
    heartbeat_interval_ms: int


class ShareGroups:
    """All share groups of this broker."""

    def __init__(
        self,
        *,
        log: GroupLog,
        topics: Topics,
        persister: Persister,
        timers: Timers,
        group_settings: GroupSettings,
        settings: ShareGroupCoordinatorSettings,
        rack: str = "",
        metrics: BrokerMetrics | None = None,
    ) -> None:
        self._metrics = metrics or BrokerMetrics()
        self._log = log
        self._topics = topics
        self._persister = persister
        self._timers = timers
        self._group_settings = group_settings
        self._settings = settings
        self._membership = Membership(
            topics,
            group_settings,
            max_size=settings.max_size,
            initialize_retry_interval_ms=settings.initialize_retry_interval_ms,
            rules=settings.rules,
            rack=rack,
        )
        self._groups: dict[str, ShareGroup] = {}
        self._stale: set[str] = set()
        self._sessions = MemberTimers(timers, self._expired)

    # Load

    def replay(self, record: GroupRecord) -> None:
        """Apply a record of a share group (sharelens.broker.coordinators.group_log.Replay)."""
        self._apply(record)

    def start(self) -> None:
        """After the load: all members get a full session, all groups compare their topics with the catalogue.

        Initializations that the end of the last process interrupted are continued at once; no member has to wait for
        group.share.initialize.retry.interval.ms.
        """
        for group in self._groups.values():
            for member_id in group.members:
                self._restart_session(group.group_id, member_id)
            if group.initializing:
                self._timers.after_ms(0, partial(self._continue_initializing, group.group_id))
        self.topics_changed()

    # Groups

    def get(self, group_id: str) -> ShareGroup | None:
        """A share group; None when there is none of that id."""
        return self._groups.get(group_id)

    def require(self, group_id: str) -> ShareGroup:
        """A share group. Raises GroupError with GROUP_ID_NOT_FOUND."""
        group = self._groups.get(group_id)
        if group is None:
            kind = self._log.ids.kind(group_id)
            problem = "not found" if kind is None else "is not a share group"
            raise GroupError(ErrorCode.group_id_not_found, f"Group {group_id} {problem}.")
        return group

    def get_or_new(self, group_id: str) -> ShareGroup:
        """A share group, or a new one without records.

        Raises GroupError with GROUP_ID_NOT_FOUND when the id belongs to a group of another kind.
        """
        if self._log.ids.kind(group_id) in (None, GroupKind.SHARE):
            return self._groups.get(group_id) or ShareGroup(group_id=group_id)
        return self.require(group_id)

    def __iter__(self) -> Iterator[ShareGroup]:
        return iter(list(self._groups.values()))

    def __len__(self) -> int:
        return len(self._groups)

    # Members

    def heartbeat(self, request: Heartbeat) -> HeartbeatAnswer:
        """A member joins or stays. Raises GroupError; nothing has changed then."""
        group_id = request.group_id
        group = self.get_or_new(group_id) if request.member_epoch == JOINING else self.require(group_id)
        beat = self._membership.beat(
            group, request, now_ms=self._timers.now_ms(), is_metadata_stale=group_id in self._stale
        )
        starts = self._start_offsets(beat.initializing, group.initializing.keys() | group.initialized.keys())
        self.commit(group_id, beat.records)
        self._metrics.group_rebalances[GroupKind.SHARE] += beat.group_epoch > group.epoch
        self._stale.discard(group_id)
        self._restart_session(group_id, request.member_id)
        if beat.initializing:
            initialize = partial(self._initialize, group_id, beat.group_epoch, beat.initializing, starts)
            self._timers.after_ms(0, initialize)
        interval_ms = self._group_settings(group_id).heartbeat_interval_ms
        return HeartbeatAnswer(beat=beat, heartbeat_interval_ms=interval_ms)

    def leave(self, group_id: str, member_id: str) -> None:
        """A member leaves. Raises GroupError: no such group, no such member, or it could not be recorded."""
        group = self.require(group_id)
        if member_id not in group.members:
            raise unknown_member(group_id, member_id)
        self.commit(group_id, self._membership.end_member(group, member_id))
        self._sessions.stop(group_id, member_id)

    # Topics

    def topics_changed(self) -> None:
        """Topics were created or got partitions: the next heartbeat of each group compares them."""
        self._stale.update(self._groups)

    def topics_deleted(self, topic_ids: Collection[str]) -> None:
        """Topics were deleted: remove their state from all groups, one batch for each partition of the log."""
        self.topics_changed()
        batches: dict[int, list[GroupRecord]] = {}
        for group in self._groups.values():
            record = share_state_partitions.forget_topics(group, topic_ids)
            if record is not None:
                batches.setdefault(self._log.partition_for(group.group_id), []).append(record)
        for records in batches.values():
            try:
                self.commit(records[0].group_id, records)
            except GroupError as error:
                _log.warning("the deletion of topics is not recorded: %s", error)

    # Changes

    def commit(self, group_id: str, records: Iterable[GroupRecord]) -> None:
        """Append the records of one operation as one batch, then apply them; all lie in the partition of `group_id`.

        Raises GroupError with COORDINATOR_NOT_AVAILABLE when the log refuses; nothing has changed then.
        """
        batch = list(records)
        try:
            self._log.append(group_id, [encode_record(record) for record in batch])
        except (StorageError, RecordTooLargeError) as error:
            _log.warning("could not record a change of the share group %s: %s", group_id, error)
            raise GroupError(ErrorCode.coordinator_not_available, "The change could not be recorded.") from error
        for record in batch:
            self._apply(record)

    def _apply(self, record: GroupRecord) -> None:
        group_id = record.group_id
        group = apply(self._groups.get(group_id), record, self._timers.now_ms())
        if group is not None:
            self._groups[group_id] = group
            self._log.ids.claim(group_id, GroupKind.SHARE)
        elif self._groups.pop(group_id, None) is not None:
            self._stale.discard(group_id)
            self._log.ids.release(group_id, GroupKind.SHARE)

    def initialize_state(
        self, group_id: str, state_epoch: int, starts: dict[tuple[str, int], int]
    ) -> dict[tuple[str, int], answers.ErrorCode]:
        """InitializeShareGroupState for partitions (topic id, partition) with their start offsets; the answers.

        When all succeed they become initialized. After a failure the caller records the outcome.
        Raises GroupError when the success can't be recorded.
        """
        errors = {
            place: self._persister.initialize(
                SharePartitionKey(group_id=group_id, topic_id=place[0], partition=place[1]),
                state_epoch=state_epoch,
                start_offset=start_offset,
            )
            for place, start_offset in starts.items()
        }
        if not any(errors.values()):
            partitions = self._named(starts)
            self.commit(group_id, [share_state_partitions.end_initializing(self.require(group_id), partitions)])
        return errors

    def _initialize(
        self, group_id: str, state_epoch: int, partitions: StatePartitions, starts: dict[tuple[str, int], int]
    ) -> None:
        """The second step of a heartbeat for partitions without state."""
        group = self._groups.get(group_id)
        if group is None:
            return
        waiting = {
            (topic_id, partition) for topic_id, named in group.initializing.items() for partition in named.partitions
        }
        starts = {place: start_offset for place, start_offset in starts.items() if place in waiting}
        try:
            errors = self.initialize_state(group_id, state_epoch, starts)
            if any(errors.values()):
                record = share_state_partitions.give_up_initializing(self.require(group_id), partitions)
                self.commit(group_id, () if record is None else (record,))
        except GroupError as error:
            _log.warning("the share group %s initializes its partitions later: %s", group_id, error)

    def _continue_initializing(self, group_id: str) -> None:
        """Initialize the partitions that a load left initializing; those that have their state are only recorded."""
        group = self._groups.get(group_id)
        if group is None:
            return
        pending = share_state_partitions.pending(group)
        starts = self._start_offsets(pending, group.initialized.keys())
        with_state = {place for place in starts if self._has_start_offset(group_id, place)}
        if with_state:
            try:
                record = share_state_partitions.end_initializing(group, self._named(with_state))
                self.commit(group_id, [record])
            except GroupError as error:
                _log.warning("the share group %s initializes its partitions later: %s", group_id, error)
                return
        rest = {place: start_offset for place, start_offset in starts.items() if place not in with_state}
        if rest:
            self._initialize(group_id, group.epoch, self._named(rest), rest)

    def _has_start_offset(self, group_id: str, place: tuple[str, int]) -> bool:
        key = SharePartitionKey(group_id=group_id, topic_id=place[0], partition=place[1])
        return self._persister.read_summary(key).start_offset != NOT_DETERMINED

    def _start_offsets(
        self, partitions: StatePartitions, known_topic_ids: Collection[str]
    ) -> dict[tuple[str, int], int]:
        """Where new partitions start: at 0 in topics that the group knows, if the rules say so, else undetermined."""
        at_zero = self._settings.rules.starts_added_partitions_at_zero
        return {
            (topic_id, partition): 0 if at_zero and topic_id in known_topic_ids else NOT_DETERMINED
            for topic_id, named in partitions.items()
            for partition in sorted(named.partitions)
        }

    def _named(self, places: Iterable[tuple[str, int]]) -> StatePartitions:
        by_topic: dict[str, set[int]] = {}
        for topic_id, partition in places:
            by_topic.setdefault(topic_id, set()).add(partition)
        named = {}
        for topic_id, partitions in by_topic.items():
            topic = self._topics.by_id(topic_id)
            name = share_state_partitions.UNKNOWN_NAME if topic is None else topic.name
            named[topic_id] = NamedPartitions(name=name, partitions=frozenset(partitions))
        return named

    def _restart_session(self, group_id: str, member_id: str) -> None:
        self._sessions.restart(group_id, member_id, self._group_settings(group_id).session_timeout_ms)

    def _expired(self, group_id: str, member_id: str) -> None:
        group = self._groups.get(group_id)
        if group is None or member_id not in group.members:
            return
        _log.info("the session of member %s of the share group %s expired", member_id, group_id)
        try:
            self.commit(group_id, self._membership.end_member(group, member_id))
        except GroupError:
            self._restart_session(group_id, member_id)
