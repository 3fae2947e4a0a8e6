"""Legal histories of one state partition: a share coordinator and leaders of share partitions, driven by a seed.

The coordinator is the write side of the reference model; leaders acquire, acknowledge, release and archive as
share-partition §4-8 says. Nothing here knows the audit.
"""

import functools
import random
from dataclasses import dataclass, field
from typing import NamedTuple

from state_model import coordinator
from state_model.coordinator import WriteRequest
from state_model.java import partition_for
from state_model.machine import PartitionState, apply
from state_model.rule_sets import KAFKA_4_4
from state_model.share_records import AnyRecord, SharePartitionKey, StateBatch, decode_record, encode_record

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAABQ"
COUNT = 50
LIMIT = 6
START_MS = 1_790_000_000_000
AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4
LARGEST_COUNT = 5


class Entry(NamedTuple):
    """A record of the log in bytes."""

    log_offset: int
    timestamp_ms: int
    key: bytes
    value: bytes | None


@functools.lru_cache(maxsize=1 << 14)
def decode_once(key: bytes, value: bytes | None) -> AnyRecord:
    """The record of these bytes: damaged logs have most of their bytes in common."""
    return decode_record(key, value)


@dataclass
class Leader:
    """The leader of a share partition: its window of record offsets from `start` on, each (state, delivery count)."""

    leader_epoch: int
    state_epoch: int
    start: int
    window: dict[int, tuple[int, int]] = field(default_factory=dict)
    next_offset: int = 0

    def acknowledge(self, chance: random.Random) -> WriteRequest:
        """Delivers some records once more or for the first time, and writes their outcomes."""
        again = [offset for offset, (state, _) in self.window.items() if state == AVAILABLE]
        chosen = chance.sample(again, min(len(again), chance.randint(0, 3)))
        fresh = range(self.next_offset, self.next_offset + chance.randint(1, 5))
        self.next_offset = fresh.stop + (chance.random() < 0.1)
        batches = []
        for offset in sorted([*chosen, *fresh]):
            count = self.window.get(offset, (AVAILABLE, 0))[1] + 1
            state = chance.choice([ACKNOWLEDGED, ACKNOWLEDGED, ACKNOWLEDGED, AVAILABLE, ARCHIVED])
            if state == AVAILABLE and count >= LARGEST_COUNT:
                state = ARCHIVED
            self.window[offset] = (state, count)
            batches.append(StateBatch(offset, offset, state, count))
        terminal = sum(state != AVAILABLE for state, _ in self.window.values())
        request = WriteRequest(self.state_epoch, self.leader_epoch, self.start, tuple(batches), terminal)
        while self.start in self.window and self.window[self.start][0] != AVAILABLE:
            del self.window[self.start]
            self.start += 1
        return request


class History:
    """Runs operations on three share partitions and keeps what the coordinator appends; `entries`: the log so far.

    `limit`: updates after which a write becomes a snapshot. `forgets`: a fault of the coordinator, numbers of records
    that it applies to its memory and never appends.
    """

    def __init__(
        self, seed: int, *, forgets: frozenset[int] = frozenset(), count: int = COUNT, limit: int = LIMIT
    ) -> None:
        self.chance = random.Random(seed)
        self.entries: list[Entry] = []
        self.forgets = forgets
        self.state = PartitionState(update_limit=limit, rules=KAFKA_4_4)
        self.leaders: dict[SharePartitionKey, Leader] = {}
        self.now_ms = START_MS
        self.state_partition, self.keys = _keys_of_one_partition(count)
        self._appended = 0

    def run(self, operations: int) -> "History":
        """Runs so many operations, each of them on one share partition or (cold snapshots) on all."""
        for _ in range(operations):
            self.now_ms += self.chance.randint(1, 400)
            kind = self.chance.choices(
                (self.write, self.lead, self.reset, self.delete, self.rewrite_cold), (80, 5, 4, 3, 8)
            )[0]
            kind(self.chance.choice(self.keys))
        return self

    def write(self, key: SharePartitionKey) -> None:
        """A write of the leader, which is elected first where there is none."""
        if key not in self.leaders:
            self.lead(key)
        request = self.leaders[key].acknowledge(self.chance)
        self._append(coordinator.write(self.state, key, request, now_ms=self.now_ms).records)

    def lead(self, key: SharePartitionKey) -> None:
        """A new leader reads the state."""
        if key not in self.state.share_partitions:
            self._initialize(key, start=-1, epoch=self.chance.randint(1, 3))
        epoch = self.state.share_partitions[key].leader_epoch_max + 1
        read = coordinator.read(self.state, key, leader_epoch=epoch, now_ms=self.now_ms)
        current = self.state.share_partitions[key]
        window = {
            offset: (batch.delivery_state, batch.delivery_count)
            for batch in current.state_batches
            for offset in range(batch.first_offset, batch.last_offset + 1)
        }
        start = max(current.start_offset, 0)
        self._append(read.records)
        end = max(window, default=start - 1) + 1
        self.leaders[key] = Leader(epoch, current.state_epoch, start, window, end)

    def reset(self, key: SharePartitionKey) -> None:
        """AlterShareGroupOffsets: with the same state epoch or the next one."""
        if key in self.state.share_partitions:
            epoch = self.state.share_partitions[key].state_epoch + self.chance.randint(0, 1)
            self._initialize(key, start=self.chance.randint(0, 60), epoch=epoch)
            self.leaders.pop(key, None)

    def delete(self, key: SharePartitionKey) -> None:
        """The deletion of the share partition."""
        self._append(coordinator.delete(self.state, key).records)
        self.leaders.pop(key, None)

    def rewrite_cold(self, key: SharePartitionKey) -> None:
        """The job that writes old snapshots again."""
        self._append(coordinator.snapshot_cold(self.state, now_ms=self.now_ms, interval_ms=1000))

    def _initialize(self, key: SharePartitionKey, *, start: int, epoch: int) -> None:
        done = coordinator.initialize(self.state, key, state_epoch=epoch, start_offset=start, now_ms=self.now_ms)
        self._append(done.records)

    def _append(self, records: coordinator.Records) -> None:
        for record in records:
            self.state = apply(self.state, len(self.entries), self.now_ms, record)
            if self._appended not in self.forgets:
                self.entries.append(Entry(len(self.entries), self.now_ms, *encode_record(record)))
            self._appended += 1


def _keys_of_one_partition(count: int) -> tuple[int, list[SharePartitionKey]]:
    """A state partition, and three share partitions that hash to it."""
    by_partition: dict[int, list[SharePartitionKey]] = {}
    for number in range(1000):
        key = SharePartitionKey(group_id=f"g{number}", topic_id=TOPIC_ID, partition=number % 7)
        keys = by_partition.setdefault(partition_for(*key, count), [])
        keys.append(key)
        if len(keys) == 3:
            return partition_for(*key, count), keys
    raise ValueError(f"{count} state partitions leave no three share partitions in one")
