"""Causes that explain findings of many share partitions, groups or logs: an event, or a finding about a whole log.

WIDE says which rule's violation explains violations of others anywhere in the cluster, or in the same group. An event
has no finding of its own: EVENTS names it, and the findings that agree on it show it. The order of findings is free.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from state_model.audit.sightings import NONE, Sighting

RECORDS_LOST: Final = "records_lost"
GROUP_DELETED: Final = "group_deleted"
GROUP_CREATED_AGAIN: Final = "group_created_again"
TOPIC_DELETED: Final = "topic_deleted"
TOPIC_CREATED_AGAIN: Final = "topic_created_again"
TOPIC_RECORDS_LOST: Final = "topic_records_lost"
EVENTS: Final[Mapping[str, str]] = {
    RECORDS_LOST: "a partition of the state topic or of `__consumer_offsets` lost a stretch of records and goes on "
    "behind it, as after an unclean leader election: the sequences of three or more share partitions or groups break "
    "at one place of the log",
    GROUP_DELETED: "the group was deleted, and its deletion left several share partitions behind",
    GROUP_CREATED_AGAIN: "the group was deleted and created again, and several share partitions of the old one are "
    "left",
    TOPIC_DELETED: "the user topic was deleted, and several share partitions of it are left",
    TOPIC_CREATED_AGAIN: "the user topic was deleted and created again with another id, and several share partitions "
    "of the old one are left",
    TOPIC_RECORDS_LOST: "the user topic's partition lost its newest records, or its copy is older: the states of two "
    "or more groups lie beyond its end",
}
"""Causes without a finding of their own, in words."""
SEQUENCES: Final = frozenset(
    {
        "snapshot_epoch_skips",
        "update_of_other_snapshot",
        "life_after_deletion",
        "update_after_deletion",
        "deleted_twice",
        "group_epoch_skips",
        "epochs_out_of_order",
    }
)
"""Rules on a record and the one before it: what is lost lies between the two."""
FEWEST: Final = 3
"""Share partitions or groups whose sequences break at one place before a lost stretch of the log explains them."""
MOST_STRETCHES: Final = 8
"""Lost stretches that are looked for in one log."""
BEYOND_TOPIC: Final = frozenset(
    {
        "start_offset_beyond_end",
        "batch_beyond_end",
        "batch_beyond_cut_end",
        "complete_count_beyond_end",
        "negative_lag",
    }
)
OF_CLUSTER: Final = BEYOND_TOPIC | {
    "state_epoch_beyond_group",
    "state_epoch_below_group",
    "left_state_fences_group",
    "leader_epoch_beyond_topic",
    "initialized_without_state",
    "no_common_group",
    "state_without_group",
    "state_after_group_deletion",
    "unknown_topic_partition",
}
"""Rules that compare logs of one cluster."""
OF_MISPLACED: Final = frozenset(
    {
        "group_epoch_skips",
        "epochs_out_of_order",
        "member_tombstones_out_of_order",
        "initialized_without_state",
        "state_without_group",
    }
)
"""Rules on a group that lack the records which lie elsewhere."""


class Wide(NamedTuple):
    """The rules whose findings a violation explains; whether only in its group, and only findings after it."""

    effects: frozenset[str]
    in_group: bool = False
    is_timed: bool = False


WIDE: Final[Mapping[str, Wide]] = {
    "log_of_other_cluster": Wide(OF_CLUSTER),
    "no_common_group": Wide(BEYOND_TOPIC | {"leader_epoch_beyond_topic", "unknown_topic_partition"}),
    "state_topic_created_again": Wide(frozenset({"initialized_without_state"})),
    "state_partition_count_changed": Wide(
        frozenset(
            {
                "life_begins_oddly",
                "initialized_without_state",
                "state_without_group",
                "state_after_group_deletion",
                "state_epoch_beyond_group",
                "left_state_fences_group",
            }
        ),
        is_timed=True,
    ),
    "misplaced_group": Wide(OF_MISPLACED | {"group_in_many_partitions"}, in_group=True),
    "streams_misplaced_group": Wide(frozenset({"group_in_many_partitions"}), in_group=True),
    "group_in_many_partitions": Wide(OF_MISPLACED, in_group=True),
    "group_epoch_skips": Wide(
        frozenset({"epochs_out_of_order", "state_epoch_beyond_group", "state_epoch_below_group"}), in_group=True
    ),
}
"""By rule what its violation explains in many places; of several the first one counts."""
LEFT_BEHIND: Final = frozenset({"state_after_group_deletion", "left_state_fences_group", "state_without_group"})
"""Rules on state that is left."""
SHARED: Final = (
    SEQUENCES | BEYOND_TOPIC | LEFT_BEHIND | WIDE.keys() | frozenset().union(*(wide.effects for wide in WIDE.values()))
)
"""Rules whose findings explain others in other places or share a cause with them."""


def wide_cause(sightings: Sequence[Sighting]) -> list[int | None]:
    """For each sighting the index of one of WIDE that explains it; None: no such one does."""
    first: dict[tuple[str, str | None], int] = {}
    for index, sighting in enumerate(sightings):
        if sighting.rule in WIDE:
            key = (sighting.rule, sighting.group_id if WIDE[sighting.rule].in_group else None)
            if key not in first or _age(sighting) < _age(sightings[first[key]]):
                first[key] = index

    def cause_of(sighting: Sighting) -> int | None:
        for rule, wide in WIDE.items():
            index = first.get((rule, sighting.group_id if wide.in_group else None))
            if index is None or sighting.rule not in wide.effects:
                continue
            if not wide.is_timed or sightings[index].first_ms <= sighting.first_ms:
                return index
        return None

    return [cause_of(sighting) for sighting in sightings]


def _age(sighting: Sighting) -> tuple[object, ...]:
    return sighting.first_ms, sighting.log_offset, str(sighting.log), str(sighting.place)


def events(sightings: Sequence[Sighting]) -> list[str | None]:
    """For each sighting the event that explains it together with others; None: no event does."""
    result: list[str | None] = [None] * len(sightings)
    for members, event in (
        *_topic_ends(sightings),
        *_deletions(sightings),
        *_lost(sightings),
        *_leftover_state(sightings),
    ):
        for index in members:
            result[index] = event
    return result


Shown = tuple[Collection[int], str]
"""The sightings that show an event, and the event."""


def _topic_ends(sightings: Sequence[Sighting]) -> Iterator[Shown]:
    """States of several groups beyond the end of one partition of a user topic."""
    for members in _together(sightings, BEYOND_TOPIC, lambda sighting: (sighting.topic_id, sighting.partition)):
        if len({sightings[index].group_id for index in members}) > 1:
            yield members, TOPIC_RECORDS_LOST


def _deletions(sightings: Sequence[Sighting]) -> Iterator[Shown]:
    """State that groups left behind."""
    for members in _together(sightings, LEFT_BEHIND, lambda sighting: sighting.group_id):
        rules = {sightings[index].rule for index in members}
        if len(members) > 1 and "left_state_fences_group" in rules:
            yield members, GROUP_CREATED_AGAIN
        elif len(members) > 1 and "state_after_group_deletion" in rules:
            yield members, GROUP_DELETED


def _leftover_state(sightings: Sequence[Sighting]) -> Iterator[Shown]:
    """State that is left of topics which the metadata log shows deleted."""
    for members in _together(
        sightings, LEFT_BEHIND, lambda sighting: sighting.event and (sighting.topic_id, sighting.event)
    ):
        if len(members) > 1:
            yield members, sightings[members[0]].event or TOPIC_DELETED


def _lost(sightings: Sequence[Sighting]) -> Iterator[Shown]:
    """Sequences that break at one place of a log: as many as possible, then as many as possible of the others."""
    for members in _together(sightings, SEQUENCES, lambda sighting: sighting.log if sighting.after >= 0 else None):
        rest = members
        for _ in range(MOST_STRETCHES):
            broken = _at_one_place(sightings, rest)
            if len({sightings[index].place for index in broken}) < FEWEST:
                break
            yield broken, RECORDS_LOST
            rest = [index for index in rest if index not in broken]


def _at_one_place(sightings: Sequence[Sighting], candidates: Sequence[int]) -> frozenset[int]:
    """The candidates around the first place of the log that lies between most pairs of records which do not fit."""
    begins = [(sightings[index].after, 1) for index in candidates]
    ends = [(sightings[index].log_offset, -1) for index in candidates]
    open_pairs, max_open_pairs, cut = 0, 0, NONE
    for log_offset, change in sorted(begins + ends):
        open_pairs += change
        if open_pairs > max_open_pairs:
            max_open_pairs, cut = open_pairs, log_offset
    return frozenset(index for index in candidates if sightings[index].after <= cut < sightings[index].log_offset)


def _together(
    sightings: Sequence[Sighting], rules: frozenset[str], by: Callable[[Sighting], object]
) -> list[list[int]]:
    """The sightings of some rules by a key; those without one left out."""
    result: dict[object, list[int]] = {}
    for index, sighting in enumerate(sightings):
        if sighting.rule in rules and (key := by(sighting)) is not None:
            result.setdefault(key, []).append(index)
    return list(result.values())
