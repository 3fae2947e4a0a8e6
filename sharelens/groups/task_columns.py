"""Lists of tasks and partitions, which are sorted numbers, as columns of the histories."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sharelens.groups import list_kernels as kernels
from sharelens.groups import schemas
from sharelens.groups.arrays import Bools, Ints
from sharelens.groups.task_numbers import TYPE_NAMES, name_of, type_of
from state_model.columnar import buffers

_TYPES = pa.array(TYPE_NAMES, pa.string())


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLists:
    """Value i has the tasks numbers[at[i]:at[i + 1]], ascending, with their assignment epochs; 0 without."""

    at: Ints
    numbers: Ints
    epochs: Ints

    def tasks(self, names: pa.Array, positions: Ints, status: int = 0, there: Bools | None = None) -> pa.ListArray:
        """TASKS values: of each value at `positions` the tasks of a status; `names`: of the subtopologies.

        A position below 0 is an empty list; null where `there` is false.
        """

        def heads(numbers: Ints) -> list[pa.Array]:
            return [_TYPES.take(pa.array(type_of(numbers))), names.take(pa.array(name_of(numbers)))]

        return self._rows(positions, status, there, schemas.TASKS, heads)

    def partitions(self, names: pa.Array, positions: Ints) -> pa.ListArray:
        """TOPIC_PARTITIONS values of the values at `positions`, an empty one below 0; `names`: the topic ids."""

        def heads(numbers: Ints) -> list[pa.Array]:
            return [names.take(pa.array(name_of(numbers)))]

        return self._rows(positions, 0, None, schemas.TOPIC_PARTITIONS, heads)

    def _rows(
        self,
        positions: Ints,
        status: int,
        there: Bools | None,
        kind: pa.ListType,
        heads: Callable[[Ints], list[pa.Array]],
    ) -> pa.ListArray:
        """Lists of structs: `heads` of the first number of each struct, and the partitions."""
        ends = np.zeros(len(positions) + 1, np.int32)
        count = kernels.count_structs(self.at, self.numbers, positions, status, ends)
        first_numbers, partitions = np.empty(ends[-1], np.int64), np.empty(count, np.int32)
        struct_ends = np.zeros(ends[-1] + 1, np.int32)
        kernels.put_structs(self.at, self.numbers, positions, status, first_numbers, struct_ends, partitions)
        lists = pa.ListArray.from_arrays(pa.array(struct_ends), pa.array(partitions))
        return buffers.lists(kind, ends, [*heads(first_numbers), lists], there)
