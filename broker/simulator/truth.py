"""The truth of a simulation: what the share coordinator answers for all share partitions, at chosen moments.

One JSON object a line, a line a checkpoint, fields as those of the recorded logs: the end and start offsets of the
state partitions, the ends of `__consumer_offsets`, and for each live share partition the answers to Read and
ReadSummary.
"""

import json
from pathlib import Path
from typing import Any, Final

from broker.simulator.world import STATE_TOPIC, World
from state_model import answers
from state_model.machine import PartitionState
from state_model.share_records import SharePartitionKey

CHECKPOINTS_FILE: Final = "checkpoints.jsonl"
OFFSETS_TOPIC: Final = "__consumer_offsets"


class Truth:
    """Writes checkpoints, one after the other."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = 0
        path.write_text("", encoding="utf-8")

    def take(self, world: World, name: str) -> None:
        """Write how things stand; nothing changes by it."""
        line = json.dumps(checkpoint(world, self.checkpoints, name), ensure_ascii=False, separators=(",", ":"))
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        self.checkpoints += 1


def checkpoint(world: World, number: int, name: str) -> dict[str, Any]:
    """One checkpoint as a JSON document."""
    logs, count = world.broker.logs, world.settings.state_partitions
    held = [(index, logs.get(STATE_TOPIC, index)) for index in range(count)]
    others = [(index, logs.get(OFFSETS_TOPIC, index)) for index in range(count)]
    states = []
    for index, log in held:
        state = None if log is None else world.broker.share_coordinator.state_of(index)
        if state is not None:
            states += [_entry(world, state, key) for key in sorted(state.share_partitions)]
    return {
        "checkpoint": number,
        "name": name,
        "wallMs": world.clock.now_ms,
        "logEndOffsets": {str(index): log.high_watermark for index, log in held if log is not None},
        "logStartOffsets": {str(index): log.log_start_offset for index, log in held if log is not None},
        "consumerOffsetsEnd": {str(index): log.high_watermark for index, log in others if log is not None},
        "states": states,
    }


def _entry(world: World, state: PartitionState, key: SharePartitionKey) -> dict[str, Any]:
    topic = world.broker.catalog.by_id(key.topic_id)
    read = answers.read(state, key, leader_epoch=state.share_partitions[key].leader_epoch_max)
    summary = answers.read_summary(state, key)
    return {
        "group": key.group_id,
        "topic": None if topic is None else topic.name,
        "topicId": key.topic_id,
        "partition": key.partition,
        "read": {
            "partition": key.partition,
            "errorCode": int(read.error_code),
            "errorMessage": None,
            "stateEpoch": read.state_epoch,
            "startOffset": read.start_offset,
            "stateBatches": [
                {
                    "firstOffset": one.first_offset,
                    "lastOffset": one.last_offset,
                    "deliveryState": int(one.delivery_state),
                    "deliveryCount": one.delivery_count,
                }
                for one in read.state_batches
            ],
        },
        "summary": {
            "partition": key.partition,
            "errorCode": int(summary.error_code),
            "errorMessage": None,
            "stateEpoch": summary.state_epoch,
            "leaderEpoch": summary.leader_epoch,
            "startOffset": summary.start_offset,
            "deliveryCompleteCount": summary.delivery_complete_count,
        },
    }
