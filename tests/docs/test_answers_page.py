"""The reference page of answers names the fields that the answers have, in their order."""

import re
from pathlib import Path

import pytest

from sharelens.questions import configurations, records, state
from sharelens.questions.traces import events as trace_events
from sharelens.questions.traces import trace

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "answers.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize(
    ("title", "fields"),
    [
        ("state", state.FIELDS),
        ("records", records.FIELDS),
        ("configurations", tuple(configurations.CONFIGURATION.names)),
    ],
)
def test_the_page_lists_the_fields_in_order(title: str, fields: tuple[str, ...]) -> None:
    assert tuple(re.findall(r"^\| `(\w+)` \|", section(title), re.MULTILINE)) == fields


def test_the_page_names_every_event_of_a_trace() -> None:
    named = set(re.findall(r"`(\w+)`", section("trace")))
    events = {*trace_events.MEANING, trace_events.DELIVERY_STATE, trace_events.ATTEMPTS}
    assert events | set(trace.SCHEMA.names[trace.SCHEMA.get_field_index("meaning") :]) <= named
