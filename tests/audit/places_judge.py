"""An independent judge of places and identities: partitions by hash, ids of internal topics, bytes of group records.

It tries every number of partitions, and reads bytes by a grammar of its own. It shares no code with the audit.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from state_model.java import coordinator_key, magnitude, string_hash
from state_model.metadata.schemas import RECORD_TYPES, TOPIC
from state_model.topics import METADATA_TOPIC, OFFSETS_TOPIC, STATE_TOPIC
from tests.audit.world import World
from tests.logs.group_files import OFFSETS_TOPIC_ID
from tests.logs.state_logs import ORDERS_ID, STATE_TOPIC_ID

MOST_PARTITIONS: Final = 10_000
FEWEST: Final = 3
HEADER_BYTES: Final = 3
PREVIEW: Final = (9, 18)
OF_MEMBERS: Final = (10, 13, 14)
JUDGED: Final = frozenset({
    "misplaced_share_partition", "state_partition_count_changed", "state_topic_created_again", "log_of_other_cluster",
    "misplaced_group", "group_in_many_partitions", "preview_record_type", "undecodable_group_record",
})  # fmt: skip
"""The rules that it judges."""
TOPICS, NAMED = "*(uI)", "*(usI)"
GRAMMAR: Final[Mapping[int, str]] = {
    10: "nss*(s!)", 11: "48", 12: "4", 13: TOPICS, 14: f"441{TOPICS}", 15: f"{NAMED}{NAMED}*(us)",
}  # fmt: skip
"""Fields of values: digits are bytes, u a topic id, s a string, n one or null, I numbers, *() a list of structures."""


class Fault(NamedTuple):
    """A rule and its place; the log partition is None for rules about whole topics, `offset` for rules on places."""

    rule: str
    group: str | None
    log: tuple[str, int | None]
    offset: int | None = None


def judge_places(world: World) -> set[Fault]:
    """What the logs violate."""
    return {*_misplaced_state(world), *_misplaced_groups(world), *_strangers(world), *_odd_bytes(world)}


def named(rows: Sequence[Mapping[str, Any]]) -> set[Fault]:
    """The faults that findings name, as far as the judge knows their rules."""
    return {_fault(row) for row in rows if row["rule"] in JUDGED}


def _fault(row: Mapping[str, Any]) -> Fault:
    log_record = next(record for record in row["records"] if record["topic"] != METADATA_TOPIC)
    rule = row["rule"]
    if rule in ("preview_record_type", "undecodable_group_record"):
        return Fault(rule, row["group_id"], (log_record["topic"], log_record["partition"]), row["first_log_offset"])
    is_about_topic = rule in ("state_topic_created_again", "log_of_other_cluster")
    return Fault(rule, row["group_id"], (log_record["topic"], None if is_about_topic else log_record["partition"]))


def best_count(placed: Sequence[tuple[int, int]]) -> tuple[int | None, int | None]:
    """By (hash, partition) the number of partitions that fits most, and the only one that fits all others."""
    counts = np.arange(1, MOST_PARTITIONS + 1)
    fits = np.array([hashed % counts == number for hashed, number in placed]).reshape(len(placed), MOST_PARTITIONS)
    fitting = fits.sum(axis=0)
    best_fit = int(fitting.max(initial=0))
    if np.count_nonzero(fitting == best_fit) != 1 or best_fit < FEWEST or 2 * best_fit <= len(placed):
        return None, None
    count = int(fitting.argmax()) + 1
    rest = fits[~fits[:, count - 1]]
    other_counts = np.flatnonzero(rest.all(axis=0)) + 1
    return count, int(other_counts[0]) if len(other_counts) == 1 and len(rest) >= FEWEST else None


def _misplaced_state(world: World) -> Iterator[Fault]:
    newest = _state_topic_id(world)
    places = {
        (row["group_id"], row["partition"], number)
        for number, rows in world.state.items()
        if world.state_ids.get(number, STATE_TOPIC_ID) == newest
        for row in rows
    }
    hashes = {
        (group, number, state): (magnitude(string_hash(coordinator_key(group, ORDERS_ID, number))), state)
        for group, number, state in places
    }
    count, other = best_count(list(hashes.values()))
    if count is None:
        return
    for (group, _, _), (hashed, number) in hashes.items():
        if hashed % count != number:
            rule = "misplaced_share_partition" if other is None else "state_partition_count_changed"
            yield Fault(rule, group if other is None else None, (STATE_TOPIC, number))


def _misplaced_groups(world: World) -> Iterator[Fault]:
    hashes = {
        (entry.group_id, number): (magnitude(string_hash(entry.group_id)), number)
        for number, entries in world.groups.items()
        for entry in entries
    }
    count, _ = best_count(list(hashes.values()))
    for (group, number), (hashed, _) in hashes.items():
        if count is not None and hashed % count != number:
            yield Fault("misplaced_group", group, (OFFSETS_TOPIC, number))
    for group in {group for group, _ in hashes}:
        numbers = sorted(number for other, number in hashes if other == group)
        if len(numbers) > 1:
            yield Fault("group_in_many_partitions", group, (OFFSETS_TOPIC, numbers[0]))


def _state_topic_id(world: World) -> str:
    """The id of the state topic's newest incarnation."""
    newest = {
        world.state_ids.get(number, STATE_TOPIC_ID): max(row["timestamp_ms"] for row in rows)
        for number, rows in sorted(world.state.items())
    }
    return max(newest, key=lambda topic_id: newest[topic_id])


