"""The columnar codec on every record of real brokers: the fields are those that Kafka's formatter prints, and encoding
the decoded columns gives the same bytes again."""

import gzip
import json

import pytest

from sharelens.kafka_log.layout import scan_log_directory
from sharelens.kafka_log.reader import read_split, readable_end, splits
from sharelens.kafka_log.union import unite
from state_model.columnar.decode import decode_share_records
from tests.datasets import KINDS, dataset, kinds_first
from tests.logs.log_rows import log_times
from tools.log_writer.share_records import encode_share_records

COLUMN_OF_FIELD = {
    "snapshotEpoch": "snapshot_epoch",
    "stateEpoch": "state_epoch",
    "leaderEpoch": "leader_epoch",
    "startOffset": "start_offset",
    "deliveryCompleteCount": "delivery_complete_count",
    "createTimestamp": "create_timestamp_ms",
    "writeTimestamp": "write_timestamp_ms",
}
RECORD_TYPES = {(0, True): "snapshot", (1, True): "update", (0, False): "tombstone"}


def read_log(name):
    """Rows of the state topic as they lie in the segments, a batch of rows at a time."""
    for partition in unite([scan_log_directory(str(dataset(name) / "logs"))]):
        if partition.topic == "__share_group_state":
            end = readable_end(partition, include_uncommitted=True)
            first = min(segment.base_offset for copy in partition.copies for segment in copy.segments)
            for split in splits(partition, first, end, 64 << 20):
                for chunk in read_split(split, include_uncommitted=True):
                    yield chunk.records


def printed_rows(name):
    """What the formatter printed, in the words of SHARE_RECORD, by state partition and offset."""
    plain = dataset(name) / "formatter.jsonl"
    packed = plain.with_name("formatter.jsonl.gz")
    text = gzip.decompress(packed.read_bytes()) if packed.is_file() else plain.read_bytes()
    records = [json.loads(line) for line in text.splitlines()]
    return {(record["partition"], record["offset"]): _row(record) for record in records}


def _row(record):
    key, value = record["key"], record["value"]
    row = {
        "timestamp_ms": record["timestamp"],
        "record_type": RECORD_TYPES[key["type"], value is not None],
        "group_id": key["data"]["groupId"],
        "topic_id": key["data"]["topicId"],
        "partition": key["data"]["partition"],
        "value_version": None if value is None else value["version"],
        "state_batches": None,
        "unknown_tags": [],
        "trailing_bytes": 0,
    }
    fields = {"deliveryCompleteCount": -1} | value["data"] if value is not None else {}
    row |= {column: fields.get(field) for field, column in COLUMN_OF_FIELD.items()}
    if value is not None:
        row["state_batches"] = [
            {
                "first_offset": batch["firstOffset"],
                "last_offset": batch["lastOffset"],
                "delivery_state": batch["deliveryState"],
                "delivery_count": batch["deliveryCount"],
            }
            for batch in fields["stateBatches"]
        ]
    return row


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", kinds_first(KINDS))
def test_decoded_columns_are_what_kafkas_formatter_prints_and_encode_to_the_same_bytes(name):
    printed, row_count = printed_rows(name), 0
    for rows in read_log(name):
        decoded = decode_share_records(rows, log_time_ms=log_times(rows))
        assert decoded.problems.num_rows == 0
        for row in decoded.records.to_pylist():
            want = printed[row["state_partition"], row["log_offset"]]
            assert {column: row[column] for column in want} == want
            row_count += 1
        encoded = encode_share_records(decoded.records)
        assert encoded.column("key").equals(rows.column("key"))
        assert encoded.column("value").equals(rows.column("value"))
    assert row_count == len(printed) > 0
