"""What other logs list and the evidence lacks: state of initialized share partitions, and state partitions.

A share partition lies in one state partition, by the hash of its key and the number of state partitions
(share-group-state-log §1). The metadata log has that number; without it, it is inferred from the share partitions that
have state.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.placement import NARROWED_BY, fitting_counts, possible_counts
from sharelens.tables.cover import StatePartitionCover
from state_model.columnar.keys import PLACE_KEY, SHARE_PARTITION_KEY, Ints, without_keys_of
from state_model.columnar.schemas import plain
from state_model.java import coordinator_key, magnitude, string_hash

Item = TypeVar("Item")
SAMPLED: Final = 10
NO_FOLDER: Final = "no_folder"
OTHER_BROKER: Final = "other_broker"
UNKNOWN_PLACE: Final = "unknown_state_partition"
HELD_BACK: Final = "held_back"
UNREADABLE: Final = "unreadable"
NO_STATE: Final = "no_state"
REASONS: Final[Mapping[str, str]] = {
    NO_FOLDER: "its state partition is not in the evidence",
    OTHER_BROKER: "its state partition is not in the evidence, and by the metadata log it is on other brokers",
    UNKNOWN_PLACE: "the number of state partitions is unknown, so its state partition is, too",
    HELD_BACK: "its state partition has records at or above the high watermark, which were left out",
    UNREADABLE: "its state partition has gaps or records that can't be read",
    NO_STATE: "its state partition is in the evidence without gaps",
}
"""Why an initialized share partition has no record in the evidence."""
ABSENT: Final = frozenset({NO_FOLDER, OTHER_BROKER, UNKNOWN_PLACE})
"""The reasons that a copy of more folders settles."""
Key = tuple[str, str, int]
"""A share partition: group id, topic id, partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample(Generic[Item]):
    """How many items there are, and the first ones (SAMPLED at most), ascending."""

    count: int = 0
    items: tuple[Item, ...] = ()


def sample_of(items: Iterable[Any]) -> Sample[Any]:
    """The sample of items that have an order."""
    ascending = sorted(items)
    return Sample(count=len(ascending), items=tuple(ascending[:SAMPLED]))


class MissingState(NamedTuple):
    """An initialized share partition without a record of its state; `state_partition`: None where it is unknown."""

    group_id: str
    topic_id: str
    partition: int
    state_partition: int | None
    reason: str


