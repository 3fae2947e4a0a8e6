"""Histories of share groups from the records of the group coordinator."""

from itertools import accumulate, chain
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.groups.histories import group_values, histories
from sharelens.groups.moment import ShareMoment, groups_at
from sharelens.groups.rebalances import rebalances
from sharelens.groups.schemas import GROUP_HISTORY, MEMBER_HISTORY, SHARE_INITIALIZATION_HISTORY
from tests.logs.group_logs import (
    CREATED,
    DELETED,
    LEAVE_ENTRIES,
    compacted,
    group_log,
    initialized,
    joined,
    operated,
    subscribed,
    topics,
)

Row = dict[str, Any]


def moment_of(records: pa.Table, as_of_ms: int | None = None) -> ShareMoment | None:
    """The group g at a moment."""
    return groups_at(records, as_of_ms).get("g")


def valid_at(rows: pa.Table, log_offset: int) -> list[Row]:
    """The rows that are valid after the record at an offset."""
    return [
        row
        for row in rows.to_pylist()
        if row["valid_from_log_offset"] <= log_offset
        and (row["valid_to_log_offset"] is None or log_offset < row["valid_to_log_offset"])
    ]


def test_a_group_has_a_row_for_each_change_of_its_state_epochs_and_members() -> None:
    rows = histories(group_log(*CREATED, *LEAVE_ENTRIES, *DELETED)).groups
    assert rows.schema == GROUP_HISTORY
    brief = [
        (row["state"], row["group_epoch"], row["assignment_epoch"], row["member_count"], row["end_reason"])
        for row in rows.to_pylist()
    ]
    assert brief == [
        ("STABLE", None, None, 1, "changed"),
        ("STABLE", 2, None, 1, "changed"),
        ("STABLE", 2, 2, 1, "changed"),
        ("EMPTY", 2, 2, 0, "changed"),
        ("EMPTY", 3, 2, 0, "changed"),
        ("EMPTY", 3, None, 0, "changed"),
        ("DEAD", None, None, 0, None),
    ]
    intervals = [(row["valid_from_log_offset"], row["valid_to_log_offset"]) for row in rows.to_pylist()]
    assert [end for _, end in intervals[:-1]] == [begin for begin, _ in intervals[1:]]


def test_a_member_has_a_row_until_its_subscription_is_removed() -> None:
    rows = histories(group_log(*CREATED, *LEAVE_ENTRIES)).members
    assert rows.schema == MEMBER_HISTORY
    brief = [
        (row["member_id"], row["member_epoch"], row["assigned_partitions"], row["end_reason"])
        for row in rows.to_pylist()
    ]
    orders = [{"topic_id": "T", "partitions": [0, 1]}]
    assert brief == [
        ("m", None, [], "changed"),
        ("m", None, [], "changed"),
        ("m", 2, orders, "changed"),
        ("m", -1, [], "changed"),
        ("m", -1, [], "removed"),
    ]
    assert rows.column("target_partitions").to_pylist() == [[], orders, orders, orders, []]


def test_initialization_says_when_a_share_partition_is_in_a_status() -> None:
    rows = histories(
        group_log(initialized(initializing=(0, 1)), initialized(0, 1), initialized(deleting=True))
    ).initialization
    assert rows.schema == SHARE_INITIALIZATION_HISTORY
    brief = [
        (row["partition"], row["status"], row["valid_from_log_offset"], row["valid_to_log_offset"])
        for row in rows.to_pylist()
    ]
    assert brief == [
        (0, "INITIALIZING", 0, 1),
        (1, "INITIALIZING", 0, 1),
        (0, "INITIALIZED", 1, 2),
        (1, "INITIALIZED", 1, 2),
        (None, "DELETING", 2, None),
    ]
    assert set(rows.column("topic").to_pylist()) == {"orders"}


def test_a_name_that_the_coordinator_did_not_know_is_null() -> None:
    rows = histories(group_log((15, None, topics(initialized=(0,), name="<UNKNOWN>")))).initialization
    assert rows.column("topic").to_pylist() == [None]


def test_tombstones_alone_make_a_dead_group_and_no_member() -> None:
    log = group_log((14, "m", None), (13, "m", None), (10, "m", None), (15, None, None), (11, None, None))
    group_tables = histories(log)
    assert group_tables.groups.column("state").to_pylist() == ["DEAD"]
    assert (group_tables.members.num_rows, group_tables.initialization.num_rows) == (0, 0)


