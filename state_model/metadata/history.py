"""The cluster's metadata over time: the values of each key, with the offsets and times in which they were in force.

offset      26            31                  48
limit       |---- 3 ------|------- 7 ---------|  removed
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from state_model.metadata.changes import TOPIC, VOTERS, Content, Key, changes, parent_of
from state_model.metadata.events import Event, Gap, Snapshot, applied


class Moment(NamedTuple):
    """An offset of the metadata log and its log time: the running maximum of timestamps, which never goes back."""

    offset: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Validity:
    """A value of a key and when it was in force: from `begin` on, before `end` (None: still in force).

    `began_earlier`: the value comes from a snapshot, and was in force at `begin` already. `is_certain`: false where
    records are missing that could have changed the value meanwhile.
    """

    key: Key
    content: Content
    begin: Moment
    end: Moment | None = None
    began_earlier: bool = False
    is_certain: bool = True

    def is_in_force(self, offset: int) -> bool:
        """Whether the value was in force after all records below an offset."""
        return self.begin.offset < offset and (self.end is None or self.end.offset >= offset)

    def is_in_force_at(self, time_ms: int) -> bool:
        """Whether the value was in force at a time."""
        return self.begin.timestamp_ms <= time_ms and (self.end is None or self.end.timestamp_ms > time_ms)


@dataclass(slots=True)
class Timeline:
    """The metadata after the events up to now, and the values that are no longer in force."""

    closed: list[Validity] = field(default_factory=list)
    _open: dict[Key, Validity] = field(default_factory=dict)
    _below: dict[Key, dict[Key, None]] = field(default_factory=dict)
    _certain: dict[Key, None] = field(default_factory=dict)
    _log_time_ms: int = -1 << 63

    def value(self, key: Key) -> Content | None:
        """The value of a key; None: there is none."""
        validity = self._open.get(key)
        return None if validity is None else validity.content

    def children(self, parent: Key) -> Iterable[Key]:
        """The keys below a parent."""
        return self._below.get(parent, {})

    @property
    def validities(self) -> list[Validity]:
        """All values, ended and in force, by key and begin."""
        return sorted([*self.closed, *self._open.values()], key=lambda row: (tuple(map(str, row.key)), row.begin))

    @property
    def voters(self) -> tuple[int, ...]:
        """The ids of the voters; empty when no record names them."""
        for kind in ("kraft", "static"):
            content = self.value((VOTERS, kind))
            ids = () if content is None else content["ids"]
            if isinstance(ids, tuple) and ids:
                return tuple(voter for voter in ids if isinstance(voter, int))
        return ()

    def take(self, event: Event) -> None:
        """Applies the next event of the metadata log."""
        if isinstance(event, Gap):
            self._doubt()
            return
        self._log_time_ms = max(self._log_time_ms, event.timestamp_ms)
        if isinstance(event, Snapshot):
            self._replace_all(event)
        else:
            moment = Moment(event.offset, self._log_time_ms)
            for key, content in changes(event, self):
                self._put(key, content, moment)

    def _put(self, key: Key, content: Content | None, moment: Moment, *, began_earlier: bool = False) -> None:
        before = self._open.get(key)
        if before is not None:
            if before.content == content:
                return
            if before.begin.offset < moment.offset or before.began_earlier:
                self.closed.append(replace(before, end=moment))
            del self._open[key]
            self._certain.pop(key, None)
        if content is None:
            self._below.get(parent_of(key), {}).pop(key, None)
            return
        self._below.setdefault(parent_of(key), {})[key] = None
        counts_on = before is not None and key[0] != "config"
        is_certain = before.is_certain if before is not None and counts_on else True
        self._open[key] = Validity(
            key=key, content=content, begin=moment, began_earlier=began_earlier, is_certain=is_certain
        )
        if is_certain:
            self._certain[key] = None

    def _doubt(self) -> None:
        """Marks the values in force as uncertain, each once: many gaps cost no more than one."""
        for key in self._certain:
            self._open[key] = replace(self._open[key], is_certain=False)
        self._certain.clear()

    def _replace_all(self, snapshot: Snapshot) -> None:
        """Makes the snapshot the state: what both have goes on, the rest ends or begins there at the latest."""
        fresh = Timeline()
        for record in snapshot.records:
            fresh.take(record._replace(offset=snapshot.end_offset, timestamp_ms=snapshot.timestamp_ms))
        moment = Moment(snapshot.end_offset - 1, self._log_time_ms)
        for key in [key for key in self._open if key not in fresh._open and key[0] != VOTERS]:
            self._put(key, None, moment)
        for key, validity in fresh._open.items():
            before = self._open.get(key)
            self._put(key, validity.content, moment, began_earlier=True)
            if before is not None and not before.is_certain and self._open[key] is not before:
                self._open[key] = replace(self._open[key], is_certain=True)
                self._certain[key] = None


def timeline(events: Iterable[Event]) -> Timeline:
    """The metadata over time from the events of a metadata log."""
    result = Timeline()
    for event in applied(events):
        result.take(event)
    return result


def topic_names(validities: Iterable[Validity]) -> dict[str, str]:
    """Names by topic id, of deleted topics too."""
    return {str(row.key[1]): str(row.content["name"]) for row in validities if row.key[0] == TOPIC}
