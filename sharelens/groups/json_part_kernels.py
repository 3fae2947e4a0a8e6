"""A kernel that reads targets and current assignments of groups from their JSON, as numbers of tasks or partitions.

It reads what Kafka's formatter and `state_model.columnar.json_kernels` write: the fields in the order of the schema. A
position below 0 says why a value was not read: UNUSUAL, or NO_ROOM in an output.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sharelens.groups.arrays import Ints
from sharelens.groups.kernels import is_same
from sharelens.groups.task_numbers import (
    LEAST_PARTITION,
    NAME_BITS,
    PARTITION_BITS,
    STATUS_AT,
    TYPE_AT,
    TYPE_BITS,
)
from state_model.columnar.buffers import BinaryView
from state_model.columnar.kernels import kernel, leaf

Bytes = npt.NDArray[np.uint8]
UNUSUAL, NO_ROOM = -1, -2
INTEGER = -1
"""The code of a field that is an integer; a list's code is the status and the type of its tasks."""
NAME, PARTITIONS, EPOCHS, NULL = range(4)
"""Texts of an item of a list: its keys, and null."""
MAX_DIGITS = 10
HASH_FACTOR = 1099511628211
BLANK, QUOTE, COMMA, MINUS, ZERO, NINE, COLON, OPEN, BACKSLASH, CLOSE, BEGIN, END = b' ",-09:[\\]{}'


class Layout(NamedTuple):
    """The fields of a value in order: begin and end of the quoted key in `texts`, and a code; the texts of an item.

    `has_epochs`: active tasks have epochs, by default the first integer of the value.
    """

    texts: Bytes
    fields: Ints
    item: Ints
    has_epochs: bool


class Names(NamedTuple):
    """Names by number, in the order in which they occur: name i is pool[ends[i]:ends[i + 1]].

    `slots`: a hash table of numbers, -1 where free. `used`: how many names there are, one number.
    """

    slots: Ints
    ends: Ints
    pool: Bytes
    used: Ints


class Tasks(NamedTuple):
    """What the parts of a list have in common: its code, and the epoch of parts that have none in the list."""

    code: int
    epoch: int


class Parts(NamedTuple):
    """Values as numbers: `integers` by field and value; value i has the parts numbers[ends[i]:ends[i + 1]]."""

    integers: Ints
    ends: Ints
    numbers: Ints
    epochs: Ints


@leaf
def _is_active(code: int) -> bool:
    """Whether the tasks of a list are active."""
    return code & ((1 << TYPE_BITS) - 1) == 0


@leaf
def _skip(data: np.ndarray, at: int, end: int) -> int:
    """The position behind blanks and line breaks."""
    while at < end and data[at] <= BLANK:
        at += 1
    return at


@leaf
def _behind(data: np.ndarray, at: int, end: int, byte: int) -> int:
    """The position behind a byte and blanks."""
    if at < 0:
        return at
    if at >= end or data[at] != byte:
        return UNUSUAL
    return _skip(data, at + 1, end)


@leaf
def _behind_text(data: np.ndarray, at: int, end: int, texts: np.ndarray, bounds: np.ndarray) -> int:
    """The position behind a text and blanks."""
    # A text of size 0 stands for a key that this type of item lacks: nothing matches it.
    begin, size = bounds[0], bounds[1] - bounds[0]
    if at < 0 or size == 0 or size > end - at:
        return min(at, UNUSUAL)
    for step in range(size):
        if data[at + step] != texts[begin + step]:
            return UNUSUAL
    return _skip(data, at + size, end)


@leaf
def _behind_key(data: np.ndarray, at: int, end: int, texts: np.ndarray, bounds: np.ndarray) -> int:
    return _behind(data, _behind_text(data, at, end, texts, bounds), end, COLON)


@leaf
def _integer(data: np.ndarray, at: int, end: int) -> tuple[int, int]:
    """(value, position behind it and blanks)."""
    if at < 0 or at >= end:
        return 0, min(at, UNUSUAL)
    is_negative = data[at] == MINUS
    at += is_negative
    first, value = at, 0
    while at < end and ZERO <= data[at] <= NINE:
        value = 10 * value + (data[at] - ZERO)
        at += 1
    # Ten digits fit int64. Longer numbers go to the JSON parser, so a value that wrapped is never used.
    if at == first or at - first > MAX_DIGITS:
        return 0, UNUSUAL
    return -value if is_negative else value, _skip(data, at, end)


