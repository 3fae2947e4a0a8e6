"""How many examples a property test draws: one table, by what an example costs and by the depth of the run.

The variable SHARELENS_HYPOTHESIS names the depth: `quick` (make test-fast), `default` (make test) or `thorough`. With
SHARELENS_SAME_EXAMPLES=1 (.ci/run) a test draws the same examples in each run.
"""

import os
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

DEPTH_VARIABLE, SAME_VARIABLE = "SHARELENS_HYPOTHESIS", "SHARELENS_SAME_EXAMPLES"
EXAMPLES = {
    "function": {"quick": 5, "default": 15, "thorough": 2000},
    "table": {"quick": 8, "default": 8, "thorough": 500},
    "cluster": {"quick": 5, "default": 20, "thorough": 1500},
    "broker": {"quick": 5, "default": 8, "thorough": 400},
    "page": {"quick": 3, "default": 3, "thorough": 300},
    "simulation": {"quick": 3, "default": 3, "thorough": 100},
    "lake": {"quick": 2, "default": 2, "thorough": 200},
    "lake and log": {"quick": 2, "default": 2, "thorough": 100},
}
"""Cost of an example -> depth -> number of examples. `cluster`: an example audits small logs. `broker`: it restarts a
broker. `page`: it asks a question on the command line and for pages. `lake`: it runs the pipeline once or more."""


def in_soak(*values: Any) -> list[Any]:
    """Further values of a costly test's parameter, which only `make soak` tries."""
    return [pytest.param(value, marks=pytest.mark.soak) for value in values]


def rows_in_soak(*rows: tuple[Any, ...]) -> list[Any]:
    """The same for tests with several parameters: a row has a value of each."""
    return [pytest.param(*row, marks=pytest.mark.soak) for row in rows]


def leave_cases_to_soak(items: Iterable[pytest.Item]) -> None:
    """Marks all cases of a test but each nth for the soak, where the test has the mark `one_in(n)`.

    Cases count in the order of their values, without those that are the soak's anyway; the order of tests moves none.
    """
    cases: dict[tuple[str, int], list[pytest.Function]] = defaultdict(list)
    for item in items:
        mark = item.get_closest_marker("one_in")
        if mark is not None and isinstance(item, pytest.Function) and not is_soak(item):
            cases[item.nodeid.partition("[")[0], mark.args[0]].append(item)
    for (_, step), alike in cases.items():
        alike.sort(key=lambda item: tuple(item.callspec.indices.values()))
        for number, item in enumerate(alike):
            if number % step:
                item.add_marker(pytest.mark.soak)


def is_soak(item: pytest.Item) -> bool:
    """Whether only the soak runs a test."""
    return item.get_closest_marker("soak") is not None


def depth() -> str:
    """The depth of this test run."""
    return os.environ.get(DEPTH_VARIABLE, "default")


def load_profile() -> None:
    """Makes the depth of this run hypothesis's default, for properties of pure functions."""
    same = os.environ.get(SAME_VARIABLE) == "1"
    for name, count in EXAMPLES["function"].items():
        settings.register_profile(
            name,
            deadline=None,
            max_examples=count,
            print_blob=True,
            derandomize=same,
            suppress_health_check=[HealthCheck.too_slow],  # on a busy machine every strategy is slow
        )
    settings.load_profile(depth())


def examples(cost: str, *, shrink: bool = True) -> settings:
    """Settings of a property test whose examples cost more than a function call: a key of EXAMPLES.

    Without `shrink` a failing example is reported as it was drawn: making it smaller would run for minutes.
    """
    phases = [Phase.explicit, Phase.reuse, Phase.generate]
    return settings(
        max_examples=EXAMPLES[cost][depth()],
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
        phases=[*phases, Phase.shrink] if shrink else phases,
    )
