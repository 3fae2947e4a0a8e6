"""Which share partitions were meant."""

import pytest

from sharelens.parameters.filters import TopicChoice, parse_at_offset, parse_key_filter, parse_topic
from state_model.errors import UsageError


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("orders", TopicChoice(text="orders")),
        ("orders:0", TopicChoice(text="orders", partitions=frozenset({0}))),
        ("orders:2, 0,2", TopicChoice(text="orders", partitions=frozenset({0, 2}))),
        ("qWiuuiIrR325SFUd1eZw1g:1", TopicChoice(text="qWiuuiIrR325SFUd1eZw1g", partitions=frozenset({1}))),
    ],
)
def test_a_topic_may_carry_its_partitions(text: str, choice: TopicChoice) -> None:
    assert parse_topic(text) == choice


@pytest.mark.parametrize("text", ["", ":0", "orders:", "orders:x", "orders:-1", "orders:0,", "orders:2147483648"])
def test_a_topic_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--topic"):
        parse_topic(text)


def test_a_partition_that_cannot_be_read_is_told_with_what_to_type() -> None:
    with pytest.raises(UsageError) as refused:
        parse_topic("orders:x")
    assert str(refused.value) == (
        "--topic orders:x: 'x' is no partition; type a number from 0 on, as in --topic orders:0,1"
    )


def test_nothing_typed_puts_no_condition() -> None:
    assert parse_key_filter([], [], []).keeps_all
    assert not parse_key_filter(["g"], [], []).keeps_all


def test_group_names_are_taken_as_they_are() -> None:
    assert parse_key_filter(["a:b", " ", "-x"], [], []).groups == {"a:b", " ", "-x"}


@pytest.mark.parametrize(
    ("text", "cuts"),
    [("0:5", {0: 5}), ("0:-1, 3:9223372036854775807", {0: -1, 3: 2**63 - 1}), ("7:0,0:7", {7: 0, 0: 7})],
)
def test_a_cut_names_state_partitions_and_their_last_offsets(text: str, cuts: dict[int, int]) -> None:
    assert parse_at_offset(text) == cuts


@pytest.mark.parametrize(
    "text", ["", "5", "0:", ":5", "0:-2", "0:1,", "0:1;1:2", "0:9223372036854775808", "0:1,0:2", "2147483648:1"]
)
def test_a_cut_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--at-offset"):
        parse_at_offset(text)
