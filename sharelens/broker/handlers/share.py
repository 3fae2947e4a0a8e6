"""ShareFetch and ShareAcknowledge (share-partition §5, §9, §10; rpcs §1; KIP-932).

Acknowledgements in a fetch are applied before records are acquired. A fetch without results waits, up to its MaxWaitMs,
for an append, a release or the end of a lock; as Kafka's does even where it carried acknowledgements.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sharelens.broker.ports import Timers, Topics
from sharelens.broker.protocol.messages import milliseconds, topic_id_text
from sharelens.broker.protocol.registry import Answer, RequestContext, handles
from sharelens.broker.security.authorization.entries import Operation
from sharelens.broker.security.authorization.rights import EVERY_RIGHT, Rights
from sharelens.broker.share.acknowledgement import AcknowledgementBatch, AcknowledgeType, validate
from sharelens.broker.share.acquisition import AcquireMode
from sharelens.broker.share.codes import ShareErrorCode
from sharelens.broker.share.manager import NO_NEWS, FetchTerms, PartitionFetch, SharePartitions, share_partition_key
from sharelens.broker.share.sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    ShareSession,
    ShareSessionError,
    TopicIdPartition,
)
from sharelens.kafka_formats.messages.api_keys import ApiKey
from state_model.uuids import ZERO_UUID

MEMBER_ID_MAX_LENGTH = 36
_LAST_TYPE = {1: AcknowledgeType.REJECT, 2: AcknowledgeType.RENEW}
_NOT_AUTHORIZED = PartitionFetch(error=ShareErrorCode.TOPIC_AUTHORIZATION_FAILED)
_MOVED = frozenset((ShareErrorCode.NOT_LEADER_OR_FOLLOWER,))


class ShareServer(Protocol):
    """The parts of the broker that these handlers use. `share_version` is 0 when share groups are off."""

    @property
    def share_partitions(self) -> SharePartitions:
        """Share partitions and sessions."""

    @property
    def share_version(self) -> int:
        """The finalized level of share.version."""

    @property
    def catalog(self) -> Topics:
        """The topics."""

    @property
    def timers(self) -> Timers:
        """The clock."""

    @property
    def node_id(self) -> int:
        """This broker's id."""

    def advertised(self, listener: str) -> tuple[str, int]:
        """Advertised host and port of a listener."""


Errors = dict[TopicIdPartition, ShareErrorCode]


@dataclass(slots=True)
class _Exchange:
    """A request in progress: its session and the results of its acknowledgements."""

    server: ShareServer
    listener: str
    group_id: str
    session: ShareSession
    rights: Rights
    is_first: bool = False
    acknowledged: Errors = field(default_factory=dict)

    def may_read(self, place: TopicIdPartition) -> bool:
        """Whether the client may read a topic; true for unknown ones, which have another error."""
        if self.rights is EVERY_RIGHT:
            return True
        topic = self.server.catalog.by_id(place[0])
        return topic is None or self.rights.topic(Operation.READ, topic.name)

    def topic_error(self, place: TopicIdPartition) -> ShareErrorCode:
        """The error of a topic that the client may not read, else none."""
        return ShareErrorCode.NONE if self.may_read(place) else ShareErrorCode.TOPIC_AUTHORIZATION_FAILED

    def refused(self) -> dict[TopicIdPartition, PartitionFetch]:
        """The partitions of the session that the client may not read, with their error."""
        return {place: _NOT_AUTHORIZED for place in self.session.partitions if not self.may_read(place)}


@handles(ApiKey.SHARE_FETCH, (1, 2))
def share_fetch(server: ShareServer, request: Any, context: RequestContext) -> Answer | Awaitable[Answer]:
    """Apply acknowledgements, then acquire records for a member's share session."""
    refusal = _refusal(server, request) or _refused_renewal(request)
    if refusal is not None:
        return refusal
    try:
        exchange = _open(server, request, context)
    except ShareSessionError as error:
        return _failure(error.code, str(error))
    if exchange is None:
        return _limit_reached(server, milliseconds(request.max_wait))
    _acknowledge(exchange, request, context.api_version)
    if request.share_session_epoch == FINAL_EPOCH:
        server.share_partitions.close_session(exchange.session)
        return _fetch_answer(exchange, {})
    if getattr(request, "is_renew_ack", False):
        return _fetch_answer(exchange, {})
    terms = FetchTerms(
        max_records=request.max_records,
        batch_size=request.batch_size,
        min_bytes=request.min_bytes,
        max_bytes=request.max_bytes,
        mode=AcquireMode(getattr(request, "share_acquire_mode", AcquireMode.BATCH_OPTIMIZED)),
    )
    max_wait_ms = milliseconds(request.max_wait)
    refused = exchange.refused()
    if refused and len(refused) == len(exchange.session.partitions):
        return _fetch_answer(exchange, refused)
    fetched = server.share_partitions.fetch(exchange.session, terms, is_last_try=max_wait_ms <= 0, refused=refused)
    if max_wait_ms <= 0 or _has_news(fetched):
        return _fetch_answer(exchange, fetched | refused)
    return _fetch_later(exchange, terms, max_wait_ms)


