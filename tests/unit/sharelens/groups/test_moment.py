"""A group at a moment is the group after all its records up to then, of which most are not read."""

from collections.abc import Callable, Collection, Mapping
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.groups.model_replay import ConsumerReplay, LateStreamsReplay, StreamsReplay
from sharelens.groups.moment import GroupMoment, consumer_groups_at, groups_at, streams_groups_at
from sharelens.groups.replay import SHARE_TYPES, CompactionBound, GroupChange, ShareGroup, changes
from state_model.consumer.records import CONSUMER_TYPES
from state_model.key_map import KeyMap
from state_model.streams.records import STREAMS_TYPES
from tests.logs.group_logs import group_log
from tests.logs.random_groups import (
    CONSUMER_KINDS,
    OF_MEMBERS,
    SHARE_KINDS,
    consumer_value,
    random_log,
    share_value,
    streams_value,
)


def moments(
    records: pa.Table, as_of_ms: int | None, types: Collection[int], new_group: Callable[[], Any]
) -> dict[str, Any]:
    """What a GroupMoment says, record by record."""
    of_groups: dict[str, list[GroupChange]] = {}
    for change in changes(records, types):
        of_groups.setdefault(change.group_id, []).append(change)
    result = {}
    for name, group_changes in sorted(of_groups.items()):
        earlier = [change for change in group_changes if as_of_ms is None or change.log_time_ms <= as_of_ms]
        group, bound = new_group(), CompactionBound()
        for change in earlier:
            group.apply(change)
            bound.take(change)
        if earlier:
            result[name] = (
                content(group),
                earlier[-1],
                {change.key for change in group_changes if change not in earlier},
                bound.covers(earlier[-1].log_offset),
                any(change.is_undecoded for change in earlier),
            )
    return result


def content(group: Any) -> Any:
    """What rows follow from; the newest member of an instance id is not among it, and replaced values can change it."""
    if isinstance(group, ConsumerReplay):
        shown = group.group and group.group._replace(static_members=KeyMap())
        return shown, group.state, group.is_known
    return group if isinstance(group, ShareGroup) else (group.group, group.state, group.is_known)


def parts_of(moment: GroupMoment[Any]) -> Any:
    return content(moment.group), moment.newest, moment.later, moment.is_covered, moment.has_undecoded


def check(records: pa.Table, as_of_ms: int | None) -> None:
    kinds: list[tuple[Callable[..., Mapping[str, GroupMoment[Any]]], Collection[int], Callable[[], Any]]] = [
        (groups_at, SHARE_TYPES, ShareGroup),
        (streams_groups_at, STREAMS_TYPES, StreamsReplay),
        (consumer_groups_at, CONSUMER_TYPES, ConsumerReplay),
    ]
    for groups, types, new_group in kinds:
        actual = {name: parts_of(moment) for name, moment in groups(records, as_of_ms).items()}
        assert actual == moments(records, as_of_ms, types, new_group)
        assert list(actual) == sorted(actual)


@pytest.mark.slow
@given(st.integers(0, 1 << 32), st.integers(1, 200), st.none() | st.integers(0, 200))
def test_a_moment_is_that_of_all_records(seed: int, count: int, as_of_ms: int | None) -> None:
    check(random_log(Random(seed), count), as_of_ms)


@pytest.mark.parametrize(
    "kinds",
    [
        (19, -22, 19),  # the first value makes the member whose assignment the tombstone ends
        (22, -20, 22),  # the first value makes the group whose target the tombstone ends
        (22, -19, 19),
        (22, -17, 19, -22, 22),
        (10, -14, 10),
        (14, -11, 10),
        (8, -5, 5),
        (5, -8, 8, -5),
        (8, -3, 8),
        (5, 8, -8, 5),  # the state of the value stays behind its tombstone
    ],
    ids=str,
)
def test_a_replaced_value_counts_where_a_tombstone_follows_it(kinds: tuple[int, ...]) -> None:
    """`kinds`: record types, negative ones of tombstones."""
    dice = Random(1)
    value = dict.fromkeys(SHARE_KINDS, share_value) | dict.fromkeys(CONSUMER_KINDS, consumer_value)
    values = {kind: value.get(kind, streams_value)(dice, kind) for kind in map(abs, kinds)}
    entries = [
        (abs(kind), "m" if abs(kind) in OF_MEMBERS else None, values[kind] if kind > 0 else None) for kind in kinds
    ]
    check(group_log(*entries), None)


@given(st.integers(0, 1 << 32), st.integers(1, 60))
def test_a_group_that_is_read_late_is_the_group(seed: int, count: int) -> None:
    replay, late = StreamsReplay(), LateStreamsReplay()
    for change in changes(random_log(Random(seed), count), STREAMS_TYPES):
        replay.apply(change)
        late.apply(change)
        assert (late.group, late.state, late.is_known) == (replay.group, replay.state, replay.is_known)
