"""Cases of the rules on the records of one state partition: sections 1 to 3 of the specification."""

from typing import Final

from state_model.codec.primitives import UnknownTag
from state_model.share_records import StateBatch, Tombstone
from tests.audit.rule_cases.cases import Table
from tests.audit.script import FIRST, SECOND, Script

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVING, ARCHIVED = range(5)
CREATED, LED, WRITTEN, AGAIN, MORE_RECORDS, COLD, ENDED, SNAPSHOT, RESET, LED_AGAIN, RESUMED, DELETED, RECREATED = (
    range(13)
)
"""Rows of `base`: records of FIRST."""
LARGE = 1 << 62


def base() -> Script:
    """A legal log: two lives of a share partition with each kind of record, and the creation of a second one."""
    return (
        Script()
        .init().read(3)
        .write(0, (0, 4, ACKNOWLEDGED, 1), (5, 9, AVAILABLE, 1))
        .write(5, (5, 9, AVAILABLE, 2))
        .write(5, (10, 14, ACKNOWLEDGED, 1))
        .cold()
        .write(5, (5, 9, ARCHIVED, 3))
        .snapshot_next().write(15, (15, 17, AVAILABLE, 1), (18, 19, ACKNOWLEDGED, 2))
        .init(2, 30).read(4)
        .write(30, (30, 34, ACKNOWLEDGED, 1))
        .delete().init(3)
        .about(SECOND).init().about(FIRST)
    )  # fmt: skip


def led() -> Script:
    """A share partition with a leader, which has written once."""
    return Script().init().read(3).write(10, (10, 14, ACKNOWLEDGED, 1), (15, 19, AVAILABLE, 2))


def updates(count: int) -> Script:
    """So many updates behind a creation; the first is that of a Read."""
    script = Script().init().read(1)
    for offset in range(count - 1):
        script.write(0, (offset, offset, ACKNOWLEDGED, 1))
    return script


def value_cut(row: int, size: int) -> Script:
    """A value cut short."""
    return base().bytes(row, lambda entry: entry._replace(value=(entry.value or b"")[:size]))


def value_behind(row: int, extra_bytes: bytes) -> Script:
    """Bytes behind a value."""
    return base().bytes(row, lambda entry: entry._replace(value=(entry.value or b"") + extra_bytes))


def of_format(row: int, record_type: int, version: int) -> Script:
    """Another record type and another version of the value."""
    key, value = record_type.to_bytes(2, "big"), version.to_bytes(2, "big")
    return base().bytes(
        row, lambda entry: entry._replace(key=key + entry.key[2:], value=value + (entry.value or b"")[2:])
    )


def without_value(row: int) -> Script:
    """A null value under the key of an update."""
    return base().bytes(row, lambda entry: entry._replace(value=None))


