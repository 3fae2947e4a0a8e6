"""Great Expectations' classes as a check uses them: nothing is made twice, and nothing stale is used."""

from types import ModuleType

import pytest

from jobs.quality.checkpoints import library
from jobs.quality.suites import rules_of
from lake.tables import TABLES

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def own() -> ModuleType:
    library()
    from jobs.quality import own

    return own


def test_a_configuration_is_made_once_and_anew_after_a_change(own: ModuleType) -> None:
    made = own.expectation("ExpectColumnValuesToBeBetween")(column="offset", min_value=0)
    first = made.configuration
    assert made.configuration is first
    assert first.kwargs == {"column": "offset", "min_value": 0}
    made.min_value = 1
    assert made.configuration.kwargs == {"column": "offset", "min_value": 1}


@pytest.mark.parametrize("name", sorted({rule.expectation for table in TABLES for rule in rules_of(table)}))
def test_an_expectation_is_configured_as_the_library_would(own: ModuleType, name: str) -> None:
    arguments = next(rule.arguments for table in TABLES for rule in rules_of(table) if rule.expectation == name)
    ours, theirs = own.expectation(name)(**arguments), getattr(library().expectations, name)(**arguments)
    assert ours.dict() == theirs.dict()
    assert ours.configuration.kwargs == theirs.configuration.kwargs
    assert ours.configuration.to_domain_obj() == ours
    assert own.expectation(name) is own.expectation(name)
