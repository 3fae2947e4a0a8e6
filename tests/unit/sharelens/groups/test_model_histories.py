"""Consumer groups by their records: histories of groups and members, rebalances, and the moment between records."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from sharelens.evidence.group_decoding import decode_groups
from sharelens.groups.consumer_values import preferred_assignor
from sharelens.groups.histories import histories
from sharelens.groups.model_rebalances import consumer_rebalances
from sharelens.groups.moment import consumer_groups_at
from sharelens.groups.schemas import CONSUMER_REBALANCE, GROUP_HISTORY, MEMBER_HISTORY
from tests.logs.consumer_logs import DELETED, REMOVED_B, SCALED_OUT, Entry, entries, joined, resolved
from tests.logs.log_rows import log_rows
from tests.logs.state_logs import ORDERS_ID

FIRST = 100
"""The offset of the first record."""


def records(log: Sequence[Entry]) -> pa.Table:
    """GROUP_RECORD rows, decoded from bytes."""
    keys, values = zip(*(entry.encoded() for entry in entries(log)), strict=True)
    decoded = decode_groups(pa.Table.from_batches([log_rows(list(keys), list(values))]))
    assert not decoded.problems.num_rows
    return decoded.records


def test_a_group_has_a_row_for_each_state_and_epoch() -> None:
    rows = histories(records((*SCALED_OUT, *REMOVED_B, *DELETED))).groups
    assert rows.schema == GROUP_HISTORY
    columns = ("state", "group_epoch", "assignment_epoch", "member_count")
    states = [(row["valid_from_log_offset"] - FIRST, *(row[name] for name in columns)) for row in rows.to_pylist()]
    assert states == [
        (0, "RECONCILING", None, None, 1),  # the defaults of a new group, which no record has
        (1, "ASSIGNING", 2, None, 1),
        (3, "RECONCILING", 2, 2, 1),
        (4, "STABLE", 2, 2, 1),
        (5, "RECONCILING", 2, 2, 2),
        (6, "ASSIGNING", 3, 2, 2),
        (9, "RECONCILING", 3, 3, 2),
        (13, "STABLE", 3, 3, 2),
        (14, "RECONCILING", 3, 3, 2),  # the tombstone of b's assignment
        (16, "STABLE", 3, 3, 1),
        (17, "ASSIGNING", 4, 3, 1),
        (19, "RECONCILING", 4, 4, 1),
        (20, "ASSIGNING", 4, None, 1),
        (21, "DEAD", None, None, 0),
    ]
    assert {row["group_type"] for row in rows.to_pylist()} == {"consumer"}


def test_a_member_has_a_row_for_each_assignment() -> None:
    rows = histories(records((*SCALED_OUT, *REMOVED_B))).members
    assert rows.schema == MEMBER_HISTORY
    of_b = [row for row in rows.to_pylist() if row["member_id"] == "b"]
    assert [(row["member_epoch"], row["member_state"], numbers(row)) for row in of_b] == [
        (None, None, ([], None, [])),
        (None, None, ([], None, [1])),
        (3, "UNRELEASED_PARTITIONS", ([], [], [1])),
        (3, "STABLE", ([1], [], [1])),
        (-1, "STABLE", ([], [], [1])),
        (-1, "STABLE", ([], [], [])),
    ]
    assert {(row["instance_id"], row["member_type"], row["server_assignor"]) for row in of_b} == {
        ("i", "consumer", "range")
    }
    assert of_b[-1]["end_reason"] == "removed"
    (giving_up,) = (row for row in rows.to_pylist() if row["member_state"] == "UNREVOKED_PARTITIONS")
    assert (giving_up["member_id"], numbers(giving_up)) == ("a", ([0], [1], [0]))


def numbers(row: dict[str, Any]) -> tuple[list[int] | None, ...]:
    """The partitions of orders that a member has, must give up, and is to have."""
    lists = (row[name] for name in ("assigned_partitions", "pending_partitions", "target_partitions"))
    assert all(of["topic_id"] == ORDERS_ID for name in ("assigned_partitions",) for of in row[name])
    return tuple(None if of is None else [number for topic in of for number in topic["partitions"]] for of in lists)


def test_a_member_of_the_classic_protocol_says_so() -> None:
    classic = {"session_timeout_ms": 45_000, "supported_protocols": ()}
    (row,) = histories(records([joined("a", classic_member_metadata=classic)])).members.to_pylist()
    assert (row["member_type"], row["subscribed_topics"], row["subscribed_topic_regex"]) == (
        "classic",
        ["orders"],
        None,
    )


def ids(members: list[dict[str, Any]]) -> list[str]:
    return [member["member_id"] for member in members]


def test_rebalances_have_moves_and_the_time_without_an_owner() -> None:
    rows = consumer_rebalances(records((*SCALED_OUT, *REMOVED_B)))
    assert rows.schema == CONSUMER_REBALANCE
    brief = [
        (
            row["group_epoch"],
            row["assignment_epoch"],
            ids(row["joined"]),
            ids(row["removed"]),
            [
                (
                    move["partition"],
                    *([of["member_id"] for of in move[side]] for side in ("from_members", "to_members")),
                )
                for move in row["moved"]
            ],
            (row["kept_partitions"], row["lost_partitions"], row["fewest_partitions"], row["most_partitions"]),
            row["stable_after_ms"] is not None,
        )
        for row in rows.to_pylist()
    ]
    assert brief == [
        (2, 2, ["a"], [], [(0, [], ["a"]), (1, [], ["a"])], (0, 0, 2, 2), True),
        (3, 3, ["b"], [], [(1, ["a"], ["b"])], (1, 1, 1, 1), True),
        (4, 4, [], ["b"], [(1, ["b"], ["a"])], (1, 1, 2, 2), False),
    ]
    assert rows.column("partitions_without_owner").to_pylist() == [0, 1, 0]
    assert rows.column("partitions_still_without_owner").to_pylist() == [0, 0, 1]


def test_a_regular_expression_has_its_topics_until_its_tombstone() -> None:
    log = (joined("a", subscribed_topic_regex="o.*"), resolved("o.*", "orders"), resolved("p.*"), (16, "p.*", None))
    (moment,) = consumer_groups_at(records(log)).values()
    assert moment.group.group is not None
    assert moment.group.group.resolved_topics == {"o.*": frozenset({"orders"})}


def test_the_assignor_is_that_of_most_members_where_there_is_one() -> None:
    def preferred(*names: str | None) -> str | None:
        log = [joined(str(number), server_assignor=name) for number, name in enumerate(names)]
        (moment,) = consumer_groups_at(records(log)).values()
        assert moment.group.group is not None
        return preferred_assignor(moment.group.group)

    assert preferred(None, None) is None
    assert preferred("range", None) == "range"
    assert preferred("range", "uniform") is None
    assert preferred("range", "uniform", "uniform") == "uniform"
