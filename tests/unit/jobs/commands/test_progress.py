"""Progress where nobody looks at a terminal: lines once a command has taken long."""

import threading

import pytest

from jobs.commands.progress import Lines, progress_bars


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_a_line_says_how_far_a_stage_is_and_how_long_it_will_take() -> None:
    clock = Clock()
    lines = Lines(print, clock)
    assert lines.text() == ""
    lines.report("replay", 0, 40)
    clock.now_s += 5
    assert lines.text() == "replay: 0 of 40 tasks, for 5 s"
    lines.report("replay", 10, 40)
    assert lines.text() == "replay: 10 of 40 tasks, 2.0 a second, about 15 s left"
    lines.report("fetch", 0, 0)
    clock.now_s += 61
    assert lines.text() == "fetch: for 1 min 1 s"


def test_lines_are_printed_while_the_work_lasts() -> None:
    printed: list[str] = []
    is_there = threading.Event()

    def line(text: str) -> None:
        printed.append(text)
        is_there.set()

    lines = Lines(line)
    with lines.printed(quiet_s=0.01, every_s=0.01):
        lines.report("measure", 1, 2)
        assert is_there.wait(60)
    assert printed[0].startswith("measure: 1 of 2 tasks")
    count = len(printed)
    assert not threading.Event().wait(0.05)
    assert len(printed) == count


def test_a_short_command_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bars() as progress:
        progress.at("decode", 1, 1)
    assert capsys.readouterr().err == ""