def test_rows_from_before_the_first_replaced_record_are_incomplete() -> None:
    """The replaced record that is left at offset 3 proves that compaction stopped before offset 3."""
    log = group_log(
        joined("m"),
        (11, None, {"epoch": 5}),
        joined("n"),
        (11, None, {"epoch": 6}),
        joined("o"),
        (11, None, {"epoch": 7}),
    )
    rows = histories(log).groups.to_pylist()
    brief = [(row["valid_from_log_offset"], row["completeness"], row["completeness_reason"]) for row in rows]
    assert brief == [
        (0, "incomplete", "compacted"),
        (1, "incomplete", "compacted"),
        (2, "incomplete", "compacted"),
        (3, "complete", None),
        (4, "complete", None),
        (5, "complete", None),
    ]
    of_members = histories(log).members.column("completeness").to_pylist()
    assert of_members == ["incomplete", "incomplete", "complete"]


@pytest.mark.parametrize(
    ("as_of_ms", "of_group", "of_member"),
    [(101, "incomplete", "incomplete"), (102, "complete", "complete"), (None, "complete", "complete")],
)
def test_a_moment_is_complete_where_compaction_can_have_removed_nothing(
    as_of_ms: int | None, of_group: str, of_member: str
) -> None:
    log = group_log(joined("m"), (11, None, {"epoch": 5}), (11, None, {"epoch": 6}), subscribed("m", "orders", "audit"))
    moment = moment_of(log, as_of_ms)
    assert moment is not None
    assert moment.group_marks["completeness"] == of_group
    assert moment.member_marks("m")["completeness"] == of_member


def test_before_the_first_record_there_is_no_group() -> None:
    assert moment_of(group_log(*CREATED), 99) is None


def test_a_clock_that_went_back_does_not_tear_an_operation() -> None:
    """As of T is a prefix of the log: a later record with an older timestamp has the log time of those before it."""
    log = group_log(joined("m"), (11, None, {"epoch": 2}), timestamps_ms=(200, 100))
    moment = moment_of(log, 150)
    assert moment is None
    moment = moment_of(log, 200)
    assert moment is not None
    assert moment.group.group_epoch == 2


def test_a_value_of_an_unknown_version_changes_nothing_and_is_marked() -> None:
    log = group_log(joined("m"), (11, None, {"epoch": 2}), (11, None, {"epoch": 3}), undecoded=(2,))
    moment = moment_of(log)
    assert moment is not None
    assert moment.group.group_epoch == 2
    assert moment.group_marks == {"completeness": "incomplete", "completeness_reason": "quarantined"}
    assert set(histories(log).groups.column("completeness_reason").to_pylist()) == {"quarantined"}


OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["join", "leave", "heartbeat", "initialize"]), st.sampled_from("mno"), st.integers(0, 3)),
    max_size=14,
)


def without_marks(rows: list[Row]) -> list[Row]:
    """The rows without completeness and its reason."""
    return [{name: value for name, value in row.items() if "completeness" not in name} for row in rows]


def values_of(rows: pa.Table) -> list[Row]:
    """The complete rows, without their marks."""
    return without_marks([row for row in rows.to_pylist() if row["completeness"] == "complete"])


@pytest.mark.slow
@given(OPERATIONS, st.data())
def test_what_is_complete_in_a_compacted_log_is_what_the_whole_log_says(
    operations: list[tuple[str, str, int]], data: st.DataObject
) -> None:
    """The cleaner ends between segments, so it tears no operation."""
    batches = operated(operations)
    whole_log = group_log(*chain(*batches))
    end = data.draw(st.sampled_from([0, *accumulate(map(len, batches))]), label="end of the compacted part")
    part = compacted(whole_log, end, keep_tombstones=data.draw(st.booleans(), label="keep tombstones"))
    for moment_ms in [*whole_log.column("timestamp_ms").to_pylist(), None]:
        expected, moment = moment_of(whole_log, moment_ms), moment_of(part, moment_ms)
        assert expected is not None
        if moment is None:
            continue
        if moment.group_marks["completeness"] == "complete":
            assert group_values(moment.group) == group_values(expected.group)
            assert moment.group.members == expected.group.members
            assert moment.group.targets == expected.group.targets
        if moment.initialization_marks["completeness"] == "complete":
            assert moment.group.initialization == expected.group.initialization
        for name, member in moment.group.members.items():
            if moment.member_marks(name)["completeness"] == "complete":
                assert member == expected.group.members[name]
    for rows, expected_rows in zip(histories(part), histories(whole_log), strict=True):
        every = without_marks(expected_rows.to_pylist())
        assert all(row in every for row in values_of(rows))
    every = without_marks(rebalances(whole_log).to_pylist())
    assert all(row in every for row in values_of(rebalances(part)))