TAG = (UnknownTag(tag=9, data=b"new"),)
BYTES: Final[Table[Script]] = {
    "undecodable_record": (
        {
            "value cut short": lambda: value_cut(WRITTEN, 9),
            "empty value": lambda: value_cut(COLD, 0),
            "last byte of a value missing": lambda: base().bytes(MORE_RECORDS, lambda entry: entry._replace(
                value=(entry.value or b"")[:-1])),
            "key cut short": lambda: base().bytes(CREATED, lambda entry: entry._replace(key=entry.key[:7])),
        },
        {
            "group of two-byte letters": lambda: Script().about(FIRST._replace(group_id="grüße")).init().read(1),
            "offsets of nine bytes": lambda: led().write(LARGE, (LARGE, LARGE + 9, ACKNOWLEDGED, 1)),
            "200 state batches": lambda: led().write(10, *((20 + 2 * n, 20 + 2 * n, n % 2 * 2, 1) for n in range(200))),
        },
    ),
    "unknown_format": (
        {
            "value version 1": lambda: of_format(WRITTEN, 1, 1),
            "value version 7": lambda: of_format(COLD, 0, 7),
            "record type 2": lambda: of_format(WRITTEN, 2, 0),
            "record type 15": lambda: of_format(COLD, 15, 0),
        },
        {
            "update without tagged fields": lambda: Script().init().read(1),
            "tombstone": lambda: Script().init().delete(),
            "snapshot without state batches": lambda: Script().init(2, 5),
        },
    ),
    "trailing_bytes": (
        {
            "a zero byte": lambda: value_behind(WRITTEN, b"\0"),
            "two bytes": lambda: value_behind(COLD, b"\1\2"),
            "the value twice": lambda: base().bytes(
                MORE_RECORDS, lambda entry: entry._replace(value=(entry.value or b"") * 2)
            ),
        },
        {
            "count of 1 byte": lambda: led().write(10, count=7),
            "count of 4 bytes": lambda: led().write(10, count=(1 << 31) - 1),
            "no count": lambda: Script().init().read(1).read(2),
        },
    ),
    "unknown_tagged_field": (
        {
            "in an update": lambda: base().edit(WRITTEN, unknown_tags=TAG),
            "in a snapshot": lambda: base().edit(COLD, unknown_tags=TAG),
            "in a state batch": lambda: base().edit(MORE_RECORDS, state_batches=(
                StateBatch(10, 14, ACKNOWLEDGED, 1, unknown_tags=TAG),)),
        },
        {
            "tag 0 alone": led,
            "tag 0 of an update without batches": lambda: led().write(10),
            "tag 0 of a snapshot": lambda: led().cold(),
        },
    ),
    "log_offset_goes_back": (
        {
            "two offsets exchanged": lambda: base().offsets({MORE_RECORDS: COLD, COLD: MORE_RECORDS}),
            "an offset twice": lambda: base().offsets({COLD: MORE_RECORDS}),
            "offsets from 0 again": lambda: base().offsets({RECREATED: 0, RECREATED + 1: 1}),
        },
        {
            "first offset 5": lambda: base().begins(COLD),
            "first offset 2^40": lambda: _moved(base(), 1 << 40),
            "records below the log start": lambda: base().starts(RECREATED),
        },
    ),
    "log_offsets_missing": (
        {
            "an update": lambda: base().drop(WRITTEN, leaves_hole=True),
            "three records": lambda: base().drop(WRITTEN, AGAIN, MORE_RECORDS, leaves_hole=True),
            "the record before the last": lambda: base().drop(RECREATED, leaves_hole=True),
        },
        {
            "none": base,
            "below the log start": lambda: base().drop(WRITTEN, leaves_hole=True).starts(RECREATED),
            "up to the log start": lambda: base().drop(DELETED, leaves_hole=True).starts(RECREATED),
        },
    ),
    "odd_record_batch": (
        {
            "producer id": lambda: base().in_batch(WRITTEN, producer_id=0),
            "transactional": lambda: base().in_batch(WRITTEN, attributes=16, producer_id=5),
            "header": lambda: base().in_batch(COLD, headers=[{"key": "k", "value": b"v"}]),
            "transactional without producer": lambda: base().in_batch(MORE_RECORDS, attributes=16),
        },
        {
            "compressed by gzip": lambda: base().in_batch(WRITTEN, attributes=1),
            "log append time": lambda: base().in_batch(WRITTEN, attributes=8, timestamp_type="LogAppendTime"),
            "delete horizon": lambda: base().in_batch(WRITTEN, attributes=64),
            "leader epoch 9": lambda: base().in_batch(WRITTEN, leader_epoch=9),
        },
    ),
    "update_without_value": (
        {
            "of a Read": lambda: without_value(LED),
            "of a Write": lambda: without_value(WRITTEN),
            "the last update": lambda: without_value(RESUMED),
        },
        {
            "update without batches": lambda: led().write(10),
            "tombstone": lambda: led().delete(),
            "tombstone behind an update of another": lambda: led().about(SECOND).init().read(1).about(FIRST).delete(),
        },
    ),
    "log_starts_inside_history": (
        {f"at row {row}": lambda row=row: base().starts(row) for row in (LED, ENDED, RESUMED)},
        {f"at row {row}": lambda row=row: base().starts(row) for row in (COLD, SNAPSHOT, DELETED, RECREATED)},
    ),
}  # fmt: skip


def _moved(script: Script, first: int) -> Script:
    """The log from another offset on."""
    script.first_offset = script.log_start_offset = first
    return script.renumber()


def orphan() -> Script:
    """A log from offset 5 on with an update of a share partition whose snapshot is gone, and which is deleted."""
    return _moved(Script().about(SECOND).init().about(FIRST).init().read(3).delete().drop(1), 5)


def twice_deleted() -> Script:
    """Two lives that ended."""
    return led().delete().init().delete()


