"""What members get: how much at once, suspicious records alone, nothing of an open or aborted transaction."""

from sharelens.broker.ports import AbortedTransaction
from sharelens.broker.share.acquisition import AcquireMode
from tests.logs.share_partitions import ACCEPT, GAP, LOCK_MS, RELEASE, Scene


class TestAcquire:
    def test_whole_log_batches_are_acquired_though_they_exceed_the_limit(self):
        scene = Scene(10, 10, 10)
        got = scene.acquire(max_records=11)
        assert got.ranges == [(0, 19, 1)]
        assert got.data == "0-9;10-19;"

    def test_the_limit_of_locks_is_soft_too_and_counts_all_of_the_window(self):
        scene = Scene(60, 60, 60, partition_max_record_locks=100)
        assert scene.ranges() == [(0, 119, 1)]
        assert not scene.partition.can_acquire()
        scene.acknowledge(1, 119, ACCEPT)
        assert scene.ranges() == []
        scene.acknowledge(0, 0, RELEASE)
        assert scene.ranges() == [(0, 0, 2)]

    def test_inside_a_full_window_nothing_beyond_its_end_is_acquired(self):
        scene = Scene(100, 100, partition_max_record_locks=100)
        scene.acquire()
        scene.acknowledge(90, 99, RELEASE)
        assert scene.ranges() == [(90, 99, 2)]

    def test_acquired_batches_are_split_at_log_batches_by_batch_size(self):
        scene = Scene(4, 4, 4, 4, 4)
        assert scene.ranges(batch_size=7) == [(0, 7, 1), (8, 15, 1), (16, 19, 1)]

    def test_record_limit_acquires_at_most_the_limit_and_caches_the_rest_undelivered(self):
        scene = Scene(10, 10)
        assert scene.ranges(max_records=4, mode=AcquireMode.RECORD_LIMIT) == [(0, 3, 1)]
        assert scene.cached() == "[acqu 0-3 x1 avai 4-9 x0]"
        assert scene.ranges(max_records=4, mode=AcquireMode.RECORD_LIMIT) == [(4, 7, 1)]
        assert scene.ranges(max_records=4, mode=AcquireMode.RECORD_LIMIT) == [(8, 9, 1), (10, 11, 1)]

    def test_released_records_are_acquired_again_with_a_higher_count_then_new_ones(self):
        scene = Scene(10, 10)
        scene.acquire(max_records=10)
        scene.acknowledge(3, 5, RELEASE)
        assert scene.ranges() == [(3, 5, 2), (10, 19, 1)]

    def test_neighbours_of_equal_count_become_one_range(self):
        scene = Scene(10)
        scene.acquire()
        scene.acknowledge(0, 9, *[RELEASE] * 4, *[ACCEPT] * 2, *[RELEASE] * 4)
        assert scene.ranges(max_bytes=1) == [(0, 3, 2), (6, 9, 2)]

    def test_another_member_gets_what_is_left(self):
        scene = Scene(10, 10)
        assert scene.ranges("a", max_records=5) == [(0, 9, 1)]
        assert scene.ranges("b", max_records=5) == [(10, 19, 1)]
        assert scene.ranges("c") == []

    def test_the_first_offset_is_clipped_to_the_start_offset(self):
        scene = Scene(10, start_offset=4)
        got = scene.acquire()
        assert (got.data, got.ranges) == ("0-9;", [(4, 9, 1)])

    def test_the_start_offset_jumps_to_the_first_record_that_is_there(self):
        scene = Scene()
        scene.log.skip(7)
        scene.log.append(3)
        assert scene.ranges() == [(7, 9, 1)]
        assert scene.start == 7

    def test_available_batches_that_compaction_took_end_in_memory(self):
        scene = Scene(5, 5, 5)
        assert scene.ranges(batch_size=5) == [(0, 4, 1), (5, 9, 1), (10, 14, 1)]
        scene.acknowledge(0, 4, RELEASE)
        scene.acknowledge(5, 9, RELEASE)
        written = len(scene.writes())
        scene.log.compact_away(0)
        assert scene.ranges() == [(5, 9, 2)]
        assert scene.cached() == "[arch 0-4 x1] [acqu 5-9 x2] [acqu 10-14 x1]"
        assert scene.complete == 5
        assert len(scene.writes()) == written

    def test_control_batches_and_holes_in_the_log_are_part_of_what_is_acquired(self):
        scene = Scene(3)
        scene.log.append(1, producer_id=1, is_control=True)
        scene.log.skip(2)
        scene.log.append(4)
        assert scene.ranges() == [(0, 9, 1)]


