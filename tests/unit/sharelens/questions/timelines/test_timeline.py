"""The timeline of all groups is that of each group, and its last lines count the entries of each."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from sharelens.cli import main
from sharelens.output import name_cell
from tests.datasets import dataset
from tests.depths import in_soak
from tests.processes.in_process import recorded_lake

pytestmark = pytest.mark.slow

Timeline = Callable[..., tuple[list[dict[str, Any]], list[str]]]


@pytest.fixture(params=["--log-dir", "--lake"])
def timeline(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Timeline:
    """Entries of the timeline of a scenario, and the lines about them."""

    def entries_and_notes(name: str, *words: str) -> tuple[list[dict[str, Any]], list[str]]:
        place = dataset(name) / "logs" if request.param == "--log-dir" else recorded_lake(name)
        assert main(["timeline", request.param, str(place), "-o", "json", *words]) == 0
        captured = capsys.readouterr()
        return json.loads(captured.out), captured.err.splitlines()

    return entries_and_notes


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", ["dlq", "streams", *in_soak("admin", "streams-basic")])
def test_the_timeline_of_all_groups_has_the_entries_of_each(timeline: Timeline, name: str) -> None:
    entries, lines = timeline(name)
    groups = {entry["group_id"] for entry in entries}
    assert len(groups) > 1
    for group in groups:
        of_group, group_lines = timeline(name, "--group", group)
        assert [entry for entry in entries if entry["group_id"] == group] == of_group
        (total,) = (line for line in group_lines if line.startswith("entries: "))
        assert total.replace("entries", f"entries of {name_cell(group)}", 1) in lines
    assert len([line for line in lines if line.startswith("entries of ")]) >= len(groups)


def test_a_group_without_an_entry_in_the_span_is_counted_too(timeline: Timeline) -> None:
    entries, lines = timeline("dlq", "--to", "2026-11-21T03:20:00Z")
    assert entries == []
    assert "entries of gd-meta: none" in lines
