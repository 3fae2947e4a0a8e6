"""Share partitions of a broker: made on the first fetch, shared among members, dropped when nobody is left."""

import pytest

from sharelens.broker.errors import CorruptBatchError, StorageError
from sharelens.broker.share.acknowledgement import AcknowledgementBatch
from sharelens.broker.share.codes import ShareErrorCode
from sharelens.broker.share.manager import FetchTerms
from state_model.answers import ErrorCode
from tests.logs.share_partitions import ACCEPT, LOCK_MS, TERMS, TOPIC_ID, BatchLog, House

UNKNOWN_TOPIC = "AAAAAAAAAAAAAAAAAAAAAQ"


def test_all_partitions_of_a_session_are_tried_and_limits_are_for_all_of_them():
    house = House()
    for log in house.logs.values():
        log.append(4)
    session = house.open()
    assert house.fetch(session) == {0: [(0, 3, 1)], 1: [(0, 3, 1)]}
    assert house.fetch(session) == {0: [], 1: []}
    for log in house.logs.values():
        log.append(4)
    assert house.fetch(session, FetchTerms(max_records=4, batch_size=500)) == {0: [], 1: [(4, 7, 1)]}


def test_bytes_are_split_among_the_partitions_that_can_give_any():
    house = House(partitions=2)
    for _ in range(4):
        house.logs[0].append(1)
    session = house.open()
    size = len("0-0;")
    assert house.fetch(session, FetchTerms(max_records=500, batch_size=500, max_bytes=4 * size)) == {
        0: [(0, 1, 1)],
        1: [],
    }


def test_before_the_last_try_there_have_to_be_enough_bytes():
    house = House()
    house.logs[0].append(4)
    session = house.open()
    patient = FetchTerms(max_records=500, batch_size=500, min_bytes=8)
    assert house.fetch(session, patient, is_last_try=False) == {0: [], 1: []}
    house.logs[1].append(4)
    assert house.fetch(session, patient, is_last_try=False) == {0: [(0, 3, 1)], 1: [(0, 3, 1)]}
    house.logs[0].append(1)
    assert house.fetch(session, patient, is_last_try=True) == {0: [(4, 4, 1)], 1: []}


def test_missing_partitions_have_an_error_each_time():
    house = House()
    session = house.open(partitions=(0, 7))
    session.update([(UNKNOWN_TOPIC, 0)], [])
    actual = house.shares.fetch(session, TERMS)
    assert actual[TOPIC_ID, 7].error is ShareErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert actual[UNKNOWN_TOPIC, 0].error is ShareErrorCode.UNKNOWN_TOPIC_ID