@handles(ApiKey.SHARE_ACKNOWLEDGE, (1, 2))
def share_acknowledge(server: ShareServer, request: Any, context: RequestContext) -> Answer:
    """Apply a member's acknowledgements; the final epoch also closes its session and releases its records."""
    refusal = _refusal(server, request)
    if refusal is not None:
        return refusal
    shares, epoch = server.share_partitions, request.share_session_epoch
    try:
        if epoch == INITIAL_EPOCH:
            raise ShareSessionError(
                ShareErrorCode.INVALID_SHARE_SESSION_EPOCH, "acknowledgements need a share session that a fetch opened"
            )
        if epoch == FINAL_EPOCH:
            session = shares.sessions.get(request.group_id, request.member_id)
        else:
            session = shares.sessions.go_on(request.group_id, request.member_id, epoch)
    except ShareSessionError as error:
        return _failure(error.code, str(error))
    exchange = _Exchange(server, context.connection.listener, request.group_id, session, context.rights)
    _acknowledge(exchange, request, context.api_version)
    if epoch == FINAL_EPOCH:
        shares.close_session(session)
    return _acknowledge_answer(exchange)


def _refusal(server: ShareServer, request: Any) -> Answer | None:
    """The error of a request that is invalid for any session."""
    if server.share_version < 1:
        return _failure(ShareErrorCode.UNSUPPORTED_VERSION, "share groups are off: share.version is 0")
    if not request.group_id:
        return _failure(ShareErrorCode.INVALID_REQUEST, "the group id is empty")
    if not 1 <= len(request.member_id or "") <= MEMBER_ID_MAX_LENGTH:
        return _failure(ShareErrorCode.INVALID_REQUEST, f"a member id has 1 to {MEMBER_ID_MAX_LENGTH} characters")
    return None


def _refused_renewal(request: Any) -> Answer | None:
    if getattr(request, "share_acquire_mode", 0) not in set(AcquireMode):
        return _failure(ShareErrorCode.INVALID_REQUEST, f"there is no acquire mode {request.share_acquire_mode}")
    limits = (request.max_bytes, request.min_bytes, request.max_records, milliseconds(request.max_wait))
    if getattr(request, "is_renew_ack", False) and any(limits):
        return _failure(
            ShareErrorCode.INVALID_REQUEST, "a fetch that renews asks for no records: its limits and its wait are 0"
        )
    return None


def _open(server: ShareServer, request: Any, context: RequestContext) -> _Exchange | None:
    """The session of a fetch with updated partitions; None when there are too many sessions.

    Raises:
        ShareSessionError: the request fits no session.
    """
    shares, epoch = server.share_partitions, request.share_session_epoch
    group_id, member_id, listener = request.group_id, request.member_id, context.connection.listener
    if epoch == FINAL_EPOCH:
        return _Exchange(server, listener, group_id, shares.sessions.get(group_id, member_id), context.rights)
    session: ShareSession | None
    if epoch == INITIAL_EPOCH:
        if any(part.acknowledgement_batches for topic in request.topics for part in topic.partitions):
            raise ShareSessionError(
                ShareErrorCode.INVALID_REQUEST, "the first fetch of a share session has nothing to acknowledge"
            )
        connection = context.connection
        session = shares.open_session(group_id, member_id, connection.id, connection.on_close)
        if session is None:
            return None
    else:
        session = shares.sessions.go_on(group_id, member_id, epoch)
    session.update(
        [(_text(topic.topic_id), part.partition_index) for topic in request.topics for part in topic.partitions],
        [(_text(topic.topic_id), index) for topic in request.forgotten_topics_data for index in topic.partitions],
    )
    return _Exchange(server, listener, group_id, session, context.rights, is_first=epoch == INITIAL_EPOCH)


def _acknowledge(exchange: _Exchange, request: Any, version: int) -> None:
    """Apply the acknowledgements of all partitions; of each partition all or none."""
    shares = exchange.server.share_partitions
    last_type = _LAST_TYPE[version]
    has_any = False
    may_renew = getattr(request, "is_renew_ack", False)
    if may_renew:
        may_renew = shares.settings(exchange.group_id).renew_acknowledge_enable
    for topic in request.topics:
        topic_id = _text(topic.topic_id)
        for part in topic.partitions:
            if not part.acknowledgement_batches:
                continue
            has_any = True
            place = (topic_id, part.partition_index)
            batches = _batches(part.acknowledgement_batches)
            exchange.acknowledged[place] = (
                exchange.topic_error(place)
                or shares.place_error(place)
                or validate(batches, last_type=last_type, may_renew=may_renew)
                or shares.acknowledge(
                    share_partition_key(exchange.group_id, place), exchange.session.member_id, batches
                )
            )
    shares.metrics.share_acknowledgements += has_any


