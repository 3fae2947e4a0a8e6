"""ISO-8601 durations."""

import pytest

from sharelens.broker.config.durations import duration_ms
from sharelens.broker.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "milliseconds"), [("PT1S", 1000), ("P1D", 86_400_000), ("PT0.0019S", 1), ("p1dt1h1m1.5s", 90_061_500)]
)
def test_durations_in_milliseconds(text, milliseconds):
    assert duration_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["", "P", "PT", "1D", "PT0S", "-PT1S", "PT1", "P1W", "PT1H30", "PT" + "9" * 20 + "S"])
def test_what_is_no_positive_duration_is_refused(text):
    with pytest.raises(ConfigError):
        duration_ms(text)
