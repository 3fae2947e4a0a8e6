"""Moments as typed and as shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.times import FIRST_MS, LAST_MS, Rounding, lasted, parse_time, time_text
from state_model.errors import UsageError

MOMENT_MS = 1_795_238_000_123
LASTED = {
    0: "0 s",
    400: "0.4 s",
    45_000: "45 s",
    60_000: "1 min",
    61_000: "1 min 1 s",
    7_800_000: "2 h 10 min",
    93_600_000: "1 d 2 h",
    None: "–",
}


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-21T05:13:20.123Z",
        "2026-11-21T06:13:20.123+01:00",
        "2026-11-21 05:13:20.123+00:00",
        " 2026-11-21T05:13:20.123Z ",
        "1795238000123",
    ],
)
def test_a_moment_with_a_zone_is_taken(text: str) -> None:
    assert parse_time(text, option="--as-of") == MOMENT_MS


@pytest.mark.parametrize(
    ("text", "corrected"),
    [
        ("2026-11-21T05:13:20", "--from 2026-11-21T05:13:20Z"),
        ("2026-11-21 05:13:20.5", "--from 2026-11-21T05:13:20.5Z"),
        ("2026-11-21", "--from 2026-11-21T00:00:00Z"),
    ],
)
def test_a_time_without_a_zone_is_refused_with_the_line_to_type(text: str, corrected: str) -> None:
    with pytest.raises(UsageError, match="names no zone") as refusal:
        parse_time(text, option="--from")
    assert str(refusal.value).endswith(corrected)
    assert parse_time(corrected.removeprefix("--from "), option="--from") > 0


@pytest.mark.parametrize("text", ["", "now", "yesterday", "12:00", "2026-13-01T00:00:00Z", "1.5", "-5", "9" * 17])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no time"):
        parse_time(text, option="--to")


def test_between_two_milliseconds_a_half_open_bound_goes_up_and_an_inclusive_one_down() -> None:
    text = "2026-11-21T05:13:20.123400Z"
    assert parse_time(text, option="--as-of", rounding=Rounding.DOWN) == MOMENT_MS
    assert parse_time(text, option="--to", rounding=Rounding.UP) == MOMENT_MS + 1


@given(st.integers(FIRST_MS, LAST_MS))
def test_what_is_shown_can_be_typed(epoch_ms: int) -> None:
    assert parse_time(time_text(epoch_ms), option="--as-of") == epoch_ms


@pytest.mark.parametrize(
    ("epoch_ms", "text"), [(None, "-"), (LAST_MS + 1, str(LAST_MS + 1)), (0, "1970-01-01T00:00:00.000Z")]
)
def test_a_time_outside_the_calendar_is_shown_as_its_number(epoch_ms: int | None, text: str) -> None:
    assert time_text(epoch_ms) == text


@pytest.mark.parametrize(("duration_ms", "text"), LASTED.items())
def test_a_length_of_time_is_told_in_its_two_largest_units(duration_ms: int | None, text: str) -> None:
    assert lasted(duration_ms) == text
