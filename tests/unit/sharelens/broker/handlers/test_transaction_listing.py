"""What tools are told of transactions and producers, in a broker that serves no sockets."""

from datetime import UTC, datetime

import pytest

from sharelens.broker.storage import record_batch as rb
from tests.logs.broker_logs import produced
from tests.unit.sharelens.broker.handlers.test_all import ask

TOPIC = (19, 7, {"topics": [{"name": "t", "num_partitions": 1, "replication_factor": 1}]})
INIT = (22, 4, {"transactional_id": "tx", "transaction_timeout": 60_000, "producer_id": -1, "producer_epoch": -1})
BEGIN = (
    24,
    3,
    {
        "v3_and_below_transactional_id": "tx",
        "v3_and_below_producer_id": 0,
        "v3_and_below_producer_epoch": 0,
        "v3_and_below_topics": [{"name": "t", "partitions": [0]}],
    },
)
WRITE = (
    0,
    9,
    {
        "transactional_id": "tx",
        "acks": -1,
        "timeout": 1000,
        "topic_data": [
            {
                "name": "t",
                "partition_data": [
                    {"index": 0, "records": produced("a", "b", producer_id=0, sequence=0, transactional=True)}
                ],
            }
        ],
    },
)
COMMIT = (26, 3, {"transactional_id": "tx", "producer_id": 0, "producer_epoch": 0, "committed": True})
LIST = (66, 0, {})
DESCRIBE = (65, 0, {"transactional_ids": ["tx", "other", ""]})
PRODUCERS = (61, 0, {"topics": [{"name": "t", "partition_indexes": [0, 9]}]})


@pytest.mark.slow
def test_a_transaction_is_listed_and_described_from_its_beginning_to_its_end(tmp_path):
    *_, listed, described, producers, ended, done, later = ask(
        tmp_path, TOPIC, INIT, BEGIN, WRITE, LIST, DESCRIBE, PRODUCERS, COMMIT, DESCRIBE, PRODUCERS
    )
    assert [(each.transactional_id, each.transaction_state) for each in listed.transaction_states] == [
        ("tx", "Ongoing")
    ]
    open_one, unknown, nameless = described.transaction_states
    assert (open_one.transaction_state, open_one.producer_id, open_one.producer_epoch) == ("Ongoing", 0, 0)
    assert [(each.topic, each.partitions) for each in open_one.topics] == [("t", (0,))]
    assert open_one.transaction_start_time > datetime(2020, 1, 1, tzinfo=UTC)
    assert (unknown.error_code, nameless.error_code) == (105, 42)
    there, missing = producers.topics[0].partitions
    assert missing.error_code == 3
    (producer,) = there.active_producers
    assert (producer.producer_id, producer.last_sequence, producer.current_txn_start_offset) == (0, 1, 0)
    assert ended.error_code == 0
    assert done.transaction_states[0].transaction_state == "CompleteCommit"
    assert later.topics[0].partitions[0].active_producers[0].current_txn_start_offset == -1


@pytest.mark.parametrize(
    ("requested", "actual", "unknown"),
    [
        ({"state_filters": ["Empty"]}, ["tx"], ()),
        ({"state_filters": ["Ongoing"]}, [], ()),
        ({"state_filters": ["Dead"]}, [], ()),
        ({"state_filters": ["Nonsense"]}, [], ("Nonsense",)),
        ({"producer_id_filters": [0]}, ["tx"], ()),
        ({"producer_id_filters": [1]}, [], ()),
        ({"duration_filter": 0}, [], ()),
        ({"duration_filter": -1}, ["tx"], ()),
    ],
)
def test_transactions_are_listed_by_state_producer_and_age(tmp_path, requested, actual, unknown):
    *_, listed = ask(tmp_path, INIT, (66, 1, requested))
    assert [each.transactional_id for each in listed.transaction_states] == actual
    assert listed.unknown_state_filters == unknown


def test_an_id_without_a_transaction_has_no_start(tmp_path):
    *_, described = ask(tmp_path, INIT, DESCRIBE)
    first = described.transaction_states[0]
    assert (first.transaction_state, first.topics) == ("Empty", ())
    assert first.producer_id != rb.NO_PRODUCER_ID
