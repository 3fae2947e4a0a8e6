"""Time axes have few ticks, at round moments."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.report.charts import NARROW, WIDE, Size, _time_axis, time_step

MINUTE_MS, DAY_MS = 60_000, 86_400_000
START_MS = 1_767_225_600_000


@pytest.mark.parametrize(
    ("span_ms", "step_ms"),
    [
        (0, 1),
        (48_000, 10_000),
        (16 * MINUTE_MS + 39_000, 2 * MINUTE_MS),
        (3 * DAY_MS, DAY_MS // 2),
        (9 * DAY_MS, 2 * DAY_MS),
    ],
)
def test_steps_are_round(span_ms: int, step_ms: int) -> None:
    assert time_step(span_ms, 9) == step_ms


@given(from_ms=st.integers(0, 1 << 50), span_ms=st.integers(1, 1 << 60), width=st.sampled_from([WIDE, NARROW]))
def test_labels_stay_apart(from_ms: int, span_ms: int, width: int) -> None:
    ticks = _time_axis(Size(width=width, height=300), from_ms, from_ms + span_ms).to_dict()["values"]
    assert len(ticks) <= (9 if width == WIDE else 4) + 1
    assert all(from_ms <= tick <= from_ms + span_ms for tick in ticks)


def test_a_day_is_named_where_the_span_has_several() -> None:
    size = Size(width=WIDE, height=300)
    assert _time_axis(size, START_MS, START_MS + 16 * MINUTE_MS).to_dict()["format"] == "%H:%M"
    assert _time_axis(size, START_MS, START_MS + 3 * DAY_MS).to_dict()["format"] == "%b %d %H:%M"
    assert _time_axis(size, START_MS, START_MS + 30 * DAY_MS).to_dict()["format"] == "%b %d"