def _batches(batches: Sequence[Any]) -> list[AcknowledgementBatch]:
    return [
        AcknowledgementBatch(
            first_offset=batch.first_offset, last_offset=batch.last_offset, types=batch.acknowledge_types
        )
        for batch in batches
    ]


def _has_news(fetched: Mapping[TopicIdPartition, PartitionFetch]) -> bool:
    return any(partition.is_news for partition in fetched.values())


async def _fetch_later(exchange: _Exchange, terms: FetchTerms, max_wait_ms: int) -> Answer:
    """Retry after each change, for the last time when the wait is over; a closed session gets no records."""
    shares, timers, session = exchange.server.share_partitions, exchange.server.timers, exchange.session
    end_ms = timers.now_ms() + max_wait_ms
    while True:
        left_ms = end_ms - timers.now_ms()
        with _Alarm(timers, left_ms) as alarm:
            end_watch = shares.watch(session, alarm.ring)
            try:
                if session.is_closed:
                    return _fetch_answer(exchange, {})
                refused = exchange.refused()
                fetched = shares.fetch(session, terms, is_last_try=left_ms <= 0, refused=refused)
                if left_ms <= 0 or _has_news(fetched):
                    return _fetch_answer(exchange, fetched | refused)
                await alarm.rings
            finally:
                end_watch()


async def _limit_reached(server: ShareServer, max_wait_ms: int) -> Answer:
    """Too many sessions: answered late, so that clients that retry cost little."""
    with _Alarm(server.timers, max_wait_ms) as alarm:
        await alarm.rings
    return _failure(ShareErrorCode.SHARE_SESSION_LIMIT_REACHED, "there are too many share sessions")


class _Alarm:
    """A future that is done when the alarm is rung or its time has come."""

    def __init__(self, timers: Timers, delay_ms: int) -> None:
        self.rings: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._timer = timers.after_ms(max(0, delay_ms), self.ring)

    def ring(self) -> None:
        """Complete the future."""
        if not self.rings.done():
            self.rings.set_result(None)

    def __enter__(self) -> "_Alarm":
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self.rings.cancel()


def _failure(code: ShareErrorCode, message: str) -> Answer:
    return {"error_code": code, "error_message": message}


def _fetch_answer(exchange: _Exchange, fetched: Mapping[TopicIdPartition, PartitionFetch]) -> Answer:
    """The first answer of a session has all partitions; later ones those with records, an error or acknowledgements."""
    answered = {place: result for place, result in fetched.items() if exchange.is_first or result.is_news}
    for place in exchange.acknowledged:
        answered.setdefault(place, NO_NEWS)

    def partition(place: TopicIdPartition) -> dict[str, Any]:
        acquired, error = answered[place].acquired, answered[place].error
        acknowledge_error = exchange.acknowledged.get(place, ShareErrorCode.NONE)
        answer: dict[str, Any] = {
            "partition_index": place[1],
            "error_code": error,
            "acknowledge_error_code": int(acknowledge_error),
            "records": acquired.data,
            "acquired_records": [each._asdict() for each in acquired.ranges],
        }
        return answer | _leader(exchange, place, error, acknowledge_error)

    return _answer(exchange, answered, partition, [result.error for result in answered.values()])


def _acknowledge_answer(exchange: _Exchange) -> Answer:
    errors = exchange.acknowledged

    def partition(place: TopicIdPartition) -> dict[str, Any]:
        error = errors[place]
        return {"partition_index": place[1], "error_code": error} | _leader(exchange, place, error)

    return _answer(exchange, errors, partition, [])


def _leader(exchange: _Exchange, place: TopicIdPartition, *errors: ShareErrorCode) -> dict[str, Any]:
    """The current leader for a client with an old leader epoch: this node."""
    if not _MOVED.intersection(errors):
        return {}
    epoch = exchange.server.share_partitions.leader_epoch(place)
    return {"current_leader": {"leader_id": exchange.server.node_id, "leader_epoch": epoch}}


def _answer(
    exchange: _Exchange,
    places: Mapping[TopicIdPartition, Any],
    partition: Callable[[TopicIdPartition], dict[str, Any]],
    fetch_errors: Sequence[ShareErrorCode],
) -> Answer:
    server = exchange.server
    topics: dict[str, list[dict[str, Any]]] = {}
    for place in places:
        topics.setdefault(place[0], []).append(partition(place))
    endpoints = []
    if _MOVED.intersection((*fetch_errors, *exchange.acknowledged.values())):
        host, port = server.advertised(exchange.listener)
        endpoints.append({"node_id": server.node_id, "host": host, "port": port})
    return {
        "acquisition_lock_timeout": server.share_partitions.settings(exchange.group_id).record_lock_duration_ms,
        "responses": [{"topic_id": topic_id, "partitions": parts} for topic_id, parts in topics.items()],
        "node_endpoints": endpoints,
    }


def _text(topic_id: Any) -> str:
    return topic_id_text(topic_id) or ZERO_UUID
