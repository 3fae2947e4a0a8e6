"""What a share partition begins with: its start offset, the state it is given, and the holes in that."""

from dataclasses import replace

import pytest

from sharelens.broker.share.codes import ShareErrorCode
from sharelens.broker.share.share_partition import Status
from state_model.answers import ErrorCode
from tests.logs.share_partitions import ACCEPT, Scene, batches, loaded_with

AVAILABLE, ACKNOWLEDGED = 0, 2


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
        assert scene.persister.share_partition().start_offset == -1
        scene.acquire()
        assert scene.persister.share_partition().start_offset == -1
        scene.acknowledge(0, 9, ACCEPT)
        assert scene.persister.share_partition().start_offset == 0

    @pytest.mark.parametrize(
        "ranges",
        [[(3, 4, ACKNOWLEDGED, 1)], [(5, 9, AVAILABLE, 1), (9, 12, AVAILABLE, 2)], [(6, 8, 1, 1)]],
        ids=["below the start", "overlapping", "acquired"],
    )
    def test_a_state_that_no_coordinator_could_hold_fails(self, ranges):
        scene = Scene(20)
        stored = scene.persister.share_partition()
        answer = scene.persister.read

        def read(key, *, leader_epoch):
            return replace(answer(key, leader_epoch=leader_epoch), start_offset=5, state_batches=batches(*ranges))

        scene.persister.read = read
        assert stored is not None
        assert scene.lead().status is Status.FAILED
        assert scene.loaded is ShareErrorCode.UNKNOWN_SERVER_ERROR

    @pytest.mark.parametrize(
        ("refusal", "output"),
        [
            (ErrorCode.NOT_COORDINATOR, ShareErrorCode.COORDINATOR_NOT_AVAILABLE),
            (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ShareErrorCode.COORDINATOR_NOT_AVAILABLE),
            (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ShareErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (ErrorCode.FENCED_LEADER_EPOCH, ShareErrorCode.NOT_LEADER_OR_FOLLOWER),
            (ErrorCode.INVALID_REQUEST, ShareErrorCode.UNKNOWN_SERVER_ERROR),
        ],
    )
    def test_an_error_of_the_coordinator_is_mapped_for_clients(self, refusal, output):
        scene = Scene(10)
        scene.persister.refuses = refusal
        assert scene.lead().status is Status.FAILED
        assert scene.loaded is output

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
