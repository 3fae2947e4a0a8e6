"""The option type of --retain."""

from jobs.commands.ages import Ages

HOUR_MS = 3_600_000


def test_ages_of_rows_take_durations() -> None:
    assert Ages().convert("bronze=1d12h, history=2d", None, None) == {"bronze": 36 * HOUR_MS, "history": 48 * HOUR_MS}