@leaf
def _integers(data: np.ndarray, at: int, end: int, out: np.ndarray, to: int, limit: int) -> tuple[int, int]:
    """(count, position) of an array of integers, of which those are kept that fit into out[to:limit]."""
    at = _behind(data, at, end, OPEN)
    count = 0
    if at >= 0 and at < end and data[at] == CLOSE:
        return 0, _skip(data, at + 1, end)
    # Counts on without room, so that the caller learns of it and the position stays right. Each turn consumes a byte.
    while at >= 0:
        value, at = _integer(data, at, end)
        if to + count < limit:
            out[to + count] = value
        count += 1
        if at < 0 or at >= end or data[at] != COMMA:
            break
        at = _skip(data, at + 1, end)
    return count, _behind(data, at, end, CLOSE)


@leaf
def number_of(names: Names, data: np.ndarray, begin: int, end: int) -> int:
    """The number of a name, which is added if it is new; or NO_ROOM."""
    code = np.uint64(14695981039346656037)
    for place in range(begin, end):
        code = (code ^ np.uint64(data[place])) * np.uint64(HASH_FACTOR)
    # The table's length is a power of two and at most half of it is filled (below), so each probe ends at a free slot.
    mask = len(names.slots) - 1
    slot = np.int64(code >> np.uint64(17)) & mask
    while names.slots[slot] >= 0:
        known_number = int(names.slots[slot])
        if is_same(names.pool, names.ends[known_number], names.ends[known_number + 1], data, begin, end):
            return known_number
        slot = (slot + 1) & mask
    number = int(names.used[0])
    first = names.ends[number]
    # The caller makes a larger table and asks again: nothing was changed.
    if 2 * number >= mask or first + end - begin > len(names.pool):
        return NO_ROOM
    for step in range(end - begin):
        names.pool[first + step] = data[begin + step]
    names.ends[number + 1] = first + end - begin
    names.slots[slot] = number
    names.used[0] += 1
    return number


@leaf
def _name(data: np.ndarray, at: int, end: int, names: Names) -> tuple[int, int]:
    """(number, position) of a quoted name."""
    if at < 0 or at >= end or data[at] != QUOTE:
        return 0, min(at, UNUSUAL)
    begin = at + 1
    at = begin
    while at < end and data[at] != QUOTE and data[at] != BACKSLASH:
        at += 1
    if at >= end or data[at] == BACKSLASH:
        return 0, UNUSUAL
    number = number_of(names, data, begin, at)
    return number, number if number < 0 else _skip(data, at + 1, end)


@leaf
def _item(
    data: np.ndarray, at: int, end: int, layout: Layout, names: Names, tasks: Tasks, parts: Parts, to: int
) -> tuple[int, int]:
    """(position, number of parts) behind an item of a list: a name with partitions, and perhaps their epochs."""
    texts, item = layout.texts, layout.item
    at = _behind_key(data, _behind(data, at, end, BEGIN), end, texts, item[NAME])
    name, at = _name(data, at, end, names)
    at = _behind_key(data, _behind(data, at, end, COMMA), end, texts, item[PARTITIONS])
    count, at = _integers(data, at, end, parts.numbers, to, len(parts.numbers))
    if at < 0 or to + count > len(parts.numbers):
        return min(at, NO_ROOM if at >= 0 else at), to
    # The numbers were read in place; each becomes a part, which sorts by status, type, name and partition.
    head = (tasks.code << NAME_BITS | name) << PARTITION_BITS
    for place in range(to, to + count):
        parts.numbers[place] = head | (parts.numbers[place] - LEAST_PARTITION)
        parts.epochs[place] = tasks.epoch
    if at < end and data[at] == COMMA:
        at = _behind_key(data, _skip(data, at + 1, end), end, texts, item[EPOCHS])
        behind_null = _behind_text(data, at, end, texts, item[NULL])
        if behind_null >= 0:
            at = behind_null
        else:
            at = _epochs(data, at, end, tasks, parts, to, to + count)
    return _behind(data, at, end, END), to + count


@leaf
def _epochs(data: np.ndarray, at: int, end: int, tasks: Tasks, parts: Parts, begin: int, behind: int) -> int:
    """The position behind the epochs of parts; `tasks.epoch` stays where there is not one a part, and of other than
    active tasks.
    """
    is_active = _is_active(tasks.code)
    count, at = _integers(data, at, end, parts.epochs, begin, behind if is_active else begin)
    if is_active and count != behind - begin:
        for place in range(begin, behind):
            parts.epochs[place] = tasks.epoch
    return at