def test_a_partition_that_can_not_load_has_an_error_and_is_loaded_again():
    house = House(partitions=1)
    house.logs[0].append(2)
    house.persister.refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE
    session = house.open(partitions=(0,))
    assert house.fetch(session) == {0: ShareErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert len(house.shares) == 0
    house.persister.refuses = None
    assert house.fetch(session) == {0: [(0, 1, 1)]}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StorageError("gone"), ShareErrorCode.KAFKA_STORAGE_ERROR),
        (CorruptBatchError("crc"), ShareErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_a_log_that_cannot_be_read_is_an_error_of_its_partition_alone(error, code):
    house = House()
    for log in house.logs.values():
        log.append(2)

    def fail(offset, *, max_bytes, end_offset=None):
        raise error

    house.logs[0].read = fail
    session = house.open()
    impatient = FetchTerms(max_records=500, batch_size=500, min_bytes=1 << 20)
    assert house.fetch(session, impatient, is_last_try=False) == {0: code, 1: [(0, 1, 1)]}


def test_an_acknowledgement_without_a_fetch_is_an_unknown_partition():
    house = House()
    batch = AcknowledgementBatch(first_offset=0, last_offset=0, types=[ACCEPT])
    assert house.shares.acknowledge(house.key(), "m", [batch]) is ShareErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_closing_a_session_gives_back_what_its_member_holds_in_all_partitions():
    house = House()
    for log in house.logs.values():
        log.append(4)
    a, b = house.open("a"), house.open("b", connection=2)
    house.fetch(a)
    assert house.shares.close_session(a) == {}
    assert house.fetch(b) == {0: [(0, 3, 2)], 1: [(0, 3, 2)]}


def test_errors_of_a_release_are_returned_by_partition():
    house = House(partitions=1)
    house.logs[0].append(4)
    session = house.open(partitions=(0,))
    house.fetch(session)
    house.persister.refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert house.shares.close_session(session) == {(TOPIC_ID, 0): ShareErrorCode.COORDINATOR_NOT_AVAILABLE}


def test_a_session_that_is_replaced_keeps_its_records_until_their_locks_end():
    house = House(partitions=1)
    house.logs[0].append(4)
    house.fetch(house.open("m", partitions=(0,)))
    again = house.open("m", partitions=(0,))
    assert house.fetch(again) == {0: []}
    house.timers.advance(LOCK_MS)
    assert house.fetch(again) == {0: [(0, 3, 2)]}


class TestConnections:
    def test_a_connection_takes_its_sessions_and_their_records_with_it(self):
        house = House(partitions=1)
        house.logs[0].append(4)
        a, b = house.open("a", 1, (0,)), house.open("b", 2, (0,))
        house.fetch(a)
        house.disconnect(1)
        assert a.is_closed
        assert not b.is_closed
        assert house.fetch(b) == {0: [(0, 3, 2)]}

    def test_the_last_one_takes_the_share_partitions_of_the_group_with_it(self):
        house = House()
        house.fetch(house.open("a", 1))
        house.fetch(house.open("b", 2))
        house.disconnect(1)
        assert len(house.shares) == 2
        house.disconnect(2)
        assert len(house.shares) == 0
        assert all(not log.listeners for log in house.logs.values())

    def test_so_does_one_whose_session_was_closed_before(self):
        house = House()
        session = house.open("a", 1)
        house.fetch(session)
        house.shares.close_session(session)
        assert len(house.shares) == 2
        house.disconnect(1)
        assert len(house.shares) == 0

    def test_altered_offsets_of_an_empty_group_count_from_the_next_fetch_on(self):
        house = House(partitions=1)
        house.logs[0].append(9)
        house.fetch(house.open("a", 1, (0,)))
        house.disconnect(1)
        house.persister.initialize(house.key(), state_epoch=1, start_offset=6)
        assert house.fetch(house.open("a", 2, (0,))) == {0: [(6, 8, 1)]}

    def test_a_session_that_opens_again_and_again_leaves_one_listener(self):
        house = House()
        for _ in range(5):
            house.open("a", 1)
        assert len(house.on_close[1]) == 1

    def test_there_is_a_largest_number_of_sessions(self):
        house = House(max_sessions=1)
        house.open("a", 1)
        assert house.shares.open_session("g", "b", 2, lambda callback: None) is None


class TestWaiting:
    def watched(self, house, session):
        woken = []
        end = house.shares.watch(session, lambda: woken.append(house.timers.now_ms()))
        return woken, end

    def test_an_append_wakes_who_waits(self):
        house = House()
        session = house.open()
        house.fetch(session)
        woken, end = self.watched(house, session)
        house.logs[1].append(1)
        assert len(woken) == 1
        end()
        house.logs[1].append(1)
        assert len(woken) == 1

    def test_so_do_released_records(self):
        house = House(partitions=1)
        house.logs[0].append(1)
        a, b = house.open("a", 1, (0,)), house.open("b", 2, (0,))
        house.fetch(a)
        woken, _ = self.watched(house, b)
        house.timers.advance(LOCK_MS)
        assert woken == [house.timers.now_ms()]

    def test_so_does_the_end_of_the_session_itself(self):
        house = House()
        session = house.open()
        woken, _ = self.watched(house, session)
        house.disconnect(1)
        assert woken

    def test_so_does_a_share_partition_that_goes_out_of_use(self):
        house = House()
        session = house.open()
        house.fetch(session)
        woken, _ = self.watched(house, session)
        house.shares.topic_deleted(TOPIC_ID)
        assert len(woken) == 2
        assert len(house.shares) == 0


def test_a_replaced_log_is_another_share_partition():
    house = House(partitions=1)
    house.logs[0].append(4)
    session = house.open(partitions=(0,))
    house.fetch(session)
    old = house.shares.get(house.key())
    house.logs[0] = BatchLog()
    house.logs[0].leader_epoch = 2
    house.logs[0].append(2)
    assert house.fetch(session) == {0: [(0, 1, 1)]}
    assert house.shares.get(house.key()) is not old
    assert house.shares.leader_epoch((TOPIC_ID, 0)) == 2
