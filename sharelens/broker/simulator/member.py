"""A simulated share consumer: heartbeats, fetches, acknowledgements, and its end."""

import random
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from sharelens.broker.coordinators.share_group import GroupError
from sharelens.broker.coordinators.share_membership import Heartbeat
from sharelens.broker.ports import Handle
from sharelens.broker.share.acknowledgement import AcknowledgementBatch, AcknowledgeType
from sharelens.broker.share.acquisition import AcquiredRange, AcquireMode
from sharelens.broker.share.codes import ShareErrorCode
from sharelens.broker.share.manager import FetchTerms, share_partition_key
from sharelens.broker.share.sessions import ShareSession, ShareSessionError, TopicIdPartition
from sharelens.broker.simulator.world import World
from state_model.group_heartbeat import JOINING
from state_model.tuples import maker

ACCEPT: Final = int(AcknowledgeType.ACCEPT)
RELEASE: Final = int(AcknowledgeType.RELEASE)
REJECT: Final = int(AcknowledgeType.REJECT)
RENEW: Final = int(AcknowledgeType.RENEW)
acknowledgement_batch: Final = maker(AcknowledgementBatch)
NONE: Final = ShareErrorCode.NONE
BATCH_SIZE: Final = 500
HANGS_MS: Final = 60_000
IDLE_FACTOR: Final = 3
Requests = list[list[AcknowledgementBatch]]


