"""Where the window goes, what is written, and the way of a dead letter."""

from sharelens.broker.share.codes import ShareErrorCode
from state_model.answers import ErrorCode
from tests.logs.share_partitions import ACCEPT, GAP, LOCK_MS, REJECT, RELEASE, Scene, batches, loaded_with

NONE = ShareErrorCode.NONE
AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED = 0, 2, 3, 4


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
        assert scene.persister.share_partition().state_batches == batches((12, 19, 0, 1))

    def test_terminal_offsets_that_are_passed_leave_the_complete_count(self):
        scene = Scene(10)
        scene.acquire()
        scene.acknowledge(3, 6, ACCEPT)
        assert scene.complete == 4
        scene.partition.window.raise_start(5)
        assert scene.complete == 2


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
        assert (scene.start, scene.persister.share_partition().start_offset) == (5, 0)

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
        assert scene.persister.share_partition().state_batches == ()


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
        assert [(each.first_offset, each.last_offset, each.is_rejected) for each in scene.letter_box.letters] == [
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
