"""The state map: which state each offset was in at each moment, on a grid of bounded size."""

from collections.abc import Sequence

import hypothesis
import hypothesis.strategies as st
import pyarrow as pa
import pytest

from sharelens.report import raster
from sharelens.report.raster import ACKNOWLEDGED, ARCHIVED, BLANK, OPEN, Picture, Window

AVAILABLE_STATE, ACKNOWLEDGED_STATE, ARCHIVED_STATE = 0, 2, 4
Range = tuple[int, int, int, int, int, int | None]
"""First and last offset, delivery state and count, from and to (ms; None: still)."""


def deliveries(ranges: Sequence[Range]) -> pa.Table:
    names = ["first_offset", "last_offset", "delivery_state", "delivery_count", "valid_from_ms", "valid_to_ms"]
    return pa.table([pa.array(column, pa.int64()) for column in zip(*ranges, strict=True)], names=names)


def code_at(picture: Picture, offset: int, moment: float) -> int:
    """The code painted at one place; BLANK where no rectangle is."""
    codes = {
        cell.code
        for cell in picture.rectangles
        if cell.low <= offset < cell.high and cell.from_ms < moment <= cell.to_ms
    }
    assert len(codes) <= 1
    return codes.pop() if codes else BLANK


def test_a_pin_is_one_long_rectangle_under_what_is_done() -> None:
    rows: list[Range] = [(4, 4, AVAILABLE_STATE, 2, 100, None), (5, 9, ACKNOWLEDGED_STATE, 1, 100, None)]
    picture = raster.picture(deliveries(rows), Window(from_ms=0, to_ms=1800, low=0, high=10))
    assert picture.per_row == 1
    assert [(cell.low, cell.high, cell.code) for cell in picture.rectangles] == [
        (4, 5, OPEN + 1),
        (5, 10, ACKNOWLEDGED),
    ]
    assert all((cell.from_ms, cell.to_ms) == (90, 1800) for cell in picture.rectangles)


def test_of_several_offsets_in_a_row_the_least_done_is_shown() -> None:
    rows: list[Range] = [
        (0, 999_999, ACKNOWLEDGED_STATE, 1, 0, None),
        (500_000, 500_000, AVAILABLE_STATE, 3, 0, None),
        (10, 10, ARCHIVED_STATE, 5, 0, None),
    ]
    picture = raster.picture(deliveries(rows), Window(from_ms=0, to_ms=1000, low=0, high=1_000_000))
    assert picture.per_row > 1000
    assert code_at(picture, 500_000, 1000) == OPEN + 2
    assert code_at(picture, 10, 1000) == ARCHIVED
    assert code_at(picture, 900_000, 1000) == ACKNOWLEDGED


def test_a_state_that_ended_between_two_moments_is_not_shown() -> None:
    rows: list[Range] = [(0, 0, AVAILABLE_STATE, 1, 5, 6), (0, 0, ACKNOWLEDGED_STATE, 2, 6, 95)]
    picture = raster.picture(deliveries(rows), Window(from_ms=0, to_ms=1800, low=0, high=1))
    assert [(cell.from_ms, cell.to_ms, cell.code) for cell in picture.rectangles] == [(0, 90, ACKNOWLEDGED)]


def test_offsets_beyond_all_reason_do_no_harm() -> None:
    rows: list[Range] = [(0, (1 << 63) - 2, ACKNOWLEDGED_STATE, 1, 0, None)]
    picture = raster.picture(deliveries(rows), Window(from_ms=0, to_ms=1, low=0, high=(1 << 63) - 1))
    assert [cell.code for cell in picture.rectangles] == [ACKNOWLEDGED]
    assert picture.rectangles[0].high == (1 << 63) - 1


ranges = st.builds(
    lambda first, size, state, count, begin, lasted: (
        first, first + size, state, count, begin, None if lasted is None else begin + lasted
    ),
    st.integers(0, 60), st.integers(0, 30), st.sampled_from([0, 2, 3, 4]), st.integers(0, 9),
    st.integers(0, 900), st.none() | st.integers(0, 900),
)  # fmt: skip


@hypothesis.given(st.lists(ranges, min_size=1, max_size=25))
def test_every_cell_shows_the_least_done_of_what_lies_there(rows: list[Range]) -> None:
    window = Window(from_ms=0, to_ms=900, low=0, high=80)
    picture = raster.picture(deliveries(rows), window)
    assert len(picture.rectangles) <= raster.MOST_RECTANGLES
    for column in range(0, round(900 / picture.column_ms), 7):
        moment = (column + 1) * picture.column_ms
        for offset in range(0, 80, 3):
            low = offset - offset % picture.per_row
            there = [
                raster.code_of(state, count)
                for first, last, state, count, begin, end in rows
                if first < low + picture.per_row and last >= low and begin <= moment and (end is None or moment < end)
            ]
            assert code_at(picture, offset, moment) == max(there, default=BLANK)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 5])
def test_a_restless_picture_becomes_coarser_and_stays_bounded(seed: int) -> None:
    rows: list[Range] = [
        (offset, offset, AVAILABLE_STATE, 1 + (offset + at) % seed, at * 10, at * 10 + 10)
        for offset in range(96)
        for at in range(180)
    ]
    picture = raster.picture(deliveries(rows), Window(from_ms=0, to_ms=1800, low=0, high=96))
    assert 0 < len(picture.rectangles) <= raster.MOST_RECTANGLES
