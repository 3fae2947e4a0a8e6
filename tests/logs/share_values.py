"""Hypothesis strategies for share-group records, and what decoding them yields as rows of SHARE_RECORD."""

from hypothesis import strategies as st

from state_model.codec.primitives import UnknownTag
from state_model.share_records import SharePartitionKey, ShareRecord, ShareSnapshot, ShareUpdate, StateBatch, Tombstone
from state_model.uuids import uuid_text

INT16 = st.integers(-(1 << 15), (1 << 15) - 1)
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


def tags(first):
    """Unknown tagged fields in ascending order, numbers from `first` on."""
    numbers = st.lists(st.integers(first, (1 << 32) - 1), max_size=2, unique=True).map(sorted)
    return numbers.flatmap(
        lambda chosen: st.tuples(
            *(st.builds(UnknownTag, tag=st.just(number), data=st.binary(max_size=200)) for number in chosen)
        )
    )


BATCHES = st.lists(
    st.builds(
        StateBatch,
        first_offset=INT64,
        last_offset=INT64,
        delivery_state=st.integers(-128, 127),
        delivery_count=INT16,
        unknown_tags=tags(0),
    ),
    max_size=5,
).map(tuple)
VALUES = st.one_of(
    st.just(Tombstone()),
    st.builds(
        ShareSnapshot,
        snapshot_epoch=INT32,
        state_epoch=INT32,
        leader_epoch=INT32,
        start_offset=INT64,
        create_timestamp_ms=INT64,
        write_timestamp_ms=INT64,
        state_batches=BATCHES,
        delivery_complete_count=INT32,
        unknown_tags=tags(1),
    ),
    st.builds(
        ShareUpdate,
        snapshot_epoch=INT32,
        leader_epoch=INT32,
        start_offset=INT64,
        state_batches=BATCHES,
        delivery_complete_count=INT32,
        unknown_tags=tags(1),
    ),
)
KEYS = st.builds(
    SharePartitionKey,
    group_id=st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    topic_id=st.binary(min_size=16, max_size=16).map(uuid_text),
    partition=INT32,
)
RECORDS = st.builds(ShareRecord, key=KEYS, value=VALUES, trailing_bytes=st.just(0))

NAMES = {ShareSnapshot: "snapshot", ShareUpdate: "update", Tombstone: "tombstone"}
SCALARS = (
    "snapshot_epoch",
    "state_epoch",
    "leader_epoch",
    "start_offset",
    "delivery_complete_count",
    "create_timestamp_ms",
    "write_timestamp_ms",
)


def described(record):
    """The columns of SHARE_RECORD that key and value of a decoded record determine, apart from `record_bytes`."""
    value = record.value
    there = not isinstance(value, Tombstone)
    row = {
        "record_type": NAMES[type(value)],
        "group_id": record.key.group_id,
        "topic_id": record.key.topic_id,
        "partition": record.key.partition,
        "value_version": 0 if there else None,
        "state_batches": None,
        "unknown_tags": [],
        "trailing_bytes": record.trailing_bytes,
    }
    row |= {name: getattr(value, name, None) for name in SCALARS}
    if there:
        row["state_batches"] = [_batch(batch) for batch in value.state_batches]
        row["unknown_tags"] = [
            _tag(index, tag) for index, batch in enumerate(value.state_batches) for tag in batch.unknown_tags
        ] + [_tag(None, tag) for tag in value.unknown_tags]
    return row


def _batch(batch):
    return {name: getattr(batch, name) for name in ("first_offset", "last_offset", "delivery_state", "delivery_count")}


def _tag(index, tag):
    return {"batch_index": index, "tag": tag.tag, "data": tag.data}
