"""Which incarnation of a topic is the newest."""

from hypothesis import given
from hypothesis import strategies as st

from sharelens.evidence.incarnations import newest_first, newest_incarnation

TIMES = st.lists(st.tuples(st.sampled_from("abcd"), st.none() | st.integers(-5, 5)), max_size=10)


@given(TIMES.flatmap(lambda pairs: st.tuples(st.just(pairs), st.permutations(pairs))))
def test_the_order_of_the_evidence_does_not_matter(pair_orders: tuple[list[tuple[str, int | None]], ...]) -> None:
    pairs, permuted = pair_orders
    assert newest_first(pairs) == newest_first(permuted)


def test_the_largest_log_time_of_any_partition_decides() -> None:
    assert newest_first([("old", 5), ("new", 3), ("new", 9), ("old", 8)]) == ["new", "old"]


def test_equal_times_go_by_id_and_unknown_times_come_last() -> None:
    assert newest_first([("b", 4), ("c", None), ("a", 4), ("d", -1)]) == ["a", "b", "d", "c"]


def test_without_evidence_there_is_none() -> None:
    assert newest_incarnation([]) is None
    assert newest_incarnation([("a", None)]) == "a"
