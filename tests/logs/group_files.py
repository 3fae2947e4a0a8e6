"""Partitions of `__consumer_offsets` with records of share groups, for tests."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sharelens.kafka_log import record_batch as rb
from state_model.group_records import GroupRecord, encode_record
from state_model.group_schemas import RECORD_TYPES
from state_model.topics import OFFSETS_TOPIC
from tests.logs.state_logs import ORDERS_ID
from tools.log_writer.encoding import Encoded
from tools.log_writer.writer import encode_log, record_columns, write_partition

OFFSETS_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAADQ"


class GroupEntry(NamedTuple):
    """A record of a group; `value` None: a tombstone."""

    time_ms: int
    record_type: int
    value: Mapping[str, Any] | None
    group_id: str = "g"
    member_id: str | None = None
    """Of type 16 the regular expression."""

    def encoded(self) -> tuple[bytes, bytes | None]:
        """Key and value as Kafka writes them."""
        kind = RECORD_TYPES[self.record_type]
        key: dict[str, Any] = {kind.key.fields[0].name: self.group_id}
        if self.member_id is not None:
            key[kind.key.fields[1].name] = self.member_id
        version = None if self.value is None else 0
        record = GroupRecord(
            record_type=self.record_type, name=kind.name, key=key, version=version,
            value=None if self.value is None else dict(self.value),
        )  # fmt: skip
        return encode_record(record)


def epoch(number: int) -> dict[str, Any]:
    """The value of a group epoch."""
    return {"epoch": number, "metadata_hash": 1}


def lists(initialized: Sequence[int] = (), initializing: Sequence[int] = ()) -> dict[str, Any]:
    """The value of the lists of partitions of `orders`."""

    def of(partitions: Sequence[int]) -> tuple[dict[str, Any], ...]:
        entry = {"topic_id": ORDERS_ID, "topic_name": "orders", "partitions": tuple(partitions)}
        return (entry,) if partitions else ()

    return {"initializing_topics": of(initializing), "initialized_topics": of(initialized), "deleting_topics": ()}


def write_group_partition(
    directory: Path,
    entries: Sequence[GroupEntry],
    *,
    number: int = 0,
    topic_id: str = OFFSETS_TOPIC_ID,
    lacking: Sequence[int] = (),
) -> Path:
    """The folder of one partition with the records at offsets from 0 on, one a batch, but for the `lacking` ones."""
    keys, values = zip(*(entry.encoded() for entry in entries), strict=True)
    log = encode_log(
        record_columns(keys, values, [entry.time_ms for entry in entries]), records_per_batch=1, base_offset=0
    )
    headers = np.delete(log.headers, list(lacking), axis=0)
    sizes = headers[:, rb.SIZE]
    batches = [log.data[start : start + size] for start, size in zip(headers[:, rb.POSITION], sizes, strict=True)]
    headers[:, rb.POSITION] = np.cumsum(sizes) - sizes
    remaining = Encoded(data=np.concatenate(batches), headers=headers)
    return write_partition(directory, OFFSETS_TOPIC, number, remaining, topic_id=topic_id)
