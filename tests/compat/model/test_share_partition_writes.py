"""What our share partitions write, against every update that real brokers wrote for the same deliveries and answers.

Each update of a recorded log is taken as one request: what it holds is acquired (until the delivery count is the one
that the update tells) and then answered as the client's journal says. Range, state and count of each batch, the start
offset and the delivery complete count of the write must be those of the update. Locks that end together are released
one after the other here, while a broker writes them all before the start offset moves: there the update may carry an
older start offset, and a delivery complete count that is larger by the offsets between.
"""

import collections
import json

import pytest

from sharelens.broker.ports import BatchSpan
from sharelens.broker.share.acknowledgement import AcknowledgementBatch, AcknowledgeType
from sharelens.broker.share.codes import ShareErrorCode
from state_model.batches import coalesce
from state_model.share_records import DeliveryState, RecordType
from tests.datasets import dataset
from tests.logs.share_partitions import Scene, batches

pytestmark = pytest.mark.compat

LIMITS = {"g-poison": 3}
NOT_ANSWERED = (None, "NONE", "LATE", "KILLED")
ATTEMPTS = 60


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class Recorded:
    """A recorded log: batches of each partition, updates of each share partition, answers to each delivery."""

    def __init__(self, name):
        folder = dataset(name)
        self.topics = {
            topic_id: topic for topic, ids in json.loads((folder / "meta.json").read_text())["topicIds"].items()
            for topic_id in ids
        }  # fmt: skip
        self.spans = collections.defaultdict(list)
        for row in lines(folder / "batches.jsonl"):
            span = BatchSpan(first_offset=row["baseOffset"], last_offset=row["lastOffset"], size_bytes=1)
            self.spans[row["topic"], row["partition"]].append(span)
        self.updates = collections.defaultdict(list)
        for row in lines(folder / "formatter.jsonl"):
            if row["key"]["type"] == RecordType.SHARE_UPDATE:
                key = row["key"]["data"]
                self.updates[key["groupId"], key["topicId"], key["partition"]].append(row["value"]["data"])
        self.answers = {
            (row["g"], row["topic"], row["p"], row["o"], row["dc"]): row["ack"]
            for row in lines(folder / "journal.jsonl")
            if "dc" in row
        }


class Follower:
    """A share partition of ours that is led along the updates of one recorded share partition."""

    def __init__(self, recorded, key):
        self.group, topic_id, self.partition = key
        self.topic = recorded.topics[topic_id]
        self.answers = recorded.answers
        self.scene = Scene(
            start_offset=-1,
            auto_offset_reset="earliest",
            delivery_count_limit=LIMITS.get(self.group, 5),
            partition_max_record_locks=10_000,
        )
        self.scene.log.spans = recorded.spans[self.topic, self.partition]
        self.scene.log.high_watermark = self.scene.log.spans[-1].last_offset + 1
        self.scene.lead()

    def is_acquired(self, offset):
        return any(
            run.state is DeliveryState.ACQUIRED
            for batch in self.scene.partition.window
            for run in batch.runs
            if run.first <= offset <= run.last
        )

    def acquire(self, offsets):
        for _ in range(ATTEMPTS):
            missing = [offset for offset in offsets if not self.is_acquired(offset)]
            if not missing:
                return
            begin = self.scene.partition.window.next_offset()
            self.scene.acquire(max_records=max(1, missing[-1] - begin + 1))

    def follow(self, update):
        """Our write for an update, and whether clients answered or locks ended."""
        rows = [
            (offset, row["deliveryState"], row["deliveryCount"])
            for row in update["stateBatches"]
            for offset in range(row["firstOffset"], row["lastOffset"] + 1)
        ]
        self.acquire([offset for offset, _, _ in rows])
        outcomes = [self.answers.get((self.group, self.topic, self.partition, o, count)) for o, _, count in rows]
        acknowledged = [
            AcknowledgementBatch(first_offset=offset, last_offset=offset, types=(type_of(state, answer),))
            for (offset, state, _), answer in zip(rows, outcomes, strict=True)
        ]
        assert self.scene.partition.acknowledge("m", acknowledged) is ShareErrorCode.NONE, update
        return self.scene.persister.writes[-1], any(answer not in NOT_ANSWERED for answer in outcomes)


def type_of(state, answer):
    if state == DeliveryState.ACKNOWLEDGED:
        return AcknowledgeType.ACCEPT
    return AcknowledgeType.REJECT if answer == "REJECT" else AcknowledgeType.RELEASE


@pytest.mark.parametrize("name", ["basic", "timeouts", "v44"])
def test_each_update_of_a_real_broker_is_what_our_share_partition_writes(name):
    recorded = Recorded(name)
    compared = 0
    for key, updates in sorted(recorded.updates.items()):
        follower = Follower(recorded, key)
        for update in updates:
            write, is_answered = follower.follow(update)
            expected = batches(*(tuple(row.values()) for row in update["stateBatches"]))
            assert coalesce(write.state_batches) == expected, (key, update)
            older = write.start_offset - update["startOffset"]
            counted = update["deliveryCompleteCount"] - write.delivery_complete_count
            assert older == counted, (key, update, write)
            assert older >= 0, (key, update, write)
            assert older == 0 or not is_answered, (key, update, write)
            compared += 1
    assert compared > 200
