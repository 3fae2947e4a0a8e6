"""What a recorded scenario tells a test that plays it again: configurations, records, clients' answers, outcomes."""

import collections
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.datasets import dataset

State = tuple[int, int]
"""Delivery state and delivery count."""
History = tuple[State, ...]
"""The states of one record in the order in which they were written, repeated ones once."""
SharePartition = tuple[str, str, int]
"""Group, topic name, partition."""
Batch = tuple[int, int, int, int]
"""First and last offset, delivery state, delivery count."""
Letter = tuple[str | None, str | None, tuple[tuple[str, str], ...]]
"""Key, value and headers of a dead letter."""

SHARE_UPDATE = 1
DEAD_LETTER_OFFSET = "__dlq.errors.offset"


def histories(updates: Iterable[tuple[SharePartition, list[Batch]]]) -> dict[tuple[SharePartition, int], History]:
    """The history of each offset of each share partition."""
    actual: dict[tuple[SharePartition, int], list[State]] = collections.defaultdict(list)
    for place, batches in updates:
        for first, last, state, count in batches:
            for offset in range(first, last + 1):
                stored = actual[place, offset]
                if stored[-1:] != [(state, count)]:
                    stored.append((state, count))
    return {at: tuple(stored) for at, stored in actual.items()}


class Recorded:
    """A recorded scenario with the answers of its clients."""

    def __init__(self, name: str) -> None:
        folder = dataset(name)
        self._folder = folder
        meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
        self._names = {topic_id: topic for topic, ids in meta["topicIds"].items() for topic_id in ids}
        self.broker_config: dict[str, str] = meta["brokerConfig"]
        self.group_configs = _group_configs(meta["notes"])
        self._answers: dict[tuple[SharePartition, int, int], str] = {}
        self.late_ms: dict[str, int] = {}
        self._answers_by_record: dict[tuple[SharePartition, int], list[str]] = collections.defaultdict(list)
        self._read_journal(folder / "journal.jsonl")

    def _read_journal(self, path: Path) -> None:
        """Answers by share partition, offset and delivery count; how long a group's client waits with late ones."""
        delivered_ms: dict[tuple[SharePartition, int], int] = {}
        for row in _rows(path):
            if "o" not in row:
                continue
            place = (row["g"], row["topic"], row["p"])
            at = (place, row["o"])
            if "dc" in row:
                delivered_ms[at] = row["t"]
                self._answers[*at, row["dc"]] = row["ack"]
                self._answers_by_record[at].append(row["ack"])
            elif row.get("ev") == "late":
                waited_ms = row["t"] - delivered_ms[at]
                self.late_ms[place[0]] = min(waited_ms, self.late_ms.get(place[0], waited_ms))

    def answer(self, place: SharePartition, offset: int, delivery_count: int) -> str:
        """The answer to a delivery; to one that no recorded client saw, what was answered to the record before."""
        while delivery_count > 0:
            answer = self._answers.get((place, offset, delivery_count))
            if answer is not None:
                return answer
            delivery_count -= 1
        return "ACCEPT"

    def state_records(self) -> Iterator[tuple[SharePartition, int, dict]]:
        """Share partition, type and value of each record of the state log, in the order of each state partition."""
        for group, topic_id, partition, number, value in self._state_rows():
            yield (group, self._names[topic_id], partition), number, value

    def lives(self) -> Iterator[tuple[tuple[str, tuple[str, int], int], int, dict | None]]:
        """As state_records, with a topic's name and its life: 1 after it was deleted and made again."""
        names = list(self._names.values())
        lives = {
            topic_id: (name, names[:index].count(name)) for index, (topic_id, name) in enumerate(self._names.items())
        }
        for group, topic_id, partition, number, value in self._state_rows():
            yield (group, lives[topic_id], partition), number, value

    def _state_rows(self) -> Iterator[tuple[str, str, int, int, dict | None]]:
        for row in _rows(self._folder / "formatter.jsonl"):
            key = row["key"]["data"]
            value = row["value"] and row["value"]["data"]
            yield key["groupId"], key["topicId"], key["partition"], row["key"]["type"], value

    def whole_histories(self, group: str) -> dict[tuple[SharePartition, int], History]:
        """The histories of a group's records, of those alone whose every delivery was seen by a client."""
        seen_counts: dict[tuple[SharePartition, int], set[int]] = collections.defaultdict(set)
        for place, offset, count in self._answers:
            seen_counts[place, offset].add(count)
        actual = histories(self._updates(group))
        return {at: history for at, history in actual.items() if seen_counts[at] == set(range(1, history[-1][1] + 1))}

    def _updates(self, group: str) -> Iterator[tuple[SharePartition, list[Batch]]]:
        for place, number, value in self.state_records():
            if number == SHARE_UPDATE and place[0] == group:
                yield place, [tuple(batch.values()) for batch in value["stateBatches"]]

    def outcomes(self, group: str) -> dict[tuple[str, ...], set[History]]:
        """What became of records of a group, by the answers that its clients gave to their deliveries."""
        actual: dict[tuple[str, ...], set[History]] = collections.defaultdict(set)
        for at, history in histories(self._updates(group)).items():
            actual[tuple(self._answers_by_record[at])].add(history)
        return actual

    def kinds(self, group: str) -> set[tuple]:
        """The shapes of a group's records in __consumer_offsets: type, version and the names of the value's fields."""
        return {
            shape(row["key"], row["value"])
            for row in _rows(self._folder / "formatter-offsets.jsonl")
            if "key" in row and row["key"]["data"].get("groupId") == group
        }

    def user_records(self, topic: str) -> dict[int, list[dict]]:
        """The records of a topic by partition, in the order of their offsets."""
        actual: dict[int, list[dict]] = collections.defaultdict(list)
        for row in _rows(self._folder / "topics.jsonl"):
            if row["topic"] == topic:
                actual[row["partition"]].append(row)
        return {partition: sorted(rows, key=lambda row: row["offset"]) for partition, rows in actual.items()}

    def dead_letters(self, topic: str) -> list[tuple[int, Letter]]:
        """Partition and content of each dead letter in a topic."""
        return [
            (partition, (row["key"], row["value"], tuple((each["key"], each["utf8"]) for each in row["headers"])))
            for partition, rows in self.user_records(topic).items()
            for row in rows
        ]


def shape(key: dict, value: dict | None) -> tuple:
    """Type, version and field names of a record of a group."""
    return (key["type"], None) if value is None else (key["type"], value["version"], tuple(value["data"]))


def _group_configs(notes: list[str]) -> dict[str, dict[str, str]]:
    """`<time> group config GROUP name,value,name,value…`; later notes add to earlier ones."""
    actual: dict[str, dict[str, str]] = collections.defaultdict(dict)
    for note in notes:
        words = note.split()
        if words[1:3] == ["group", "config"]:
            pairs = words[4].split(",")
            actual[words[3]].update(zip(pairs[::2], pairs[1::2], strict=True))
    return actual


def _rows(path: Path) -> Iterator[dict]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)
