"""An independent judge of what coordinators and leaders with certain settings could not have written.

The write side of the reference model says, with and without the limit of updates, which records a coordinator appends.
The rest is counted record by record. It shares no code with the audit.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from tests.audit.histories import Entry
from tests.audit.judge import illegal_offsets
from tests.audit.judged_logs import Key, Violation
from tests.audit.world import World, ms
from tests.logs.state_logs import encoded_records

LIMIT, INTERVAL, LOCKS = (
    "share.coordinator.snapshot.update.records.per.snapshot",
    "share.coordinator.cold.partition.snapshot.interval.ms",
    "group.share.partition.max.record.locks",
)
DEFAULTS: Final = {LIMIT: 500, INTERVAL: 300_000, LOCKS: 2000}
JUDGED: Final = frozenset(
    {"more_updates_than_configured", "update_over_limit", "cold_snapshot_too_early", "window_over_locks"}
)
"""The rules that it judges."""
Row = Mapping[str, Any]


def judge_settings(world: World) -> set[Violation]:
    """What the records of state partition 0 violate, the first of each share partition."""
    lines = (line.partition("=") for line in world.config.splitlines() if "=" in line)
    settings = {**DEFAULTS, **{name.strip(): int(value) for name, _, value in lines}}
    by_key: dict[Key, list[tuple[int, Row]]] = {}
    for offset, row in enumerate(world.state[0]):
        by_key.setdefault((row["group_id"], row["partition"]), []).append((offset, row))
    violations = [*_over_counter(world, settings[LIMIT])]
    for key, rows in by_key.items():
        configured_rows = [(offset, row) for offset, row in rows if row["timestamp_ms"] >= ms(world.config_s)]
        violations += [
            Violation("more_updates_than_configured", *key, at) for at in _too_many(configured_rows, settings[LIMIT])
        ]
        violations += [
            Violation("cold_snapshot_too_early", *key, at)
            for at in _too_early(rows, configured_rows, settings[INTERVAL])
        ]
        violations += [Violation("window_over_locks", *key, at) for at in _too_wide(world, key, rows, settings[LOCKS])]
    first: dict[tuple[str, str | None, int | None], Violation] = {}
    for violation in violations:
        first.setdefault(violation[:3], violation)
    return set(first.values())


def _over_counter(world: World, limit: int) -> Iterator[Violation]:
    """Records that a coordinator with this limit would not have appended, and one with another limit would."""
    rows = world.state[0]
    begins: dict[Key, int] = {}
    for row in rows:
        begins.setdefault((row["group_id"], row["partition"]), row["timestamp_ms"])
    entries = [Entry(offset, at_ms, key, value) for offset, (key, value, at_ms) in enumerate(encoded_records(rows))]
    for offset in sorted({*illegal_offsets(entries, limit=limit)} - {*illegal_offsets(entries, limit=None)}):
        key = (rows[offset]["group_id"], rows[offset]["partition"])
        if begins[key] >= ms(world.config_s) and rows[offset]["record_type"] == "update":
            yield Violation("update_over_limit", *key, offset)


def _too_many(rows: list[tuple[int, Row]], limit: int) -> Iterator[int]:
    """Updates behind a snapshot, all of them under the configuration."""
    updates = None
    for offset, row in rows:
        if row["record_type"] == "update":
            updates = None if updates is None else updates + 1
            if updates is not None and updates > limit:
                yield offset
        else:
            updates = 0 if row["record_type"] == "snapshot" else None


def _too_early(rows: list[tuple[int, Row]], configured_rows: list[tuple[int, Row]], interval_ms: int) -> Iterator[int]:
    """Cold snapshots that come before the newest snapshot is old enough."""
    under = {offset for offset, _ in configured_rows}
    written_ms = None
    for offset, row in rows:
        if row["record_type"] == "snapshot":
            at_ms = row["write_timestamp_ms"]
            is_cold = row["create_timestamp_ms"] != at_ms and offset in under
            if is_cold and written_ms is not None and at_ms - written_ms < interval_ms:
                yield offset
            written_ms = at_ms
        elif row["record_type"] == "tombstone":
            written_ms = None


def _too_wide(world: World, key: Key, rows: list[tuple[int, Row]], locks: int) -> Iterator[int]:
    """The record with the widest window of a share partition, the first of several, if its leader locks no such one.

    A leader acquires whole batches of the topic, so the last one may reach beyond the limit.
    """
    windows = []
    for offset, row in rows:
        last = max((batch["last_offset"] for batch in row.get("state_batches") or ()), default=-1)
        if last >= 0 and row["start_offset"] >= 0:
            windows.append((row["start_offset"] - last - 1, offset, last))
    if not windows or key[1] != 0:
        return
    negative_width, offset, last = min(windows)
    size, count = int(world.topic["records_per_batch"]), int(world.topic["count"])
    batch = min(size, count - last // size * size)
    if last < count and -negative_width > locks + batch - 1:
        yield offset