class TestSuspiciousRecords:
    """Threshold 3 and last chance at 4 with the usual limit of 5; the figures are those that a broker wrote."""

    def let_time_out(self, scene, times):
        for _ in range(times):
            scene.acquire()
            scene.timers.advance(LOCK_MS)

    def test_a_batch_that_failed_often_is_delivered_in_halves(self):
        scene = Scene(20)
        self.let_time_out(scene, 3)
        assert scene.ranges() == [(0, 9, 4)]

    def test_the_last_delivery_of_a_record_is_alone(self):
        scene = Scene(20)
        self.let_time_out(scene, 4)
        assert scene.ranges() == [(0, 0, 5)]
        assert scene.ranges() == [(1, 1, 5)]

    def test_it_is_not_delivered_behind_anything_else(self):
        scene = Scene(4, 20)
        assert scene.ranges(max_records=4) == [(0, 3, 1)]
        self.let_time_out(scene, 1)
        scene.set(record_lock_duration_ms=100 * LOCK_MS)
        assert scene.ranges(max_records=4) == [(0, 3, 2)]
        scene.set(record_lock_duration_ms=LOCK_MS)
        self.let_time_out(scene, 2)
        scene.acknowledge(0, 3, RELEASE)
        assert scene.ranges(max_records=400) == [(0, 3, 3)]

    def test_a_limit_of_two_knows_no_suspicion(self):
        scene = Scene(20, delivery_count_limit=2)
        self.let_time_out(scene, 1)
        assert scene.ranges() == [(0, 19, 2)]


class TestReadCommitted:
    def committed(self, *batches):
        return Scene(*batches, isolation_level="read_committed")

    def test_nothing_is_read_beyond_an_open_transaction(self):
        scene = self.committed(5)
        scene.log.append(5, producer_id=7)
        scene.log.first_unstable_offset = 5
        assert scene.ranges() == [(0, 4, 1)]
        assert scene.ranges() == []

    def test_aborted_records_are_archived_in_memory_and_not_delivered(self):
        scene = self.committed(2)
        scene.log.append(3, producer_id=7)
        scene.log.append(2, producer_id=8)
        scene.log.append(1, producer_id=7, is_control=True)
        scene.log.append(1, producer_id=8, is_control=True)
        scene.log.aborted = [AbortedTransaction(producer_id=7, first_offset=2, last_offset=7)]
        assert scene.ranges() == [(0, 1, 1), (5, 8, 1)]
        assert scene.complete == 3
        scene.acknowledge_all((0, 1, [ACCEPT]), (5, 8, [ACCEPT, ACCEPT, GAP, GAP]))
        assert scene.last_write() == (0, 9, [(0, 1, 2, 1), (5, 6, 2, 1), (7, 8, 4, 1)])
        assert scene.start == 9

    def test_a_fetch_goes_on_behind_records_that_are_all_aborted(self):
        scene = self.committed()
        scene.log.append(5, producer_id=7)
        scene.log.append(1, producer_id=7, is_control=True)
        scene.log.aborted = [AbortedTransaction(producer_id=7, first_offset=0, last_offset=5)]
        assert scene.ranges(max_bytes=1) == [(5, 5, 1)]
