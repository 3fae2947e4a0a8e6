"""What acknowledgements change, what a failed write undoes, and how records come back."""

import pytest

from sharelens.broker.share.codes import ShareErrorCode
from sharelens.broker.share.share_partition import Status
from state_model.answers import ErrorCode
from tests.logs.share_partitions import ACCEPT, GAP, LOCK_MS, REJECT, RELEASE, RENEW, Scene, batches

NONE = ShareErrorCode.NONE
AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4


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
        error = scene.acknowledge_all((0, 2, [ACCEPT]), (2, 4, [ACCEPT]))
        assert error is ShareErrorCode.INVALID_RECORD_STATE
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

    def test_a_lock_has_ended_at_its_end_although_its_timer_is_late(self):
        scene = Scene(2)
        scene.acquire()
        scene.timers.hold_up(LOCK_MS + 1)
        assert scene.acknowledge(0, 1, ACCEPT) is ShareErrorCode.INVALID_RECORD_STATE
        assert scene.ranges() == [(0, 1, 2)]

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
        assert scene.persister.share_partition().state_batches == batches((0, 4, ACKNOWLEDGED, 1))

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

    def test_without_acquired_records_nothing_is_written(self):
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

    def test_released_records_wake_waiting_fetches(self):
        scene = Scene(3)
        scene.acquire()
        before = scene.changes
        scene.timers.advance(LOCK_MS)
        assert scene.changes > before
