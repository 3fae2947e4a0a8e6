"""Tasks and partitions as numbers that sort as the rows of the task history of one record do.

A task is one number: its status, its type, the place of its subtopology among all by name, its partition. A partition
of a share group is one, too: its topic stands where a task has its subtopology, status and type are 0.
"""

from typing import Final, TypeVar

from sharelens.groups import schemas
from sharelens.groups.arrays import Ints

Numbers = TypeVar("Numbers", int, Ints)
"""A task, or many."""
TYPE_NAMES: Final = (schemas.ACTIVE, schemas.STANDBY, schemas.WARMUP)
STATUS_NAMES: Final = (schemas.OWNED, schemas.PENDING_REVOCATION)
PARTITION_BITS, NAME_BITS, TYPE_BITS = 32, 27, 2
TYPE_AT = PARTITION_BITS + NAME_BITS
STATUS_AT = TYPE_AT + TYPE_BITS
LEAST_PARTITION = -(1 << 31)


def status_of(numbers: Numbers) -> Numbers:
    """Place in STATUS_NAMES."""
    return numbers >> STATUS_AT


def type_of(numbers: Numbers) -> Numbers:
    """Place in TYPE_NAMES."""
    return (numbers >> TYPE_AT) & ((1 << TYPE_BITS) - 1)


def name_of(numbers: Numbers) -> Numbers:
    """Place among the names of subtopologies, or among the topic ids."""
    return (numbers >> PARTITION_BITS) & ((1 << NAME_BITS) - 1)


def partition_of(numbers: Numbers) -> Numbers:
    """Partition of the task."""
    return (numbers & ((1 << PARTITION_BITS) - 1)) + LEAST_PARTITION
