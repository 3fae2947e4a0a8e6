"""Clients that know leader epochs learn where their copy of a log leaves the broker's."""

import pytest

from sharelens.broker.storage import record_batch as rb
from tests.broker_parts.dispatched_broker import DispatchedBroker
from tests.logs.broker_logs import values

FETCH, DELETE_RECORDS, OFFSET_FOR_LEADER_EPOCH = 1, 21, 23
NONE, OUT_OF_RANGE, FENCED, UNKNOWN_EPOCH = 0, 1, 74, 75


@pytest.fixture
def dispatched(tmp_path):
    """A broker whose log had ten records of leader epoch 0 and lost four; epoch 2 wrote two since."""
    broker = DispatchedBroker(tmp_path / "log")
    broker.create("orders", 1)
    for _ in range(5):
        log(broker).append_records(values("a", "b"))
    broker.restart("open=orders-0,action=truncate:4")
    log(broker).append_records(values("c", "d"))
    assert log(broker).epochs.entries() == ((0, 0), (2, 6))
    yield broker
    broker.close()


def log(broker):
    return broker.broker.logs.get("orders", 0)


def fetch(broker, offset, fetched_epoch, version=12, leader_epoch=-1, **extra_fields):
    partition = {
        "partition": 0, "fetch_offset": offset, "last_fetched_epoch": fetched_epoch,
        "current_leader_epoch": leader_epoch, "partition_max_bytes": 10_000,
    }  # fmt: skip
    topics = [{"topic": "orders", "partitions": [partition]}]
    answer = broker.call(FETCH, version, max_bytes=10_000, topics=topics, **({"min_bytes": 0} | extra_fields))
    return answer["responses"][0]["partitions"][0]


@pytest.mark.parametrize(
    ("offset", "fetched_epoch", "diverging"),
    [
        (10, 0, (0, 6)),
        (7, 0, (0, 6)),
        (7, 1, (0, 6)),
        (9, 2, (2, 8)),
        (6, 0, None),
        (3, 0, None),
        (7, 2, None),
        (7, -1, None),
    ],
)
def test_a_fetch_with_the_epoch_of_another_log_gets_the_end_of_the_common_one(
    dispatched, offset, fetched_epoch, diverging
):
    answer = fetch(dispatched, offset, fetched_epoch)
    got = answer["diverging_epoch"]
    assert answer["error_code"] == NONE
    assert (got["epoch"], got["end_offset"]) == (diverging or (-1, -1))
    assert bool(answer["records"]) is (diverging is None)
    assert answer["high_watermark"] == 8


@pytest.mark.parametrize(("offset", "fetched_epoch"), [(8, 3), (1, 0)])
def test_an_epoch_or_an_offset_outside_of_the_log_is_out_of_range(dispatched, offset, fetched_epoch):
    dispatched.call(DELETE_RECORDS, 2, topics=[{"name": "orders", "partitions": [{"partition_index": 0, "offset": 2}]}])
    assert fetch(dispatched, offset, fetched_epoch)["error_code"] == OUT_OF_RANGE


def test_a_diverging_epoch_is_answered_at_once(dispatched):
    """min_bytes is more than there is: a waiting answer would end the test with an error."""
    assert fetch(dispatched, 10, 0, min_bytes=1 << 20, max_wait=30_000)["diverging_epoch"]["end_offset"] == 6


def test_another_leader_epoch_than_the_current_one_is_refused(dispatched):
    assert [fetch(dispatched, 7, 2, leader_epoch=epoch)["error_code"] for epoch in (0, 2, 3)] == [
        FENCED, NONE, UNKNOWN_EPOCH,
    ]  # fmt: skip


def test_the_end_of_an_epoch_is_where_the_next_one_began(dispatched):
    def end(epoch):
        partition = {"partition": 0, "current_leader_epoch": -1, "leader_epoch": epoch}
        topics = [{"topic": "orders", "partitions": [partition]}]
        answer = dispatched.call(OFFSET_FOR_LEADER_EPOCH, 4, topics=topics)["topics"][0]["partitions"][0]
        return answer["leader_epoch"], answer["end_offset"]

    assert [end(epoch) for epoch in (-1, 0, 1, 2, 3)] == [(-1, -1), (0, 6), (0, 6), (2, 8), (-1, -1)]


def test_batches_behind_the_truncation_have_the_new_epoch(dispatched):
    headers = rb.split(log(dispatched).read(0, max_bytes=10_000).data)
    assert [(header.base_offset, header.leader_epoch) for header in headers] == [(0, 0), (2, 0), (4, 0), (6, 2)]
