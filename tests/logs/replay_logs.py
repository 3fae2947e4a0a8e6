"""Logs of one state partition for replay tests: hypothesis strategies, a readable notation, rows of SHARE_RECORD."""

from dataclasses import dataclass

import pyarrow as pa
from hypothesis import strategies as st

from state_model.columnar import schemas
from state_model.share_records import (
    RecordType,
    SharePartitionKey,
    ShareRecord,
    ShareSnapshot,
    ShareUpdate,
    StateBatch,
    Tombstone,
    UnknownTypeRecord,
    encode_key,
)
from state_model.uuids import ZERO_UUID
from tests.logs import share_values


@dataclass(frozen=True, slots=True)
class OtherType:
    """A record of type 7 for a share partition."""

    def record(self, key):
        return UnknownTypeRecord(record_type=7, key=b"\0\7" + encode_key(key, RecordType.SHARE_UPDATE)[2:], value=b"x")


KEYS = [SharePartitionKey(group_id="g", topic_id=ZERO_UUID, partition=partition) for partition in range(3)]
TYPE_NAMES = {ShareSnapshot: "snapshot", ShareUpdate: "update", Tombstone: "tombstone", OtherType: "UNKNOWN(7)"}
SCALARS = (
    "snapshot_epoch",
    "state_epoch",
    "leader_epoch",
    "start_offset",
    "delivery_complete_count",
    "create_timestamp_ms",
    "write_timestamp_ms",
)
BATCH = ("first_offset", "last_offset", "delivery_state", "delivery_count")
STATES = {"available": 0, "acknowledged": 2, "archiving": 3, "archived": 4, "unknown(5)": 5, "unknown(-3)": -3}

SMALL = st.integers(-1, 3)
BATCHES = st.lists(
    st.builds(
        lambda first, size, state, count: StateBatch(
            first_offset=first, last_offset=first + size, delivery_state=state, delivery_count=count
        ),
        st.integers(0, 20),
        st.integers(0, 8),
        st.sampled_from([0, 2, 4] * 3 + [5, -3]),
        st.integers(0, 2),
    ),
    max_size=3,
).map(tuple)
SNAPSHOTS = st.builds(
    ShareSnapshot,
    snapshot_epoch=SMALL,
    state_epoch=SMALL,
    leader_epoch=SMALL,
    start_offset=st.integers(-1, 15),
    create_timestamp_ms=st.integers(0, 2),
    write_timestamp_ms=st.integers(0, 2),
    state_batches=BATCHES,
    delivery_complete_count=SMALL,
)
UPDATES = st.builds(
    ShareUpdate,
    snapshot_epoch=SMALL,
    leader_epoch=SMALL,
    start_offset=st.integers(-1, 15),
    state_batches=BATCHES,
    delivery_complete_count=SMALL,
)
VALUES = st.one_of(UPDATES, UPDATES, UPDATES, SNAPSHOTS, st.just(Tombstone()))
ANY_TYPE = st.one_of(VALUES, VALUES, VALUES, st.just(OtherType()))
LOGS = st.lists(st.tuples(st.sampled_from(KEYS), VALUES, st.booleans()), min_size=1, max_size=12)
"""(share partition, value, uncommitted) in log order; every boundary case comes up within a few records."""
LATER_LOGS = st.lists(st.tuples(st.sampled_from(KEYS), ANY_TYPE, st.booleans()), min_size=1, max_size=12)
"""The same with records of a type that a later Kafka may have."""
HOSTILE_LOGS = st.lists(
    st.tuples(st.sampled_from(KEYS[:2]), share_values.VALUES | VALUES, st.booleans()), min_size=1, max_size=6
)
"""The same with any number that fits the bytes: negative counts, ranges back to front, 2^63 - 1 offsets."""


def record_of(key, value):
    """The record of the reference."""
    return value.record(key) if isinstance(value, OtherType) else ShareRecord(key=key, value=value)


def table(log, first_offset=0):
    """SHARE_RECORD rows of (share partition, value, uncommitted), log offsets from `first_offset` on, 10 ms apart."""
    rows = [_row(first_offset + number, *entry) for number, entry in enumerate(log)]
    return pa.Table.from_pylist(rows, schema=schemas.SHARE_RECORD)


def _row(log_offset, key, value, uncommitted):
    batches = getattr(value, "state_batches", None)
    return {
        "log_topic_id": ZERO_UUID,
        "state_partition": 0,
        "log_offset": log_offset,
        "timestamp_ms": 10 * log_offset,
        "log_time_ms": 10 * log_offset,
        "record_type": TYPE_NAMES[type(value)],
        "group_id": key.group_id,
        "topic_id": key.topic_id,
        "partition": key.partition,
        "value_version": None if batches is None else 0,
        **{name: getattr(value, name, None) for name in SCALARS},
        "state_batches": None if batches is None else [{n: getattr(batch, n) for n in BATCH} for batch in batches],
        "unknown_tags": [],
        "trailing_bytes": 0,
        "record_bytes": 0,
        "log_leader_epoch": 0,
        "below_log_start": False,
        "uncommitted": uncommitted,
    }


def parsed(text):
    """A log from lines such as `0 snapshot start=5 epoch=2 0-9 available 1, 10-12 archived 2`; `#` begins a remark.

    The number in front names the share partition, `epoch` is the state epoch.
    """
    return [_entry(line.split("#")[0].split()) for line in text.strip().splitlines()]


def _entry(words):
    partition, kind, *rest = words
    options = dict(word.split("=") for word in rest if "=" in word)
    batches = tuple(map(_batch, " ".join(word for word in rest if "=" not in word).split(",")))
    fields = {
        "leader_epoch": int(options.get("leader", -1 if kind == "update" else 1)),
        "start_offset": int(options.get("start", -1)),
        "state_batches": tuple(batch for batch in batches if batch is not None),
        "delivery_complete_count": 0,
        "snapshot_epoch": int(options.get("snapshot", 1)),
    }
    match kind:
        case "tombstone":
            value = Tombstone()
        case "other":
            value = OtherType()
        case "update":
            value = ShareUpdate(**fields)
        case "snapshot":
            epoch = int(options.get("epoch", 1))
            value = ShareSnapshot(**fields, state_epoch=epoch, create_timestamp_ms=0, write_timestamp_ms=0)
    return KEYS[int(partition)], value, "uncommitted=1" in words


def _batch(text):
    if not text.strip():
        return None
    offsets, state, count = text.split()
    first, _, last = offsets.partition("-")
    return StateBatch(
        first_offset=int(first),
        last_offset=int(last or first),
        delivery_state=STATES[state],
        delivery_count=int(count),
    )


def delivery_lines(rows):
    """DELIVERY_HISTORY rows in the notation of the tests: `0 0-9 available 1 | 3 > 7 changed | life 3`."""
    return [
        f"{row['partition']} {row['first_offset']}-{row['last_offset']} {row['delivery_state_name'].lower()} "
        f"{row['delivery_count']} | {row['valid_from_log_offset']} > "
        + (f"{row['valid_to_log_offset']} {row['end_reason']}" if row["end_reason"] else "open")
        + f" | life {row['life_log_offset']}"
        for row in rows.to_pylist()
    ]
