"""Numbers, times and names as the report writes them."""

from sharelens.output import wording


def test_moments_are_utc_and_unknown_ones_a_dash() -> None:
    assert wording.moment(1_790_000_000_123) == "2026-09-21 14:13:20"
    assert [wording.moment(unknown) for unknown in (None, -1, 0)] == ["–", "–", "–"]
    assert wording.moment(1 << 62) == str(1 << 62)


def test_the_clock_names_the_day_only_when_it_is_another() -> None:
    now = 1_790_000_000_000
    assert wording.clock(now - 1000, now) == "14:13:19"
    assert wording.clock(now - 86_400_000, now) == "2026-09-20 14:13:20"
    assert wording.clock(None, now) == "–"


def test_names_are_one_visible_word_and_long_ones_lose_their_middle_in_charts() -> None:
    assert wording.name("a\nb") == "a\\nb"
    assert wording.name("") == '""'
    assert wording.short("x" * 100, 11) == "xxxxx…xxxxx"
    assert wording.short("short") == "short"
