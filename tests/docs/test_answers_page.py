"""The reference page of answers names the events that a trace has."""

import re
from pathlib import Path

from sharelens.questions.traces import events as trace_events

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "answers.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_the_page_names_every_event_of_a_trace() -> None:
    named = set(re.findall(r"`(\w+)`", section("trace")))
    events = {*trace_events.MEANING, trace_events.DELIVERY_STATE, trace_events.ATTEMPTS}
    assert events <= named