class Member:
    """A member from `join` until it dies or leaves; then `on_gone` is called."""

    def __init__(
        self, world: World, group_id: str, member_id: str, topics: tuple[str, ...], on_gone: Callable[["Member"], None]
    ) -> None:
        self.member_id = member_id
        self._world = world
        self._group_id = group_id
        self._topics = topics
        self._on_gone = on_gone
        self._chance: random.Random = world.chance(f"member {member_id}")
        self._epoch = JOINING
        self._assigned: dict[TopicIdPartition, None] = {}
        self._session: ShareSession | None = None
        self._connection = 0
        self._acquired: dict[TopicIdPartition, list[AcquiredRange]] = {}
        self._renewed: dict[TopicIdPartition, list[AcquiredRange]] = {}
        self._timers: dict[str, Handle] = {}
        self._terms = FetchTerms(
            max_records=world.settings.fetch_records,
            batch_size=BATCH_SIZE,
            mode=AcquireMode.RECORD_LIMIT if self._chance.random() < 0.2 else AcquireMode.BATCH_OPTIMIZED,
        )

    def join(self) -> None:
        """Send the first heartbeat."""
        self._beat()
        self._set("poll", self._chance.randrange(self._world.settings.poll_interval_ms), self._poll)

    def leave(self) -> None:
        """Leave: release all records and leave the group."""
        shares = self._world.broker.share_partitions
        # The broker's session: ours may belong to the broker before a restart.
        with suppress(ShareSessionError):
            shares.close_session(shares.sessions.get(self._group_id, self.member_id))
        try:
            self._world.broker.share_groups.leave(self._group_id, self.member_id)
        except GroupError as error:
            self._note("refused", error=str(error))
        self._end("left")
        self._disconnect()

    def _die(self) -> None:
        """Die without leaving; the connection is closed now, or after a while."""
        self._end("died")
        delay_ms = 0 if self._chance.random() < 0.5 else HANGS_MS
        self._world.timers.after_ms(delay_ms, self._disconnect)

    def _end(self, how: str) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._note(how)
        self._on_gone(self)

    def _disconnect(self) -> None:
        if self._session is not None:
            self._world.broker.share_partitions.connection_closed(self._connection, self._group_id)

    def _note(self, name: str, **about: object) -> None:
        self._world.journal.event(self._world.clock.now_ms, name, group=self._group_id, member=self.member_id, **about)

    def _set(self, name: str, delay_ms: int, callback: Callable[[], None]) -> None:
        self._timers[name] = self._world.timers.after_ms(delay_ms, callback)

    # Heartbeats

    def _beat(self) -> None:
        groups = self._world.broker.share_groups
        try:
            answer = groups.heartbeat(self._heartbeat())
        except GroupError as error:
            self._note("refused", error=str(error))
            self._epoch = JOINING
            self._set("beat", 1_000, self._beat)
            return
        beat = answer.beat
        self._epoch = beat.member.epoch
        if beat.assignment is not None:
            self._assign(
                (topic_id, partition) for topic_id, partitions in beat.assignment.items() for partition in partitions
            )
        self._set("beat", answer.heartbeat_interval_ms, self._beat)

    def _heartbeat(self) -> Heartbeat:
        is_new = self._epoch == JOINING
        return Heartbeat(
            group_id=self._group_id,
            member_id=self.member_id,
            member_epoch=self._epoch,
            rack_id="" if is_new else None,
            subscribed_topic_names=self._topics if is_new else None,
            client_id="simulated",
            client_host="/127.0.0.1",
        )

    def _assign(self, places: Iterable[TopicIdPartition]) -> None:
        assigned = dict.fromkeys(sorted(places))
        if self._session is not None:
            forgotten = [place for place in self._assigned if place not in assigned]
            self._session.update(assigned, forgotten)
        self._assigned = assigned

    # Fetches

    def _poll(self) -> None:
        settings, chance = self._world.settings, self._chance
        fate = chance.random()
        if fate < settings.habits.dies:
            self._die()
            return
        if fate < settings.habits.dies + settings.habits.leaves:
            self.leave()
            return
        session = self._go_on()
        has_news = session is not None and self._fetch(session)
        pause_ms = settings.poll_interval_ms if has_news else IDLE_FACTOR * settings.poll_interval_ms
        self._set("poll", pause_ms // 2 + chance.randrange(pause_ms + 1), self._poll)

    def _go_on(self) -> ShareSession | None:
        """The session of the next request, opened when there is none; acknowledges the acquired records."""
        shares = self._world.broker.share_partitions
        if not self._assigned:
            return None
        if self._session is not None:
            try:
                shares.sessions.go_on(self._group_id, self.member_id, self._session.epoch)
            except ShareSessionError:
                self._session = None
        if self._session is None:
            self._acquired.clear()
            self._renewed.clear()
            self._connection = self._world.new_connection()
            self._session = shares.open_session(self._group_id, self.member_id, self._connection, lambda _: None)
            if self._session is not None:
                self._session.update(self._assigned, ())
            return self._session
        self._acknowledge_all()
        return self._session

    def _fetch(self, session: ShareSession) -> bool:
        world = self._world
        has_news = False
        for place, partition_fetch in world.broker.share_partitions.fetch(session, self._terms).items():
            ranges = partition_fetch.acquired.ranges
            if ranges:
                has_news = True
                self._acquired[place] = list(ranges)
                world.journal.deliveries(world.clock.now_ms, self.member_id, place, ranges)
        return has_news

    # Acknowledgements

    def _acknowledge_all(self) -> None:
        acquired, self._acquired = self._acquired, {}
        renewed, self._renewed = self._renewed, {}
        for place, ranges in renewed.items():
            self._acknowledge(place, [self._range_batches(ranges, ACCEPT)])
        for place, ranges in acquired.items():
            self._acknowledge(place, self._decide(place, ranges))

    def _acknowledge(self, place: TopicIdPartition, requests: Requests) -> None:
        world = self._world
        shares = world.broker.share_partitions
        key = share_partition_key(self._group_id, place)
        for batches in requests:
            error = shares.acknowledge(key, self.member_id, batches)
            world.journal.acknowledged(world.clock.now_ms, self.member_id, place, batches, error)
            if error is not NONE:
                self._renewed.pop(place, None)

    def _decide(self, place: TopicIdPartition, ranges: list[AcquiredRange]) -> Requests:
        if self._world.settings.has_fixed_outcomes:
            return [[batch] for batch in fixed_outcomes(self._world, self._group_id, place, ranges)]
        habits, fate = self._world.settings.habits, self._chance.random()
        if fate < habits.singly:
            return [
                [acknowledgement_batch((offset, offset, (self._type(),)))]
                for acquired in ranges
                for offset in range(acquired.first_offset, acquired.last_offset + 1)
            ]
        fate -= habits.singly
        if fate < habits.mixed:
            return [
                [
                    AcknowledgementBatch(
                        first_offset=acquired.first_offset,
                        last_offset=acquired.last_offset,
                        types=[self._type() for _ in range(acquired.first_offset, acquired.last_offset + 1)],
                    )
                    for acquired in ranges
                ]
            ]
        fate -= habits.mixed
        if fate < habits.forgets:
            return []
        fate -= habits.forgets
        if fate < habits.renews:
            self._renewed[place] = ranges
            return [self._range_batches(ranges, RENEW)]
        return [self._range_batches(ranges, ACCEPT)]

    def _type(self) -> int:
        habits, fate = self._world.settings.habits, self._chance.random()
        if fate < habits.releases:
            return RELEASE
        return REJECT if fate < habits.releases + habits.rejects else ACCEPT

    @staticmethod
    def _range_batches(ranges: list[AcquiredRange], kind: int) -> list[AcknowledgementBatch]:
        return [
            AcknowledgementBatch(first_offset=acquired.first_offset, last_offset=acquired.last_offset, types=(kind,))
            for acquired in ranges
        ]


def fixed_outcomes(
    world: World, group_id: str, place: TopicIdPartition, ranges: list[AcquiredRange]
) -> Iterable[AcknowledgementBatch]:
    """Acknowledgements of single offsets, whose types follow from the seed, the group, the offset and its count."""
    habits = world.settings.habits
    for first, last, count in ranges:
        for offset in range(first, last + 1):
            fate = world.fixed_chance(group_id, *place, offset, count)
            if fate < habits.releases:
                yield acknowledgement_batch((offset, offset, (RELEASE,)))
            elif fate < habits.releases + habits.rejects:
                yield acknowledgement_batch((offset, offset, (REJECT,)))
            elif fate >= habits.releases + habits.rejects + habits.forgets:
                yield acknowledgement_batch((offset, offset, (ACCEPT,)))
