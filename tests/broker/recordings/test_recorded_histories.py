"""Recorded scenarios of several clients played by one: each record goes through the states it went through there.

Members of `basic` share the work, and those of `timeouts`' g-never leave with what they hold or are killed. Who gets
which record differs from run to run; but where every delivery of a record has the recorded answer, all that is written
of it is what the real broker wrote, up to its last state. Records of which a client, theirs or ours, dropped a delivery
unseen are left out.
"""

import signal
import subprocess
import sys
import time

import pytest
from confluent_kafka import AcknowledgeType

from tests.broker.recordings.recorded import Recorded
from tests.broker.recordings.test_recorded_scenarios import (
    COUNT,
    QUIET_S,
    answer_late,
    assert_begun_alike,
    assert_groups_alike,
    create,
    fill,
    our_histories,
    start,
    state_records,
)
from tests.broker.share_clients import TIMEOUT_S, commit, configure_group, poll, share_consumer

pytestmark = pytest.mark.broker

HELD_AT_THE_END = ("NONE", "KILLED")
LOST_RENEWAL = "RENEW"
"""The last that is known of a delivery; its lock ended, or the member left."""
HOLD = """
import sys, time
from confluent_kafka import ShareConsumer
mode = {"share.acknowledgement.mode": "explicit"}
one = ShareConsumer({"bootstrap.servers": sys.argv[1], "group.id": sys.argv[2], **mode})
one.subscribe([sys.argv[3]])
messages = []
while not messages:
    messages = list(one.poll(0.5))
print(*(f"{message.partition()}:{message.offset()}" for message in messages), flush=True)
time.sleep(600)
"""


def play(broker, recorded, group, *topics):
    """The delivery counts of each record when nothing more comes; a member that is to leave is followed by another."""
    counts, quiet_from_s = {}, time.monotonic() + TIMEOUT_S
    while time.monotonic() < quiet_from_s:
        with share_consumer(broker, group, *topics) as consumer:
            stays = True
            while stays and time.monotonic() < quiet_from_s:
                messages, late = poll(consumer), []
                for message in messages:
                    place = (group, message.topic(), message.partition())
                    counts.setdefault((place, message.offset()), []).append(message.delivery_count())
                    answer = recorded.answer(place, message.offset(), message.delivery_count())
                    if answer in HELD_AT_THE_END:
                        stays = False
                    elif answer == "LATE":
                        late.append(message)
                    else:
                        consumer.acknowledge(message, AcknowledgeType["RELEASE" if answer == LOST_RENEWAL else answer])
                if messages:
                    answer_late(consumer, late, recorded.late_ms.get(group, 0) / 1000)
                    quiet_from_s = time.monotonic() + QUIET_S
    return counts


def play_implicitly(broker, group, topic):
    """The same for a group that accepts whatever it got."""
    counts, quiet_from_s = {}, time.monotonic() + TIMEOUT_S
    with share_consumer(broker, group, topic, share_acknowledgement_mode="implicit") as consumer:
        while time.monotonic() < quiet_from_s:
            messages = poll(consumer)
            for message in messages:
                at = ((group, topic, message.partition()), message.offset())
                counts.setdefault(at, []).append(message.delivery_count())
            if messages:
                commit(consumer)
                quiet_from_s = time.monotonic() + QUIET_S
    return counts


def assert_histories_alike(broker, recorded, group, counts):
    """All that the real broker wrote of a record, ours wrote too; it may go on where the recorded clients stopped."""
    written, theirs = our_histories(list(state_records(broker))), recorded.whole_histories(group)
    complete_places = [
        at
        for at, delivery_counts in counts.items()
        if delivery_counts == list(range(1, len(delivery_counts) + 1)) and at in theirs
    ]
    assert len(complete_places) > 0.9 * len(counts)
    for at in complete_places:
        assert written[at][: len(theirs[at])] == theirs[at], at


def begin(folder, name, topics):
    """A broker with the recorded configuration, and the first records of some topics, given with their partitions."""
    recorded = Recorded(name)
    broker = start(folder, recorded)
    for topic, partitions in topics.items():
        create(broker, topic, partitions)
        fill(broker, recorded, topic)
    for group, config in recorded.group_configs.items():
        configure_group(broker, group, **config)
    return broker, recorded


def test_basic(tmp_path):
    broker, recorded = begin(tmp_path, "basic", {"orders": 3, "audit-log": 3})
    try:
        explicit = play(broker, recorded, "g-explicit", "orders", "audit-log")
        implicit = play_implicitly(broker, "g-implicit", "orders")
        assert (len(explicit), len(implicit)) == (6 * COUNT, 3 * COUNT)
        assert_histories_alike(broker, recorded, "g-explicit", explicit)
        assert_histories_alike(broker, recorded, "g-implicit", implicit)
        assert_begun_alike(list(state_records(broker)), recorded)
        assert_groups_alike(broker, recorded, ("g-explicit", "g-implicit"))
        assert broker.stop() == 0
    finally:
        broker.kill()


def hold_and_die(broker, group, topic):
    """Partition and offset of what a member held when it was killed."""
    command = [sys.executable, "-c", HOLD, broker.bootstrap, group, topic]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as member:
        try:
            stored = member.stdout.readline().split()
        finally:
            member.send_signal(signal.SIGKILL)
    return [tuple(map(int, each.split(":"))) for each in stored]


def test_members_that_leave_or_are_killed_with_what_they_hold(tmp_path):
    broker, recorded = begin(tmp_path, "timeouts", {})
    group, topic, killed_in = "g-never", "jobs", 2
    try:
        create(broker, topic, 3)
        fill(broker, recorded, topic, but=killed_in)
        counts = play(broker, recorded, group, topic)
        assert len(counts) == 2 * COUNT
        fill(broker, recorded, topic, only=killed_in)
        stored = hold_and_die(broker, group, topic)
        assert {partition for partition, _ in stored} == {killed_in}
        for _, offset in stored:
            counts[(group, topic, killed_in), offset] = [1]
        wait_until_released(broker, [((group, topic, killed_in), offset) for _, offset in stored])
        assert_histories_alike(broker, recorded, group, counts)
        assert_begun_alike(list(state_records(broker)), recorded)
        assert_groups_alike(broker, recorded, (group,))
        assert broker.stop() == 0
    finally:
        broker.kill()


def wait_until_released(broker, places):
    deadline_s = time.monotonic() + TIMEOUT_S
    while not set(places) <= our_histories(list(state_records(broker))).keys():
        assert time.monotonic() < deadline_s, "locks of a killed member do not end"
        time.sleep(0.2)
