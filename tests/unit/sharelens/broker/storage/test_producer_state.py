"""Producers of a partition: sequences, fencing, transactions, and all of it again after a restart or a crash."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.broker.errors import (
    CoordinatorFencedError,
    InvalidTransactionStateError,
    OutOfOrderSequenceError,
    ProducerFencedError,
)
from sharelens.broker.ports import AbortedTransaction
from sharelens.broker.storage import producer_state, record_batch
from sharelens.broker.storage.partition_log import ProducerIdentity
from sharelens.broker.storage.producer_state import ProducerStates
from tests.logs.broker_logs import Clock, open_log, produced, values

LAST_SEQUENCE = (1 << 31) - 1


def aborted(producer_id: int, first: int, last: int) -> AbortedTransaction:
    return AbortedTransaction(producer_id=producer_id, first_offset=first, last_offset=last)


def test_the_last_five_batches_are_answered_again_with_their_place(tmp_path):
    log = open_log(tmp_path)
    for number in range(7):
        log.append_client(produced("a", "b", producer_id=1, sequence=2 * number))
    for number in range(2, 7):
        again = log.append_client(produced("a", "b", producer_id=1, sequence=2 * number))
        assert (again.base_offset, again.last_offset, again.is_duplicate) == (2 * number, 2 * number + 1, True)
    with pytest.raises(OutOfOrderSequenceError, match="sent sequence 2 after 13"):
        log.append_client(produced("a", "b", producer_id=1, sequence=2))
    assert log.high_watermark == 14


def test_a_gap_in_the_sequence_is_refused(tmp_path):
    log = open_log(tmp_path)
    log.append_client(produced("a", producer_id=1, sequence=0))
    with pytest.raises(OutOfOrderSequenceError):
        log.append_client(produced("c", producer_id=1, sequence=2))
    assert log.append_client(produced("b", producer_id=1, sequence=1)).base_offset == 1


def test_a_producer_that_was_never_seen_may_begin_anywhere(tmp_path):
    assert open_log(tmp_path).append_client(produced("a", producer_id=1, sequence=17)).base_offset == 0


def test_sequences_go_on_at_zero_after_the_largest(tmp_path):
    log = open_log(tmp_path)
    log.append_client(produced("a", "b", producer_id=1, sequence=LAST_SEQUENCE - 1))
    log.append_client(produced("c", producer_id=1, sequence=0))
    over = produced("d", "e", "f", producer_id=2, sequence=LAST_SEQUENCE)
    log.append_client(over)
    assert log.append_client(over).is_duplicate
    log.append_client(produced("g", producer_id=2, sequence=2))
    assert log.high_watermark == 7


def test_an_older_epoch_is_fenced_and_a_newer_one_begins_at_zero(tmp_path):
    log = open_log(tmp_path)
    log.append_client(produced("a", producer_id=1, epoch=1, sequence=0))
    with pytest.raises(ProducerFencedError, match="epoch 0"):
        log.append_client(produced("b", producer_id=1, epoch=0, sequence=1))
    with pytest.raises(OutOfOrderSequenceError):
        log.append_client(produced("b", producer_id=1, epoch=2, sequence=1))
    log.append_client(produced("b", producer_id=1, epoch=2, sequence=0))
    with pytest.raises(ProducerFencedError):
        log.append_marker(1, 1, commit=True, coordinator_epoch=0)


def test_an_open_transaction_holds_the_last_stable_offset(tmp_path):
    log = open_log(tmp_path)
    log.append_client(produced("a"))
    log.append_client(produced("b", producer_id=1, sequence=0, transactional=True))
    log.append_client(produced("c", producer_id=2, sequence=0, transactional=True))
    log.append_client(produced("d"))
    assert log.last_stable_offset == 1
    with pytest.raises(InvalidTransactionStateError):
        log.append_client(produced("e", producer_id=1, sequence=1))
    assert log.append_marker(1, 0, commit=True, coordinator_epoch=3) == 4
    assert log.last_stable_offset == 2
    assert log.append_marker(2, 0, commit=False, coordinator_epoch=3) == 5
    assert log.last_stable_offset == log.high_watermark == 6
    assert log.aborted_transactions(0, 5) == [aborted(2, 2, 5)]
    assert log.aborted_transactions(0, 1) == []
    assert [record.value for record in log.records(0, 5)] == [b"a", b"b", b"c", b"d"]
    with pytest.raises(CoordinatorFencedError):
        log.append_marker(2, 0, commit=False, coordinator_epoch=2)


def test_a_coordinators_records_may_belong_to_a_producers_transaction(tmp_path):
    log = open_log(tmp_path)
    log.append_records(values("offset"), producer=ProducerIdentity(5, 0))
    assert log.last_stable_offset == 0
    log.append_marker(5, 0, commit=False, coordinator_epoch=0)
    assert log.aborted_transactions(0, 1) == [aborted(5, 0, 1)]


def test_a_marker_without_a_transaction_aborts_nothing(tmp_path):
    log = open_log(tmp_path)
    log.append_marker(1, 0, commit=False, coordinator_epoch=0)
    assert log.aborted_transactions(0, 10) == []
    log.append_client(produced("a", producer_id=1, sequence=0, transactional=True))


def test_a_transaction_over_several_segments_is_found_from_each(tmp_path):
    log = open_log(tmp_path, segment_bytes=250)
    for number in range(8):
        log.append_client(produced("x" * 40, producer_id=1, sequence=number, transactional=True))
    log.append_marker(1, 0, commit=False, coordinator_epoch=0)
    assert len(list(tmp_path.glob("*.log"))) > 2
    for first in range(9):
        assert log.aborted_transactions(first, first) == [aborted(1, 0, 8)]
    assert log.aborted_transactions(9, 20) == []


@pytest.mark.parametrize("clean", [True, False])
def test_transactions_and_sequences_survive(tmp_path, clean):
    log = open_log(tmp_path, segment_bytes=300)
    log.append_client(produced("a", producer_id=1, sequence=0, transactional=True))
    log.append_marker(1, 0, commit=False, coordinator_epoch=0)
    log.append_client(produced("b", producer_id=1, sequence=1, transactional=True))
    for number in range(10):
        log.append_client(produced("filler" * 10, producer_id=2, sequence=number))
    index = {path.name: path.read_bytes() for path in tmp_path.glob("*.txnindex")}
    if clean:
        log.close()
    log = open_log(tmp_path, segment_bytes=300, is_clean=clean)
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*.txnindex")} == index
    assert log.last_stable_offset == 2
    assert log.aborted_transactions(0, 20) == [aborted(1, 0, 1)]
    assert log.append_client(produced("filler" * 10, producer_id=2, sequence=9)).is_duplicate
    with pytest.raises(OutOfOrderSequenceError):
        log.append_client(produced("c", producer_id=1, sequence=3, transactional=True))
    log.append_marker(1, 0, commit=True, coordinator_epoch=0)
    assert log.last_stable_offset == log.high_watermark


def test_a_producer_whose_records_were_deleted_is_known_after_each_crash(tmp_path):
    log = open_log(tmp_path, segment_bytes=200)
    log.append_client(produced("a", producer_id=1, sequence=0))
    for number in range(10):
        log.append_records(values(f"filler {number}" * 5))
    for start in (0, 3, 6):
        log.delete_records(start)
        log = open_log(tmp_path, segment_bytes=200, log_start_offset=start)
    assert log.first_segment_offset > 1
    assert log.append_client(produced("a", producer_id=1, sequence=0)).is_duplicate


def test_a_torn_marker_leaves_the_transaction_open(tmp_path):
    log = open_log(tmp_path)
    log.append_client(produced("a", producer_id=1, sequence=0, transactional=True))
    log.append_marker(1, 0, commit=False, coordinator_epoch=0)
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[:-1])
    log = open_log(tmp_path)
    assert (log.high_watermark, log.last_stable_offset) == (1, 0)
    assert log.aborted_transactions(0, 1) == []
    log.append_marker(1, 0, commit=False, coordinator_epoch=0)
    assert log.aborted_transactions(0, 1) == [aborted(1, 0, 1)]


def test_an_index_of_aborted_transactions_that_takes_no_write_is_made_up_for(tmp_path, monkeypatch):
    log = open_log(tmp_path)
    log.append_client(produced("a", producer_id=1, sequence=0, transactional=True))
    with monkeypatch.context() as patch:

        def full(*_: object) -> int:
            raise OSError(28, "No space left on device")

        patch.setattr("os.write", full)
        log.append_marker(1, 0, commit=False, coordinator_epoch=0)
        assert log.aborted_transactions(0, 1) == [aborted(1, 0, 1)]
    log.close()
    assert open_log(tmp_path, is_clean=True).aborted_transactions(0, 1) == [aborted(1, 0, 1)]


def test_idle_producers_are_forgotten_unless_a_transaction_is_open(tmp_path):
    clock = Clock()
    log = open_log(tmp_path, clock=clock)
    log.append_client(produced("a", producer_id=1, sequence=0))
    log.append_client(produced("b", producer_id=2, sequence=0, transactional=True))
    clock.pass_ms(1000)
    assert log.expire_producers(2000) == 0
    assert log.expire_producers(500) == 1
    assert [producer_id for producer_id, _ in log.producers.items()] == [2]
    assert log.append_client(produced("c", producer_id=1, sequence=40)).base_offset == 2


def test_producer_ids_that_clients_make_up_stay_within_a_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(producer_state, "MAX_PRODUCERS", 10)
    log = open_log(tmp_path)
    log.append_client(produced("open", producer_id=0, sequence=0, transactional=True))
    for producer_id in range(1, 50):
        log.append_client(produced("a", producer_id=producer_id, sequence=0))
    assert len(log.producers) == 10
    assert log.last_stable_offset == 0
    assert log.append_client(produced("a", producer_id=49, sequence=0)).is_duplicate


@given(
    st.lists(
        st.tuples(st.integers(0, 1 << 40), st.integers(0, 100), st.integers(0, LAST_SEQUENCE), st.booleans()),
        max_size=8,
        unique_by=lambda entry: entry[0],
    )
)
def test_a_snapshot_holds_the_last_batch_of_every_producer(tmp_path_factory, entries):
    path = tmp_path_factory.mktemp("snapshot") / "x.snapshot"
    states = ProducerStates()
    for offset, (producer_id, epoch, sequence, transactional) in enumerate(entries):
        batch = produced("v", producer_id=producer_id, epoch=epoch, sequence=sequence, transactional=transactional)
        states.apply_batch(record_batch.split(batch)[0], offset)
    states.save(path)
    assert path.stat().st_size == 10 + 46 * len(entries)
    loaded = ProducerStates.load(path)
    assert loaded is not None
    assert loaded.first_unstable_offset == states.first_unstable_offset
    assert [(key, entry.epoch, list(entry.batches), entry.open_from) for key, entry in loaded.items()] == [
        (key, entry.epoch, list(entry.batches), entry.open_from) for key, entry in states.items()
    ]


@pytest.mark.parametrize("damage", [b"", b"\x00", struct.pack(">hIi", 1, 0, 5), struct.pack(">hIi", 9, 0, 0)])
def test_a_snapshot_that_is_not_whole_is_passed_over(tmp_path, damage):
    log = open_log(tmp_path)
    log.append_client(produced("a", producer_id=1, sequence=0))
    log.close()
    (tmp_path / f"{1:020d}.snapshot").write_bytes(damage)
    log = open_log(tmp_path, is_clean=True)
    assert log.append_client(produced("a", producer_id=1, sequence=0)).is_duplicate
