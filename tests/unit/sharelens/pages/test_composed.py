"""Pages that put several answers together: what a group of each kind has."""

import pytest

from sharelens.pages.composed import group_page

SHARED = "Epochs and members over time|What happened in the last hour"
TITLES = {
    "share": "What is wrong now|State|Offsets and lag|Lag in the last hour|Members|Stalls|Dead letters",
    "streams": "What is wrong now|State|Offsets and lag|Members|Tasks",
    "consumer": "What is wrong now|State|Offsets and lag|Members",
}


@pytest.mark.parametrize(("kind", "titles"), TITLES.items())
def test_the_page_of_a_group_has_the_answers_of_its_kind(kind: str, titles: str) -> None:
    plan = group_page("g", (), kind)
    assert [section.title for section in plan.sections] == f"{titles}|{SHARED}".split("|")
    assert all(("group", "g") in section.address.options for section in plan.sections)
    judging = [section.address.question for section in plan.sections if ("all_groups", "on") in section.address.options]
    assert judging == (["overview"] if kind == "consumer" else [])
