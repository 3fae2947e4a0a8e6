"""Pages that put several answers together: what a group of each kind has."""

import pytest

from sharelens.pages.composed import group_page


@pytest.mark.parametrize(
    ("kind", "titles"),
    [
        (
            "share",
            "What is wrong now|State|Offsets and lag|Lag in the last hour|Members|Stalls|Dead letters|"
            "Epochs and members over time|What happened in the last hour",
        ),
        (
            "streams",
            "What is wrong now|State|Offsets and lag|Members|Tasks|Epochs and members over time|"
            "What happened in the last hour",
        ),
        (
            "consumer",
            "State|Offsets and lag|Members|Epochs and members over time|What happened in the last hour",
        ),
    ],
)
def test_the_page_of_a_group_has_the_answers_of_its_kind(kind: str, titles: str) -> None:
    plan = group_page("g", (), kind)
    assert [section.title for section in plan.sections] == titles.split("|")
    assert all(("group", "g") in section.address.options for section in plan.sections)
