"""The progress of a run from the journal's entries: the records that each group has settled."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field

from sharelens.workloads.journal import Entry

Place = tuple[int, int]
"""Partition and offset."""


@dataclass(slots=True)
class _Group:
    start_offsets: dict[int, int] = field(default_factory=dict)
    settled: set[Place] = field(default_factory=set)
    delivered: set[Place] = field(default_factory=set)
    last_delivery_ms: int = 0


class Progress:
    """Listens to the journal (journal.Journal.listen). All groups read one topic.

    A record is settled when an acknowledgement that ends it was confirmed: accept, reject, or a release at the
    delivery count limit.
    """

    def __init__(self, groups: Iterable[str], delivery_count_limit: int) -> None:
        self._limit = delivery_count_limit
        self._groups = {group: _Group() for group in groups}
        self._produced: set[Place] = set()
        self._open: dict[int, list[Place]] = {}
        self._lock = threading.Lock()

    def note(self, entry: Entry) -> None:
        """Apply an entry."""
        with self._lock:
            match entry["event"]:
                case "produce" if entry["outcome"] == "acknowledged":
                    self._produce(entry)
                case "transaction":
                    places = self._open.pop(entry["transaction"], [])
                    if entry["outcome"] == "committed":
                        self._produced.update(places)
                case "delivery":
                    group = self._groups[entry["group"]]
                    group.delivered.add((entry["partition"], entry["offset"]))
                    group.last_delivery_ms = entry["at_ms"]
                case "ack" if entry["outcome"] == "confirmed":
                    self._ack(entry)
                case "reset" if entry["outcome"] == "done":
                    self._reset(entry)

    def _produce(self, entry: Entry) -> None:
        place = entry["partition"], entry["offset"]
        if "transaction" in entry:
            self._open.setdefault(entry["transaction"], []).append(place)
        else:
            self._produced.add(place)

    def _ack(self, entry: Entry) -> None:
        settled = self._groups[entry["group"]].settled
        for offset, count in zip(entry["offsets"], entry["delivery_counts"], strict=True):
            if entry["type"] != "release" or count >= self._limit:
                settled.add((entry["partition"], offset))

    def _reset(self, entry: Entry) -> None:
        group, partition = self._groups[entry["group"]], entry["partition"]
        group.start_offsets[partition] = entry["start_offset"]
        for places in (group.settled, group.delivered):
            places.difference_update([at for at in places if at[0] == partition])

    def produced(self) -> int:
        """The number of records due to each group without resets."""
        with self._lock:
            return len(self._produced)

    def end_offsets(self) -> dict[int, int]:
        """The end offset of each partition with records."""
        with self._lock:
            ends: dict[int, int] = {}
            for partition, offset in self._produced:
                ends[partition] = max(ends.get(partition, 0), offset + 1)
            return ends

    def is_settled(self) -> bool:
        """Whether all groups have settled all due records."""
        with self._lock:
            return all(self._due(group) <= group.settled for group in self._groups.values())

    def is_quiet(self, since_ms: int) -> bool:
        """Whether every group got every due record, and no delivery since a time."""
        with self._lock:
            return all(
                group.last_delivery_ms < since_ms and self._due(group) <= group.delivered
                for group in self._groups.values()
            )

    def _due(self, group: _Group) -> set[Place]:
        if not group.start_offsets:
            return self._produced
        return {at for at in self._produced if at[1] >= group.start_offsets.get(at[0], 0)}
