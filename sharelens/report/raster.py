"""The state map: which delivery state each record offset of a share partition was in, over time, on a bounded grid.

    offset ^
       end |. . . . . . . . . . . .      end offset of the topic, by its batches' timestamps
           |        aaaa  aaaaaaaa       acknowledged
           |    aaaa####################  the pin: not done while others are
     start |____|‾‾‾‾                    start offset

A column shows one moment (its end), so a state that lasted shorter than a column may be missing. A row stands for one
offset or for several; then it shows the least finished one. Cells of equal content become one rectangle.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from state_model.share_records import DeliveryState

Ints = npt.NDArray[np.int64]
COLUMNS, ROWS = 180, 96
MOST_RECTANGLES = 1200
COLUMN_COUNTS = (COLUMNS, COLUMNS // 2, COLUMNS // 4)
"""With each step rows are halved too; the last grid has fewer cells than MOST_RECTANGLES."""
STILL = 1 << 62
# Codes of a cell; where a row stands for several offsets the highest is shown.
BLANK, ACKNOWLEDGED, ARCHIVED, ARCHIVING, OPEN = range(5)
MOST_ATTEMPTS = 4
"""AVAILABLE (or ACQUIRED, never written) after n failed deliveries has the code OPEN + n - 1, up to this many."""
UNKNOWN = OPEN + MOST_ATTEMPTS
"""A delivery state of a later Kafka."""
WORDS = {
    ACKNOWLEDGED: "acknowledged",
    ARCHIVED: "archived",
    ARCHIVING: "archiving",
    UNKNOWN: "a delivery state that this version does not know",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The extent of a map: log times and record offsets, both half-open."""

    from_ms: int
    to_ms: int
    low: int
    high: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rectangle:
    """Cells of one code: moments and offsets, both half-open."""

    from_ms: float
    to_ms: float
    low: int
    high: int
    code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A map; `per_row`: offsets that a row stands for."""

    window: Window
    rectangles: Sequence[Rectangle]
    per_row: int
    column_ms: float


def code_of(state: int, count: int) -> int:
    """The code of a delivery state and count."""
    match state:
        case DeliveryState.ACKNOWLEDGED:
            return ACKNOWLEDGED
        case DeliveryState.ARCHIVED:
            return ARCHIVED
        case DeliveryState.ARCHIVING:
            return ARCHIVING
        case DeliveryState.AVAILABLE | DeliveryState.ACQUIRED:
            return OPEN + min(max(count, 1), MOST_ATTEMPTS) - 1
        case _:
            return UNKNOWN


def words(code: int) -> str:
    """The text of a map cell."""
    if code in WORDS:
        return WORDS[code]
    attempts = code - OPEN + 1
    or_more = " or more" if attempts == MOST_ATTEMPTS else ""
    return f"not done after {attempts}{or_more} {'delivery' if attempts == 1 else 'deliveries'}"


def picture(deliveries: pa.Table, window: Window) -> Picture:
    """The map of DELIVERY_HISTORY rows of one share partition inside a window; at most MOST_RECTANGLES rectangles."""
    rows = min(ROWS, max(1, window.high - window.low))
    for columns in COLUMN_COUNTS:
        per_row = -(-max(1, window.high - window.low) // rows)
        column_ms = max(1, window.to_ms - window.from_ms) / columns
        grid = _painted(deliveries, window, columns, rows, per_row)
        rectangles = _rectangles(grid, window, per_row, column_ms)
        rows = max(1, rows // 2)
        if len(rectangles) <= MOST_RECTANGLES:
            break
    return Picture(window=window, rectangles=rectangles, per_row=per_row, column_ms=column_ms)


def _painted(deliveries: pa.Table, window: Window, columns: int, rows: int, per_row: int) -> npt.NDArray[np.int8]:
    """The code of every cell, offsets ascending by row."""
    grid = np.zeros((rows, columns), np.int8)
    begun, first, last = (
        deliveries.column(name).to_numpy() for name in ("valid_from_ms", "first_offset", "last_offset")
    )
    ended = pc.fill_null(deliveries.column("valid_to_ms"), STILL).to_numpy()
    left_column, right = _columns_of(begun, ended, window.from_ms, window.to_ms, columns)
    bottom = (np.maximum(first, window.low) - window.low) // per_row
    top = (np.minimum(last, window.high - 1) - window.low) // per_row + 1
    keys = list(
        zip(*(deliveries.column(name).to_pylist() for name in ("delivery_state", "delivery_count")), strict=True)
    )
    codes = {key: code_of(*key) for key in set(keys)}
    code = np.fromiter((codes[key] for key in keys), np.int64, len(keys))
    in_window = (left_column < right) & (first < window.high) & (last >= window.low)
    boxes = np.unique(np.column_stack([code, bottom, top, left_column, right])[in_window], axis=0)
    for value, low, high, begin, end in boxes.tolist():
        grid[low:high, begin:end] = value
    return grid


def _columns_of(begun: Ints, ended: Ints, from_ms: int, to_ms: int, columns: int) -> tuple[Ints, Ints]:
    """The columns, half-open, whose moment lies in the time of each range."""
    column_ms = max(1, to_ms - from_ms) / columns
    left_column = np.maximum(0, np.ceil((begun - from_ms) / column_ms).astype(np.int64) - 1)
    right = np.minimum(columns, np.ceil((np.minimum(ended, to_ms + 1) - from_ms) / column_ms) - 1)
    return left_column, np.where(ended > to_ms, columns, right).astype(np.int64)


def is_visible(begun: Ints, ended: Ints, from_ms: int, to_ms: int) -> npt.NDArray[np.bool_]:
    """Whether a map over these log times shows each range; most of them lie between the moments of two columns."""
    visible = np.zeros(len(begun), np.bool_)
    for columns in COLUMN_COUNTS:
        left_column, right = _columns_of(begun, ended, from_ms, to_ms, columns)
        visible |= left_column < right
    return visible


def _rectangles(grid: npt.NDArray[np.int8], window: Window, per_row: int, column_ms: float) -> list[Rectangle]:
    """Runs of equal cells of a row; equal runs of neighbouring rows are one."""
    boxes: list[list[int]] = []
    below: dict[tuple[int, int, int], list[int]] = {}
    for row in range(grid.shape[0]):
        cuts = [0, *(np.flatnonzero(np.diff(grid[row])) + 1).tolist(), grid.shape[1]]
        row_boxes: dict[tuple[int, int, int], list[int]] = {}
        for begin, end in itertools.pairwise(cuts):
            value = int(grid[row, begin])
            if value == BLANK:
                continue
            box = below.get((begin, end, value))
            if box is None:
                box = [begin, end, row, row + 1, value]
                boxes.append(box)
            box[3] = row + 1
            row_boxes[begin, end, value] = box
        below = row_boxes
    return [
        Rectangle(
            from_ms=window.from_ms + begin * column_ms,
            to_ms=window.from_ms + end * column_ms,
            low=window.low + low * per_row,
            high=min(window.high, window.low + high * per_row),
            code=value,
        )
        for begin, end, low, high, value in boxes
    ]


def moments(from_ms: int, to_ms: int) -> Ints:
    """The moments of the columns, the beginning too: where lines over the map are drawn."""
    return np.linspace(from_ms, to_ms, COLUMNS + 1).astype(np.int64)
