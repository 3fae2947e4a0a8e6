"""What coordinators write on real segments, in process: Kafka's DumpLogSegments reads it without a difference."""

import asyncio
import json
import re

import pytest

from sharelens.broker.broker import Broker, Options
from sharelens.broker.config.settings import Settings
from sharelens.broker.coordinators.share_membership import Heartbeat
from sharelens.broker.storage import record_batch
from state_model import group_records, share_records
from state_model.coordinator import WriteRequest
from state_model.share_records import UNKNOWN_COUNT, SharePartitionKey, StateBatch, Tombstone
from tests.broker.kafka_tools import DUMP_LOG_SEGMENTS, kafka_tool
from tests.broker_parts.broker_memory import ManualTimers
from tests.consumer_group_vectors import CONSUMER_RECORDS

pytestmark = pytest.mark.components

RECORD = re.compile(r"\| offset: (\d+) .* key: (\{.*\}) payload:(.*)")
SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "2",
    "offsets.topic.num.partitions": "2",
    "share.coordinator.snapshot.update.records.per.snapshot": "20",
}


class StoppableTimers(ManualTimers):
    def stop(self):
        self.forget()


@pytest.fixture(params=["0", "1", "2", "3", "4"], ids=["none", "gzip", "snappy", "lz4", "zstd"])
def log_dir(request, tmp_path):
    """A directory with the whole life of two share groups and records of a consumer group, in each codec."""
    timers = StoppableTimers()
    codecs = {
        f"{prefix}.compression.codec": request.param for prefix in ("share.coordinator.state.topic", "offsets.topic")
    }
    broker = Broker(Settings(SETTINGS | codecs), timers, Options(log_dir=tmp_path / "log", listeners=[]))
    broker.share_coordinator.start()
    topics = [broker.catalog.create(name, 3, {}) for name in ("orders", "bills")]
    for group in ("g", "größe"):
        live(broker, timers, group, topics)
    broker.share_offsets.alter("g", {"orders": {0: 7}})
    broker.share_offsets.delete_offsets("g", ["bills"])
    timers.advance(300_000)
    broker.share_offsets.delete_group("größe")
    broker.catalog.delete("orders")
    # The broker has no consumer groups; these are records that Kafka wrote.
    broker.group_log.append("g1", CONSUMER_RECORDS)
    asyncio.run(broker.stop())
    return tmp_path / "log"


def live(broker, timers, group, topics):
    epoch = 0
    for _ in range(3):
        names = tuple(topic.name for topic in topics) if epoch == 0 else None
        beat = Heartbeat(
            group_id=group, member_id="m", member_epoch=epoch, subscribed_topic_names=names, client_host="/127.0.0.1"
        )
        epoch = broker.share_groups.heartbeat(beat).beat.member.epoch
        timers.advance(1_000)
    for step in range(30):
        for topic in topics:
            key = SharePartitionKey(group_id=group, topic_id=topic.topic_id, partition=step % 3)
            batch = StateBatch(first_offset=step, last_offset=step + 4, delivery_state=step % 3 * 2, delivery_count=1)
            write = WriteRequest(
                state_epoch=2,
                leader_epoch=0,
                start_offset=max(0, step - 9),
                delivery_complete_count=step,
                state_batches=(batch,),
            )
            assert not broker.share_coordinator.write(key, write)
    broker.share_groups.leave(group, "m")


def dumped(log_dir, topic, decoder):
    """{(folder, offset): (key, value)} as the tool prints them."""
    files = sorted(log_dir.glob(f"{topic}-*/*.log"))
    done = kafka_tool(
        DUMP_LOG_SEGMENTS,
        decoder,
        "--print-data-log",
        "--files",
        ",".join(str(path) for path in files if path.stat().st_size),
    )
    assert "isvalid: false" not in done.out
    actual, folder = {}, None
    for line in done.lines:
        if line.startswith("Dumping "):
            folder = line.split("/")[-2]
        match = RECORD.match(line)
        if match:
            offset, key, value = match.groups()
            actual[folder, int(offset)] = (
                json.loads(key),
                json.loads(value) if value.strip() not in ("", "<DELETE>", "null") else None,
            )
        else:
            assert not line.startswith("| offset"), line
    return actual


def ours(log_dir, topic, as_json):
    actual = {}
    for path in sorted(log_dir.glob(f"{topic}-*/*.log")):
        data = path.read_bytes()
        for header in record_batch.split(data) if data else ():
            for record in record_batch.parse(data, header):
                actual[path.parent.name, record.offset] = as_json(record.key, record.value)
    return actual


def group_json(key, value):
    printed = group_records.to_formatter_json(group_records.decode_record(key, value))
    return as_tool(printed["key"], "type"), as_tool(printed["value"], "version")


def as_tool(printed, field):
    """The tool prints type and version as text."""
    return printed and {**printed, field: str(printed[field])}


def state_json(key, value):
    record = share_records.decode_record(key, value)
    stored = record.value
    number = int.from_bytes(key[:2], "big")
    place = {"groupId": record.key.group_id, "topicId": record.key.topic_id, "partition": record.key.partition}
    printed_key = {"type": str(number), "data": place}
    if isinstance(stored, Tombstone):
        return printed_key, None
    layout = (share_records.SNAPSHOT_VALUE, share_records.UPDATE_VALUE)[number]
    data = {}
    for field in layout.fields:
        value = getattr(stored, field.name)
        name = group_records.camel_case(field.name.removesuffix("_ms"))
        if field.name == "state_batches":
            data[name] = [
                {
                    group_records.camel_case(each.name): getattr(batch, each.name)
                    for each in share_records.STATE_BATCH.fields
                }
                for batch in value
            ]
        elif field.name != "delivery_complete_count" or value != UNKNOWN_COUNT:
            data[name] = value
    return printed_key, {"version": "0", "data": data}


@pytest.mark.parametrize(
    ("topic", "decoder", "as_json"),
    [
        ("__share_group_state", "--share-group-state-decoder", state_json),
        ("__consumer_offsets", "--offsets-decoder", group_json),
    ],
)
def test_kafkas_own_tool_reads_the_same_records(log_dir, topic, decoder, as_json):
    expected = ours(log_dir, topic, as_json)
    assert len(expected) > 30
    assert dumped(log_dir, topic, decoder) == expected
