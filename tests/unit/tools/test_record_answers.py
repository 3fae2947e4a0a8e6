"""A recording replaces what the clock and the machine decide, and keeps the rest; a comparison finds what differs."""

from dataclasses import replace
from pathlib import Path

import pytest

from tools.record_answers.__main__ import main
from tools.record_answers.answers import Answer, write_answer
from tools.record_answers.comparing import Verdict, compare
from tools.record_answers.normalising import PATTERNS, Places, normalised

MOMENT_MS = 1_764_000_000_000
DAY_MS = 86_400_000


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """A recording that began at MOMENT_MS."""
    return Places(work=tmp_path, checkout=tmp_path / "checkout", begin_ms=MOMENT_MS, bootstrap="127.0.0.1:9092")


@pytest.mark.parametrize(
    ("answer", "recorded"),
    [
        (
            "cut: 2026-11-21T03:12:46.961Z, 7 d 1 h ago; end offsets",
            "cut: 2026-11-21T03:12:46.961Z, <AGE> ago; end offsets",
        ),
        ("asked 127.0.0.1:9092", "asked <BROKER>"),
        ("lag 91, delivered 2 s later", "lag 91, delivered 2 s later"),
    ],
)
def test_only_the_clock_and_the_machine_are_replaced(places: Places, answer: str, recorded: str) -> None:
    assert normalised(answer, places, "lag/now", MOMENT_MS) == recorded


def test_metrics_lose_the_moment_of_reading_and_keep_figures(places: Places) -> None:
    logged = replace(places, logged_ms=(MOMENT_MS - 7 * DAY_MS, MOMENT_MS - 7 * DAY_MS + 50_000))
    text = f"read_timestamp_seconds {MOMENT_MS / 1000:e}\nlag 91\n"
    assert normalised(text, logged, "metrics/prometheus", MOMENT_MS) == "read_timestamp_seconds <NOW-S>\nlag 91\n"


def test_each_replacement_has_a_reason() -> None:
    assert all(pattern.reason for pattern in PATTERNS)


def recording(folder: Path, stdout: str) -> Path:
    """A recording of one call."""
    answer = Answer(words=("lag",), exit_code="0", stdout=stdout, stderr="")
    write_answer(answer, folder / "basic" / "log-dir" / "lag" / "now.text")
    return folder


@pytest.mark.parametrize(
    ("after", "verdict", "is_equal"),
    [
        ("GROUP LAG\na 1\nb 2\n", Verdict.SAME, True),
        ("GROUP LAG\nb 2\na 1\n", Verdict.ORDER, True),
        ("GROUP LAG\na 1\nb 3\n", Verdict.DIFFERENT, False),
    ],
)
def test_another_figure_is_a_difference_and_another_order_is_none(
    tmp_path: Path, after: str, verdict: Verdict, is_equal: bool
) -> None:
    before = recording(tmp_path / "before", "GROUP LAG\na 1\nb 2\n")
    comparison = compare(before, recording(tmp_path / "after", after))
    assert list(comparison.verdicts.values()) == [verdict]
    assert comparison.is_equal is is_equal


def test_folders_without_a_call_in_common_are_no_comparison(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "before").mkdir()
    (tmp_path / "after").mkdir()
    assert main(["compare", str(tmp_path / "before"), str(tmp_path / "after")]) == 2
    assert "have no call in common" in capsys.readouterr().err


def test_a_call_that_one_recording_lacks_is_a_difference(tmp_path: Path) -> None:
    (tmp_path / "after").mkdir()
    comparison = compare(recording(tmp_path / "before", "x"), tmp_path / "after")
    assert (len(comparison.only_before), comparison.is_equal) == (1, False)
