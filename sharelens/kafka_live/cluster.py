"""What a cluster says to a client that only reads: Metadata, ListOffsets, OffsetForLeaderEpoch and Fetch.

No request creates a topic (Metadata asks for no auto-creation). Fetch has no session, because sessions of ours would
end those of applications (KIP-227). All leaders are asked at the same time.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from kafka import errors as kafka_errors
from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest
from kafka.protocol.metadata import MetadataRequest

from sharelens.kafka_live.connection import PAUSE_S, TRIES, Connection
from sharelens.kafka_live.errors import ClusterError
from sharelens.kafka_log.leader_epochs import UNDEFINED, LeaderEpoch
from state_model.uuids import uuid_text

OUTSTANDING_BYTES = 48 << 20
"""The largest sum of the responses to the fetches of all leaders, unless single batches are larger."""
PARTITION_BYTES = 8 << 20
EARLIEST, LATEST = -2, -1
"""The timestamps that ListOffsets takes for the log start offset and the high watermark."""
NO_OFFSET = -1
"""The answer of ListOffsets where no record has the timestamp or a later one."""
CONSUMER, NO_SESSION, NO_SESSION_EPOCH = -1, 0, -1
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
OFFSET_OUT_OF_RANGE, TOPIC_AUTHORIZATION_FAILED = 1, 29
MOVED = frozenset({3, 5, 6, 9, 13, 74, 75, 76, 100, 103})
"""Error codes of a partition that moved, has no leader yet, or whose metadata is out of date: ask again."""
FORBIDDEN = frozenset({TOPIC_AUTHORIZATION_FAILED, 30, 31})
NO_LEADER = -1


class Place(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


class Position(NamedTuple):
    """Where to fetch: the offset, and the leader epoch of the record before it (UNDEFINED: of none)."""

    offset: int
    leader_epoch: int = UNDEFINED


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic; `leaders`, `leader_epochs`: node id and leader epoch by partition, -1 without a leader."""

    name: str
    topic_id: str
    leaders: Mapping[int, int]
    leader_epochs: Mapping[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """The answer about one partition. `records`: whole batches, perhaps the beginning of one more behind them.

    `is_out_of_range`: the offset lies outside of the log. `diverging`: the log is another one than that of the
    position; the largest leader epoch that both may share, and the offset behind its records. `aborted`: producer id
    and first offset of aborted transactions that reach into the records, where the reading is of committed ones.
    """

    place: Place
    records: bytes
    is_out_of_range: bool
    diverging: LeaderEpoch | None = None
    is_forbidden: bool = False
    aborted: tuple[tuple[int, int], ...] = ()


class Reading(NamedTuple):
    """How to fetch: the most bytes of a partition unless a first batch is larger, and error codes that are answers."""

    partition_bytes: int = PARTITION_BYTES
    isolation_level: int = READ_UNCOMMITTED
    accepted: frozenset[int] = frozenset({OFFSET_OUT_OF_RANGE})


WHOLE_LOGS = Reading()


class Cluster:
    """What the brokers of a cluster answer over a connection.

    `cluster_id`: known once `topics` was called.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.cluster_id: str | None = None
        self._leaders: dict[Place, int] = {}
        self._leader_epochs: dict[Place, int] = {}
        self._followers: dict[Place, int] = {}

    @property
    def bootstrap_server(self) -> str:
        """The address that names the cluster in messages."""
        return self.connection.bootstrap_server

    def topics(self) -> Mapping[str, Topic]:
        """All topics that one may describe, by name."""
        request = MetadataRequest(
            topics=None,
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=False,
            max_version=12,
        )

        def read(answer: Any) -> Mapping[str, Topic]:
            self.connection.learn_brokers(answer)
            self.cluster_id = answer.cluster_id
            return {
                topic.name: Topic(
                    name=topic.name,
                    topic_id=uuid_text(topic.topic_id.bytes),
                    leaders={partition.partition_index: partition.leader_id for partition in topic.partitions},
                    leader_epochs={partition.partition_index: partition.leader_epoch for partition in topic.partitions},
                )
                for topic in answer.topics
                if not topic.error_code
            }

        topics = self.connection.ask(self.connection.nodes()[0], request, read)
        self._leaders, self._leader_epochs = {}, {}
        for topic in topics.values():
            for partition, leader in topic.leaders.items():
                self._leaders[Place(topic.name, partition)] = leader
                self._leader_epochs[Place(topic.name, partition)] = topic.leader_epochs[partition]
        return topics

    def offsets(
        self, places: Iterable[Place], timestamp: int, isolation_level: int = READ_UNCOMMITTED
    ) -> Mapping[Place, int]:
        """Offset of each partition at EARLIEST or LATEST: the high watermark, or for READ_COMMITTED what is stable.

        At another timestamp the first offset with it or a later one; NO_OFFSET: no record has one.

        Raises:
            ClusterError: a partition has no leader, or a right is missing.
        """

        def request(leader_places: list[Place]) -> ListOffsetsRequest:
            topic = ListOffsetsRequest.ListOffsetsTopic
            topics = _by_topic(
                leader_places,
                topic,
                lambda place: topic.ListOffsetsPartition(
                    partition_index=place.partition,
                    current_leader_epoch=self._leader_epochs.get(place, UNDEFINED),
                    timestamp=timestamp,
                ),
            )
            return ListOffsetsRequest(
                replica_id=CONSUMER, isolation_level=isolation_level, topics=topics, max_version=7
            )

        answers = self._of_leaders(
            places,
            request,
            lambda answer: [
                (Place(topic.name, partition.partition_index), partition)
                for topic in answer.topics
                for partition in topic.partitions
            ],
        )
        return {place: answer.offset for place, answer in answers.items()}

    def epoch_ends(self, epochs: Mapping[Place, int]) -> Mapping[Place, LeaderEpoch]:
        """The largest leader epoch at or below one of each partition, and the offset behind its records.

        (UNDEFINED, UNDEFINED): the log knows no such epoch.

        Raises:
            ClusterError: a partition has no leader, or a right is missing.
        """

        def request(leader_places: list[Place]) -> OffsetForLeaderEpochRequest:
            topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
            topics = _by_topic(
                leader_places,
                topic,
                lambda place: topic.OffsetForLeaderPartition(
                    partition=place.partition,
                    current_leader_epoch=self._leader_epochs.get(place, UNDEFINED),
                    leader_epoch=epochs[place],
                ),
                name="topic",
            )
            return OffsetForLeaderEpochRequest(replica_id=CONSUMER, topics=topics, max_version=4)

        answers = self._of_leaders(
            epochs,
            request,
            lambda answer: [
                (Place(topic.topic, partition.partition), partition)
                for topic in answer.topics
                for partition in topic.partitions
            ],
        )
        return {place: (answer.leader_epoch, answer.end_offset) for place, answer in answers.items()}

    def fetch(self, positions: Mapping[Place, Position], reading: Reading = WHOLE_LOGS) -> Sequence[Fetched]:
        """One answer about each partition from its offset on, up to the high watermark, in bounded bytes.

        With a rack, records come from the follower that a leader names (KIP-392). A follower may lag behind, so that
        only the leader says that there are no more.

        Raises:
            ClusterError: a partition has no leader, or a right is missing.
        """
        answers = self._of_followers(positions, self._followers, reading)
        answers |= self._fetch_of_leaders(
            positions, positions.keys() - answers.keys() - self._followers.keys(), self.connection.rack, reading
        )
        redirected = {
            place: answer.preferred_read_replica
            for place, answer in answers.items()
            if answer.preferred_read_replica != NO_LEADER
        }
        answers |= self._of_followers(positions, redirected, reading)
        unanswered = {place for place in positions if place not in answers or not _has_records(answers[place])}
        tried = unanswered & (redirected.keys() | self._followers.keys())
        self._followers = {place: node for place, node in (self._followers | redirected).items() if place not in tried}
        answers |= self._fetch_of_leaders(positions, tried, "", reading)
        return [_fetched(place, answer) for place, answer in answers.items()]

    def _fetch_of_leaders(
        self, positions: Mapping[Place, Position], places: Set[Place], rack: str, reading: Reading
    ) -> Mapping[Place, Any]:
        """The leaders' answers; with a rack they may name a follower in place of records."""
        leaders = {self._leaders.get(place, NO_LEADER) for place in places}

        def request(leader_places: list[Place]) -> FetchRequest:
            return self._fetch_request(positions, leader_places, OUTSTANDING_BYTES // len(leaders), rack, reading)

        return self._of_leaders(places, request, _fetch_answers, accepted=reading.accepted)

    def _of_followers(
        self, positions: Mapping[Place, Position], followers: Mapping[Place, int], reading: Reading
    ) -> dict[Place, Any]:
        """The followers' answers with records; about all else a leader is to be asked."""
        of_node: dict[int, list[Place]] = defaultdict(list)
        for place in sorted(followers.keys() & positions.keys()):
            of_node[followers[place]].append(place)
        most_bytes = OUTSTANDING_BYTES // max(1, len(of_node))
        requests = {
            node: self._fetch_request(positions, follower_places, most_bytes, "", reading)
            for node, follower_places in of_node.items()
        }
        try:
            answers = self.connection.ask_all(requests, partial(_of_request, _fetch_answers, followers.keys()))
        except ClusterError:  # a follower that went away
            return {}
        return {
            place: partition
            for partitions in answers.values()
            for place, partition in partitions
            if not partition.error_code and _has_records(partition)
        }

    def _fetch_request(
        self, positions: Mapping[Place, Position], places: Iterable[Place], most_bytes: int, rack: str, reading: Reading
    ) -> FetchRequest:
        topic = FetchRequest.FetchTopic
        topics = _by_topic(
            places,
            topic,
            lambda place: topic.FetchPartition(
                partition=place.partition,
                current_leader_epoch=self._leader_epochs.get(place, UNDEFINED),
                fetch_offset=positions[place].offset,
                last_fetched_epoch=positions[place].leader_epoch,
                log_start_offset=-1,
                partition_max_bytes=min(reading.partition_bytes, most_bytes),
            ),
            name="topic",
        )
        return FetchRequest(
            replica_id=CONSUMER,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=most_bytes,
            isolation_level=reading.isolation_level,
            session_id=NO_SESSION,
            session_epoch=NO_SESSION_EPOCH,
            topics=topics,
            forgotten_topics_data=[],
            rack_id=rack,
            max_version=12,
        )

    def _of_leaders(
        self,
        places: Iterable[Place],
        request: Callable[[list[Place]], Any],
        partitions_of: Callable[[Any], Iterable[tuple[Place, Any]]],
        accepted: frozenset[int] = frozenset(),
    ) -> Mapping[Place, Any]:
        """The leaders' answers about their partitions; those that moved are asked for again.

        `accepted`: error codes that are answers.
        """
        answers: dict[Place, Any] = {}
        pending = set(places)
        for attempt in range(TRIES):
            if attempt:
                time.sleep(PAUSE_S * 2**attempt)
                self.topics()
            of_leader: dict[int, list[Place]] = defaultdict(list)
            for place in sorted(pending):
                of_leader[self._leaders.get(place, NO_LEADER)].append(place)
            of_leader.pop(NO_LEADER, None)
            requests = {node: request(leader_places) for node, leader_places in of_leader.items()}
            for partitions in self.connection.ask_all(requests, partial(_of_request, partitions_of, pending)).values():
                for place, partition in partitions:
                    code = partition.error_code
                    if code in accepted or not self._has_moved(place, code):
                        answers[place] = partition
            pending -= answers.keys()
            if not pending:
                return answers
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


def _by_topic(places: Iterable[Place], topic: Any, partition: Callable[[Place], Any], name: str = "name") -> list[Any]:
    """The part of a request about partitions: its topics, each with its partitions."""
    of_topic: dict[str, list[Any]] = defaultdict(list)
    for place in places:
        of_topic[place.topic].append(partition(place))
    return [topic(**{name: topic_name}, partitions=partitions) for topic_name, partitions in of_topic.items()]


def _fetch_answers(answer: Any) -> list[tuple[Place, Any]]:
    return [
        (Place(topic.topic, partition.partition_index), partition)
        for topic in answer.responses
        for partition in topic.partitions
    ]


def _of_request(
    partitions_of: Callable[[Any], Iterable[tuple[Place, Any]]], places: Set[Place], answer: Any
) -> list[tuple[Place, Any]]:
    """The partitions of an answer; ValueError for one that is none of `places`."""
    partitions = list(partitions_of(answer))
    for place, _ in partitions:
        if place not in places:
            raise ValueError(f"no request names {place.topic}-{place.partition}")
    return partitions


def _has_records(answer: Any) -> bool:
    return bool(answer.records)


def _fetched(place: Place, answer: Any) -> Fetched:
    diverging = answer.diverging_epoch
    is_same = diverging is None or diverging.end_offset == UNDEFINED
    return Fetched(
        place=place,
        records=bytes(answer.records or b""),
        is_out_of_range=answer.error_code == OFFSET_OUT_OF_RANGE,
        diverging=None if is_same else (diverging.epoch, diverging.end_offset),
        is_forbidden=answer.error_code == TOPIC_AUTHORIZATION_FAILED,
        aborted=tuple((each.producer_id, each.first_offset) for each in answer.aborted_transactions or ()),
    )
