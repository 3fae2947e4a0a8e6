"""Moments as typed and as shown."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sharelens.parameters.times import (
    DAY_MS,
    EPOCH,
    FIRST_MS,
    HOUR_MS,
    LAST_MS,
    MAX_DURATION_MS,
    MINUTE_MS,
    UNITS_MS,
    BeforeEnd,
    Clock,
    Rounding,
    TimeOfDay,
    duration_text,
    lasted,
    parse_duration,
    parse_time,
    parse_zone,
    time_text,
)
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
        ("2026-W47-6", "--from 2026-11-21T00:00:00Z"),
    ],
)
def test_a_time_without_a_zone_is_refused_with_the_line_to_type(text: str, corrected: str) -> None:
    with pytest.raises(UsageError, match="names no zone") as refusal:
        parse_time(text, option="--from")
    assert f"for UTC type {corrected}, for another zone add --tz" in str(refusal.value)
    assert parse_time(corrected.removeprefix("--from "), option="--from") > 0


@pytest.mark.parametrize(
    "text",
    [
        *("", "soon", "yesterday", "24:00", "12:60", "2026-13-01T00:00:00Z", "1.5", "9" * 17),
        *(
            "-",
            "-5",
            "--1h",
            "-1x",
            "- -1h",
            "+1h",
            "1h",
            "-999999999d",
            "now-1h",
            "end1h",
            "end-",
            "end-1x",
            "end+1h",
            "ends",
        ),
    ],
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"is no time; type 2026-.*epoch milliseconds, now, -1h, end-1h, or 03:29"):
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


NOW_MS = 1_795_238_000_000
"""2026-11-21T05:13:20Z."""
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Apia", "+13:45", "-09:30")
MOMENTS = st.integers(0, 4_000_000_000_000)
DURATIONS = st.integers(0, 400 * DAY_MS)


def at(now: str, zone: str | None = None) -> Clock:
    now_ms = (datetime.fromisoformat(now) - EPOCH) // timedelta(milliseconds=1)
    return Clock(now_ms=now_ms, zone=None if zone is None else parse_zone(zone, option="--tz"))


@pytest.mark.parametrize(
    ("text", "before_ms"),
    [("now", 0), ("NOW", 0), ("-1h", HOUR_MS), ("-2d", 2 * DAY_MS), ("-1h30m", 90 * MINUTE_MS), ("-0s", 0)],
)
def test_times_relative_to_now(text: str, before_ms: int) -> None:
    assert parse_time(text, option="--from", clock=Clock(now_ms=NOW_MS)) == NOW_MS - before_ms


@pytest.mark.parametrize(("text", "before_ms"), [("end", 0), ("END-1h", HOUR_MS), ("end - 1h30m", 90 * MINUTE_MS)])
def test_times_before_the_end_wait_for_it(text: str, before_ms: int) -> None:
    clock = Clock(now_ms=NOW_MS)
    assert parse_time(text, option="--from", clock=clock) == BeforeEnd(duration_ms=before_ms, clock=clock)


@pytest.mark.parametrize(
    ("now", "zone", "text", "moment"),
    [
        ("2026-11-21T05:00:00Z", "Europe/Berlin", "2026-11-20 03:29", "2026-11-20T02:29:00.000Z"),
        ("2026-11-21T05:00:00Z", "Europe/Berlin", "2026-11-20", "2026-11-19T23:00:00.000Z"),
        ("2026-11-21T05:00:00Z", "Europe/Berlin", "2026-11-20T03:29Z", "2026-11-20T03:29:00.000Z"),
    ],
)
def test_times_in_a_zone(now: str, zone: str | None, text: str, moment: str) -> None:
    assert time_text(parse_time(text, option="--from", clock=at(now, zone))) == moment


def time_of_day(text: str, clock: Clock, rounding: Rounding = Rounding.DOWN) -> TimeOfDay:
    parsed = parse_time(text, option="--from", rounding=rounding, clock=clock)
    assert isinstance(parsed, TimeOfDay)
    return parsed


@pytest.mark.parametrize(
    ("end", "zone", "text", "moment"),
    [
        ("2026-11-21T05:13:20Z", None, "03:29", "2026-11-21T03:29:00.000Z"),
        ("2026-11-21T05:13:20Z", None, "05:13:20", "2026-11-21T05:13:20.000Z"),
        ("2026-11-21T05:13:20Z", None, "05:13:20.001", "2026-11-20T05:13:20.001Z"),
        ("2026-11-21T05:13:20Z", None, "23:00", "2026-11-20T23:00:00.000Z"),
        ("2026-11-21T05:13:20Z", "Europe/Berlin", "6:10", "2026-11-21T05:10:00.000Z"),
        ("2026-11-21T23:30:00Z", "Europe/Berlin", "00:10", "2026-11-21T23:10:00.000Z"),
        ("2026-11-21T23:30:00Z", "+02:00", "01:29", "2026-11-21T23:29:00.000Z"),
        ("2026-03-29T12:00:00Z", "Europe/Berlin", "01:30", "2026-03-29T00:30:00.000Z"),
        ("2026-10-25T12:00:00Z", "Europe/Berlin", "02:30", "2026-10-25T00:30:00.000Z"),
    ],
)
def test_a_time_of_day_is_the_last_one_until_a_moment(end: str, zone: str | None, text: str, moment: str) -> None:
    clock = at("2030-01-01T00:00:00Z", zone)
    assert time_text(time_of_day(text, clock).last_until(at(end).now_ms)) == moment


@pytest.mark.parametrize(
    ("end", "text", "moment"),
    [
        ("2026-11-21T05:13:20Z", "05:13:20", "2026-11-21T05:13:20.000Z"),
        ("2026-11-21T05:13:20Z", "05:13:19", "2026-11-22T05:13:19.000Z"),
        ("2026-11-21T05:13:20Z", "5:14", "2026-11-21T05:14:00.000Z"),
    ],
)
def test_a_time_of_day_is_the_first_one_from_a_moment(end: str, text: str, moment: str) -> None:
    assert time_text(time_of_day(text, Clock(now_ms=0)).first_from(at(end).now_ms)) == moment


def test_moments_of_a_time_of_day_are_rounded() -> None:
    for rounding, moment_ms in ((Rounding.DOWN, 12_345), (Rounding.UP, 12_346)):
        assert time_of_day("00:00:12.3456", Clock(now_ms=0), rounding).last_until(HOUR_MS) == moment_ms


def test_a_moment_of_a_time_of_day_is_shown_in_its_zone() -> None:
    assert time_of_day("03:29", Clock(now_ms=0)).shown(0) == "1970-01-01T00:00:00.000Z"
    assert time_of_day("03:29", at("2026-11-21T05:13:20Z", "+05:30")).shown(0) == "1970-01-01T05:30:00.000+05:30"


def test_a_time_that_clocks_skipped_is_refused() -> None:
    clock = at("2026-03-29T12:00:00Z", "Europe/Berlin")
    with pytest.raises(UsageError, match="clocks of Europe/Berlin skipped 2026-03-29 02:30:00"):
        parse_time("2026-03-29T02:30", option="--from", clock=clock)
    with pytest.raises(UsageError, match="clocks of Europe/Berlin skipped 2026-03-29 02:30:00"):
        time_of_day("02:30", clock).last_until(clock.now_ms)


def test_a_time_of_day_outside_the_calendar_is_refused() -> None:
    for moment_ms, text in ((-(10**16), "00:00"), (10**16, "23:59:59.9999")):
        typed = time_of_day(text, Clock(now_ms=0))
        assert typed.last_until(moment_ms) < LAST_MS
    with pytest.raises(UsageError, match="outside the years 1 to 9999"):
        time_of_day("12:00", Clock(now_ms=0)).first_from(10**16)


@pytest.mark.parametrize("text", ["0001-01-01", "9999-12-31T23:59"])
def test_a_time_that_its_zone_moves_out_of_the_calendar_is_refused(text: str) -> None:
    zone = "+13:00" if text.startswith("0001") else "-13:00"
    with pytest.raises(UsageError, match="outside the years 1 to 9999"):
        parse_time(text, option="--from", clock=at("2026-03-29T12:00:00Z", zone))


@given(MOMENTS, st.times(), st.sampled_from(ZONES))
def test_moments_of_a_time_of_day_lie_around_the_end_and_show_it_in_their_zone(end_ms, local_time, zone):
    text = local_time.replace(microsecond=0, fold=0).isoformat()
    typed = time_of_day(text, Clock(now_ms=0, zone=parse_zone(zone, option="--tz")))
    try:
        last_ms, first_ms = typed.last_until(end_ms), typed.first_from(end_ms)
    except UsageError:
        assume(False)
    assert 0 <= end_ms - last_ms < 2 * DAY_MS
    assert 0 <= first_ms - end_ms < 2 * DAY_MS
    for moment_ms in (last_ms, first_ms):
        assert (EPOCH + timedelta(milliseconds=moment_ms)).astimezone(typed.zone).time().isoformat() == text


@given(MOMENTS, st.sampled_from(ZONES))
def test_a_local_time_is_the_moment_that_its_zone_shows(epoch_ms, zone):
    parsed_zone = parse_zone(zone, option="--tz")
    local = (EPOCH + timedelta(milliseconds=epoch_ms)).astimezone(parsed_zone)
    assume(not local.fold)
    clock = Clock(now_ms=0, zone=parsed_zone)
    assert parse_time(local.isoformat(), option="--from", clock=clock) == epoch_ms
    assert parse_time(local.replace(tzinfo=None).isoformat(), option="--from", clock=clock) == epoch_ms


@given(MOMENTS, DURATIONS, DURATIONS)
def test_longer_ago_is_earlier(now_ms, first, second):
    clock = Clock(now_ms=now_ms)
    times = [parse_time(f"-{duration_text(each)}", option="--from", clock=clock) for each in (first, second)]
    assert (first <= second) == (times[0] >= times[1])
    assert times[0] == now_ms - first


@pytest.mark.parametrize("text", ["", "Mars/Olympus", "Europe", "../UTC", "/etc/passwd", "+25:00", "x\0y"])
def test_an_unknown_zone_is_refused_with_examples(text: str) -> None:
    with pytest.raises(UsageError, match=r"--tz: .* is no time zone; type a name such as Europe/Berlin"):
        parse_zone(text, option="--tz")


def test_zones_by_name_and_offset() -> None:
    assert parse_zone("UTC", option="--tz") is UTC
    assert parse_zone("Europe/Berlin", option="--tz") == ZoneInfo("Europe/Berlin")
    assert parse_zone("-0930", option="--tz").utcoffset(None) == timedelta(hours=-9, minutes=-30)


@pytest.mark.parametrize(
    ("text", "bare_unit", "duration_ms"),
    [
        ("90s", None, 90_000),
        ("5m", None, 300_000),
        ("1h30m", None, 5_400_000),
        ("2d", None, 2 * DAY_MS),
        ("500ms", None, 500),
        ("1d2h3m4s5ms", None, DAY_MS + 2 * HOUR_MS + 3 * MINUTE_MS + 4005),
        (" 2 h 10 min ", None, 130 * MINUTE_MS),
        ("1.5H", None, 90 * MINUTE_MS),
        ("0.4 s", None, 400),
        ("300", "s", 300_000),
        ("2.5", "s", 2500),
        (".5", "s", 500),
        ("1e3", "s", 1_000_000),
        ("7", "ms", 7),
        ("5m", "s", 300_000),
    ],
)
def test_durations(text: str, bare_unit: str | None, duration_ms: int) -> None:
    assert parse_duration(text, option="--gap", bare_unit=bare_unit) == duration_ms


@pytest.mark.parametrize(
    "text", ["", "5", "s", "-5m", "5x", "30m1h", "1h1h", "5 minutes", "nan", "inf", "1e", "9" * 30]
)
def test_what_is_no_duration_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError, match=r"--gap: .* is no duration; type 500ms, 90s, 5m, 1h30m or 2d$"):
        parse_duration(text, option="--gap")


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "1e99", "", "9" * 30])
def test_a_refusal_names_the_unit_of_a_bare_number(text: str) -> None:
    with pytest.raises(UsageError, match="1h30m or 2d, or a number of seconds$"):
        parse_duration(text, option="--lock-timeout", bare_unit="s")


@given(st.integers(0, MAX_DURATION_MS))
def test_a_duration_as_text_is_read_back(duration_ms):
    assert parse_duration(duration_text(duration_ms), option="--gap") == duration_ms


@given(st.integers(0, 10**8), st.sampled_from(sorted(UNITS_MS)))
def test_a_unit_typed_and_a_unit_understood_are_the_same(number, unit):
    typed = parse_duration(f"{number}{unit}", option="--gap")
    assert typed == parse_duration(str(number), option="--gap", bare_unit=unit) == number * UNITS_MS[unit]


@given(st.integers(0, 400 * DAY_MS))
def test_a_duration_as_answers_show_it_is_read(duration_ms):
    shown = parse_duration(lasted(duration_ms), option="--gap")
    unit = next((unit for unit in (DAY_MS, HOUR_MS, MINUTE_MS) if duration_ms >= unit), 10_000)
    assert abs(shown - duration_ms) < unit
