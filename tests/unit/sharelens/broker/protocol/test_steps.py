"""Work in steps: arrays that are computed late, and turns."""

import asyncio

from sharelens.broker.protocol.steps import LazyArray, run_in_turns


def test_other_tasks_run_between_the_steps():
    order = []

    def steps(name):
        for index in range(3):
            order.append((name, index))
            yield
        return name

    async def run_both():
        return await asyncio.gather(run_in_turns(steps("a")), run_in_turns(steps("b")))

    assert asyncio.run(run_both()) == ["a", "b"]
    assert order == [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 2), ("b", 2)]


def test_a_lazy_array_computes_an_element_when_it_is_read():
    computed = []

    def double(item):
        computed.append(item)
        return 2 * item

    array = LazyArray(double, [1, 2, 3])
    assert (len(array), computed) == (3, [])
    assert (array[1], computed) == (4, [2])
    assert list(array[1:]) == [4, 6]
    assert list(array) == [2, 4, 6]
