"""A kernel that prints values of Kafka's flexible messages as JSON, straight from their bytes.

A program (`state_model.columnar.json_values`) says what to read and to print. Every read is preceded by a check against
the end of the value, every write by one against the end of the output. What is unusual (malformed, text that is not
ASCII or must be escaped, tags out of order) is left to the reference decoder: NOT_PRINTED.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from state_model.columnar.buffers import BinaryView
from state_model.columnar.byte_kernels import (
    UUID_CHARACTERS,
    int16_at,
    int32_at,
    int64_at,
    unsigned_varint,
    write_uuid_text,
)
from state_model.columnar.kernels import kernel, leaf

TEXT, INTEGER, STRING, ID, INTEGERS, ARRAY, ITEM_END, MARKER, TAGS, CASE, TAG_END, DONE = range(12)
"""Operations; the columns of a step of the program:

TEXT: start, length in the pool of texts. INTEGER: code of its type. STRING: 1 if nullable. ID: none.
INTEGERS: code, 1 if nullable. ARRAY: step behind it, 1 if nullable, least bytes of an item. ITEM_END: none.
MARKER: step behind the struct. TAGS: number of cases, step behind them. CASE: tag, first step, default as
NO_DEFAULT or the code of its integer type, the default. TAG_END: none.
"""
STEP_COLUMNS = 6
INT8, INT16, INT32, INT64, UINT16 = range(5)
"""Codes of integer types."""
EMPTY_ARRAY = -1
"""The default of a case is the empty array."""
PRINTED, NOT_PRINTED, NO_ROOM = range(3)
MAX_DEPTH = 32
COUNT, BODY, LAST_TAG, PAYLOAD_END = range(4)
MAX_INTEGER_CHARACTERS = 20
MIN_TAG_BYTES = 2
QUOTE, BACKSLASH, SPACE, COMMA, ZERO, MINUS, OPEN, CLOSE = 34, 92, 32, 44, 48, 45, 91, 93


class Program(NamedTuple):
    """What to read and to print: `steps`, a row of STEP_COLUMNS each, and the pool of texts that they print.

    `first_steps`: by record type, where the steps of its values begin, which go on to DONE; -1: it has none.
    """

    steps: npt.NDArray[np.int64]
    texts: npt.NDArray[np.uint8]
    first_steps: npt.NDArray[np.int64]


@leaf
def _width(code: int) -> int:
    if code == INT8:
        return 1
    if code in (INT16, UINT16):
        return 2
    return 4 if code == INT32 else 8


@leaf
def _integer_at(data: np.ndarray, at: int, code: int) -> int:
    if code == INT8:
        return int(np.int8(data[at]))
    if code == INT16:
        return int16_at(data, at)
    if code == UINT16:
        return int16_at(data, at) & 0xFFFF
    return int32_at(data, at) if code == INT32 else int64_at(data, at)


@leaf
def _put_integer(value: int, out: np.ndarray, to: int) -> int:
    """Writes the digits of an integer, for which there is room; the position behind them."""
    if value == 0:
        out[to] = ZERO
        return to + 1
    # The magnitude has no sign: the opposite of -2^63 doesn't fit int64.
    rest = np.uint64(value)
    if value < 0:
        out[to] = MINUS
        to += 1
        rest = np.uint64(0) - rest
    digits = 0
    quotient = rest
    while quotient > np.uint64(0):
        quotient //= np.uint64(10)
        digits += 1
    for place in range(digits - 1, -1, -1):
        out[to + place] = np.uint8(ZERO + int(rest % np.uint64(10)))
        rest //= np.uint64(10)
    return to + digits


@leaf
def _put_null(out: np.ndarray, to: int) -> int:
    out[to], out[to + 1], out[to + 2], out[to + 3] = 110, 117, 108, 108
    return to + 4


@leaf
def _is_plain(data: np.ndarray, at: int, end: int) -> bool:
    """Whether text is ASCII that JSON prints as it is."""
    for place in range(at, end):
        byte = data[place]
        if byte < SPACE or byte >= 0x80 or byte in (QUOTE, BACKSLASH):
            return False
    return True


@leaf
def _put_string(data: np.ndarray, at: int, end: int, nullable: int, out: np.ndarray, to: int) -> tuple[int, int, int]:
    """(outcome, position behind the string, position in the output) of a compact string."""
    claimed, at = unsigned_varint(data, at, end)
    if claimed == 0 and nullable:
        return PRINTED, at, _put_null(out, to)
    size = claimed - 1
    if size < 0 or size > end - at or size > 0x7FFF or not _is_plain(data, at, at + size):
        return NOT_PRINTED, at, to
    # Plain text needs no escapes, so its length in the output is known and one check is enough.
    if to + size + MAX_INTEGER_CHARACTERS > len(out):
        return NO_ROOM, at, to
    out[to] = QUOTE
    for place in range(size):
        out[to + 1 + place] = data[at + place]
    out[to + 1 + size] = QUOTE
    return PRINTED, at + size, to + size + 2


@leaf
def _put_integers(
    data: np.ndarray, at: int, end: int, code: int, nullable: int, out: np.ndarray, to: int
) -> tuple[int, int, int]:
    """(outcome, position behind the array, position in the output) of a compact array of integers."""
    claimed, at = unsigned_varint(data, at, end)
    if claimed == 0 and nullable:
        return PRINTED, at, _put_null(out, to)
    count, width = claimed - 1, _width(code)
    if count < 0 or count > (end - at) // width:
        return NOT_PRINTED, at, to
    # Room for the longest integers before the loop: the loop needs no check. `count` is bounded by the bytes that are
    # left.
    if to + (count + 1) * (MAX_INTEGER_CHARACTERS + 2) > len(out):
        return NO_ROOM, at, to
    out[to] = OPEN
    to += 1
    for number in range(count):
        if number:
            out[to], out[to + 1] = COMMA, SPACE
            to += 2
        to = _put_integer(_integer_at(data, at, code), out, to)
        at += width
    out[to] = CLOSE
    return PRINTED, at, to + 1


@leaf
def _has_default(data: np.ndarray, at: int, size: int, code: int, default: int) -> bool:
    """Whether the payload of a tagged field is its default."""
    if code == EMPTY_ARRAY:
        return size == 1 and data[at] == 1
    return size == _width(code) and _integer_at(data, at, code) == default


@leaf
def _next_tag(
    data: np.ndarray, at: int, end: int, steps: np.ndarray, step: int, frame: np.ndarray
) -> tuple[int, int, int]:
    """(outcome, position, step) of the next tagged field to print; the step behind all cases when there is none.

    step: that of TAGS. Tagged fields that the schema lacks and those with their default are skipped.
    """
    # Tags must ascend strictly, as Kafka writes them: so each case is printed at most once. A varint that can't be read
    # is negative, hence not above the last tag. COUNT falls each turn, and a frame is entered again behind each field.
    while frame[COUNT] > 0:
        frame[COUNT] -= 1
        tag, at = unsigned_varint(data, at, end)
        if tag <= frame[LAST_TAG]:
            return NOT_PRINTED, at, step
        size, at = unsigned_varint(data, at, end)
        if size < 0 or size > end - at:
            return NOT_PRINTED, at, step
        frame[LAST_TAG] = tag
        frame[PAYLOAD_END] = at + size
        for case in range(step + 1, step + 1 + steps[step, 1]):
            if steps[case, 1] == tag and not _has_default(data, at, size, steps[case, 3], steps[case, 4]):
                return PRINTED, at, steps[case, 2]
        at += size
    return PRINTED, at, steps[step, 2]


@leaf
def _put_leaf(
    data: np.ndarray, at: int, end: int, steps: np.ndarray, step: int, texts: np.ndarray, out: np.ndarray, to: int
) -> tuple[int, int, int]:
    """(outcome, position, position in the output) after a step of TEXT to INTEGERS."""
    operation, code = steps[step, 0], steps[step, 1]
    if operation == TEXT:
        length = steps[step, 2]
        if to + length > len(out):
            return NO_ROOM, at, to
        for place in range(length):
            out[to + place] = texts[code + place]
        return PRINTED, at, to + length
    if operation == INTEGER:
        width = _width(code)
        if width > end - at:
            return NOT_PRINTED, at, to
        return PRINTED, at + width, _put_integer(_integer_at(data, at, code), out, to)
    if operation == INTEGERS:
        return _put_integers(data, at, end, code, steps[step, 2], out, to)
    if operation == STRING:
        return _put_string(data, at, end, code, out, to)
    if end - at < 16:
        return NOT_PRINTED, at, to
    out[to] = QUOTE
    write_uuid_text(data, at, out, to + 1)
    out[to + 1 + UUID_CHARACTERS] = QUOTE
    return PRINTED, at + 16, to + UUID_CHARACTERS + 2


@leaf
def _begin_array(
    data: np.ndarray, at: int, end: int, steps: np.ndarray, step: int, frame: np.ndarray, out: np.ndarray, to: int
) -> tuple[int, int, int, int]:
    """(outcome, position, position in the output, next step) at the begin of an array; without items that behind it."""
    claimed, at = unsigned_varint(data, at, end)
    count = claimed - 1
    if claimed == 0 and steps[step, 2]:
        return PRINTED, at, _put_null(out, to), steps[step, 1]
    # An item takes a known number of bytes at least, so a hostile count can't make more turns than the value has bytes.
    if count < 0 or count > (end - at) // steps[step, 3]:
        return NOT_PRINTED, at, to, step
    out[to] = OPEN
    if count == 0:
        out[to + 1] = CLOSE
        return PRINTED, at, to + 2, steps[step, 1]
    frame[COUNT], frame[BODY] = count, step + 1
    return PRINTED, at, to + 1, step + 1


@leaf
def _end_item(step: int, frame: np.ndarray, out: np.ndarray, to: int) -> tuple[int, int]:
    """(position in the output, next step) behind an item: that of the next item, or behind the array."""
    frame[COUNT] -= 1
    if frame[COUNT] == 0:
        out[to] = CLOSE
        return to + 1, step + 1
    out[to], out[to + 1] = COMMA, SPACE
    return to + 2, frame[BODY]


@leaf
def _tags(data: np.ndarray, at: int, end: int, steps: np.ndarray, step: int, frame: np.ndarray) -> tuple[int, int, int]:
    """(outcome, position, next step) at TAGS, or behind a tagged field at TAG_END."""
    if steps[step, 0] == TAG_END:
        if at != frame[PAYLOAD_END]:
            return NOT_PRINTED, at, step
        return _next_tag(data, at, end, steps, frame[BODY], frame)
    count, at = unsigned_varint(data, at, end)
    if count < 0 or count > (end - at) // MIN_TAG_BYTES:
        return NOT_PRINTED, at, step
    frame[COUNT], frame[BODY], frame[LAST_TAG] = count, step, -1
    return _next_tag(data, at, end, steps, step, frame)


@leaf
def _put_value(
    data: np.ndarray, at: int, end: int, program: Program, step: int, stack: np.ndarray, out: np.ndarray, to: int
) -> tuple[int, int]:
    """(outcome, position in the output behind the JSON) of the value at `at`, printed by the program from `step` on.

    Arrays and tagged fields have a frame of the stack while they are printed.
    """
    # Invariant: stack[0..depth] are the arrays and tagged fields that are open. Each turn begins with room for an
    # integer and an id, so only texts, strings and arrays of integers check for more. Each item consumes bytes, so the
    # turns are bounded by the value and the program; the stack has a fixed depth.
    steps = program.steps
    depth = -1
    outcome = PRINTED
    while outcome == PRINTED and steps[step, 0] != DONE:
        operation = steps[step, 0]
        if to + MAX_INTEGER_CHARACTERS + UUID_CHARACTERS > len(out):
            return NO_ROOM, to
        if operation <= INTEGERS:
            outcome, at, to = _put_leaf(data, at, end, steps, step, program.texts, out, to)
            step += 1
        elif operation == ITEM_END:
            to, step = _end_item(step, stack[depth], out, to)
            # `_end_item` ends with CLOSE behind the last item and with a space before the next one.
            depth -= out[to - 1] == CLOSE
        elif operation == MARKER:
            if at == end:
                return NOT_PRINTED, to
            is_null = data[at] >= 0x80
            at += 1
            to = _put_null(out, to) if is_null else to
            step = steps[step, 1] if is_null else step + 1
        else:
            depth += operation != TAG_END
            if depth == MAX_DEPTH:
                return NOT_PRINTED, to
            if operation == ARRAY:
                body = step + 1
                outcome, at, to, step = _begin_array(data, at, end, steps, step, stack[depth], out, to)
                # An array without items (empty, null or refused) is done, so its frame is free again.
                depth -= step != body
            else:
                outcome, at, step = _tags(data, at, end, steps, step, stack[depth])
                depth -= step == steps[stack[depth, BODY], 2]
    return outcome, to


@kernel
def put_values(
    values: BinaryView,
    kinds: np.ndarray,
    program: Program,
    row: int,
    out: np.ndarray,
    ends: np.ndarray,
    is_printed: np.ndarray,
) -> int:
    """Prints values from `row` on, until the output is full; the first row without an outcome.

    Value i is of record type kinds[i]; ends[i + 1] is where its JSON ends, counted from the first `row`. A value of
    another version than 0, or of a type without a program, is not printed; nor is one that alone is larger than the
    output.
    """
    data, starts, there = values
    first_steps = program.first_steps
    first = row
    stack = np.zeros((MAX_DEPTH, 4), np.int64)
    to = 0
    # Output is kept whole rows at a time: `to` moves only behind a value that was printed. A row without room ends the
    # call and is the first of the next one, whose output is empty; there it is printed or refused, so each call
    # advances.
    while row < len(kinds):
        at, end, kind = starts[row], starts[row + 1], kinds[row]
        outcome, behind = NOT_PRINTED, to
        has_program = there[row] and 0 <= kind < len(first_steps) and first_steps[kind] >= 0
        if has_program and end - at >= 2 and data[at] == 0 and data[at + 1] == 0:
            outcome, behind = _put_value(data, at + 2, end, program, first_steps[kind], stack, out, to)
        if outcome == NO_ROOM and row > first:
            return row
        is_printed[row] = outcome == PRINTED
        to = behind if outcome == PRINTED else to
        ends[row + 1 - first] = to
        row += 1
    return row
