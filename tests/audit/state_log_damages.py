"""Damages of a state log: each changes the bytes of records, the order of records, or the coordinator's memory."""

import random
from collections.abc import Callable, Sequence
from typing import Any

from state_model.share_records import ShareRecord, ShareSnapshot, StateBatch, Tombstone, encode_record
from tests.audit.histories import Entry, History, decode_once

OPERATIONS = 120
"""Of a simulated history."""
Log = Sequence[Entry]
Damage = Callable[[Log, random.Random], Log]


def rows_of(entries: Log, kind: type, chance: random.Random, suits: Callable[[Any], bool] = bool) -> int:
    """A row whose value is of a kind and suits; IndexError if there is none."""
    rows = [
        row
        for row, entry in enumerate(entries)
        if isinstance(value := decoded(entry).value, kind) and (kind is Tombstone or suits(value))
    ]
    return chance.choice(rows)


def decoded(entry: Entry) -> ShareRecord:
    """The record of an entry of a legal history."""
    record = decode_once(entry.key, entry.value)
    assert isinstance(record, ShareRecord)
    return record


def renumbered(entries: Log) -> Log:
    """The log with offsets from 0 on."""
    return [entry._replace(log_offset=offset) for offset, entry in enumerate(entries)]


def with_value(entries: Log, row: int, **changes: Any) -> Log:
    """The log with other fields of one value."""
    record = decoded(entries[row])
    key, value = encode_record(record._replace(value=record.value._replace(**changes)))  # type: ignore[union-attr]
    return [*entries[:row], entries[row]._replace(key=key, value=value), *entries[row + 1 :]]


def changed(kind: type, change: Callable[[Any], dict[str, Any]], suits: Callable[[Any], bool] = bool) -> Damage:
    """The damage that changes fields of one value of a kind."""

    def damage(entries: Log, chance: random.Random) -> Log:
        row = rows_of(entries, kind, chance, suits)
        return with_value(entries, row, **change(decoded(entries[row]).value))

    return damage


def first_batch(**changes: Callable[[StateBatch], int]) -> Callable[[Any], dict[str, Any]]:
    """The change of fields of the first state batch."""

    def change(value: Any) -> dict[str, Any]:
        first, *rest = value.state_batches
        return {"state_batches": (first._replace(**{name: new(first) for name, new in changes.items()}), *rest)}

    return change


def has_batches(value: Any) -> bool:
    return bool(value.state_batches)


def is_cold(value: ShareSnapshot) -> bool:
    return value.create_timestamp_ms != value.write_timestamp_ms


def is_full_cold(value: ShareSnapshot) -> bool:
    return is_cold(value) and has_batches(value)


def is_write(value: ShareSnapshot) -> bool:
    return not is_cold(value) and has_batches(value)


def dropped(kind: type, suits: Callable[[Any], bool] = bool, *, leaves_hole: bool = False) -> Damage:
    """The damage that takes one record of a kind out of the log."""

    def damage(entries: Log, chance: random.Random) -> Log:
        row = rows_of(entries, kind, chance, suits)
        rest = [*entries[:row], *entries[row + 1 :]]
        return rest if leaves_hole else renumbered(rest)

    return damage


def repeated(kind: type) -> Damage:
    """The damage that appends one record twice."""

    def damage(entries: Log, chance: random.Random) -> Log:
        row = rows_of(entries, kind, chance)
        return renumbered([*entries[: row + 1], *entries[row:]])

    return damage


def swapped(entries: Log, chance: random.Random) -> Log:
    """Two neighbouring records of a share partition in the other order."""
    row = chance.randrange(len(entries) - 1)
    follower = next(other for other in range(row + 1, len(entries)) if entries[other].key[2:] == entries[row].key[2:])
    rows = list(entries)
    rows[row], rows[follower] = rows[follower], rows[row]
    return renumbered(rows)


def bytes_of(kind: type, change: Callable[[Entry], Entry]) -> Damage:
    """The damage that changes the bytes of one record of a kind."""

    def damage(entries: Log, chance: random.Random) -> Log:
        row = rows_of(entries, kind, chance)
        return [*entries[:row], change(entries[row]), *entries[row + 1 :]]

    return damage


def forgotten(entries: Log, chance: random.Random) -> Log:
    """The coordinator applies a record to its memory and never appends it."""
    seed = chance.randrange(1000)
    count = len(History(seed).run(OPERATIONS).entries)
    return History(seed, forgets=frozenset({chance.randrange(count)})).run(OPERATIONS).entries


def second_creation_dropped(entries: Log, chance: random.Random) -> Log:
    """The log without the creation that follows a deletion."""
    deleted = [entry.key[2:] for entry in entries if isinstance(decoded(entry).value, Tombstone)]
    rows = [
        row
        for row, entry in enumerate(entries)
        if isinstance(value := decoded(entry).value, ShareSnapshot)
        and value.snapshot_epoch == 0
        and entry.key[2:] in deleted
        and any(earlier.key[2:] == entry.key[2:] for earlier in entries[:row])
    ]
    row = chance.choice(rows)
    return renumbered([*entries[:row], *entries[row + 1 :]])


def without_snapshots(entries: Log, chance: random.Random) -> Log:
    """The log of a coordinator that counts updates and never writes a snapshot."""
    history = History(chance.randrange(1000), limit=1 << 30)
    for _ in range(510):
        history.now_ms += 5
        history.write(history.keys[0])
    return history.entries


def offsets_exchanged(entries: Log, chance: random.Random) -> Log:
    """The log with the offsets of two neighbours exchanged."""
    row = chance.randrange(len(entries) - 1)
    rows = list(entries)
    rows[row], rows[row + 1] = (
        rows[row]._replace(log_offset=rows[row + 1].log_offset),
        rows[row + 1]._replace(log_offset=rows[row].log_offset),
    )
    return rows


def cut_off(entries: Log, chance: random.Random) -> Log:
    """The log without its tail."""
    return entries[: chance.randrange(len(entries) // 2, len(entries))]


def pair_of_neighbours(value: Any) -> dict[str, Any]:
    """A batch of two offsets or more in two halves."""
    halves = []
    for batch in value.state_batches:
        if batch.last_offset > batch.first_offset:
            halves += [
                batch._replace(last_offset=batch.first_offset),
                batch._replace(first_offset=batch.first_offset + 1),
            ]
        else:
            halves.append(batch)
    return {"state_batches": tuple(halves)}


def stretched(value: Any) -> dict[str, Any]:
    """The first batch up to the end of the last one."""
    first, *rest = value.state_batches
    return {"state_batches": (first._replace(last_offset=rest[-1].last_offset), *rest)}
