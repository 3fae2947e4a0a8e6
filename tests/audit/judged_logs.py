"""The logs of a world as an independent judge reads them: what each coordinator knows at a moment."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from tests.audit.world import World
from tests.logs.group_files import GroupEntry

TOLERANCE_MS: Final = 60_000
FOREVER_MS: Final = -(1 << 60)
MEMBER, EPOCH, ASSIGNMENT_EPOCH, TARGET, ASSIGNMENT, LISTS = range(10, 16)
Key = tuple[str, int]
"""Group and partition of the user topic."""


class Violation(NamedTuple):
    """A rule and its place. `log_offset`: of the first record that violates it; None for rules about minutes."""

    rule: str
    group: str | None
    partition: int | None = None
    log_offset: int | None = None


class Logs:
    """The logs of a world with their log times: the largest timestamp up to a record."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.state: dict[Key, list[tuple[int, int, dict[str, Any]]]] = {}
        self.groups: dict[str, list[tuple[int, int, GroupEntry]]] = {}
        now_ms = FOREVER_MS
        for offset, row in enumerate(world.state[0]):
            now_ms = max(now_ms, row["timestamp_ms"])
            self.state.setdefault((row["group_id"], row["partition"]), []).append((offset, now_ms, row))
        for offset, entry in enumerate(world.groups[0]):
            self.groups.setdefault(entry.group_id, []).append((offset, entry.time_ms, entry))
        self.groups_until_ms = max((entry.time_ms for entry in world.groups[0]), default=FOREVER_MS)
        self.until_ms = min(now_ms, self.groups_until_ms)
        changes = [time_ms for log in (*self.state.values(), *self.groups.values()) for _, time_ms, _ in log]
        self.moments = [FOREVER_MS, *sorted({time_ms for time_ms in changes if time_ms < self.until_ms})]

    def outlasting(self, holds: Callable[[int], bool]) -> bool:
        """Whether something holds at all moments of a stretch of more than 60 s."""
        since_ms = None
        for moment_ms, next_ms in zip(self.moments, [*self.moments[1:], self.until_ms], strict=True):
            if not holds(moment_ms):
                since_ms = None
                continue
            since_ms = moment_ms if since_ms is None else since_ms
            if next_ms - since_ms > TOLERANCE_MS:
                return True
        return False

    # The share coordinator at a moment.

    def life_at(self, key: Key, moment_ms: int) -> tuple[int, int] | None:
        """(number of the life, state epoch) of a share partition; None: it does not live.

        The state epoch is -1 where only the end of the life is there.
        """
        turns = [(time_ms, row) for _, time_ms, row in self.state.get(key, ()) if row["record_type"] != "update"]
        current, number = None, 0
        if turns and not _is_creation(turns[0][1]):
            current = (0, turns[0][1].get("state_epoch", -1))
        for time_ms, row in turns:
            if time_ms > moment_ms:
                break
            if row["record_type"] == "tombstone":
                current = None
                number += 1
            else:
                current = (number, row["state_epoch"])
        return current

    def has_turn(self, key: Key) -> bool:
        """Whether a snapshot or a tombstone of a share partition is there."""
        return any(row["record_type"] != "update" for _, _, row in self.state.get(key, ()))

    # The group coordinator at a moment.

    def lists_at(self, group: str, moment_ms: int) -> tuple[set[int], set[int], bool]:
        """The initialized partitions, all that are listed, and whether the topic is being deleted."""
        initialized: set[int] = set()
        listed: set[int] = set()
        is_deleting = False
        for _, time_ms, entry in self.groups.get(group, ()):
            if time_ms > moment_ms:
                break
            is_end = entry.record_type == EPOCH and entry.value is None
            if entry.record_type == LISTS or is_end:
                initialized = partitions_in(entry.value, "initialized_topics")
                listed = initialized | partitions_in(entry.value, "initializing_topics")
                is_deleting = bool((entry.value or {}).get("deleting_topics"))
        return initialized, listed, is_deleting

    def lists_from_ms(self, group: str) -> int:
        """From when on the lists are known: compaction may have taken those before the first one that is there."""
        times = [
            time_ms for _, time_ms, entry in self.groups.get(group, ())
            if entry.record_type == LISTS or (entry.record_type == EPOCH and entry.value is None)
        ]  # fmt: skip
        return times[0] if times else FOREVER_MS

    def initialized_with(self, group: str, number: int, moment_ms: int) -> int | None:
        """The group epoch at which the newest finished initialization of an initialized partition began.

        None: there is none, or the record before its beginning is not there and the group is older than its first
        member.
        """
        epoch = begun = finished = None
        has_list = was_initializing = False
        for _, time_ms, entry in self.groups.get(group, ()):
            if time_ms > moment_ms:
                break
            if entry.record_type == EPOCH:
                epoch = None if entry.value is None else int(entry.value["epoch"])
            if entry.record_type != LISTS and (entry.record_type != EPOCH or entry.value is not None):
                continue
            is_initializing = number in partitions_in(entry.value, "initializing_topics")
            if number not in partitions_in(entry.value, "initialized_topics"):
                finished = None
            elif was_initializing and not is_initializing and begun is not None:
                finished = begun
            if is_initializing and not was_initializing:
                begun = epoch if has_list or epoch in (0, 1, 2) else None
            has_list, was_initializing = True, is_initializing
        return finished

    def is_deleted_at(self, group: str, moment_ms: int) -> bool:
        """Whether the group is deleted, and none of its name was created since."""
        is_deleted = False
        for _, time_ms, entry in self.groups.get(group, ()):
            if time_ms <= moment_ms:
                is_end = entry.record_type == EPOCH and entry.value is None
                is_deleted = is_end or (is_deleted and entry.value is None)
        return is_deleted

    def epoch_at(self, group: str, moment_ms: int) -> int | None:
        """The group epoch; None: not known, or the group is deleted."""
        epoch_entries = [
            (time_ms, entry.value) for _, time_ms, entry in self.groups.get(group, ()) if entry.record_type == EPOCH
        ]
        if not epoch_entries:
            return 1  # a group without an epoch of its own
        value = None
        for time_ms, now in epoch_entries:
            if time_ms <= moment_ms:
                value = now
        return None if value is None else int(value["epoch"])


def _is_creation(row: Mapping[str, Any]) -> bool:
    return row["record_type"] == "snapshot" and row["snapshot_epoch"] == 0


def partitions_in(value: Mapping[str, Any] | None, name: str) -> set[int]:
    """The partitions in a list of a value; a world has one topic."""
    return {number for topic in (value or {}).get(name) or () for number in topic["partitions"]}
