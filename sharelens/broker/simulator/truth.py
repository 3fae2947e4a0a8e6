"""Checkpoints of a simulation: the share coordinator's answers for all share partitions, and streams groups.

One JSON object a line, a line a checkpoint, fields as those of the recorded logs: the end and start offsets of the
state partitions, the ends of `__consumer_offsets`, and for each live share partition the answers to Read and
ReadSummary.
"""

import json
from pathlib import Path
from typing import Any, Final

from sharelens.broker.broker import Broker
from sharelens.broker.checkpoint_lines import checkpoint_line, state_entry
from sharelens.broker.handlers.streams_groups import described_json
from sharelens.broker.simulator.world import World
from state_model import answers
from state_model.machine import PartitionState
from state_model.share_records import SharePartitionKey
from state_model.topics import OFFSETS_TOPIC, STATE_TOPIC

CHECKPOINTS_FILE: Final = "checkpoints.jsonl"


class Truth:
    """Writes checkpoints, one after the other."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = 0
        path.write_text("", encoding="utf-8")

    def take(self, world: World, name: str) -> None:
        """Write a checkpoint; changes no state."""
        line = json.dumps(checkpoint(world, self.checkpoints, name), ensure_ascii=False, separators=(",", ":"))
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        self.checkpoints += 1


def checkpoint(world: World, number: int, name: str) -> dict[str, Any]:
    """One checkpoint as a JSON document."""
    logs, count = world.broker.logs, world.settings.state_partitions
    state_logs = [(index, logs.get(STATE_TOPIC, index)) for index in range(count)]
    offsets_logs = [(index, logs.get(OFFSETS_TOPIC, index)) for index in range(count)]
    states = []
    for index, log in state_logs:
        state = None if log is None else world.broker.share_coordinator.state_of(index)
        if state is not None:
            states += [_entry(world, state, key) for key in sorted(state.share_partitions)]
    return checkpoint_line(
        number,
        name,
        world.clock.now_ms,
        ends={index: log.high_watermark for index, log in state_logs if log is not None},
        starts={index: log.log_start_offset for index, log in state_logs if log is not None},
        **streams_groups(world.broker),
        consumerOffsetsEnd={str(index): log.high_watermark for index, log in offsets_logs if log is not None},
        states=states,
    )


def streams_groups(broker: Broker) -> dict[str, Any]:
    """`groups` of a checkpoint: the answer to StreamsGroupDescribe for each streams group; nothing without any."""
    groups = {group_id: {"describe": described_json(broker, group_id)} for group_id, _ in broker.streams_groups}
    return {"groups": groups} if groups else {}


def _entry(world: World, state: PartitionState, key: SharePartitionKey) -> dict[str, Any]:
    topic = world.broker.catalog.by_id(key.topic_id)
    read = answers.read(state, key, leader_epoch=state.share_partitions[key].leader_epoch_max)
    return state_entry(key, None if topic is None else topic.name, read, answers.read_summary(state, key))
