"""Shapes of a share coordinator's day, as endless streams of events from a seed.

hot: few share partitions that are written all the time; snapshots come from the update limit.
failing: many share partitions whose members mostly fail: half of the records are given up at the delivery count limit,
in short ranges.
cool: many share partitions that are seldom written; the cold snapshot job rewrites them all every five minutes, because
some key of each state partition was always reset since the last time.
"""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench import simulate as sim
from bench.simulate import Events, Habits
from state_model.java import partition_for
from state_model.uuids import uuid_text

FIRST_TIME_MS = 1_767_225_600_000
EVENTS_AT_ONCE = 100_000
HOT_STEP_MS = 2
READS_OF_A_MILLION = 100
COLD_WRITES_PER_ROUND = 9  # one write for nine cold snapshots
COLD_ROUND_MS = sim.COLD_INTERVAL_MS
PARTITIONS_PER_TOPIC = 5

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharePartitions:
    """The share partitions of a log: one entry each, and the state partition that their key hashes to."""

    group_ids: pa.Array
    topic_ids: pa.Array
    partitions: pa.Array
    state_partitions: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How a log looks: `window` ranges at most in a share partition, the records of a state partition within
    `linger_ms` in one batch."""

    name: str
    share_partitions: int
    window: int
    linger_ms: int
    events: Callable[[int, int, SharePartitions], Events]
    habits: Habits = field(default_factory=Habits)


def share_partitions(count: int, seed: int, state_partitions: int) -> SharePartitions:
    """Groups and topics of a seed: five partitions a topic, ten topics a group."""
    topics = [_topic_id(seed, number // PARTITIONS_PER_TOPIC) for number in range(count)]
    groups = [f"orders-group-{number // (10 * PARTITIONS_PER_TOPIC):03}" for number in range(count)]
    partitions = [number % PARTITIONS_PER_TOPIC for number in range(count)]
    numbers = [partition_for(*key, state_partitions) for key in zip(groups, topics, partitions, strict=True)]
    return SharePartitions(
        group_ids=pa.array(groups, pa.string()),
        topic_ids=pa.array(topics, pa.string()),
        partitions=pa.array(partitions, pa.int32()),
        state_partitions=np.array(numbers, np.int64),
    )


def hot_events(chunk: int, seed: int, keys: SharePartitions) -> Events:
    """Writes to random share partitions, and now and then the read of a new leader; the first event creates."""
    random = np.random.default_rng([seed, chunk])
    count = len(keys.state_partitions)
    operations = np.full(EVENTS_AT_ONCE, sim.WRITE, np.int64)
    operations[random.integers(0, 1_000_000, EVENTS_AT_ONCE) < READS_OF_A_MILLION] = sim.READ
    order = np.arange(EVENTS_AT_ONCE, dtype=np.int64) + chunk * EVENTS_AT_ONCE
    return Events(
        keys=random.integers(0, count, EVENTS_AT_ONCE),
        operations=operations,
        times=FIRST_TIME_MS + order * HOT_STEP_MS,
    )


def cool_events(chunk: int, seed: int, keys: SharePartitions) -> Events:
    """Chunk 0 creates all share partitions and writes each twice; the others are five minutes that end with the job."""
    random = np.random.default_rng([seed, chunk])
    count = len(keys.state_partitions)
    everyone = np.arange(count, dtype=np.int64)
    begin = FIRST_TIME_MS + chunk * COLD_ROUND_MS
    if chunk == 0:
        operations = np.repeat(np.array([sim.INITIALIZE, sim.WRITE, sim.WRITE], np.int64), count)
        times = begin + np.linspace(0, COLD_ROUND_MS // 2, 3 * count).astype(np.int64)
        return Events(keys=np.tile(everyone, 3), operations=operations, times=times)
    shuffled = random.permutation(count)
    reset = shuffled[np.unique(keys.state_partitions[shuffled], return_index=True)[1]]
    written = random.integers(0, count, count // COLD_WRITES_PER_ROUND)
    busy = np.concatenate([reset, written])
    operations = np.concatenate([np.full(len(reset), sim.INITIALIZE), np.full(len(written), sim.WRITE)]).astype(
        np.int64
    )
    mixed = random.permutation(len(busy))
    # The job comes well after the last write, so that its records share no batch with one.
    times = begin + np.linspace(0, COLD_ROUND_MS * 9 // 10, len(busy)).astype(np.int64)
    return Events(
        keys=np.concatenate([busy[mixed], everyone]),
        operations=np.concatenate([operations[mixed], np.full(count, sim.COLD, np.int64)]),
        times=np.concatenate([times, np.full(count, begin + COLD_ROUND_MS - 1)]),
    )


def _topic_id(seed: int, number: int) -> str:
    """A version 4 uuid that belongs to the seed and the number, as Kafka's topic ids are."""
    raw = np.random.default_rng([seed, number, 1]).bytes(16)
    return uuid_text(uuid.UUID(bytes=raw, version=4).bytes)


SHAPES = {
    "hot": Shape(name="hot", share_partitions=20, window=48, linger_ms=2_000, events=hot_events),
    "cool": Shape(name="cool", share_partitions=20_000, window=12, linger_ms=5_000, events=cool_events),
    "failing": Shape(
        name="failing",
        share_partitions=1_000,
        window=400,
        linger_ms=2_000,
        events=hot_events,
        habits=Habits(actions=20, again=60, acknowledged=8, archived=1, limit=5, longest=2),
    ),
}
