"""A connection to a cluster that only reads: Metadata, ListOffsets and Fetch, as a consumer without a group.

Kafka's protocol and its connections are those of the library kafka-python. No request creates a topic (Metadata asks
for no auto-creation), and Fetch has no session, because sessions of ours would end those of applications (KIP-227).
"""

import logging
import socket
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple, Self

from kafka import errors as kafka_errors
from kafka.net.compat import KafkaNetClient
from kafka.net.connection import KafkaConnection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest

from kafka_live.command_config import PLAINTEXT, CommandConfig
from kafka_live.errors import ClusterError
from kafka_live.failures import explain, is_final
from state_model.uuids import uuid_text

CLIENT_ID = "sharelens"
CONNECT_S = 5.0
RESPONSE_BYTES = 48 << 20
PARTITION_BYTES = 8 << 20
LARGEST_RESPONSE_BYTES = 256 << 20
"""A broker sends the first batch of a response whole, however large."""
EARLIEST, LATEST = -2, -1
"""The timestamps that ListOffsets takes for the log start offset and the high watermark."""
CONSUMER, READ_UNCOMMITTED, NO_SESSION, NO_SESSION_EPOCH, UNKNOWN_EPOCH = -1, 0, 0, -1, -1
TRIES, PAUSE_S = 5, 0.2
GRACE_MS = 500
MOST_FAILURES = 8
"""Failures of connections after which the first connection to a cluster, with a pause behind each, is given up."""
OF_CONNECTIONS = (kafka_errors.KafkaTimeoutError, kafka_errors.KafkaConnectionError, kafka_errors.NodeNotReadyError)
"""Errors of a request behind which another of its connection may stand, which says more."""
OFFSET_OUT_OF_RANGE = 1
MOVED = frozenset({3, 5, 6, 9, 13, 74, 75, 76, 100, 103})
"""Error codes of a partition that moved, has no leader yet, or whose metadata is out of date: ask again."""
FORBIDDEN = frozenset({29, 30, 31})


