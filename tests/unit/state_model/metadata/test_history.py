"""The metadata over time: transactions, gaps, snapshots, counted epochs."""

from collections.abc import Mapping

from state_model.metadata import schemas
from state_model.metadata.events import Event, Gap, Snapshot
from state_model.metadata.history import Validity, timeline
from state_model.metadata.records import MetadataRecord
from state_model.schema import Value

TOPIC_ID = "ot2ELlJ2QmSYXs6by5iwOw"
PARTITION = {
    "partition_id": 0,
    "topic_id": TOPIC_ID,
    "replicas": (1, 2),
    "isr": (1, 2),
    "removing_replicas": (),
    "adding_replicas": (),
    "leader": 1,
    "leader_recovery_state": 0,
    "leader_epoch": 4,
    "partition_epoch": 9,
}
NO_CHANGE = {
    "partition_id": 0,
    "topic_id": TOPIC_ID,
    "isr": None,
    "leader": schemas.UNCHANGED_LEADER,
    "replicas": None,
    "removing_replicas": None,
    "adding_replicas": None,
    "leader_recovery_state": schemas.UNCHANGED_RECOVERY,
}


def record(offset: int, number: int, value: Mapping[str, Value] | None = None) -> MetadataRecord:
    return MetadataRecord(
        offset=offset,
        timestamp_ms=offset * 10,
        is_control=False,
        record_type=number,
        name="",
        version=0,
        value=value or {},
        length=0,
        digest="",
    )


def limit(offset: int, value: str | None) -> MetadataRecord:
    setting = {"resource_type": 32, "resource_name": "g", "name": "share.delivery.count.limit", "hidden": None}
    return record(offset, schemas.CONFIG, {**setting, "value": value})


def topic(offset: int, name: str = "orders") -> MetadataRecord:
    return record(offset, schemas.TOPIC, {"name": name, "topic_id": TOPIC_ID})


def rows(events: list[Event], kind: str) -> list[Validity]:
    return [row for row in timeline(events).validities if row.key[0] == kind]


def limits(events: list[Event]) -> list[tuple[object, int, int | None]]:
    return [
        (row.content["value"], row.begin.offset, None if row.end is None else row.end.offset)
        for row in rows(events, "config")
    ]


def test_setting_is_in_force_until_the_next_value_or_its_removal() -> None:
    events: list[Event] = [limit(1, "3"), limit(4, "7"), limit(6, None), limit(9, "")]
    assert limits(events) == [("3", 1, 4), ("7", 4, 6), ("", 9, None)]


def test_records_of_a_transaction_count_from_its_end_and_of_an_aborted_one_never() -> None:
    begin, end, abort = schemas.BEGIN_TRANSACTION, schemas.END_TRANSACTION, schemas.ABORT_TRANSACTION
    done: list[Event] = [record(1, begin), limit(2, "3"), limit(3, "4"), record(5, end)]
    assert limits(done) == [("4", 5, None)]
    aborted: list[Event] = [limit(0, "2"), record(1, begin), limit(2, "3"), record(3, abort)]
    assert limits(aborted) == [("2", 0, None)]
    assert limits(done[:3]) == []


def test_transaction_that_a_gap_cuts_counts_and_so_do_the_records_behind_it() -> None:
    events: list[Event] = [
        record(1, schemas.BEGIN_TRANSACTION),
        limit(2, "3"),
        Gap(first_offset=3, last_offset=4),
        limit(5, "4"),
        record(6, schemas.END_TRANSACTION),
    ]
    assert limits(events) == [("3", 2, 5), ("4", 5, None)]
    assert [row.is_certain for row in rows(events, "config")] == [False, True]


def test_leader_epoch_grows_with_each_leader_and_partition_epoch_with_each_change() -> None:
    events: list[Event] = [
        topic(0),
        record(1, schemas.PARTITION, PARTITION),
        record(2, schemas.PARTITION_CHANGE, {**NO_CHANGE, "isr": (1,)}),
        record(3, schemas.PARTITION_CHANGE, {**NO_CHANGE, "leader": 1}),
        record(4, schemas.PARTITION_CHANGE, {**NO_CHANGE, "leader": -1, "isr": ()}),
    ]
    epochs = [(row.content["leader_epoch"], row.content["partition_epoch"]) for row in rows(events, "partition")]
    assert epochs == [(4, 9), (4, 10), (5, 11), (6, 12)]
    assert rows(events, "partition")[-1].content["isr"] == ()


def test_removed_topic_takes_its_partitions_and_settings_along() -> None:
    setting = {"resource_type": 2, "resource_name": "orders", "name": "retention.ms", "value": "1", "hidden": None}
    removal = record(9, schemas.REMOVE_TOPIC, {"topic_id": TOPIC_ID})
    events: list[Event] = [
        topic(0),
        record(1, schemas.PARTITION, PARTITION),
        record(2, schemas.CONFIG, setting),
        limit(3, "3"),
        removal,
    ]
    ended = {row.key[0] for row in timeline(events).validities if row.end is not None and row.end.offset == 9}
    assert ended >= {"topic", "partition", "config"}
    assert limits(events)[0] == ("3", 3, None)


def test_after_a_gap_values_are_uncertain_until_a_snapshot_covers_it() -> None:
    gap = Gap(first_offset=4, last_offset=6)
    (row,) = rows([limit(1, "3"), gap], "config")
    assert not row.is_certain
    snapshot = Snapshot(end_offset=9, timestamp_ms=80, records=(limit(0, "5"),))
    before, after = rows([limit(1, "3"), gap, snapshot], "config")
    assert (before.end is not None, before.end and before.end.offset, before.is_certain) == (True, 8, False)
    assert (after.content["value"], after.begin.offset, after.began_earlier, after.is_certain) == ("5", 8, True, True)


def test_snapshot_of_the_same_state_changes_nothing() -> None:
    snapshot = Snapshot(end_offset=2, timestamp_ms=10, records=(limit(0, "3"), topic(1)))
    events: list[Event] = [topic(0), limit(1, "3")]
    assert timeline([*events, snapshot]).validities == timeline(events).validities


def test_change_of_an_unknown_partition_or_broker_is_passed_over() -> None:
    change = {"broker_id": 1, "broker_epoch": 5, "fenced": 1}
    removal = record(2, schemas.REMOVE_TOPIC, {"topic_id": TOPIC_ID})
    events: list[Event] = [
        record(0, schemas.PARTITION_CHANGE, NO_CHANGE),
        record(1, schemas.BROKER_CHANGE, change),
        removal,
        record(3, schemas.CLEAR_ELR, {"topic_name": ""}),
    ]
    assert timeline(events).validities == []