def _strangers(world: World) -> Iterator[Fault]:
    """The metadata log knows both internal topics by other ids, or the state topic has two."""
    known_ids: dict[str, set[str]] = {STATE_TOPIC: set(), OFFSETS_TOPIC: set()}
    for _, value in world.metadata or ():
        if value[1] == TOPIC:
            tree, _ = RECORD_TYPES[TOPIC].versions[0].read(value, HEADER_BYTES)
            known_ids.setdefault(str(tree["name"]), set()).add(str(tree["topic_id"]))
    log_ids = {STATE_TOPIC: _state_topic_id(world), OFFSETS_TOPIC: OFFSETS_TOPIC_ID}
    strangers = {topic for topic, topic_id in log_ids.items() if known_ids[topic] and topic_id not in known_ids[topic]}
    yield from (Fault("log_of_other_cluster", None, (topic, None)) for topic in strangers)
    ids = {world.state_ids.get(number, STATE_TOPIC_ID) for number in world.state}
    if len(ids if STATE_TOPIC in strangers else ids | known_ids[STATE_TOPIC]) > 1:
        yield Fault("state_topic_created_again", None, (STATE_TOPIC, None))


def _odd_bytes(world: World) -> Iterator[Fault]:
    for number, entries in world.groups.items():
        for offset, entry in enumerate(entries):
            key, value = world.damaged.get(offset, _same)(*entry.encoded())
            record_type = int.from_bytes(key[:2], "big")
            if record_type in PREVIEW:
                yield Fault("preview_record_type", entry.group_id, (OFFSETS_TOPIC, number), offset)
            if record_type in GRAMMAR and not (_is_key(record_type, key) and _is_readable(record_type, value)):
                yield Fault("undecodable_group_record", entry.group_id, (OFFSETS_TOPIC, number), offset)


def _same(key: bytes, value: bytes | None) -> tuple[bytes, bytes | None]:
    return key, value


def _is_key(record_type: int, key: bytes) -> bool:
    """Whether a key has a group, and a member where its type has one, and nothing else."""
    at = 2
    for _ in range(2 if record_type in OF_MEMBERS else 1):
        at += 2 + int.from_bytes(key[at : at + 2], "big")
    return at == len(key)


def _is_readable(record_type: int, value: bytes | None) -> bool:
    """Whether the fields are there; a version that nobody knows is no damage, nor are bytes behind the last field."""
    if value is None or (len(value) >= 2 and value[:2] != b"\0\0"):
        return True
    try:
        _struct(GRAMMAR[record_type], value, 2)
    except (IndexError, ValueError):
        return False
    return True


def _struct(grammar: str, value: bytes, at: int) -> int:
    """The end of a structure with its tagged fields."""
    place = 0
    while place < len(grammar):
        kind = grammar[place]
        if kind == "*":
            inner, place = _inner(grammar, place + 1)
            at = _list(value, at, lambda start, inner=inner: _item(inner, value, start))
            continue
        at = _field(kind, value, at)
        place += 1
    return _tags(value, at)


def _inner(grammar: str, begin: int) -> tuple[str, int]:
    end = grammar.index(")", begin)
    return grammar[begin + 1 : end], end + 1


def _item(inner: str, value: bytes, at: int) -> int:
    """An item of a list: a structure, or with ! a field alone."""
    return _field(inner[0], value, at) if inner.endswith("!") else _struct(inner, value, at)


def _field(kind: str, value: bytes, at: int) -> int:
    if kind == "I":
        return _list(value, at, lambda start: _after(value, start, 4))
    if kind in "ns":
        size, at = _number(value, at)
        if size == 0 and kind == "s":
            raise ValueError("null")
        end = _after(value, at, max(0, size - 1))
        value[at:end].decode()
        return end
    return _after(value, at, 16 if kind == "u" else int(kind))


def _list(value: bytes, at: int, item: Callable[[int], int]) -> int:
    count, at = _number(value, at)
    if count == 0:
        raise ValueError("null")
    for _ in range(count - 1):
        at = item(at)
    return at


def _tags(value: bytes, at: int) -> int:
    count, at = _number(value, at)
    for _ in range(count):
        _, at = _number(value, at)
        size, at = _number(value, at)
        at = _after(value, at, size)
    return at


def _after(value: bytes, at: int, size: int) -> int:
    if at + size > len(value):
        raise IndexError(at)
    return at + size


def _number(value: bytes, at: int) -> tuple[int, int]:
    """An unsigned number in groups of seven bits."""
    number = shift = 0
    while True:
        number |= (value[at] & 127) << shift
        at += 1
        if value[at - 1] < 128:
            return number, at
        shift += 7
        if shift > 28:
            raise ValueError("too long")
