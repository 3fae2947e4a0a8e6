"""Time axes have few ticks, at round moments."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.parameters.times import time_step
from sharelens.report.charts import (
    NARROW,
    WIDE,
    Chart,
    Size,
    _sized_chart,
    _time_axis,
    band,
    delivery_counts,
    drawn,
    lag_lines,
    ownership,
    state_map,
)
from sharelens.report.raster import Picture, Window

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


PICTURE = Picture(
    window=Window(from_ms=START_MS, to_ms=START_MS + DAY_MS, low=0, high=9), rectangles=(), per_row=1, column_ms=9
)
LANES = [("stalls", "square", "#111"), ("archived", "circle", "#222")]
CHARTS = {
    "a map": state_map(PICTURE, None),
    "a map with a pin": state_map(PICTURE, 4),
    "lags": lag_lines(["g", "h"], START_MS, START_MS + DAY_MS, 3),
    "high lags": lag_lines(["g"], START_MS, START_MS + DAY_MS, 3_000_000),
    "delivery counts": delivery_counts([("acknowledged", 1), ("archived", 2)], ["1", "2"], 9),
    "lanes": band(LANES, START_MS, START_MS + DAY_MS, has_stalls=False),
    "lanes with stalls": band(LANES, START_MS, START_MS + DAY_MS, has_stalls=True),
    "owners": ownership(["0_0", "0_1"], {"a": "#111"}, START_MS, START_MS + DAY_MS),
}


@pytest.mark.slow
@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("chart", CHARTS.values(), ids=CHARTS)
def test_a_chart_is_one_by_the_schema_which_is_not_asked_when_a_page_is_written(
    chart: Callable[[Size], Chart], width: int
) -> None:
    size = Size(width=width, height=200)
    spec = _sized_chart(chart(size), size)
    assert spec.to_dict(validate=True) == spec.to_dict(validate=False)


@pytest.mark.slow
@pytest.mark.parametrize("highest", [1, 2, 3])
def test_counts_have_axes_of_whole_numbers(highest: int) -> None:
    lags = [{"x": at, "lag": at % (highest + 1), "name": "g", "stretch": "g 0"} for at in range(10)]
    lines = drawn("lag", 300, lag_lines(["g"], 0, 10, highest), {"lags": lags, "parts": []})
    counts = {"label": "row", "kind": "acknowledged", "from": 0, "until": highest, "text": ""}
    totals = [{"label": "row", "records": highest, "text": ""}]
    bars = drawn(
        "counts", 94, delivery_counts([("acknowledged", 1)], ["row"], highest), {"counts": [counts], "totals": totals}
    )
    for chart in (lines, bars):
        for svg in (chart.wide, chart.narrow):
            labels = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
            assert "0" in labels
            assert str(highest) in labels
            assert not [label for label in labels if re.fullmatch(r"[0-9.]*\.[0-9]+", label)]
            numbers = [label for label in labels if label.isdecimal()]
            assert len(numbers) == len(set(numbers))