SEQUENCE: Final[Table[Script]] = {
    "life_begins_oddly": (
        {
            "the creation lost": lambda: base().drop(CREATED),
            "snapshot epoch 1": lambda: base().edit(CREATED, snapshot_epoch=1),
            "a leader epoch": lambda: base().edit(CREATED, leader_epoch=1),
            "a state batch": lambda: base().batches(CREATED, (0, 0, ACKNOWLEDGED, 1)),
            "a tombstone": lambda: base().about(FIRST._replace(partition=1)).put(Tombstone()),
        },
        {
            "an update, in a log from offset 5 on": orphan,
            "a cold snapshot, in a log from offset 5 on": lambda: base().begins(COLD),
            "a creation at offset 100": lambda: Script().init(start=100).read(1),
            "with state epoch 7": lambda: Script().init(7).read(1),
        },
    ),
    "life_after_deletion": (
        {
            "snapshot epoch 1": lambda: base().edit(RECREATED, snapshot_epoch=1),
            "the next snapshot epoch": lambda: base().edit(RECREATED, snapshot_epoch=4),
            "a leader epoch": lambda: base().edit(RECREATED, leader_epoch=4),
            "a state batch": lambda: base().batches(RECREATED, (30, 34, ACKNOWLEDGED, 1)),
        },
        {
            "a smaller state epoch": lambda: led().delete().init(0),
            "a start offset": lambda: led().delete().init(1, 10),
            "the state epoch of the life before": lambda: led().delete().init(1).read(1),
        },
    ),
    "snapshot_epoch_skips": (
        {
            "epoch + 1": lambda: base().edit(SNAPSHOT, snapshot_epoch=3),
            "epoch repeats": lambda: base().edit(SNAPSHOT, snapshot_epoch=1),
            "a snapshot lost": lambda: base().drop(COLD),
            "a snapshot twice": lambda: base().twice(RESET),
            "a snapshot forgotten": lambda: led().forget().init().init(),
        },
        {
            "two resets": lambda: led().init().init(),
            "two cold snapshots": lambda: led().cold().about(SECOND).init().cold(),
            "0 behind a tombstone": lambda: led().cold().delete().init(),
            "any first one, in a log from offset 5 on": lambda: base().begins(SNAPSHOT),
        },
    ),
    "update_of_other_snapshot": (
        {
            "epoch - 1": lambda: base().edit(ENDED, snapshot_epoch=0),
            "epoch + 1": lambda: base().edit(WRITTEN, snapshot_epoch=1),
            "epoch + 9": lambda: base().edit(RESUMED, snapshot_epoch=12),
            "the snapshot lost": lambda: base().drop(COLD),
        },
        {
            "behind a cold snapshot": lambda: led().cold().write(10),
            "behind another's snapshot": lambda: led().about(SECOND).init().init().about(FIRST).write(10),
            "behind no snapshot, in a log from offset 5 on": orphan,
            "epoch 0 again in another life": lambda: led().cold().delete().init().read(1),
        },
    ),
    "too_many_updates": (
        {f"{count} updates": lambda count=count: updates(count) for count in (501, 502, 600)},
        {
            "499 updates": lambda: updates(499),
            "500 updates": lambda: updates(500),
            "400 updates, a cold snapshot, 400 updates": lambda: cold_between(400),
        },
    ),
    "deleted_twice": (
        {
            "a tombstone twice": lambda: base().twice(DELETED),
            "a tombstone three times": lambda: base().twice(DELETED, 3),
            "the creation between lost": lambda: twice_deleted().drop(4),
        },
        {
            "a creation between": twice_deleted,
            "of two share partitions": lambda: led().about(SECOND).init().about(FIRST).delete().about(SECOND).delete(),
            "first record, in a log from offset 5 on": lambda: base().begins(DELETED),
        },
    ),
    "update_after_deletion": (
        {
            "the creation lost": lambda: led().delete().init().read(1).drop(4),
            "an update moved behind the tombstone": lambda: base().move(RESUMED, DELETED),
            "the update of a Read moved behind the tombstone": lambda: led().read(4).delete().move(3, 4),
        },
        {
            "a creation between": lambda: led().delete().init().read(1),
            "of another": lambda: led().about(SECOND).init().about(FIRST).delete().about(SECOND).read(1),
            "before the tombstone": lambda: led().read(4).delete(),
        },
    ),
    "needed_snapshot_pruned": (
        {
            "the newest one": lambda: led().starts(1),
            "that of another": lambda: Script().about(SECOND).init().about(FIRST).init().read(1).starts(1),
            "never there": lambda: led().drop(0).starts(1),
        },
        {
            "the newest one at the log start": lambda: led().cold().starts(3),
            "of a deleted one": lambda: led().delete().about(SECOND).init().starts(3),
            "older ones": lambda: led().cold().init().starts(4),
        },
    ),
}  # fmt: skip


