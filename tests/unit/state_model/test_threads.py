"""Work in threads: the same results in the same order, and threads only where they are worth it."""

import threading
from collections.abc import Callable

import pytest

from state_model.threads import IN_TURN_BYTES, map_in_threads, stream_in_threads, threads_for

THIS_THREAD = threading.get_ident


def test_results_are_in_the_order_of_the_items() -> None:
    first_may_end = threading.Event()

    def work(number: int) -> int:
        if number == 0:
            assert first_may_end.wait(10)
        elif number == 1:
            first_may_end.set()
        return number * 2

    assert map_in_threads(work, range(4), 2) == [0, 2, 4, 6]


@pytest.mark.parametrize(("items", "threads"), [(3, 1), (1, 8), (3, 0), (0, 8)])
def test_one_thread_or_one_item_is_worked_on_in_the_calling_thread(items: int, threads: int) -> None:
    assert map_in_threads(lambda _: THIS_THREAD(), range(items), threads) == [THIS_THREAD()] * items


def test_several_items_have_threads_of_their_own() -> None:
    together = threading.Barrier(2, timeout=10)

    def work(_: int) -> int:
        together.wait()
        return THIS_THREAD()

    used = map_in_threads(work, range(2), 2)
    assert len(set(used)) == 2
    assert THIS_THREAD() not in used


def fails_at(bad: int) -> tuple[Callable[[int], int], list[int]]:
    """Work that fails at one item, and the items it was called with."""
    called: list[int] = []

    def work(number: int) -> int:
        called.append(number)
        if number == bad:
            raise ValueError(f"item {number}")
        return number

    return work, called


@pytest.mark.parametrize("threads", [1, 2])
def test_the_error_of_the_first_item_that_fails_is_raised(threads: int) -> None:
    work, called = fails_at(1)
    has_failed = threading.Event()

    def slow_behind(number: int) -> int:
        """Threads of this process wait for each other, so that no thread does all items before the failure is seen."""
        if number > 1:
            has_failed.wait(0.05)
        return work(number)

    with pytest.raises(ValueError, match="item 1"):
        map_in_threads(slow_behind, range(1000), threads)
    assert len(called) < 1000, "items behind it that nothing had begun are left out"


def test_small_work_is_worth_one_thread() -> None:
    assert threads_for(IN_TURN_BYTES - 1, 4) == 1
    assert threads_for(IN_TURN_BYTES, 4) == 4


@pytest.mark.parametrize("threads", [1, 2])
def test_done_is_called_after_each_result_in_the_calling_thread(threads: int) -> None:
    counts: list[tuple[int, int]] = []
    map_in_threads(str, range(3), threads, lambda count: counts.append((count, THIS_THREAD())))
    assert counts == [(1, THIS_THREAD()), (2, THIS_THREAD()), (3, THIS_THREAD())]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_a_stream_has_the_results_in_order_and_begins_few_items_ahead(threads: int) -> None:
    begun: list[int] = []
    stream = stream_in_threads(lambda number: begun.append(number) or number * 2, range(20), threads)
    assert begun == []
    for number in range(20):
        assert next(stream) == number * 2
        assert len(begun) <= number + 1 + threads
    assert list(stream) == []
    assert sorted(begun) == list(range(20))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_stream_that_fails_or_is_left_begins_no_further_item(threads: int) -> None:
    work, called = fails_at(1)
    stream = stream_in_threads(work, range(1000), threads)
    assert next(stream) == 0
    with pytest.raises(ValueError, match="item 1"):
        next(stream)
    assert len(called) <= 2 + threads
    stream = stream_in_threads(str, range(1000), threads)
    assert next(stream) == "0"
    stream.close()