class Place(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic; `leaders`: node id by partition, -1 without a leader."""

    name: str
    topic_id: str
    leaders: Mapping[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """The answer about one partition. `records`: whole batches, perhaps the beginning of one more behind them.

    `is_out_of_range`: the offset lies outside of the log.
    """

    place: Place
    records: bytes
    is_out_of_range: bool


class _Connections(KafkaConnectionManager):  # type: ignore[misc]
    """The library's connections; they remember why the last one of them failed, and end tries that can't succeed."""

    failure: BaseException | None = None
    failures = 0

    def get_connection(self, node_id: Any, **options: Any) -> KafkaConnection:
        """A connection to the broker, perhaps one that is being made."""
        connection = super().get_connection(node_id, **options)
        if "close" not in vars(connection):  # a new one
            connection.close_future.add_errback(self._remember)
            close = connection.close

            def close_with(error: BaseException | None = None) -> None:
                if error is not None:  # which is lost where the broker has closed the connection before
                    self._remember(error)
                close(error)

            connection.close = close_with
        return connection

    def maybe_raise_auth_failure(self, node_id: Any) -> None:
        """Raises what the last connection failed of, if another one would fail of it, too."""
        is_hopeless = not self.bootstrapped and self.failures >= MOST_FAILURES
        if self.failure is not None and (is_hopeless or is_final(self.failure)):
            raise self.failure

    def _remember(self, error: BaseException) -> None:
        self.failures += 1
        if self.failure is None or not is_final(self.failure):
            self.failure = error


class Cluster:
    """A connection to the brokers of a cluster; `config`: how to connect.

    Raises:
        ClusterError: no broker can be reached at the address.
        UsageError: files that `config` names can't be used.
    """

    def __init__(self, bootstrap_server: str, config: CommandConfig = PLAINTEXT) -> None:
        logging.getLogger("kafka").setLevel(logging.CRITICAL)  # its lines repeat what the error says
        self.bootstrap_server = bootstrap_server
        self._config = config
        self._timeout_ms = config.timeout_ms
        self.cluster_id: str | None = None
        self._leaders: dict[Place, int] = {}
        self._ensure_a_listener()
        configs = config.client_configs() | {
            "bootstrap_servers": bootstrap_server.split(","),
            "client_id": CLIENT_ID,
            "receive_message_max_bytes": LARGEST_RESPONSE_BYTES,
        }
        try:
            loop = NetworkSelector(**configs)
            self._connections = _Connections(loop, **configs)
            self._client = KafkaNetClient(net=loop, manager=self._connections)
        except (kafka_errors.KafkaError, ValueError, OSError) as error:
            raise ClusterError(f"--bootstrap-server {bootstrap_server}: {explain(error, config)}") from error
        try:
            self._connections.run(self._bootstrap)
        except (kafka_errors.KafkaError, OSError, ValueError) as error:
            self.close()
            raise ClusterError(self._unreachable(error)) from error

    async def _bootstrap(self) -> None:
        """Connects; the library alone would wait for ever for a listener that answers nothing to TLS."""
        bootstrapped = self._connections.bootstrap_async(self._timeout_ms)
        await self._connections.wait_for(bootstrapped, self._timeout_ms + GRACE_MS)

    def _ensure_a_listener(self) -> None:
        """Raises ClusterError at once where no address of the list takes a connection: the library tries for long."""
        reason: object = None
        for address in self.bootstrap_server.split(","):
            host, _, port = address.strip().rpartition(":")
            try:
                socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_S).close()
                return
            except OSError as error:
                reason = error.strerror or error
            except (ValueError, OverflowError):  # a port that is no number, or too large
                reason = f"{address!r} is no HOST:PORT"
        raise ClusterError(f"--bootstrap-server {self.bootstrap_server}: {explain(OSError(reason), self._config)}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes all connections."""
        self._client.close()

    def topics(self) -> Mapping[str, Topic]:
        """All topics that one may describe, by name; sets `cluster_id`."""
        request = MetadataRequest(
            topics=None,
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=False,
            max_version=12,
        )
        answer = self.ask(self.nodes()[0], request)
        self.cluster_id = answer.cluster_id
        topics = {
            topic.name: Topic(
                name=topic.name,
                topic_id=uuid_text(topic.topic_id.bytes),
                leaders={partition.partition_index: partition.leader_id for partition in topic.partitions},
            )
            for topic in answer.topics
            if not topic.error_code
        }
        self._leaders = {
            Place(topic.name, partition): leader
            for topic in topics.values()
            for partition, leader in topic.leaders.items()
        }
        return topics

    def offsets(self, places: Iterable[Place], timestamp: int) -> Mapping[Place, int]:
        """Offset of each partition at EARLIEST or LATEST (the high watermark).

        Raises:
            ClusterError: a partition has no leader, or a right is missing.
        """
        known: dict[Place, int] = {}

        def moved_of(node: int, mine: list[Place]) -> set[Place]:
            topic = ListOffsetsRequest.ListOffsetsTopic
            request = ListOffsetsRequest(
                replica_id=CONSUMER,
                isolation_level=READ_UNCOMMITTED,
                topics=[
                    topic(
                        name=name,
                        partitions=[
                            topic.ListOffsetsPartition(
                                partition_index=number, current_leader_epoch=UNKNOWN_EPOCH, timestamp=timestamp
                            )
                            for number in numbers
                        ],
                    )
                    for name, numbers in _by_topic(mine).items()
                ],
                max_version=7,
            )
            moved = set()
            for of_topic in self.ask(node, request).topics:
                for partition in of_topic.partitions:
                    place = Place(of_topic.name, partition.partition_index)
                    if self._has_moved(place, partition.error_code):
                        moved.add(place)
                    else:
                        known[place] = partition.offset
            return moved

        self._ask_leaders(places, moved_of)
        return known

    def fetch(self, positions: Mapping[Place, int]) -> Sequence[Fetched]:
        """One answer about each partition from its offset on, up to the high watermark, in bounded bytes.

        Raises:
            ClusterError: a partition has no leader, or a right is missing.
        """
        answers: list[Fetched] = []

        def moved_of(node: int, mine: list[Place]) -> set[Place]:
            moved = set()
            for of_topic in self.ask(node, _fetch_request({place: positions[place] for place in mine})).responses:
                for partition in of_topic.partitions:
                    place = Place(of_topic.topic, partition.partition_index)
                    code = partition.error_code
                    if code != OFFSET_OUT_OF_RANGE and self._has_moved(place, code):
                        moved.add(place)
                        continue
                    answers.append(
                        Fetched(
                            place=place,
                            records=bytes(partition.records or b""),
                            is_out_of_range=code == OFFSET_OUT_OF_RANGE,
                        )
                    )
            return moved

        self._ask_leaders(positions, moved_of)
        return answers

    def _ask_leaders(self, places: Iterable[Place], moved_of: Callable[[int, list[Place]], set[Place]]) -> None:
        """Asks each leader about its partitions; `moved_of` returns those that moved, for another request."""
        pending = set(places)
        for attempt in range(TRIES):
            if attempt:
                time.sleep(PAUSE_S * 2**attempt)
                self.topics()
            of_leader: dict[int, list[Place]] = defaultdict(list)
            for place in sorted(pending):
                of_leader[self._leaders.get(place, -1)].append(place)
            pending = set(of_leader.pop(-1, []))
            for node, mine in of_leader.items():
                pending |= moved_of(node, mine)
            if not pending:
                return
        topic, partition = min(pending)
        raise ClusterError(
            f"{self.bootstrap_server}: {topic}-{partition} has no leader that answers; try again once it has one"
        )

    def _has_moved(self, place: Place, code: int) -> bool:
        """Whether to ask for the partition again; ClusterError for any other error."""
        if code in MOVED:
            return True
        if code in FORBIDDEN:
            raise ClusterError(
                f"{self.bootstrap_server}: no right to read topic {place.topic}; add READ and DESCRIBE on it "
                "for this user with kafka-acls.sh"
            )
        if code:
            text = kafka_errors.for_code(code).__name__
            raise ClusterError(f"{self.bootstrap_server}: {place.topic}-{place.partition}: {text} (error {code})")
        return False

    def nodes(self) -> Sequence[int]:
        """The ids of the brokers, ascending; at least one."""
        nodes = sorted(broker.node_id for broker in self._client.cluster.brokers())
        if not nodes:
            raise ClusterError(self._unreachable(kafka_errors.KafkaError("no broker answers")))
        return nodes

    def ask(self, node: int, request: Any) -> Any:
        """The answer of a broker to a request of the library.

        Raises:
            ClusterError: the broker does not answer.
        """
        try:
            answer = self._client.send_and_receive(node, request, timeout_ms=self._timeout_ms)
        except (kafka_errors.KafkaError, OSError) as error:
            raise ClusterError(self._unreachable(error)) from error
        time.sleep(max(0, getattr(answer, "throttle_time_ms", 0)) / 1000)
        return answer

    def _unreachable(self, error: BaseException) -> str:
        cause = self._connections.failure if isinstance(error, OF_CONNECTIONS) else None
        return f"--bootstrap-server {self.bootstrap_server}: {explain(cause or error, self._config)}"


def _by_topic(places: Iterable[Place]) -> Mapping[str, list[int]]:
    numbers: dict[str, list[int]] = defaultdict(list)
    for place in places:
        numbers[place.topic].append(place.partition)
    return numbers


def _fetch_request(positions: Mapping[Place, int]) -> FetchRequest:
    topic = FetchRequest.FetchTopic
    return FetchRequest(
        replica_id=CONSUMER,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=RESPONSE_BYTES,
        isolation_level=READ_UNCOMMITTED,
        session_id=NO_SESSION,
        session_epoch=NO_SESSION_EPOCH,
        topics=[
            topic(
                topic=name,
                partitions=[
                    topic.FetchPartition(
                        partition=number,
                        current_leader_epoch=UNKNOWN_EPOCH,
                        fetch_offset=positions[Place(name, number)],
                        last_fetched_epoch=UNKNOWN_EPOCH,
                        log_start_offset=-1,
                        partition_max_bytes=PARTITION_BYTES,
                    )
                    for number in numbers
                ],
            )
            for name, numbers in _by_topic(positions).items()
        ],
        forgotten_topics_data=[],
        rack_id="",
        max_version=12,
    )
