"""Overlapping ranges of offsets as step functions over their boundaries; no offset is ever enumerated.

    group 7   0---------9          highest(values): for each cell the largest value of the ranges over it
                   5--------14     total(weights):  for each cell the sum over the ranges over it
    cells     [0,5) [5,10) [10,15)

Work and memory go by the number of ranges, whatever offsets they claim. Ranges of different groups never meet.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from state_model.columnar.ordering import order_by

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

LAST_OFFSET = (1 << 63) - 2
"""The largest offset a record can have: the offset behind it must fit 64 bits too. Higher offsets are cut off."""
NO_VALUE = -(1 << 63)
"""Value of a cell that no range covers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranges:
    """Ranges by (group, first), both ends inclusive; those of one group are disjoint. `values` by name, one a range."""

    group: Ints
    first: Ints
    last: Ints
    values: Mapping[str, Ints]

    def where(self, selected: Flags) -> "Ranges":
        """The selected ranges."""
        values = {name: column[selected] for name, column in self.values.items()}
        return Ranges(group=self.group[selected], first=self.first[selected], last=self.last[selected], values=values)

    def part(self, begin: int, end: int) -> "Ranges":
        """The ranges from one place up to, not including, another."""
        part_slice = slice(begin, end)
        values = {name: column[part_slice] for name, column in self.values.items()}
        return Ranges(
            group=self.group[part_slice], first=self.first[part_slice], last=self.last[part_slice], values=values
        )


class Cells:
    """The cells between the boundaries of ranges; methods return arrays with one value for each cell.

    `group`, `first`, `last`: one a range, last inclusive. Negative offsets and offsets above LAST_OFFSET are cut
    off; a range that lies outside wholly covers no cell.
    """

    def __init__(self, group: Ints, first: Ints, last: Ints) -> None:
        begin, end = np.clip(first, 0, LAST_OFFSET), np.clip(last, -1, LAST_OFFSET) + 1
        end = np.maximum(begin, end)
        groups, offsets = np.concatenate([group, group]), np.concatenate([begin, end])
        order = order_by(groups, offsets)
        groups, offsets = groups[order], offsets[order]
        new = np.append(True, (np.diff(groups) != 0) | (np.diff(offsets) != 0))[: len(order)]
        place = np.empty(len(order), np.int64)
        place[order] = np.cumsum(new) - 1
        self.group, self.begin = groups[new], offsets[new]
        self.low, self.high = place[: len(group)], place[len(group) :]

    @property
    def count(self) -> int:
        """Cells, the empty one behind the last boundary of each group included."""
        return len(self.begin)

    def highest(self, values: Ints, chosen: Flags | None = None) -> Ints:
        """For each cell the largest value of the (chosen) ranges over it; NO_VALUE where there is none."""
        return _highest(self.count, *self._of(chosen, values))

    def lowest(self, values: Ints, chosen: Flags | None = None) -> Ints:
        """For each cell the smallest value (above NO_VALUE) of the ranges over it; NO_VALUE where there is none."""
        highest = self.highest(-values, chosen)
        return np.where(highest == NO_VALUE, NO_VALUE, -highest)

    def total(self, weights: Ints, chosen: Flags | None = None) -> Ints:
        """For each cell the sum of the weights of the (chosen) ranges over it."""
        return _total(self.count, *self._of(chosen, weights))

    def covered(self, chosen: Flags | None = None) -> Flags:
        """Whether a (chosen) range lies over the cell."""
        return self.total(np.ones(len(self.low), np.int64), chosen) > 0

    def ranges(self, selected: Flags, values: Mapping[str, Ints]) -> Ranges:
        """The selected cells; neighbours in a group with equal values become one range."""
        inside = np.append(self.group[1:] == self.group[:-1], False)[: self.count]
        at = np.flatnonzero(selected & inside)
        end = self.begin[np.minimum(at + 1, self.count - 1)] if self.count else self.begin[:0]
        columns = {name: column[at] for name, column in values.items()}
        return joined(self.group[at], self.begin[at], end - 1, columns)

    def _of(self, chosen: Flags | None, values: Ints) -> tuple[Ints, Ints, Ints]:
        if chosen is None:
            return self.low, self.high, values
        return self.low[chosen], self.high[chosen], values[chosen]