class LeftOut(NamedTuple):
    """A state topic that answers leave out: its id, the time of its last record (None: no record), and its sources."""

    topic_id: str
    last_ms: int | None
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingEvidence:
    """What the evidence lacks by other logs, at its end.

    `initialized`: share partitions that the group coordinator's log lists as initialized; None: no such log was read.
    `states`: those of them without a record of state; `reasons` counts them by REASONS, `by_group` by group.
    `groups`: groups whose initialized share partitions all lack state. `has_state_log`: whether a state partition is in
    the evidence. `state_partition_count`: None where it is unknown. `state_partitions`: those that the evidence lacks:
    by the metadata log of the replicas on the brokers whose logs these are, else those that `states` lie in.
    `left_out`: state topics of other ids that are there and left out: from before the topic was created again, or of a
    stale disk.
    """

    initialized: int | None = None
    states: Sample[MissingState] = field(default_factory=Sample)
    reasons: Mapping[str, int] = field(default_factory=dict)
    by_group: Mapping[str, int] = field(default_factory=dict)
    groups: Sample[str] = field(default_factory=Sample)
    has_state_log: bool = True
    state_partition_count: int | None = None
    state_partitions: Sample[int] = field(default_factory=Sample)
    left_out: tuple[LeftOut, ...] = ()

    @property
    def lacks_state_log(self) -> bool:
        """Whether share partitions are initialized and no state partition is in the evidence."""
        return bool(self.initialized) and not self.has_state_log

    @property
    def has_others(self) -> bool:
        """Whether state partitions are missing whose numbers are not known."""
        return any(state.state_partition is None for state in self.states.items)

    @property
    def absent(self) -> int:
        """Initialized share partitions whose state partition is not in the evidence, or unknown."""
        return sum(count for reason, count in self.reasons.items() if reason in ABSENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateTopic:
    """The state topic besides its records.

    `folders`: state partitions in the evidence, without records, too. `replicas`: broker ids by state partition, by the
    metadata log; None: there is none. `nodes`: the brokers whose logs these are, as far as they are known.
    """

    folders: frozenset[int]
    replicas: Mapping[int, frozenset[int]] | None = None
    nodes: frozenset[int] = frozenset()

    @property
    def expected(self) -> frozenset[int] | None:
        """The state partitions that the brokers have; None where metadata log or brokers are unknown."""
        if self.replicas is None or not self.nodes:
            return None
        return frozenset(number for number, brokers in self.replicas.items() if brokers & self.nodes)


def missing_evidence(
    initialized: pa.Table | None,
    places: pa.Table,
    cover: Sequence[StatePartitionCover],
    topic: StateTopic,
    *,
    is_probed: bool = False,
) -> MissingEvidence:
    """What is missing.

    Args:
        initialized: the initialized share partitions (SHARE_PARTITION_KEY), each once; None: no group log was read.
        places: PLACE_KEY of every share partition with a record, one row at least.
        cover: the evidence of the state partitions.
        topic: the state topic.
        is_probed: `places` are only some, so that share partitions count as missing by their state partition alone.
    """
    undecoded_keys: set[tuple[Any, ...]] = {
        (loss.group_id, loss.topic_id, loss.partition, part.state_partition)
        for part in cover
        for loss in part.losses
        if loss.group_id is not None
    }
    placement = _Placement(
        topic=topic,
        counts=_counts(places, undecoded_keys, topic),
        covers={part.state_partition: part for part in cover},
        undecoded_keys=frozenset(place[:-1] for place in undecoded_keys),
    )
    listed = places.select(SHARE_PARTITION_KEY).slice(0, 0) if initialized is None else initialized
    states = [placement.missing_state(key) for key in _rows(without_keys_of(listed, places), SHARE_PARTITION_KEY)]
    states = [state for state in states if not is_probed or state.reason in (NO_FOLDER, OTHER_BROKER)]
    by_group = Counter(state.group_id for state in states)
    of_groups = Counter(listed.column("group_id").to_pylist() if states else ())
    absent = {state.state_partition for state in states if state.reason == NO_FOLDER} - {None}
    expected = topic.expected
    return MissingEvidence(
        initialized=None if initialized is None else initialized.num_rows,
        states=sample_of(states),
        reasons=dict(sorted(Counter(state.reason for state in states).items())),
        by_group=dict(sorted(by_group.items())),
        groups=sample_of(group for group, count in by_group.items() if count == of_groups[group]),
        has_state_log=bool(topic.folders),
        state_partition_count=int(placement.counts[0]) if len(placement.counts) == 1 else None,
        state_partitions=sample_of(absent if expected is None else expected - topic.folders),
    )


def _rows(table: pa.Table, names: Sequence[str]) -> list[Any]:
    return list(zip(*(table.column(name).to_pylist() for name in names), strict=True))


def _counts(places: pa.Table, undecoded_keys: Collection[Any], topic: StateTopic) -> Ints:
    """The possible numbers of state partitions, ascending; none where nothing tells it.

    Each place (PLACE_KEY) narrows the numbers to those that put it where it lies; one that none of them puts there is
    misplaced, and narrows nothing.
    """
    if topic.replicas:
        return np.array([len(topic.replicas)], np.int64)
    if not places.num_rows and not undecoded_keys:
        return np.empty(0, np.int64)
    numbers = (*topic.folders, *(place[-1] for place in undecoded_keys))
    counts = possible_counts(max([*numbers, *pc.unique(places.column("state_partition")).to_pylist()]))
    # Only the first ones become objects of Python: a lake has hundreds of thousands of share partitions.
    distinct_places = plain(places.select(PLACE_KEY)).group_by(PLACE_KEY).aggregate([])
    order = [(name, "ascending") for name in PLACE_KEY]
    first_rows = distinct_places.take(pc.select_k_unstable(distinct_places, NARROWED_BY, order))
    for *key, state_partition in sorted({*_rows(first_rows, PLACE_KEY), *undecoded_keys})[:NARROWED_BY]:
        fitting = fitting_counts(counts, (key[0], key[1], key[2]), state_partition)
        counts = fitting if len(fitting) else counts
        if len(counts) == 1:
            break
    return counts


@dataclass(frozen=True, slots=True, kw_only=True)
class _Placement:
    """The state partitions that share partitions can lie in.

    `counts`: possible numbers of state partitions; none: nothing tells it.
    """

    topic: StateTopic
    counts: Ints
    covers: Mapping[int, StatePartitionCover]
    undecoded_keys: frozenset[tuple[Any, ...]]

    def missing_state(self, key: Key) -> MissingState:
        """A share partition without a record, with its state partition and the reason."""
        numbers: set[int] = set()
        if len(self.counts):
            numbers = set((magnitude(string_hash(coordinator_key(*key))) % self.counts).tolist())
        number = numbers.pop() if len(numbers) == 1 else None
        if number is not None:
            return MissingState(*key, number, self._reason(key, number))
        if key in self.undecoded_keys:
            return MissingState(*key, None, UNREADABLE)
        is_absent = not self.topic.folders or (numbers and not numbers & self.topic.folders)
        return MissingState(*key, None, NO_FOLDER if is_absent else UNKNOWN_PLACE)

    def _reason(self, key: Key, number: int) -> str:
        if number not in self.topic.folders:
            expected = self.topic.expected
            return NO_FOLDER if expected is None or number in expected else OTHER_BROKER
        part = self.covers.get(number)
        if key in self.undecoded_keys or (part is not None and any(loss.group_id is None for loss in part.losses)):
            return UNREADABLE
        return HELD_BACK if part is not None and part.held_back else NO_STATE
