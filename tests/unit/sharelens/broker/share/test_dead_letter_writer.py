"""Dead letters: which topic takes them, what they hold, how often they are tried."""

import logging

import pytest

from sharelens.broker.errors import RecordTooLargeError, StorageError
from sharelens.broker.ports import DeadLetters, Record, ShareGroupSettings
from sharelens.broker.share.dead_letter_writer import DELIVERED_TOO_OFTEN, REJECTED, DeadLetterWriter
from state_model.share_records import SharePartitionKey
from tests.broker_parts.broker_memory import DISK_FULL, ManualTimers, MemoryCluster

DLQ = "dlq.t"


class Rules:
    def __init__(self, cluster, name_prefix="dlq.", creates_topics=False):
        self.name_prefix = name_prefix
        self.creates_topics = creates_topics
        self.takers = {DLQ}
        self._cluster = cluster

    def takes_dead_letters(self, topic):
        return topic.name in self.takers

    def create(self, name):
        return self._cluster.create(name, 1)


class Scene:
    def __init__(self, *, topic=DLQ, partitions=2, copy=False, **rules):
        self.timers = ManualTimers()
        self.cluster = MemoryCluster(self.timers)
        self.source = self.cluster.create("jobs", 3)
        if partitions:
            self.cluster.create(DLQ, partitions)
        self.rules = Rules(self.cluster, **rules)
        self.settings = ShareGroupSettings(dead_letter_topic=topic, dead_letter_copy_record=copy)
        self.writer = DeadLetterWriter(
            logs=self.cluster,
            topics=self.cluster,
            rules=self.rules,
            settings=lambda group_id: self.settings,
            timers=self.timers,
        )
        self.done = []

    def submit(self, first, last, partition=0, **fields):
        key = SharePartitionKey(group_id="g", topic_id=self.source.topic_id, partition=partition)
        letters = DeadLetters(
            key=key, first_offset=first, last_offset=last, **({"delivery_count": 2, "is_rejected": True} | fields)
        )
        self.writer.submit(letters, lambda: self.done.append((first, last)))

    def letters(self, partition=0, topic=DLQ):
        log = self.cluster.get(topic, partition)
        return log.records(0, log.high_watermark)

    def offsets(self, partition=0, topic=DLQ):
        return [int(dict(record.headers)["__dlq.errors.offset"]) for record in self.letters(partition, topic)]


def test_a_letter_has_the_place_of_its_record_and_the_cause():
    scene = Scene()
    scene.submit(7, 7, partition=1, delivery_count=3)
    scene.timers.advance()
    (letter,) = scene.letters(partition=1)
    assert (letter.key, letter.value) == (None, None)
    assert letter.headers == (
        ("__dlq.errors.topic", b"jobs"),
        ("__dlq.errors.partition", b"1"),
        ("__dlq.errors.offset", b"7"),
        ("__dlq.errors.group", b"g"),
        ("__dlq.errors.delivery.count", b"3"),
        ("__dlq.errors.message", REJECTED.encode()),
    )
    assert scene.done == [(7, 7)]


def test_a_record_that_was_delivered_too_often_says_so():
    scene = Scene()
    scene.submit(0, 0, is_rejected=False)
    scene.timers.advance()
    assert scene.letters()[0].headers[-1] == ("__dlq.errors.message", DELIVERED_TOO_OFTEN.encode())


def test_nothing_is_written_or_called_back_inside_the_call():
    scene = Scene()
    scene.submit(0, 0)
    assert (scene.letters(), scene.done) == ([], [])


def test_partitions_fall_on_those_of_the_dead_letter_topic():
    scene = Scene(partitions=2)
    for partition in range(3):
        scene.submit(partition, partition, partition=partition)
    scene.timers.advance()
    assert (scene.offsets(0), scene.offsets(1)) == ([0, 2], [1])


def test_there_is_one_letter_for_each_offset_also_where_the_source_has_no_record():
    scene = Scene(copy=True)
    log = scene.cluster.get("jobs", 0)
    log.append_records([Record(key=b"k", value=b"v", headers=(("h", b"x"),)), Record(key=None, value=b"w")])
    scene.submit(0, 3)
    scene.timers.advance()
    assert [(each.key, each.value) for each in scene.letters()] == [
        (b"k", b"v"),
        (None, b"w"),
        (None, None),
        (None, None),
    ]
    assert all(name.startswith("__dlq.errors.") for each in scene.letters() for name, _ in each.headers)


def test_records_below_the_log_start_are_not_copied():
    scene = Scene(copy=True)
    log = scene.cluster.get("jobs", 0)
    log.append_records([Record(key=b"%d" % offset, value=b"v") for offset in range(4)])
    log.delete_records(2)
    scene.submit(1, 2)
    scene.timers.advance()
    assert [each.key for each in scene.letters()] == [None, b"2"]