class Layers(Cells):
    """The cells of several named sets of ranges; a layer's values are one a range of that layer."""

    def __init__(self, layers: Mapping[str, tuple[Ints, Ints, Ints]]) -> None:
        """`layers`: group, first and last of the ranges of each."""
        super().__init__(*(together([layer[i] for layer in layers.values()]) for i in range(3)))
        ends = np.cumsum([len(layer[0]) for layer in layers.values()]).tolist()
        self._layer = {
            name: slice(end - len(layer[0]), end) for (name, layer), end in zip(layers.items(), ends, strict=True)
        }

    def highest_of(self, layer: str, values: Ints) -> Ints:
        """For each cell the largest value of the layer's ranges over it; NO_VALUE where there is none."""
        layer_slice = self._layer[layer]
        return _highest(self.count, self.low[layer_slice], self.high[layer_slice], values)

    def lowest_of(self, layer: str, values: Ints) -> Ints:
        """For each cell the smallest value (above NO_VALUE) of the layer's ranges over it; NO_VALUE for none."""
        highest = self.highest_of(layer, -values)
        return np.where(highest == NO_VALUE, NO_VALUE, -highest)

    def total_of(self, layer: str, weights: Ints) -> Ints:
        """For each cell the sum of the weights of the layer's ranges over it."""
        layer_slice = self._layer[layer]
        return _total(self.count, self.low[layer_slice], self.high[layer_slice], weights)


def _highest(cells: int, low: Ints, high: Ints, values: Ints) -> Ints:
    """A range becomes two overlapping pieces whose length is a power of two; pieces are halved level by level."""
    is_nonempty = high > low
    low, high, values = low[is_nonempty], high[is_nonempty], values[is_nonempty]
    level = np.frexp((high - low).astype(np.float64))[1] - 1
    highest = np.full(cells, NO_VALUE, np.int64)
    for power in range(int(level.max(initial=0)), -1, -1):
        at_level = level == power
        np.maximum.at(highest, low[at_level], values[at_level])
        np.maximum.at(highest, high[at_level] - (1 << power), values[at_level])
        if power:
            half = 1 << (power - 1)
            halved = highest.copy()
            np.maximum(halved[half:], highest[:-half], out=halved[half:])
            highest = halved
    return highest


def _total(cells: int, low: Ints, high: Ints, weights: Ints) -> Ints:
    steps = np.zeros(cells + 1, np.int64)
    np.add.at(steps, low, weights)
    np.add.at(steps, high, -weights)
    return np.cumsum(steps)[:cells]


def joined(group: Ints, first: Ints, last: Ints, values: Mapping[str, Ints]) -> Ranges:
    """Ranges by (group, first), disjoint within a group; neighbours that touch and have equal values become one."""
    if len(group) == 0:
        return Ranges(group=group, first=first, last=last, values=values)
    apart = (np.diff(group) != 0) | (first[1:] != last[:-1] + 1)
    for column in values.values():
        apart |= np.diff(column) != 0
    begins = np.append(0, np.flatnonzero(apart) + 1)
    ends = np.append(begins[1:], len(group)) - 1
    columns = {name: column[begins] for name, column in values.items()}
    return Ranges(group=group[begins], first=first[begins], last=last[ends], values=columns)


def numbered(*columns: Ints) -> tuple[Ints, Ints]:
    """The rank of each row's combination of values, and for each rank the index of a row with it."""
    order = order_by(*columns)
    new = np.zeros(len(order), np.bool_)
    new[:1] = True
    for column in columns:
        new[1:] |= np.diff(column[order]) != 0
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(new) - 1
    return number, order[new]


def together(parts: Sequence[Ints]) -> Ints:
    """The concatenated arrays; an empty array for none."""
    return np.concatenate([np.zeros(0, np.int64), *parts])
