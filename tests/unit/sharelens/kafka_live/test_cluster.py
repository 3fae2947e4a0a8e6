"""Fetches from two scripted brokers: followers in the client's rack, leaders that change, and brokers that go away."""

from uuid import UUID

import pytest
from kafka.protocol.consumer import FetchRequest, FetchResponse, ListOffsetsRequest, ListOffsetsResponse
from kafka.protocol.metadata import MetadataResponse

from sharelens.kafka_live import cluster as cluster_module
from sharelens.kafka_live.cluster import LATEST, OUTSTANDING_BYTES, Cluster, Place, Position
from sharelens.kafka_live.errors import ClusterError

PLACES = [Place("orders", 0), Place("orders", 1)]
NOT_LEADER, FENCED, OFFSET_OUT_OF_RANGE, FORBIDDEN = 6, 74, 1, 29


class ScriptedBrokers:
    """Two brokers, 1 and 2. `ends`: by node and partition the offset up to which it has records of one byte each.

    A leader names `follower` to clients of rack "b". `gone`: brokers that don't answer.
    """

    bootstrap_server = "scripted:9092"

    def __init__(self, *, rack="", leaders=(1, 1)):
        self.rack = rack
        self.leaders, self.epochs = list(leaders), [0, 0]
        self.ends = {(node, number): 10 for node in (1, 2) for number in (0, 1)}
        self.follower = None
        self.gone = set()
        self.fetches = []
        self.metadata_requests = 0

    def nodes(self):
        return [1, 2]

    def learn_brokers(self, metadata):
        assert [broker.node_id for broker in metadata.brokers] == [1, 2]

    def ask(self, node, request, read):
        self.metadata_requests += 1
        partition = MetadataResponse.MetadataResponseTopic.MetadataResponsePartition
        partitions = [
            partition(partition_index=number, leader_id=leader, leader_epoch=self.epochs[number])
            for number, leader in enumerate(self.leaders)
        ]
        broker = MetadataResponse.MetadataResponseBroker
        topic = MetadataResponse.MetadataResponseTopic(name="orders", topic_id=UUID(int=7), partitions=partitions)
        brokers = [broker(node_id=each, host="h", port=1, rack=None) for each in (1, 2)]
        return read(through_bytes(MetadataResponse(cluster_id="c", brokers=brokers, topics=[topic]), 12))

    def ask_all(self, requests, read):
        if self.gone & requests.keys():
            raise ClusterError("it went away")
        return {node: read(self.answer(node, request)) for node, request in requests.items()}

    def answer(self, node, request):
        if isinstance(request, ListOffsetsRequest):
            return self.list_offsets(node, request)
        assert isinstance(request, FetchRequest)
        topic = FetchResponse.FetchableTopicResponse
        self.fetches.append((node, [part.partition for part in request.topics[0].partitions], request.max_bytes))
        partitions = [self.partition(node, request, requested) for requested in request.topics[0].partitions]
        return through_bytes(FetchResponse(responses=[topic(topic="orders", partitions=partitions)]), 12)

    def partition(self, node, request, requested):
        partition_data = FetchResponse.FetchableTopicResponse.PartitionData
        number, end = requested.partition, self.ends[node, requested.partition]
        records, code, preferred = b"", 0, -1
        if requested.current_leader_epoch != self.epochs[number]:
            code = FENCED
        elif requested.fetch_offset > end:
            code = OFFSET_OUT_OF_RANGE
        elif node == self.leaders[number] and request.rack_id == "b" and self.follower is not None:
            preferred = self.follower
        else:
            records = b"r" * (end - requested.fetch_offset)
        return partition_data(
            partition_index=number, error_code=code, high_watermark=end, last_stable_offset=end, log_start_offset=0,
            aborted_transactions=None, preferred_read_replica=preferred, records=records,
        )  # fmt: skip

    def list_offsets(self, node, request):
        topic = ListOffsetsResponse.ListOffsetsTopicResponse
        partitions = [
            topic.ListOffsetsPartitionResponse(
                partition_index=requested.partition_index, timestamp=-1, leader_epoch=0,
                error_code=0 if node == self.leaders[requested.partition_index] else NOT_LEADER,
                offset=self.ends[node, requested.partition_index],
            )
            for requested in request.topics[0].partitions
        ]  # fmt: skip
        return through_bytes(ListOffsetsResponse(topics=[topic(name="orders", partitions=partitions)]), 7)


