"""The records of classic groups and of transactions that real brokers wrote: read, and written back byte for byte."""

import base64
import json

import pytest

from sharelens.broker.coordinators import classic_records, transaction_log
from sharelens.broker.storage import record_batch
from state_model.group_records import decode_record
from tests.datasets import dataset

pytestmark = pytest.mark.compat


def records_in(name, topic):
    """Partition, offset and record of all data records in a topic's segments."""
    for segment in sorted((dataset(name) / "logs").glob(f"{topic}-*/*.log")):
        data = segment.read_bytes()
        for header in record_batch.split(data):
            if not header.is_control:
                for record in record_batch.parse(data, header):
                    yield int(segment.parent.name.rpartition("-")[2]), record


def formatted(name):
    """What Kafka's own classes read, by partition and offset."""
    lines = (dataset(name) / "formatter-offsets.jsonl").read_text().splitlines()
    return {(line["partition"], line["offset"]): line for line in map(json.loads, lines)}


def classic_records_of(name):
    expected = formatted(name)
    for partition, record in records_in(name, "__consumer_offsets"):
        decoded = decode_record(record.key, record.value)
        if decoded.record_type in (1, 2) and not decoded.is_tombstone:
            yield record, decoded, expected[partition, record.offset]["value"]["data"]


@pytest.mark.parametrize("name", ["admin", "transactions"])
def test_committed_offsets_are_read_and_written_as_kafka_does(name):
    records = [entry for entry in classic_records_of(name) if entry[1].record_type == 1]
    assert records
    for record, decoded, data in records:
        committed = classic_records.read_offset(decoded)
        assert committed == classic_records.CommittedOffset(
            offset=data["offset"],
            leader_epoch=data["leaderEpoch"],
            metadata=data["metadata"],
            commit_timestamp_ms=data["commitTimestamp"],
            topic_id=data.get("topicId", classic_records.ZERO_TOPIC_ID),
        )
        key = decoded.key
        assert classic_records.offset_key(decoded.group_id, key["topic"], key["partition"]) == record.key
        assert classic_records.offset_value(committed) == record.value


@pytest.mark.parametrize("name", ["admin", "transactions"])
def test_groups_are_read_and_written_as_kafka_does(name):
    records = [entry for entry in classic_records_of(name) if entry[1].record_type == 2]
    assert records
    for record, decoded, data in records:
        group = classic_records.read_group(decoded)
        assert (group.protocol_type, group.generation) == (data["protocolType"], data["generation"])
        assert (group.protocol_name, group.leader) == (data["protocol"], data["leader"])
        assert group.state_since_ms == data["currentStateTimestamp"]
        assert [member.assignment for member in group.members] == [
            base64.b64decode(member["assignment"]) for member in data["members"]
        ]
        assert classic_records.group_key(decoded.group_id) == record.key
        assert classic_records.group_value(group) == record.value


def test_the_state_of_transactions_is_read_and_written_as_kafka_does():
    records = list(records_in("transactions", "__transaction_state"))
    statuses = set()
    for _, record in records:
        transactional_id = transaction_log.decode_key(record.key)
        transaction = transaction_log.decode_value(transactional_id, record.value)
        statuses.add(transaction.status)
        assert transactional_id.startswith("tx-")
        assert transaction_log.encode_key(transactional_id) == record.key
        written = transaction_log.encode_value(transaction)
        assert transaction_log.decode_value(transactional_id, written) == transaction
        # The others have the order of a Java set, and a tagged field for the producer's transaction version 2.
        if transaction.status is transaction_log.TransactionStatus.EMPTY:
            assert written == record.value
    assert statuses == set(transaction_log.TransactionStatus)
