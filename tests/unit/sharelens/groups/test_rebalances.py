"""Rebalances of share groups from the records of the group coordinator."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sharelens.groups.moment import groups_at
from sharelens.groups.rebalances import rebalances
from sharelens.groups.schemas import REBALANCE
from tests.logs.group_logs import (
    CREATED,
    DELETED,
    LEAVE_ENTRIES,
    Entry,
    assigned,
    assignment_epoch,
    epoch,
    group_log,
    joined,
    subscribed,
    target,
)


def brief(*entries: Entry) -> list[tuple[Any, ...]]:
    """Group epoch, assignment epoch, joined, removed and moves (partition, from, to) of each rebalance."""
    rows = rebalances(group_log(*entries))
    assert rows.schema == REBALANCE

    def names(members: list[dict[str, Any]]) -> str:
        return " ".join(member["member_id"] for member in members)

    return [
        (
            row["group_epoch"],
            row["assignment_epoch"],
            names(row["joined"]),
            names(row["removed"]),
            [(move["partition"], names(move["from_members"]), names(move["to_members"])) for move in row["moved"]],
        )
        for row in rows.to_pylist()
    ]


OPERATIONS = st.lists(
    st.one_of(
        st.builds(
            lambda member, partitions: target(member, *partitions), st.sampled_from("mno"), st.sets(st.integers(0, 5))
        ),
        st.builds(lambda member: (13, member, None), st.sampled_from("mno")),
        st.builds(joined, st.sampled_from("mno")),
        st.builds(epoch, st.integers(1, 9)),
        st.just((11, None, None)),
    )
)


@given(OPERATIONS)
def test_moves_add_up_to_the_target_assignment(operations: list[Entry]) -> None:
    log = group_log(epoch(1), *operations)
    members: dict[int, set[str]] = {}
    for row in rebalances(log).to_pylist():
        for move in row["moved"]:
            lost, gained = ({member["member_id"] for member in move[side]} for side in ("from_members", "to_members"))
            before = members.get(move["partition"], set())
            assert lost | gained
            assert lost <= before
            assert not gained & before
            members[move["partition"]] = before - lost | gained
    targets = groups_at(log)["g"].group.targets
    owned = {(member, number) for member, topics in targets.items() for _, numbers in topics for number in numbers}
    assert {(member, number) for number, names in members.items() for member in names} == owned


def test_a_member_that_joins_takes_partitions_of_others() -> None:
    second = (joined("n"), epoch(3), target("m", 0), target("n", 1), assignment_epoch(3), assigned("n", 3, 1))
    assert brief(*CREATED, *second) == [
        (2, 2, "m", "", [(0, "", "m"), (1, "", "m")]),
        (3, 3, "n", "", [(1, "m", "n")]),
    ]


def test_a_removed_member_loses_its_partitions_in_the_epoch_that_its_removal_begins() -> None:
    assert brief(*CREATED, *LEAVE_ENTRIES) == [
        (2, 2, "m", "", [(0, "", "m"), (1, "", "m")]),
        (3, None, "", "m", [(0, "m", ""), (1, "m", "")]),
    ]


def test_a_partition_can_gain_a_member_and_lose_none() -> None:
    second = (joined("n"), epoch(3), target("n", 1), assignment_epoch(3))
    assert brief(*CREATED, *second)[1] == (3, 3, "n", "", [(1, "", "n")])


def test_an_assignment_that_comes_late_belongs_to_the_newest_epoch() -> None:
    """KIP-1263: one assignment a second at most, so that an epoch can pass without one."""
    later = (joined("n"), epoch(3), joined("o"), epoch(4), target("n", 1), target("m", 0), assignment_epoch(4))
    assert brief(*CREATED, *later)[1:] == [
        (3, None, "n", "", []),
        (4, 4, "o", "", [(1, "m", "n")]),
    ]


def test_a_member_record_without_an_epoch_does_not_end_a_rebalance() -> None:
    """A member that comes from another host writes its subscription again, and the group epoch stays."""
    elsewhere = (epoch(3), joined("m"), target("m", 0), assignment_epoch(3), epoch(4))
    assert brief(*CREATED, *elsewhere)[1:] == [(3, 3, "", "", [(1, "m", "")]), (4, None, "", "", [])]


def test_a_changed_subscription_is_no_join() -> None:
    rows = rebalances(group_log(*CREATED, subscribed("m", "audit", "orders"), epoch(3))).to_pylist()
    assert [row["resubscribed"] for row in rows] == [[], [{"member_id": "m", "client_id": "c-m"}]]
    assert rows[1]["joined"] == []


def test_a_deleted_group_has_a_row_and_begins_again() -> None:
    rows = rebalances(group_log(*CREATED, *LEAVE_ENTRIES, *DELETED, *CREATED)).to_pylist()
    assert [(row["group_epoch"], row["state"], row["member_count"]) for row in rows] == [
        (2, "STABLE", 1),
        (3, "EMPTY", 0),
        (None, "DEAD", 0),
        (2, "STABLE", 1),
    ]
    assert [move["partition"] for move in rows[3]["moved"]] == [0, 1]


def test_rebalances_behind_the_first_replaced_record_are_complete() -> None:
    rows = rebalances(group_log(*CREATED, *LEAVE_ENTRIES)).to_pylist()
    assert [row["completeness"] for row in rows] == ["incomplete", "complete"]
