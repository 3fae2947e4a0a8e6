"""Kernels that write lists of tasks or partitions, which are sorted numbers, into the buffers of Arrow's lists.

Row i has the parts of one status of the value at positions[i], none below 0, as structs: those of one type and name
together.
"""

import numpy as np

from sharelens.groups.task_numbers import LEAST_PARTITION, PARTITION_BITS, STATUS_AT
from state_model.columnar.kernels import kernel, leaf


@leaf
def _bounds(at: np.ndarray, numbers: np.ndarray, position: int, status: int) -> tuple[int, int]:
    """Begin and end of the parts of a status."""
    if position < 0:
        return 0, 0
    # The status is in the highest bits and numbers ascend, so the parts of a status follow each other; the loops skip
    # the parts of other statuses at both ends.
    begin, end = at[position], at[position + 1]
    if begin == end or numbers[end - 1] >> STATUS_AT < status:
        return end, end
    while numbers[begin] >> STATUS_AT < status:
        begin += 1
    while end > begin and numbers[end - 1] >> STATUS_AT > status:
        end -= 1
    return begin, end


@kernel
def count_structs(at: np.ndarray, numbers: np.ndarray, positions: np.ndarray, status: int, ends: np.ndarray) -> int:
    """Fills the ends of the rows in structs, one entry more than there are rows; the number of parts of all rows."""
    parts = 0
    for row in range(len(positions)):
        begin, end = _bounds(at, numbers, positions[row], status)
        parts += end - begin
        structs = int(begin < end)
        # Numbers ascend, so parts of one type and name are neighbours: a struct begins where these bits change.
        for place in range(begin + 1, end):
            structs += numbers[place] >> PARTITION_BITS != numbers[place - 1] >> PARTITION_BITS
        ends[row + 1] = ends[row] + structs
    return parts


@kernel
def put_structs(
    at: np.ndarray,
    numbers: np.ndarray,
    positions: np.ndarray,
    status: int,
    first_numbers: np.ndarray,
    ends: np.ndarray,
    partitions: np.ndarray,
) -> None:
    """Fills the first number of each struct, the ends of the structs in partitions, and the partitions."""
    # The same bounds and changes as in `count_structs`, whose counts are the lengths of these arrays.
    struct, part = 0, 0
    for row in range(len(positions)):
        begin, end = _bounds(at, numbers, positions[row], status)
        for place in range(begin, end):
            number = numbers[place]
            if place == begin or number >> PARTITION_BITS != numbers[place - 1] >> PARTITION_BITS:
                first_numbers[struct] = number
                struct += 1
            partitions[part] = (number & 0xFFFFFFFF) + LEAST_PARTITION
            part += 1
            ends[struct] = part
