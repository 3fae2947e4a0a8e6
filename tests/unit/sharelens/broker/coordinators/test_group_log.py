import logging

import pytest

from sharelens.broker.coordinators.group_log import GroupLog
from sharelens.broker.errors import StorageError
from state_model.group_records import GroupRecord, encode_record
from state_model.group_schemas import RECORD_TYPES, GroupKind
from state_model.java import partition_for_group
from state_model.topics import OFFSETS_TOPIC
from tests.broker_parts.broker_memory import DISK_FULL, ManualTimers, MemoryCluster


@pytest.fixture
def cluster():
    return MemoryCluster(ManualTimers())


def share_group(group_id, epoch):
    """A ShareGroupMetadata record; a tombstone for epoch None."""
    value = None if epoch is None else {"epoch": epoch, "metadata_hash": 0}
    return encode_record(
        GroupRecord(
            record_type=11,
            name=RECORD_TYPES[11].name,
            key={"group_id": group_id},
            version=None if value is None else 0,
            value=value,
        )
    )


def classic_group(group_id):
    return b"\0\2" + len(group_id).to_bytes(2, "big") + group_id.encode(), b"\0\3rest"


def loaded(cluster, *kinds):
    records = []
    log = GroupLog(cluster, cluster)
    log.load(dict.fromkeys(kinds, records.append))
    return log, [(record.record_type, record.group_id) for record in records]


def test_the_records_of_one_operation_are_one_batch_in_the_partition_of_the_group(cluster):
    GroupLog(cluster, cluster).append("g1", [share_group("g1", 1), share_group("g1", 2)])
    log = cluster.get(OFFSETS_TOPIC, partition_for_group("g1", 50))
    assert [len(batch) for batch in log.batches] == [2]
    assert [len(batch) for batch in cluster.batches(OFFSETS_TOPIC)] == [2]


def test_no_records_are_no_batch(cluster):
    GroupLog(cluster, cluster).append("g1", [])
    assert cluster.batches(OFFSETS_TOPIC) == []


def test_a_refused_append_raises(cluster):
    cluster.refuse_appends(OFFSETS_TOPIC, DISK_FULL)
    with pytest.raises(StorageError):
        GroupLog(cluster, cluster).append("g1", [share_group("g1", 1)])


def test_a_load_without_a_log_finds_nothing_and_makes_nothing(cluster):
    assert loaded(cluster, GroupKind.SHARE)[1] == []
    assert cluster.by_name(OFFSETS_TOPIC) is None


def test_each_record_goes_to_the_owner_of_its_type_and_claims_the_group(cluster):
    log = GroupLog(cluster, cluster)
    log.append("s", [share_group("s", 1)])
    log.append("c", [classic_group("c")])
    assert loaded(cluster, GroupKind.SHARE)[1] == [(11, "s")]
    again, loaded_records = loaded(cluster, GroupKind.SHARE, GroupKind.CLASSIC)
    assert sorted(loaded_records) == [(2, "c"), (11, "s")]
    assert (again.ids.kind("s"), again.ids.kind("c")) == (GroupKind.SHARE, GroupKind.CLASSIC)


def test_what_cannot_be_meant_is_skipped_with_a_warning(cluster, caplog):
    log = GroupLog(cluster, cluster)
    log.append("s", [share_group("s", 1), classic_group("s"), (b"\0\13\0\1s", b"\0\0\0"), (b"\0\x09", b"")])
    with caplog.at_level(logging.WARNING):
        loaded_records = loaded(cluster, GroupKind.SHARE, GroupKind.CLASSIC)[1]
    assert loaded_records == [(11, "s")]
    assert [text.split()[0] for text in caplog.messages] == ["skipped", "skipped"]


def test_an_id_belongs_to_one_kind_until_it_is_released(cluster):
    ids = GroupLog(cluster, cluster).ids
    assert ids.claim("g", GroupKind.SHARE)
    assert ids.claim("g", GroupKind.SHARE)
    assert not ids.claim("g", GroupKind.CLASSIC)
    ids.release("g", GroupKind.CLASSIC)
    assert ids.kind("g") is GroupKind.SHARE
    ids.release("g", GroupKind.SHARE)
    assert ids.kind("g") is None
