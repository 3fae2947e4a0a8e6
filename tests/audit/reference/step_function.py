"""The delivery states of a share partition as a step function over record offsets.

A second implementation besides batches.py, on purpose: a disagreement with the replay is a finding. Functions are
compared over the union of their boundaries; offsets are never enumerated, as a batch may claim 2^63 of them.

    left     |---2---|     |--1--|
    right        |----3------|
    cells    | 2 |  3      |3|1  |
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from state_model.audit.rule import NO_STATE
from state_model.share_records import StateBatch

TERMINAL = (2, 4)
MAX_OFFSET = (1 << 63) - 1
Value = tuple[int, int]
"""(delivery count, delivery state) of an offset; the larger one of two counts."""


class Span(NamedTuple):
    """Offsets from first to last (both inclusive) of one value."""

    first: int
    last: int
    value: Value


StepFunction = tuple[Span, ...]
"""Spans that ascend, don't overlap, and have no equal neighbours that touch."""
NOWHERE: StepFunction = ()


def of_batches(batches: Sequence[StateBatch]) -> StepFunction:
    """The maximum over all batches that cover an offset; a batch whose last offset is below its first covers none."""
    spans = [
        Span(batch.first_offset, batch.last_offset, (batch.delivery_count, batch.delivery_state))
        for batch in batches
        if batch.first_offset <= batch.last_offset
    ]
    if all(left_span.last < right_span.first for left_span, right_span in pairwise(spans)):
        return _joined(spans)
    return _maximum([(span,) for span in spans])


def _maximum(functions: list[StepFunction]) -> StepFunction:
    """The pointwise maximum of many functions, merged in halves: O(n log n)."""
    if len(functions) < 2:
        return functions[0] if functions else NOWHERE
    middle = len(functions) // 2
    return maximum(_maximum(functions[:middle]), _maximum(functions[middle:]))


def cells(
    left_function: StepFunction, right_function: StepFunction
) -> Iterator[tuple[int, int, Value | None, Value | None]]:
    """(first, last, value of left, value of right) between neighbouring boundaries, where one of them has a value."""
    bounds = sorted({bound for span in (*left_function, *right_function) for bound in (span.first, span.last + 1)})
    values = zip(values_at(left_function, bounds), values_at(right_function, bounds), strict=True)
    for (first, end), (ours, theirs) in zip(pairwise(bounds), values, strict=False):  # none begins at the last bound
        if ours is not None or theirs is not None:
            yield first, end - 1, ours, theirs


def values_at(function: StepFunction, offsets: Sequence[int]) -> Iterator[Value | None]:
    """The value of each of the ascending offsets; None where no span covers it."""
    spans = iter(function)
    span = next(spans, None)
    for offset in offsets:
        while span is not None and span.last < offset:
            span = next(spans, None)
        yield span.value if span is not None and span.first <= offset else None


def maximum(left_function: StepFunction, right_function: StepFunction) -> StepFunction:
    """The larger value of each offset; where one function has none, the other's."""
    return _joined(
        [
            Span(first, last, max(filter(None, (ours, theirs))))
            for first, last, ours, theirs in cells(left_function, right_function)
        ]
    )


def cut_below(function: StepFunction, start: int) -> StepFunction:
    """The function on offsets from `start` on."""
    if function and function[0].first >= start:
        return function
    return tuple(Span(max(span.first, start), span.last, span.value) for span in function if span.last >= start)


def touching(function: StepFunction, other: StepFunction) -> StepFunction:
    """The spans from the first offset of another function up to its last one."""
    if not other:
        return NOWHERE
    first, last = other[0].first, other[-1].last
    return tuple(span for span in function if span.last >= first and span.first <= last)


def terminal_offsets(function: StepFunction) -> int:
    """The number of offsets from 0 on that are acknowledged or archived; 2^63 - 1 at most."""
    count = sum(span.last - max(span.first, 0) + 1 for span in function if span.value[1] in TERMINAL and span.last >= 0)
    return min(count, MAX_OFFSET)


def first_difference(
    left_function: StepFunction, right_function: StepFunction
) -> tuple[int, Value | None, Value | None] | None:
    """The first offset whose values differ, with both; None where none does."""
    return next(
        ((first, ours, theirs) for first, _, ours, theirs in cells(left_function, right_function) if ours != theirs),
        None,
    )


def first_lower(left_function: StepFunction, right_function: StepFunction) -> tuple[int, Value, Value | None] | None:
    """The first offset where `right` has a lower value than `left_function` or none, with both values."""
    for first, _, ours, theirs in cells(left_function, right_function):
        if ours is not None and (theirs is None or theirs < ours):
            return first, ours, theirs
    return None


def offset_state_code(value: Value | None) -> int:
    """(delivery count, delivery state) of an offset as one number of the same order; null: no state batch covers it."""
    return NO_STATE if value is None else value[0] * 256 + value[1]


def _joined(spans: Sequence[Span]) -> StepFunction:
    result: list[Span] = []
    for span in spans:
        if result and result[-1].value == span.value and result[-1].last + 1 == span.first:
            result[-1] = Span(result[-1].first, span.last, span.value)
        else:
            result.append(span)
    return tuple(result)
