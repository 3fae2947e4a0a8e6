"""Of a test whose cases are much alike, each nth runs; the soak runs the others."""

import pytest

from tests.depths import is_soak, leave_cases_to_soak

CASES = """
import pytest

@pytest.mark.one_in(3)
@pytest.mark.parametrize("n", [0, 1, 2, pytest.param(3, marks=pytest.mark.soak), 4, 5, 6])
def test_alike(n):
    pass

@pytest.mark.one_in(2)
@pytest.mark.parametrize("a", "xy")
@pytest.mark.parametrize("b", "xy")
def test_pairs(a, b):
    pass

def test_other():
    pass
"""


@pytest.mark.parametrize("is_reversed", [False, True])
def test_each_nth_case_runs_in_any_order_of_tests(is_reversed: bool, pytester: pytest.Pytester) -> None:
    items = pytester.getitems(CASES)
    if is_reversed:
        items.reverse()
    leave_cases_to_soak(items)
    assert sorted(item.name for item in items if not is_soak(item)) == [
        "test_alike[0]", "test_alike[4]", "test_other", "test_pairs[x-x]", "test_pairs[y-x]",
    ]  # fmt: skip
