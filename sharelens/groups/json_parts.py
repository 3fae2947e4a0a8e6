"""Targets and current assignments of groups from their JSON: lists of tasks or partitions as sorted numbers.

A kernel reads what the decoder writes; a value that it does not read, with escaped names say, is read here.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.groups import json_part_kernels as kernels
from sharelens.groups.arrays import Ints
from sharelens.groups.task_columns import TaskLists
from sharelens.groups.task_numbers import LEAST_PARTITION, NAME_BITS, PARTITION_BITS, TYPE_BITS
from state_model.columnar import buffers
from state_model.group_records import camel_case
from state_model.group_schemas import RECORD_TYPES
from state_model.schema import CompactArray, Int, Struct

BYTES_OF_PART = 8
"""About the JSON of a part; where it takes less, there is room for twice as many parts, and so on."""
LEAST_ROOM = 16
LIST_CODES: Final[Mapping[str, int]] = dict.fromkeys(("topicPartitions", "assignedPartitions"), 0) | {
    f"{kind}Tasks{suffix}": status << TYPE_BITS | place
    for status, suffix in enumerate(("", "PendingRevocation"))
    for place, kind in enumerate(("active", "standby", "warmup"))
}
"""Status and type of the tasks of a list; those of partitions have neither."""


class PartReader:
    """Reads values of some record types, with one numbering of their names."""

    def __init__(self) -> None:
        self._names = _empty_names(LEAST_ROOM)
        self._read: list[tuple[kernels.Layout, kernels.Parts]] = []

    def read(self, texts: pa.ChunkedArray, rows: Ints, record_type: int) -> Ints:
        """The integer fields, by field and value, of values of a record type: the texts at `rows`, which ascend."""
        layout = _layout(record_type)
        fields = int((layout.fields[:, 2] == kernels.INTEGER).sum())
        parts = _empty_parts(fields, len(rows))
        begin, row = 0, 0
        for chunk in texts.chunks:
            end = begin + len(chunk)
            chunk_rows = rows[np.searchsorted(rows, begin) : np.searchsorted(rows, end)] - begin
            parts = self._read_chunk(chunk, chunk_rows, layout, parts, row)
            row += len(chunk_rows)
            begin = end
        self._read.append((layout, parts))
        return parts.integers

    def _read_chunk(
        self, texts: pa.Array, rows: Ints, layout: kernels.Layout, parts: kernels.Parts, first: int
    ) -> kernels.Parts:
        """The parts, extended by those of the texts at `rows`, from value `first` on."""
        view, row = buffers.binary_view(texts), first
        parts = _with_room(parts, int(parts.ends[first]) + int(view.at[-1] - view.at[0]) // BYTES_OF_PART)
        while True:
            place = row - first
            row, outcome = kernels.read_parts(view, rows, layout, self._names, parts, row, place)
            if outcome == kernels.NO_ROOM:
                parts = _with_room(parts, 2 * len(parts.numbers))
                self._names = _with_name_room(self._names)
            elif outcome == kernels.UNUSUAL:
                parts = self._read_unusual(texts[int(rows[row - first])].as_py(), layout, parts, row)
                row += 1
            else:
                return parts

    def _read_unusual(self, text: str, layout: kernels.Layout, parts: kernels.Parts, row: int) -> kernels.Parts:
        """The parts, extended by those of a value that the kernel refused, read by the JSON parser."""
        value = json.loads(text)
        integers = []
        entries: list[tuple[int, int]] = []
        for begin, end, code in layout.fields:
            content = value[bytes(layout.texts[begin + 1 : end - 1]).decode()]
            if code == kernels.INTEGER:
                integers.append(content)
            else:
                entries += self._entries(content, int(code), integers[0] if layout.has_epochs else 0)
        begin, end = int(parts.ends[row]), int(parts.ends[row]) + len(entries)
        parts = _with_room(parts, end)
        parts.integers[:, row] = integers
        parts.ends[row + 1] = end
        parts.numbers[begin:end] = [number for number, _ in entries]
        parts.epochs[begin:end] = [epoch for _, epoch in entries]
        return parts

    def _entries(self, items: Sequence[Mapping[str, Any]], code: int, epoch: int) -> Iterator[tuple[int, int]]:
        """Number and epoch of each part of a list."""
        for item in items:
            head = (code << NAME_BITS | self._number(next(iter(item.values())))) << PARTITION_BITS
            partitions, epochs = item["partitions"], item.get("assignmentEpochs")
            if code & ((1 << TYPE_BITS) - 1):
                epochs = [0] * len(partitions)
            elif epochs is None or len(epochs) != len(partitions):
                epochs = [epoch] * len(partitions)
            for partition, part_epoch in zip(partitions, epochs, strict=True):
                yield head | (partition - LEAST_PARTITION), part_epoch

    def _number(self, name: str) -> int:
        data = np.frombuffer(name.encode(), np.uint8)
        while True:
            number = kernels.number_of(self._names, data, 0, len(data))
            if number != kernels.NO_ROOM:
                return int(number)
            self._names = _with_name_room(self._names)

    def lists(self) -> tuple[pa.Array, list[TaskLists]]:
        """All names, ascending, and the lists of each call of `read`, in which parts have the places of their names.

        A part that a value lists twice has its last epoch, as in the reference (`state_model.streams.records`).
        """
        count = int(self._names.used[0])
        names = buffers.texts(pa.string(), self._names.ends[: count + 1].astype(np.int32), self._names.pool)
        order = pc.sort_indices(names)
        ranks = np.empty(count, np.int64)
        ranks[order.to_numpy()] = np.arange(count)
        return names.take(order), [_lists(layout, parts, ranks) for layout, parts in self._read]


def _lists(layout: kernels.Layout, parts: kernels.Parts, ranks: Ints) -> TaskLists:
    at, numbers, epochs = parts.ends, parts.numbers[: parts.ends[-1]], parts.epochs[: parts.ends[-1]]
    if not kernels.rank_names(at, numbers, ranks):
        at, numbers, epochs = _sorted(at, numbers, epochs)
    if layout.has_epochs:
        kernels.unify_epochs(at, numbers, epochs)
    return TaskLists(at=at, numbers=numbers, epochs=epochs)


def _sorted(at: Ints, numbers: Ints, epochs: Ints) -> tuple[Ints, Ints, Ints]:
    """Parts in order, each once: the last of a part counts."""
    owners = np.repeat(np.arange(len(at) - 1), np.diff(at))
    order = np.lexsort((numbers, owners))
    owners, numbers, epochs = owners[order], numbers[order], epochs[order]
    is_last = np.ones(len(numbers), np.bool_)
    is_last[:-1] = (numbers[1:] != numbers[:-1]) | (owners[1:] != owners[:-1])
    owners = owners[is_last]
    return np.searchsorted(owners, np.arange(len(at))), numbers[is_last], epochs[is_last]


@lru_cache
def _layout(record_type: int) -> kernels.Layout:
    """The fields of the JSON of a record type, whose value has integers and lists of tasks or partitions."""
    texts = bytearray()

    def text(content: str) -> tuple[int, int]:
        texts.extend(content.encode("ascii"))
        return len(texts) - len(content), len(texts)

    fields, item = [], Struct()
    for field in RECORD_TYPES[record_type].values[0].fields:
        name = camel_case(field.name)
        if isinstance(field.kind, Int):
            fields.append((*text(f'"{name}"'), kernels.INTEGER))
        else:
            assert isinstance(field.kind, CompactArray)
            assert isinstance(field.kind.item, Struct)
            fields.append((*text(f'"{name}"'), LIST_CODES[name]))
            item = field.kind.item
    keys = [text(f'"{camel_case(field.name)}"') for field in item.fields]
    has_epochs = len(keys) > kernels.EPOCHS
    return kernels.Layout(
        texts=np.frombuffer(bytes(texts + b"null"), np.uint8),
        fields=np.array(fields, np.int64),
        item=np.array([*keys, *([] if has_epochs else [(0, 0)]), (len(texts), len(texts) + 4)], np.int64),
        has_epochs=has_epochs,
    )


def _empty_parts(fields: int, rows: int) -> kernels.Parts:
    return kernels.Parts(
        integers=np.zeros((fields, rows), np.int64),
        ends=np.zeros(rows + 1, np.int64),
        numbers=np.empty(0, np.int64),
        epochs=np.empty(0, np.int64),
    )


def _with_room(parts: kernels.Parts, count: int) -> kernels.Parts:
    """The parts, in arrays with room for `count` of them."""
    if count <= len(parts.numbers):
        return parts
    used, room = int(parts.ends.max()), max(count, LEAST_ROOM)
    numbers, epochs = np.empty(room, np.int64), np.empty(room, np.int64)
    numbers[:used], epochs[:used] = parts.numbers[:used], parts.epochs[:used]
    return parts._replace(numbers=numbers, epochs=epochs)


def _empty_names(room: int) -> kernels.Names:
    return kernels.Names(
        slots=np.full(2 * room, -1, np.int64),
        ends=np.zeros(room + 1, np.int64),
        pool=np.empty(16 * room, np.uint8),
        used=np.zeros(1, np.int64),
    )


def _with_name_room(names: kernels.Names) -> kernels.Names:
    """The names, in a table with twice the room."""
    larger = _empty_names(len(names.slots))
    larger = larger._replace(pool=np.empty(2 * len(names.pool), np.uint8))
    for number in range(int(names.used[0])):
        kernels.number_of(larger, names.pool, int(names.ends[number]), int(names.ends[number + 1]))
    return larger
