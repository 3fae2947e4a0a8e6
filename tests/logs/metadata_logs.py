"""Metadata logs for tests: a log directory whose `__cluster_metadata-0` has some records, one batch each."""

import random
from collections.abc import Sequence
from pathlib import Path

import pyarrow.compute as pc

from sharelens.evidence.reading import read_whole
from sharelens.kafka_log.layout import scan_log_directory
from sharelens.kafka_log.metadata_files import metadata_files
from state_model.metadata.schemas import CONFIG, RECORD_TYPES, TOPIC
from state_model.schema import Value
from tests.logs.batch_files import write_batches
from tools.log_writer.writer import encode_batch, record_columns

GROUP_RESOURCE = 32
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
NO_OP = bytes([1, 20, 0, 0])
"""The value of a NoOpRecord, which an idle controller appends every half second."""


def value_of(number: int, tree: dict[str, Value]) -> bytes:
    """The bytes of a record of version 0."""
    return bytes([1, number, 0]) + RECORD_TYPES[number].versions[0].write(tree)


def group_setting(group: str, name: str, value: str | None) -> bytes:
    """A setting of a group; None removes it."""
    tree = {"resource_type": GROUP_RESOURCE, "resource_name": group, "name": name, "value": value}
    return value_of(CONFIG, tree)


def topic(name: str, topic_id: str) -> bytes:
    """A topic with its id."""
    return value_of(TOPIC, {"name": name, "topic_id": topic_id})


def write_metadata(folder: Path, records: Sequence[tuple[int, bytes]]) -> Path:
    """The log directory with the (time, value) records at offsets from 0 on."""
    batches = [
        encode_batch(record_columns([None], [value], [time_ms]), base_offset=offset, leader_epoch=1)
        for offset, (time_ms, value) in enumerate(records)
    ]
    write_batches(folder / "__cluster_metadata-0", batches, topic_id=TOPIC_ID)
    return folder


def random_records(log_directory: Path, count: int) -> list[tuple[int, bytes]]:
    """Records of a recorded metadata log in any order, with some changed bytes: each with a time, and well framed."""
    dice = random.Random(7)
    files = metadata_files([scan_log_directory(str(log_directory))])
    assert files is not None
    values = [
        value
        for chunk in read_whole(files.log, include_uncommitted=True)
        for value in chunk.records.filter(pc.invert(chunk.records.column("is_control"))).column("value").to_pylist()
    ]
    records = []
    for number in range(count):
        value = bytearray(dice.choice(values))
        for _ in range(dice.randrange(3)):
            value[dice.randrange(1, len(value))] = dice.randrange(256)
        records.append((number, bytes(value)))
    return records
