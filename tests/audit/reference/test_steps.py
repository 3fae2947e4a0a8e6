"""Preparation of a log: the kinds of snapshots (P3), orphans (P2), losses, delivery states of a later Kafka."""

import pytest

from state_model.share_records import (
    RecordType,
    ShareRecord,
    ShareSnapshot,
    ShareUpdate,
    StateBatch,
    UnknownVersionValue,
)
from tests.audit.reference.steps import KeyState, SnapshotKind, Standing, snapshot_kind, steps
from tests.logs.replay_logs import KEYS

LIVE = KeyState(Standing.LIVE, state_epoch=2, leader_epoch=3, start_offset=10, delivery_complete_count=0)


def snapshot(**fields):
    times = {"create_timestamp_ms": 5, "write_timestamp_ms": 5}
    values = {"snapshot_epoch": 1, "state_epoch": 2, "leader_epoch": 3, "start_offset": 10, "state_batches": ()}
    return ShareSnapshot(**{**values, **times, **fields})


def update(state=2):
    return ShareUpdate(snapshot_epoch=1, leader_epoch=3, start_offset=10, state_batches=(StateBatch(10, 10, state, 1),))


@pytest.mark.parametrize(
    ("before", "fields", "kind"),
    [
        (LIVE, {"write_timestamp_ms": 6}, SnapshotKind.COLD),
        (KeyState(Standing.NEW), {}, SnapshotKind.INIT),
        (KeyState(Standing.DELETED), {}, SnapshotKind.INIT),
        (LIVE, {"state_epoch": 3}, SnapshotKind.INIT),
        (LIVE, {"leader_epoch": 2}, SnapshotKind.INIT),
        (LIVE, {"start_offset": -1}, SnapshotKind.INIT),
        (LIVE, {}, SnapshotKind.WRITE),
        (LIVE._replace(leader_epoch=0), {"leader_epoch": 0}, SnapshotKind.EITHER),
        (LIVE._replace(leader_epoch=0), {"leader_epoch": 0, "delivery_complete_count": 4}, SnapshotKind.WRITE),
        (LIVE._replace(leader_epoch=0), {"leader_epoch": 0, "delivery_complete_count": 0}, SnapshotKind.EITHER),
        (KeyState(Standing.ORPHAN), {"state_epoch": 9}, SnapshotKind.WRITE),
        (KeyState(Standing.UNKNOWN), {"leader_epoch": 0, "start_offset": -1}, SnapshotKind.EITHER),
    ],
)
def test_the_kind_of_a_snapshot(before, fields, kind):
    assert snapshot_kind(before, snapshot(**fields)) is kind


def standings(values, **options):
    """The standing before each record and after the last one."""
    entries = [(offset, 0, ShareRecord(key=KEYS[0], value=value)) for offset, value in enumerate(values)]
    walked = list(steps(entries, **options))
    return [step.before.standing.name for step in walked] + [walked[-1].after.standing.name]


def test_updates_without_a_snapshot_are_orphans():
    assert standings([update(), update(), snapshot()], is_from_zero=False) == ["UNKNOWN", "ORPHAN", "ORPHAN", "LIVE"]


def test_a_loss_of_any_share_partition_or_of_this_one_makes_a_state_unknown():
    for key in (None, KEYS[0]):
        assert standings([snapshot(), update(), snapshot()], losses=[(0, key)]) == ["NEW", "UNKNOWN", "ORPHAN", "LIVE"]
    assert standings([snapshot(), update()], losses=[(0, KEYS[1])]) == ["NEW", "LIVE", "LIVE"]


def test_an_unknown_value_version_makes_a_state_unknown():
    unknown = UnknownVersionValue(record_type=RecordType.SHARE_UPDATE, version=3, data=b"")
    assert standings([snapshot(), unknown, snapshot()]) == ["NEW", "UNKNOWN", "LIVE"]


def test_a_delivery_state_of_a_later_kafka_makes_a_state_unknown_up_to_a_snapshot_without_it():
    assert standings([snapshot(), update(state=5), snapshot(), update()]) == ["NEW", "LIVE", "UNKNOWN", "LIVE", "LIVE"]