def cold_between(count: int) -> Script:
    """So many updates before and behind a cold snapshot."""
    script = updates(count).cold()
    for offset in range(count):
        script.write(0, (1000 + offset, 1000 + offset, ACKNOWLEDGED, 1))
    return script


def raising(**changes: object) -> Script:
    """The record of a Read with a higher leader epoch, which changes something else, too."""
    return led().read(4).edit(3, **changes)


EPOCHS: Final[Table[Script]] = {
    "state_epoch_goes_back": (
        {
            "in a cold snapshot": lambda: base().edit(COLD, state_epoch=0),
            "in a write snapshot": lambda: base().edit(SNAPSHOT, state_epoch=0),
            "in a reset": lambda: base().edit(RESET, state_epoch=0),
            "by 5": lambda: Script().init(7).init(8).edit(1, state_epoch=3),
        },
        {
            "an equal one": lambda: led().init(1),
            "one more": lambda: led().init(2),
            "smaller behind a tombstone": lambda: Script().init(7).delete().init(1),
        },
    ),
    "state_epoch_moves_without_init": (
        {
            "in a cold snapshot": lambda: base().edit(COLD, state_epoch=2),
            "in a write snapshot": lambda: base().edit(SNAPSHOT, state_epoch=2),
            "in a cold snapshot, by 9": lambda: base().edit(COLD, state_epoch=10),
            "in a write snapshot, back": lambda: base().edit(SNAPSHOT, state_epoch=0),
        },
        {
            "by a reset": lambda: led().init(2),
            "by a reset, to a start offset": lambda: led().init(2, 5),
            "by a reset, by 9": lambda: led().init(10).read(1),
        },
    ),
    "leader_epoch_goes_back": (
        {
            "by 1": lambda: base().edit(WRITTEN, leader_epoch=2),
            "to 0": lambda: base().edit(ENDED, leader_epoch=0),
            "behind a reset": lambda: base().edit(RESUMED, leader_epoch=3),
        },
        {
            "an equal one": lambda: led().write(10, (20, 24, AVAILABLE, 1)),
            "to 0 at a reset": lambda: led().init(),
            "one more behind a reset to 0": lambda: led().init().read(1),
            "smaller behind a tombstone": lambda: led().delete().init().read(1),
        },
    ),
    "new_leader_writes_data": (
        {
            "a state batch": lambda: raising(state_batches=(StateBatch(20, 20, ACKNOWLEDGED, 1),)),
            "a delivery complete count": lambda: raising(delivery_complete_count=6),
            "a start offset": lambda: raising(start_offset=11),
            "in a snapshot": lambda: led().snapshot_next().read(4).edit(3, delivery_complete_count=6),
            "a later state, in a snapshot": lambda: (
                led().snapshot_next().read(4).batches(3, (10, 14, ACKNOWLEDGED, 1), (15, 19, ACKNOWLEDGED, 2))
            ),
        },
        {
            "by 1": lambda: led().read(4),
            "by 5": lambda: led().read(8),
            "in a snapshot": lambda: led().snapshot_next().read(4),
            "in the record before the data": lambda: led().read(4).write(10, (20, 20, ACKNOWLEDGED, 1)),
        },
    ),
    "negative_epoch": (
        {
            "leader epoch -2": lambda: base().edit(LED, leader_epoch=-2),
            "snapshot epoch -1": lambda: base().edit(WRITTEN, snapshot_epoch=-1),
            "state epoch -1": lambda: base().edit(CREATED, state_epoch=-1),
        },
        {
            "state epoch 0": lambda: Script().init(0),
            "leader epoch 0": lambda: Script().init().read(0).write(0, (0, 0, ACKNOWLEDGED, 1)),
            "all epochs 0": lambda: Script().init(0).write(0, (0, 0, ACKNOWLEDGED, 1)),
        },
    ),
}  # fmt: skip