def through_bytes(answer, version):
    return type(answer).decode(bytes(answer.encode(version=version)), version=version)


@pytest.fixture(autouse=True)
def pauses(monkeypatch):
    monkeypatch.setattr(cluster_module.time, "sleep", lambda seconds: None)


def cluster_of(brokers):
    cluster = Cluster(brokers)
    cluster.topics()
    return cluster


def fetch(cluster, *offsets):
    fetched = cluster.fetch({place: Position(offset) for place, offset in zip(PLACES, offsets, strict=False)})
    return {each.place.partition: (len(each.records), each.is_out_of_range) for each in fetched}


def test_all_leaders_are_asked_at_once_and_share_the_largest_size():
    brokers = ScriptedBrokers(leaders=(1, 2))
    assert fetch(cluster_of(brokers), 3, 10) == {0: (7, False), 1: (0, False)}
    assert brokers.fetches == [(1, [0], OUTSTANDING_BYTES // 2), (2, [1], OUTSTANDING_BYTES // 2)]


def test_without_a_rack_records_come_from_leaders():
    brokers = ScriptedBrokers()
    brokers.follower = 2
    assert fetch(cluster_of(brokers), 0) == {0: (10, False)}
    assert {node for node, _, _ in brokers.fetches} == {1}


def test_records_come_from_the_follower_that_the_leader_names_and_it_is_remembered():
    brokers = ScriptedBrokers(rack="b")
    brokers.follower = 2
    cluster = cluster_of(brokers)
    assert fetch(cluster, 0, 4) == {0: (10, False), 1: (6, False)}
    assert [(node, parts) for node, parts, _ in brokers.fetches] == [(1, [0, 1]), (2, [0, 1])]
    brokers.fetches.clear()
    assert fetch(cluster, 5) == {0: (5, False)}
    assert [(node, parts) for node, parts, _ in brokers.fetches] == [(2, [0])]


@pytest.mark.parametrize("end", [3, 5])
def test_where_a_follower_lags_the_leader_has_the_last_word(end):
    brokers = ScriptedBrokers(rack="b")
    brokers.follower, brokers.ends[2, 0] = 2, end
    cluster = cluster_of(brokers)
    assert fetch(cluster, 5) == {0: (5, False)}
    assert fetch(cluster, 10) == {0: (0, False)}


def test_a_follower_that_goes_away_is_replaced_by_the_leader():
    brokers = ScriptedBrokers(rack="b")
    brokers.follower = 2
    cluster = cluster_of(brokers)
    fetch(cluster, 0)
    brokers.gone.add(2)
    assert fetch(cluster, 4) == {0: (6, False)}


def test_an_offset_outside_of_the_log_is_an_answer():
    assert fetch(cluster_of(ScriptedBrokers()), 11, 2) == {0: (0, True), 1: (8, False)}


def test_another_leader_is_asked_once_metadata_names_it():
    brokers = ScriptedBrokers()
    cluster = cluster_of(brokers)
    brokers.leaders[0], brokers.epochs[0], brokers.ends[2, 0] = 2, 1, 8
    assert fetch(cluster, 4, 4) == {0: (4, False), 1: (6, False)}
    assert brokers.metadata_requests == 2
    brokers.leaders = [1, 2]
    assert cluster.offsets(PLACES, LATEST) == {PLACES[0]: 10, PLACES[1]: 10}


def test_a_partition_without_a_leader_is_one_line():
    brokers = ScriptedBrokers(leaders=(1, -1))
    with pytest.raises(ClusterError, match="orders-1 has no leader that answers"):
        fetch(cluster_of(brokers), 0, 0)