@leaf
def _items(
    data: np.ndarray, at: int, end: int, layout: Layout, names: Names, tasks: Tasks, parts: Parts, to: int
) -> tuple[int, int]:
    """(position, number of parts) behind a list."""
    at = _behind(data, at, end, OPEN)
    if at >= 0 and at < end and data[at] == CLOSE:
        return _skip(data, at + 1, end), to
    while at >= 0:
        at, to = _item(data, at, end, layout, names, tasks, parts, to)
        if at < 0 or at >= end or data[at] != COMMA:
            break
        at = _skip(data, at + 1, end)
    return _behind(data, at, end, CLOSE), to


@leaf
def _value(
    data: np.ndarray, at: int, end: int, layout: Layout, names: Names, parts: Parts, row: int, to: int
) -> tuple[int, int]:
    """(position, number of parts) behind a value."""
    at = _behind(data, _skip(data, at, end), end, BEGIN)
    integer = 0
    for field in range(len(layout.fields)):
        if field:
            at = _behind(data, at, end, COMMA)
        at = _behind_key(data, at, end, layout.texts, layout.fields[field])
        code = layout.fields[field, 2]
        if code == INTEGER:
            parts.integers[integer, row], at = _integer(data, at, end)
            integer += 1
        else:
            epoch = parts.integers[0, row] if layout.has_epochs and _is_active(code) else 0
            at, to = _items(data, at, end, layout, names, Tasks(code, epoch), parts, to)
    at = _behind(data, at, end, END)
    return (at if at < 0 or at == end else UNUSUAL), to


@kernel
def read_parts(
    view: BinaryView, texts: np.ndarray, layout: Layout, names: Names, parts: Parts, row: int, place: int
) -> tuple[int, int]:
    """(first row that was not read, UNUSUAL or NO_ROOM); `row` and 0 when all were. Rows count within all chunks.

    Row `row` is the text at texts[place] of the view, and so on. `parts` must have room for all rows.
    """
    data, at = view.data, view.at
    # A row counts only when it was read to its end: parts.ends[row + 1] is written then. After NO_ROOM or UNUSUAL the
    # caller goes on at the same row, and its parts overwrite those of the attempt.
    while place < len(texts):
        to = parts.ends[row]
        behind, to = _value(data, at[texts[place]], at[texts[place] + 1], layout, names, parts, row, to)
        if behind < 0:
            return row, behind
        row += 1
        place += 1
        parts.ends[row] = to
    return row, 0


@kernel
def rank_names(ends: np.ndarray, numbers: np.ndarray, ranks: np.ndarray) -> bool:
    """Puts the ranks of names in the place of their numbers; whether the parts of each value ascend then."""
    # Names were numbered as they occurred; ranks make numbers sort by name. Where the parts ascend then, the caller
    # needs no sort.
    mask = np.int64(((1 << NAME_BITS) - 1) << PARTITION_BITS)
    ascend = True
    for value in range(len(ends) - 1):
        for place in range(ends[value], ends[value + 1]):
            number = numbers[place]
            numbers[place] = (number & ~mask) | ranks[(number & mask) >> PARTITION_BITS] << PARTITION_BITS
            ascend &= place == ends[value] or numbers[place - 1] < numbers[place]
    return ascend


@kernel
def unify_epochs(ends: np.ndarray, numbers: np.ndarray, epochs: np.ndarray) -> None:
    """Gives active tasks that are also pending revocation the epoch that the pending list has; parts ascend."""
    # Parts ascend, so owned tasks precede pending ones and active tasks precede others in both: one merge of two lists,
    # in which each turn advances `owned_part` or `pending`.
    task = np.int64((1 << STATUS_AT) - 1)
    for value in range(len(ends) - 1):
        owned_part, end = ends[value], ends[value + 1]
        if owned_part == end or numbers[end - 1] >> STATUS_AT == 0:
            continue
        pending = owned_part + np.searchsorted(numbers[owned_part:end], np.int64(1) << STATUS_AT)
        while pending < end and owned_part < pending and numbers[pending] & task < np.int64(1) << TYPE_AT:
            if numbers[owned_part] >> STATUS_AT > 0:
                break
            if numbers[owned_part] < numbers[pending] & task:
                owned_part += 1
            else:
                if numbers[owned_part] == numbers[pending] & task:
                    epochs[owned_part] = epochs[pending]
                pending += 1
