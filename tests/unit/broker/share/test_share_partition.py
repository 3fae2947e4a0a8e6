"""Share partitions, paragraph by paragraph of their rules: what members get, what is written, where the window goes."""

from dataclasses import replace

import pytest

from broker.ports import AbortedTransaction
from broker.share.acquisition import AcquireMode
from broker.share.codes import ShareErrorCode
from broker.share.share_partition import Status
from state_model.answers import ErrorCode
from state_model.coordinator import WriteRequest
from tests.share_partitions import ACCEPT, GAP, KEY, LOCK_MS, REJECT, RELEASE, RENEW, Scene, batches

NONE = ShareErrorCode.NONE
AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED = 0, 2, 3, 4


def loaded_with(*ranges, start_offset=0, log=(), **settings):
    """A scene whose share coordinator already holds state batches of (first, last, state, count)."""
    scene = Scene(*log, start_offset=start_offset, **settings)
    scene.persister.write(
        KEY,
        WriteRequest(state_epoch=2, leader_epoch=0, start_offset=start_offset, state_batches=batches(*ranges)),
    )
    scene.lead()
    scene.persister.writes.clear()
    return scene


class TestBegin:
    @pytest.mark.parametrize(("reset", "expected"), [("latest", 20), ("earliest", 5), (60_000, 12), (1, 20)])
    def test_a_start_offset_that_is_not_determined_follows_the_reset_of_the_group(self, reset, expected):
        scene = Scene(10, 10, start_offset=-1, auto_offset_reset=reset)
        scene.log.delete_records(5)
        scene.log.timestamps = {scene.timers.now_ms() - 30_000: 12}
        scene.lead()
        assert scene.start == expected

    def test_the_resolved_start_offset_is_first_written_with_the_first_write(self):
        scene = Scene(10, start_offset=-1, auto_offset_reset="earliest")
        assert scene.persister.held().start_offset == -1
        scene.acquire()
        assert scene.persister.held().start_offset == -1
        scene.acknowledge(0, 9, ACCEPT)
        assert scene.persister.held().start_offset == 0

    @pytest.mark.parametrize(
        "ranges",
        [[(3, 4, ACKNOWLEDGED, 1)], [(5, 9, AVAILABLE, 1), (9, 12, AVAILABLE, 2)], [(6, 8, 1, 1)]],
        ids=["below the start", "overlapping", "acquired"],
    )
    def test_a_state_that_no_coordinator_could_hold_fails(self, ranges):
        scene = Scene(20)
        held = scene.persister.held()
        answer = scene.persister.read

        def read(key, *, leader_epoch):
            return replace(answer(key, leader_epoch=leader_epoch), start_offset=5, state_batches=batches(*ranges))

        scene.persister.read = read
        assert held is not None
        assert scene.lead().status is Status.FAILED
        assert scene.loaded is ShareErrorCode.UNKNOWN_SERVER_ERROR

    @pytest.mark.parametrize(
        ("refusal", "told"),
        [
            (ErrorCode.NOT_COORDINATOR, ShareErrorCode.COORDINATOR_NOT_AVAILABLE),
            (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ShareErrorCode.COORDINATOR_NOT_AVAILABLE),
            (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ShareErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (ErrorCode.FENCED_LEADER_EPOCH, ShareErrorCode.NOT_LEADER_OR_FOLLOWER),
            (ErrorCode.INVALID_REQUEST, ShareErrorCode.UNKNOWN_SERVER_ERROR),
        ],
    )
    def test_an_error_of_the_coordinator_is_told_to_clients_in_their_terms(self, refusal, told):
        scene = Scene(10)
        scene.persister.refuses = refusal
        assert scene.lead().status is Status.FAILED
        assert scene.loaded is told

    def test_the_start_offset_advances_at_once_over_what_is_already_terminal(self):
        scene = loaded_with((0, 4, ACKNOWLEDGED, 1), (5, 9, AVAILABLE, 1), log=(10,))
        assert (scene.start, scene.complete) == (5, 0)
        assert scene.writes() == []


class TestHolesAfterLoading:
    def test_offsets_in_holes_are_delivered_as_new_ones_before_what_is_behind(self):
        scene = loaded_with((0, 1, AVAILABLE, 1), (5, 9, ACKNOWLEDGED, 1), log=(12,))
        assert scene.ranges() == [(0, 1, 2), (2, 4, 1), (10, 11, 1)]

    def test_the_start_offset_stops_at_a_hole(self):
        scene = loaded_with((0, 1, AVAILABLE, 1), (5, 9, ACKNOWLEDGED, 1), log=(2, 3, 5))
        assert scene.ranges(max_records=1) == [(0, 1, 2)]
        scene.acknowledge(0, 1, ACCEPT)
        assert scene.start == 2
        assert scene.ranges() == [(2, 4, 1)]
        scene.acknowledge(2, 4, ACCEPT)
        assert scene.start == 10

    def test_a_hole_without_records_is_passed_with_the_fetch_that_shows_it(self):
        scene = loaded_with((0, 1, ACKNOWLEDGED, 1), (5, 9, AVAILABLE, 1), log=(2,))
        assert scene.start == 2
        scene.log.skip(3)
        scene.log.append(5)
        assert scene.ranges() == [(5, 9, 2)]
        scene.acknowledge(5, 9, ACCEPT)
        assert scene.start == 10

    def test_a_hole_is_cut_from_a_larger_log_batch(self):
        scene = loaded_with((0, 3, ACKNOWLEDGED, 1), (8, 9, AVAILABLE, 1), log=(20,))
        assert scene.ranges(max_records=2) == [(4, 7, 1)]
        assert scene.partition.window.next_offset() == 8


class TestAcquire:
    def test_whole_log_batches_are_taken_though_they_exceed_the_limit(self):
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

    def test_inside_a_full_window_nothing_beyond_its_end_is_taken(self):
        scene = Scene(100, 100, partition_max_record_locks=100)
        scene.acquire()
        scene.acknowledge(90, 99, RELEASE)
        assert scene.ranges() == [(90, 99, 2)]

    def test_acquired_batches_are_split_at_log_batches_by_batch_size(self):
        scene = Scene(4, 4, 4, 4, 4)
        assert scene.ranges(batch_size=7) == [(0, 7, 1), (8, 15, 1), (16, 19, 1)]

    def test_record_limit_takes_no_more_than_asked_for_and_caches_the_rest_undelivered(self):
        scene = Scene(10, 10)
        assert scene.ranges(max_records=4, mode=AcquireMode.RECORD_LIMIT) == [(0, 3, 1)]
        assert scene.cached() == "[acqu 0-3 x1 avai 4-9 x0]"
        assert scene.ranges(max_records=4, mode=AcquireMode.RECORD_LIMIT) == [(4, 7, 1)]
        assert scene.ranges(max_records=4, mode=AcquireMode.RECORD_LIMIT) == [(8, 9, 1), (10, 11, 1)]

    def test_released_records_are_taken_again_with_a_higher_count_then_new_ones(self):
        scene = Scene(10, 10)
        scene.acquire(max_records=10)
        scene.acknowledge(3, 5, RELEASE)
        assert scene.ranges() == [(3, 5, 2), (10, 19, 1)]

    def test_neighbours_of_equal_count_are_told_as_one_range(self):
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


class TestLogStart:
    def test_the_window_follows_a_log_that_begins_later(self):
        scene = Scene(10, 10)
        scene.acquire(max_records=10)
        scene.acknowledge(0, 9, RELEASE)
        written = len(scene.writes())
        scene.log.delete_records(14)
        assert scene.ranges() == [(14, 19, 1)]
        assert (scene.start, scene.complete, len(scene.writes())) == (14, 0, written)

    def test_what_is_acquired_below_stays_so_and_its_acknowledgement_is_accepted_without_a_write(self):
        scene = Scene(10, 10)
        scene.acquire("a", max_records=10)
        scene.log.delete_records(12)
        scene.partition.window.raise_start(12)
        assert scene.acknowledge(0, 9, ACCEPT, member="a") is NONE
        assert scene.writes() == []

    def test_what_times_out_below_is_archived_and_above_available(self):
        scene = Scene(20)
        scene.acquire("a")
        scene.log.delete_records(12)
        scene.partition.window.raise_start(12)
        scene.timers.advance(LOCK_MS)
        assert scene.writes() == [(12, 0, [(0, 11, 4, 1), (12, 19, 0, 1)])]
        assert scene.persister.held().state_batches == batches((12, 19, 0, 1))

    def test_terminal_offsets_that_are_passed_leave_the_complete_count(self):
        scene = Scene(10)
        scene.acquire()
        scene.acknowledge(3, 6, ACCEPT)
        assert scene.complete == 4
        scene.partition.window.raise_start(5)
        assert scene.complete == 2


class TestAcknowledge:
    def test_the_worked_example_of_the_kip(self):
        """KIP-932: a window from 0, mixed acknowledgements, the start offset stops at the first open record."""
        scene = Scene(6)
        assert scene.ranges() == [(0, 5, 1)]
        assert scene.acknowledge(0, 5, ACCEPT, ACCEPT, RELEASE, ACCEPT, REJECT, RELEASE) is NONE
        assert scene.start == 2
        assert scene.complete == 2
        assert scene.ranges() == [(2, 2, 2), (5, 5, 2)]
        scene.acknowledge(2, 2, ACCEPT)
        assert scene.start == 5
        scene.acknowledge(5, 5, ACCEPT)
        assert (scene.start, scene.complete, scene.cached()) == (6, 0, "")

    @pytest.mark.parametrize(
        ("kind", "state"), [(GAP, ARCHIVED), (ACCEPT, ACKNOWLEDGED), (RELEASE, AVAILABLE), (REJECT, ARCHIVED)]
    )
    def test_each_type_has_its_state(self, kind, state):
        scene = Scene(5)
        scene.acquire()
        assert scene.acknowledge(0, 4, kind) is NONE
        assert scene.last_write()[2] == [(0, 4, state, 1)]

    def test_the_last_allowed_delivery_is_archived_when_released(self):
        scene = Scene(1, delivery_count_limit=2)
        scene.acquire()
        scene.acknowledge(0, 0, RELEASE)
        scene.acquire()
        scene.acknowledge(0, 0, RELEASE)
        assert scene.last_write() == (0, 1, [(0, 0, ARCHIVED, 2)])

    def test_a_lower_limit_ends_records_when_they_are_released_not_before_they_are_acquired(self):
        scene = Scene(1)
        for _ in range(3):
            scene.acquire()
            scene.acknowledge(0, 0, RELEASE)
        scene.set(delivery_count_limit=2)
        assert scene.ranges() == [(0, 0, 4)]
        scene.acknowledge(0, 0, RELEASE)
        assert scene.last_write()[2] == [(0, 0, ARCHIVED, 4)]

    def test_what_is_not_acquired_by_the_member_is_an_invalid_state_and_nothing_changes(self):
        scene = Scene(5, 5)
        scene.acquire("a", max_records=5)
        scene.acquire("b", max_records=5)
        before = scene.cached(), scene.complete
        assert scene.acknowledge(0, 9, ACCEPT, member="a") is ShareErrorCode.INVALID_RECORD_STATE
        assert (scene.cached(), scene.complete) == before
        assert scene.writes() == []

    def test_an_acknowledged_record_cannot_be_acknowledged_again(self):
        scene = Scene(5)
        scene.acquire()
        scene.acknowledge(1, 2, ACCEPT)
        assert scene.acknowledge(1, 2, RELEASE) is ShareErrorCode.INVALID_RECORD_STATE

    def test_an_offset_twice_in_one_request_refuses_all_of_it(self):
        scene = Scene(5)
        scene.acquire()
        both = scene.acknowledge_all((0, 2, [ACCEPT]), (2, 4, [ACCEPT]))
        assert both is ShareErrorCode.INVALID_RECORD_STATE
        assert scene.acknowledge(0, 4, ACCEPT) is NONE

    def test_offsets_that_were_never_acquired(self):
        scene = Scene(5, 5)
        assert scene.acknowledge(0, 4, ACCEPT) is ShareErrorCode.INVALID_RECORD_STATE
        scene.acquire(max_records=5)
        assert scene.acknowledge(5, 9, ACCEPT) is ShareErrorCode.INVALID_REQUEST
        assert scene.acknowledge(3, 7, ACCEPT) is ShareErrorCode.INVALID_REQUEST

    def test_below_the_start_offset_everything_is_accepted_and_skipped(self):
        scene = Scene(5, 5)
        scene.acquire()
        scene.acknowledge(0, 4, ACCEPT)
        assert scene.acknowledge(0, 4, ACCEPT) is NONE
        assert scene.acknowledge(2, 7, ACCEPT) is NONE
        assert scene.last_write() == (5, 3, [(5, 7, ACKNOWLEDGED, 1)])

    def test_renewing_restarts_the_lock_and_writes_nothing(self):
        scene = Scene(4)
        scene.acquire()
        scene.timers.advance(LOCK_MS - 1)
        assert scene.acknowledge(1, 2, RENEW) is NONE
        assert scene.writes() == []
        scene.timers.advance(LOCK_MS - 1)
        assert scene.cached() == "[avai 0-0 x1 acqu 1-2 x1 avai 3-3 x1]"
        scene.timers.advance(1)
        assert scene.cached() == "[avai 0-3 x1]"

    def test_renewals_stay_apart_from_neighbours_that_are_not_renewed(self):
        scene = Scene(6)
        scene.acquire()
        scene.timers.advance(LOCK_MS - 1)
        assert scene.acknowledge(0, 2, ACCEPT, RENEW, ACCEPT) is NONE
        scene.timers.advance(1)
        assert scene.cached() == "[ackn 0-0 x1 acqu 1-1 x1 ackn 2-2 x1 avai 3-5 x1]"


class TestFailedWrites:
    def test_an_acknowledgement_is_rolled_back_and_may_be_repeated(self):
        scene = Scene(5)
        scene.acquire()
        scene.persister.refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert scene.acknowledge(0, 4, ACCEPT) is ShareErrorCode.COORDINATOR_NOT_AVAILABLE
        assert (scene.cached(), scene.complete, scene.start) == ("[acqu 0-4 x1]", 0, 0)
        scene.persister.refuses = None
        assert scene.acknowledge(0, 4, ACCEPT) is NONE

    def test_a_lock_that_ended_meanwhile_is_released_in_memory_alone(self):
        scene = Scene(5)
        scene.acquire()
        write = scene.persister.write

        def slow_write(key, request):
            scene.timers._now_ms += LOCK_MS
            return ErrorCode.COORDINATOR_NOT_AVAILABLE

        scene.persister.write = slow_write
        assert scene.acknowledge(0, 4, ACCEPT) is ShareErrorCode.COORDINATOR_NOT_AVAILABLE
        scene.persister.write = write
        assert scene.cached() == "[avai 0-4 x1]"
        scene.timers.advance(LOCK_MS)
        assert scene.writes() == []
        assert scene.ranges() == [(0, 4, 2)]

    def test_an_ambiguous_failure_may_have_been_durable(self):
        scene = Scene(5)
        scene.acquire()
        scene.persister.forgets_answer = ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert scene.acknowledge(0, 4, ACCEPT) is ShareErrorCode.COORDINATOR_NOT_AVAILABLE
        assert scene.cached() == "[acqu 0-4 x1]"
        assert scene.persister.held().state_batches == batches((0, 4, ACKNOWLEDGED, 1))

    def test_the_release_of_a_session_is_rolled_back(self):
        scene = Scene(5)
        scene.acquire()
        scene.persister.refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert scene.partition.release_member("m") is ShareErrorCode.COORDINATOR_NOT_AVAILABLE
        assert scene.cached() == "[acqu 0-4 x1]"

    def test_a_lock_timeout_goes_on_although_it_could_not_be_written(self):
        scene = Scene(5)
        scene.acquire()
        scene.persister.refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE
        scene.timers.advance(LOCK_MS)
        assert scene.cached() == "[avai 0-4 x1]"

    @pytest.mark.parametrize(
        ("refusal", "is_fenced"),
        [
            (ErrorCode.FENCED_STATE_EPOCH, True),
            (ErrorCode.FENCED_LEADER_EPOCH, True),
            (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True),
            (ErrorCode.COORDINATOR_NOT_AVAILABLE, False),
            (ErrorCode.INVALID_REQUEST, False),
        ],
    )
    def test_some_errors_take_it_out_of_use(self, refusal, is_fenced):
        scene = Scene(5)
        scene.acquire()
        scene.persister.refuses = refusal
        scene.acknowledge(0, 4, ACCEPT)
        assert (scene.partition.status is Status.FENCED) == is_fenced
        assert scene.fenced == [scene.partition] * is_fenced
        if is_fenced:
            assert scene.ranges() == []
            assert scene.acknowledge(0, 4, ACCEPT) is ShareErrorCode.NOT_LEADER_OR_FOLLOWER

    def test_a_fenced_one_still_writes_its_lock_timeouts(self):
        scene = Scene(5)
        scene.acquire()
        scene.partition.fence()
        scene.timers.advance(LOCK_MS)
        assert scene.writes() == [(0, 0, [(0, 4, AVAILABLE, 1)])]


class TestRelease:
    def test_a_leaving_member_gives_all_back_in_one_write(self):
        scene = Scene(4, 4, 4)
        scene.acquire("a", max_records=4)
        scene.acquire("b", max_records=4)
        scene.acquire("a", max_records=4)
        scene.acknowledge(9, 9, ACCEPT, member="a")
        assert scene.partition.release_member("a") is NONE
        assert scene.last_write() == (0, 1, [(0, 3, 0, 1), (8, 8, 0, 1), (10, 11, 0, 1)])
        assert scene.cached() == "[avai 0-3 x1] [acqu 4-7 x1] [avai 8-8 x1 ackn 9-9 x1 avai 10-11 x1]"

    def test_nothing_held_is_nothing_written(self):
        scene = Scene(4)
        assert scene.partition.release_member("a") is NONE
        assert scene.writes() == []

    def test_lock_timeouts_are_one_write_for_a_batch_and_one_for_each_offset_once_it_was_touched_in_parts(self):
        scene = Scene(3, 3)
        scene.acquire(batch_size=3)
        scene.acknowledge(1, 1, ACCEPT)
        scene.timers.advance(LOCK_MS)
        assert scene.writes()[1:] == [
            (0, 1, [(0, 0, 0, 1)]),
            (0, 1, [(2, 2, 0, 1)]),
            (0, 1, [(3, 5, 0, 1)]),
        ]

    def test_locks_of_different_moments_end_at_their_own(self):
        scene = Scene(3, 3)
        scene.acquire("a", max_records=3)
        scene.timers.advance(LOCK_MS // 2)
        scene.set(record_lock_duration_ms=2 * LOCK_MS)
        scene.acquire("b", max_records=3)
        scene.timers.advance(LOCK_MS // 2)
        assert scene.cached() == "[avai 0-2 x1] [acqu 3-5 x1]"
        scene.timers.advance(LOCK_MS)
        assert scene.cached() == "[avai 0-2 x1] [acqu 3-5 x1]"
        scene.timers.advance(LOCK_MS // 2)
        assert scene.cached() == "[avai 0-2 x1] [avai 3-5 x1]"

    def test_waiting_fetches_are_told_of_released_records(self):
        scene = Scene(3)
        scene.acquire()
        before = scene.changes
        scene.timers.advance(LOCK_MS)
        assert scene.changes > before


class TestStartOffset:
    def test_it_moves_to_the_next_cached_batch_over_a_natural_hole(self):
        scene = Scene(3)
        scene.acquire()
        scene.log.skip(4)
        scene.log.append(3)
        scene.acquire()
        scene.acknowledge(0, 2, ACCEPT)
        assert (scene.start, scene.complete) == (7, 0)

    def test_inside_a_batch_it_moves_to_the_first_open_offset(self):
        scene = Scene(6)
        scene.acquire()
        scene.acknowledge(0, 1, ACCEPT)
        assert scene.start == 2
        assert scene.cached() == "[ackn 0-1 x1 acqu 2-5 x1]"

    def test_when_all_is_terminal_the_cache_is_empty_and_the_window_begins_behind(self):
        scene = Scene(6)
        scene.acquire()
        scene.acknowledge(0, 5, ACCEPT)
        window = scene.partition.window
        assert (window.start_offset, window.end_offset, window.next_offset(), window.size) == (6, 6, 6, 0)

    def test_it_waits_for_an_open_offset(self):
        scene = Scene(6)
        scene.acquire()
        scene.acknowledge(1, 5, ACCEPT)
        assert (scene.start, scene.complete) == (0, 5)
        scene.acknowledge(0, 0, ACCEPT)
        assert (scene.start, scene.complete) == (6, 0)


class TestWhatIsWritten:
    def test_a_acknowledging_the_whole_window_writes_the_old_start_offset(self):
        scene = Scene(5, 5)
        scene.acquire(max_records=5)
        scene.acknowledge(0, 4, ACCEPT)
        assert scene.writes() == [(0, 5, [(0, 4, 2, 1)])]
        scene.acquire(max_records=5)
        scene.acknowledge(5, 9, ACCEPT)
        assert scene.last_write() == (5, 5, [(5, 9, 2, 1)])

    def test_b_the_persisted_start_offset_of_an_idle_partition_lags(self):
        scene = Scene(5)
        scene.acquire()
        scene.acknowledge(0, 4, ACCEPT)
        assert (scene.start, scene.persister.held().start_offset) == (5, 0)

    def test_c_acquiring_writes_nothing(self):
        scene = Scene(5)
        scene.acquire()
        assert scene.writes() == []

    def test_d_the_count_is_how_often_offsets_have_been_acquired(self):
        scene = Scene(5)
        for count in (1, 2, 3):
            scene.acquire()
            scene.acknowledge(0, 4, RELEASE)
            assert scene.last_write()[2] == [(0, 4, 0, count)]

    def test_e_batches_below_the_start_offset_are_pruned_from_the_update(self):
        scene = Scene(5, 5)
        scene.acquire(max_records=5)
        scene.log.delete_records(8)
        scene.partition.window.raise_start(8)
        scene.timers.advance(LOCK_MS)
        assert scene.last_write() == (8, 0, [(0, 4, 4, 1)])
        assert scene.persister.held().state_batches == ()


class TestDeadLetters:
    def scene(self, *batches, **settings):
        return Scene(*batches, dead_letter_topic="dlq.t", **settings)

    def test_a_rejected_record_is_archiving_until_its_letter_is_done(self):
        scene = self.scene(3)
        scene.acquire()
        scene.acknowledge(0, 2, REJECT, ACCEPT, ACCEPT)
        assert scene.last_write() == (0, 2, [(0, 0, ARCHIVING, 1), (1, 2, ACKNOWLEDGED, 1)])
        assert (scene.start, scene.complete) == (0, 2)
        (letter,) = scene.letter_box.letters
        assert (letter.first_offset, letter.last_offset, letter.delivery_count, letter.is_rejected) == (0, 0, 1, True)
        scene.letter_box.deliver()
        scene.timers.advance()
        assert scene.last_write() == (0, 3, [(0, 0, ARCHIVED, 1)])
        assert scene.start == 3

    def test_records_released_at_the_limit_go_there_too(self):
        scene = self.scene(2, delivery_count_limit=2)
        scene.acquire()
        scene.timers.advance(LOCK_MS)
        scene.acquire()
        scene.timers.advance(LOCK_MS)
        assert scene.last_write()[2] == [(0, 1, ARCHIVING, 2)]
        assert [letter.is_rejected for letter in scene.letter_box.letters] == [False]

    def test_gaps_are_archived_at_once(self):
        scene = self.scene(2)
        scene.acquire()
        scene.acknowledge(0, 1, GAP)
        assert scene.last_write()[2] == [(0, 1, ARCHIVED, 1)]
        assert scene.letter_box.letters == []

    def test_letters_done_at_one_moment_are_written_by_offset_before_the_start_offset_moves(self):
        scene = self.scene(3)
        scene.acquire()
        scene.acknowledge(0, 2, REJECT, REJECT, ACCEPT)
        scene.letter_box.deliver()
        scene.timers.advance()
        assert scene.writes()[1:] == [(0, 2, [(0, 0, 4, 1)]), (0, 3, [(1, 1, 4, 1)])]
        assert scene.start == 3

    def test_a_new_leader_sends_the_letters_that_were_under_way_and_guesses_the_cause(self):
        scene = loaded_with(
            (0, 1, ARCHIVING, 1), (2, 2, ARCHIVING, 5), (3, 5, AVAILABLE, 1), log=(6,), dead_letter_topic="dlq.t"
        )
        assert [(one.first_offset, one.last_offset, one.is_rejected) for one in scene.letter_box.letters] == [
            (0, 1, True),
            (2, 2, False),
        ]
        assert scene.ranges() == [(3, 5, 2)]
        scene.letter_box.deliver()
        scene.timers.advance()
        assert scene.writes() == [(0, 2, [(0, 1, 4, 1)]), (0, 3, [(2, 2, 4, 5)])]
        assert scene.start == 3

    def test_a_letter_is_archived_even_if_that_cannot_be_written(self):
        scene = self.scene(1)
        scene.acquire()
        scene.acknowledge(0, 0, REJECT)
        scene.persister.refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE
        scene.letter_box.deliver()
        scene.timers.advance()
        assert scene.start == 1

    def test_without_a_topic_nothing_is_sent(self):
        scene = Scene(1)
        scene.acquire()
        scene.acknowledge(0, 0, REJECT)
        assert scene.last_write()[2] == [(0, 0, ARCHIVED, 1)]
        assert scene.letter_box.letters == []
