"""The reference decoders on every record of real brokers: they say what Kafka's formatters print, and writing a record
back gives the same bytes."""

import gzip
import json

import pytest

from state_model import group_records, share_records
from state_model.consumer import records as consumer_records
from state_model.group_forms import name_of
from state_model.group_schemas import RECORD_TYPES, GroupKind
from state_model.share_records import ShareRecord, Tombstone
from state_model.streams import records as streams_records
from tests.datasets import CONSUMER_SETS, KINDS, STREAMS_SETS, dataset, kinds_first, raw_records, scenarios

STATE_TOPIC, OFFSETS_TOPIC = "__share_group_state", "__consumer_offsets"
FORMATTER_NAMES = {"create_timestamp_ms": "createTimestamp", "write_timestamp_ms": "writeTimestamp"}
SHARE_TYPES = {share_records.ShareSnapshot: 0, share_records.ShareUpdate: 1, Tombstone: 0}


def formatted(name, stem):
    """What Kafka's formatter printed, by partition and offset."""
    plain = dataset(name) / f"{stem}.jsonl"
    packed = plain.with_name(f"{stem}.jsonl.gz")
    text = gzip.decompress(packed.read_bytes()) if packed.is_file() else plain.read_bytes()
    records = [json.loads(line) for line in text.splitlines()]
    return {(record["partition"], record["offset"]): record for record in records}


def in_words_of_the_formatter(record):
    """`{key, value}` as the formatter of the state topic prints it."""
    key = {
        "groupId": record.key.group_id,
        "topicId": record.key.topic_id,
        "partition": record.key.partition,
    }
    printed = {"key": {"type": SHARE_TYPES[type(record.value)], "data": key}, "value": None}
    if isinstance(record.value, Tombstone):
        return printed
    layout = share_records.SNAPSHOT_VALUE if printed["key"]["type"] == 0 else share_records.UPDATE_VALUE
    data = {
        FORMATTER_NAMES.get(field.name, group_records.camel_case(field.name)): getattr(record.value, field.name)
        for field in layout.fields
    }
    data["stateBatches"] = [
        {group_records.camel_case(field.name): getattr(batch, field.name) for field in share_records.STATE_BATCH.fields}
        for batch in record.value.state_batches
    ]
    if data["deliveryCompleteCount"] == -1:
        del data["deliveryCompleteCount"]
    return printed | {"value": {"version": 0, "data": data}}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", kinds_first(KINDS))
def test_share_records_are_what_kafkas_formatter_prints(name):
    raw, printed = raw_records(name, STATE_TOPIC), formatted(name, "formatter")
    assert raw.keys() == printed.keys()
    assert len(raw) > 0
    for place, (key, value) in raw.items():
        record = share_records.decode_record(key, value)
        assert isinstance(record, ShareRecord)
        assert in_words_of_the_formatter(record) == {part: printed[place][part] for part in ("key", "value")}
        assert (share_records.encode_record(record), record.trailing_bytes) == ((key, value), 0)


@pytest.mark.parametrize("name", [*scenarios(), *STREAMS_SETS, *CONSUMER_SETS])
def test_group_records_are_what_kafkas_classes_print(name):
    raw = raw_records(name, OFFSETS_TOPIC)
    told_records = formatted(name, "formatter-offsets").items()
    printed = {place: record for place, record in told_records if "control" not in record}
    assert raw.keys() == printed.keys()
    decoded = 0
    for place, (key, value) in raw.items():
        record = group_records.decode_record(key, value)
        ours = group_records.to_formatter_json(record)
        expected = {part: printed[place][part] for part in ("key", "value")}
        if record.value is None and not record.is_tombstone:  # classic groups and committed offsets: version and key
            assert RECORD_TYPES[record.record_type].group_kind is GroupKind.CLASSIC
            ours["value"]["data"] = expected["value"]["data"]
        else:
            decoded += 1
        assert ours == expected
        assert group_records.encode_record(record) == (key, value)
        if record.record_type in streams_records.STREAMS_TYPES:
            of_value = streams_records.value_of(record)
            again = streams_records.record_of(record.record_type, record.group_id, of_value, record.member_id)
            assert group_records.encode_record(again) == (key, value)
        if record.record_type in consumer_records.CONSUMER_TYPES:
            of_value, of_name = consumer_records.value_of(record), name_of(record)
            again = consumer_records.record_of(record.record_type, record.group_id, of_value, of_name or None)
            assert consumer_records.value_of(again) == of_value  # Kafka's lists are in the order of its hash tables
            assert name_of(again) == of_name
    assert decoded > 0