def test_long_ranges_are_written_in_portions():
    scene = Scene()
    scene.submit(0, 249)
    scene.timers.advance()
    assert scene.offsets() == list(range(250))
    assert [len(batch) for batch in scene.cluster.batches(DLQ)] == [100, 100, 50]
    assert (scene.writer.written, scene.done) == (250, [(0, 249)])


def test_large_records_are_written_in_small_batches():
    scene = Scene(copy=True)
    log = scene.cluster.get("jobs", 0)
    log.append_records([Record(key=None, value=bytes(300_000)) for _ in range(3)])
    scene.submit(0, 2)
    scene.timers.advance()
    assert [len(batch) for batch in scene.cluster.batches(DLQ)] == [1, 1, 1]


def test_a_record_that_is_too_large_for_the_topic_goes_without_its_content():
    scene = Scene(copy=True)
    scene.cluster.get("jobs", 0).append_records([Record(key=b"k", value=bytes(2000)), Record(key=b"k", value=b"v")])
    log = scene.cluster.get(DLQ, 0)
    append = log.append_records

    def append_small(records, *, codec=0):
        if sum(len(record.value or b"") for record in records) > 1000:
            raise RecordTooLargeError("too large")
        return append(records, codec=codec)

    log.append_records = append_small
    scene.submit(0, 1)
    scene.timers.advance()
    assert [(each.key, each.value) for each in scene.letters()] == [(None, None), (b"k", b"v")]


class TestTopics:
    @pytest.mark.parametrize(
        ("scene", "reason"),
        [
            (lambda: Scene(topic="__dlq", name_prefix=""), "is internal"),
            (lambda: Scene(topic="other"), "must begin with dlq."),
            (lambda: Scene(topic=None), "names no topic"),
            (lambda: Scene(partitions=0), "there is no topic dlq.t"),
        ],
        ids=["internal", "prefix", "none", "missing"],
    )
    def test_a_topic_that_may_not_be_used_is_logged_once_and_the_records_let_go(self, scene, reason, caplog):
        scene = scene()
        with caplog.at_level(logging.ERROR):
            scene.submit(0, 0)
            scene.timers.advance()
        assert (scene.done, scene.writer.failed, scene.writer.written) == ([(0, 0)], 1, 0)
        assert reason in caplog.text

    def test_an_existing_topic_has_to_allow_it(self, caplog):
        scene = Scene()
        scene.rules.takers.clear()
        scene.submit(0, 0)
        scene.timers.advance()
        assert (scene.done, scene.letters()) == ([(0, 0)], [])
        assert "errors.deadletterqueue.group.enable" in caplog.text

    def test_a_missing_topic_is_made_where_that_is_allowed(self):
        scene = Scene(partitions=0, creates_topics=True)
        scene.submit(0, 0, partition=2)
        scene.timers.advance()
        assert scene.offsets() == [0]

    def test_without_a_prefix_any_name_will_do(self):
        scene = Scene(topic="letters", name_prefix="", creates_topics=True)
        scene.submit(0, 0)
        scene.timers.advance()
        assert scene.offsets(topic="letters") == [0]


class TestFailures:
    def test_it_is_tried_five_times_with_longer_and_longer_waits(self, caplog):
        scene = Scene()
        scene.cluster.refuse_appends(DLQ, DISK_FULL)
        scene.submit(0, 0)
        scene.timers.advance(1_000 + 2_000 + 4_000 + 8_000 - 1)
        assert scene.done == []
        scene.timers.advance(1)
        assert (scene.done, scene.writer.failed) == ([(0, 0)], 1)
        assert "no space left" in caplog.text

    def test_a_later_attempt_goes_on_where_the_first_one_stopped(self):
        scene = Scene()
        log = scene.cluster.get(DLQ, 0)
        append, calls = log.append_records, []

        def fail_second(records, *, codec=0):
            calls.append(len(records))
            if len(calls) == 2:
                raise StorageError("for once")
            return append(records, codec=codec)

        log.append_records = fail_second
        scene.submit(0, 149)
        scene.timers.advance(1_000)
        assert (scene.offsets(), scene.done) == (list(range(150)), [(0, 149)])

    def test_letters_that_wait_do_not_hold_up_others(self):
        scene = Scene()
        scene.cluster.get(DLQ, 0).refuses = DISK_FULL
        scene.submit(0, 0, partition=0)
        scene.submit(5, 5, partition=1)
        scene.timers.advance()
        assert scene.done == [(5, 5)]
