"""Reads kio's message classes from bytes of a peer.

kio's own reader reserves memory for as many elements as an array claims to have, which ends the process when that
fails, and refuses unknown tagged fields. The codec checks every length against the bytes that are left and skips
unknown tags as Kafka does; this module counts the elements of all arrays of a message.
"""

import struct
from typing import Any

from sharelens.kafka_formats.messages.errors import MessageError, TooManyElementsError
from sharelens.kafka_formats.messages.kinds import kind_of
from state_model.codec.steps import StepCounter, Steps, run
from state_model.errors import DecodeError

ELEMENTS_MAX = 1 << 18
"""Array elements in one message; a share fetch that acknowledges 100 partitions record by record has 200,000."""


class _Allowance(StepCounter):
    """How many array elements a message may still have, tagged fields too, and when reading them pauses."""

    __slots__ = ("_elements",)

    def __init__(self, elements_max: int) -> None:
        super().__init__()
        self._elements = elements_max

    def take(self, count: int, offset: int) -> None:
        self._elements -= count
        if self._elements < 0:
            raise TooManyElementsError(f"{count} elements announced at byte {offset} are more than the API allows")


def read_in_steps(entity: Any, data: bytes, at: int = 0, *, elements_max: int = ELEMENTS_MAX) -> Steps[tuple[Any, int]]:
    """An object of a message class from the bytes that start at `at`, and the position behind it.

    Reading pauses after every STEP_ELEMENTS array elements.

    Raises:
        MessageError: the bytes are no such message.
        TooManyElementsError: they have more than `elements_max` array elements.
    """
    reader = kind_of(entity).reader
    allowance = _Allowance(elements_max)
    try:
        if reader.in_steps is None:
            return reader.at_once(data, at, allowance)
        return (yield from reader.in_steps(data, at, allowance))
    except (struct.error, IndexError) as error:
        raise MessageError(f"the message ends inside a field of {entity.__name__}") from error
    except (DecodeError, ValueError, OverflowError) as error:
        raise MessageError(f"{entity.__name__}: {error}") from error


def read(entity: Any, data: bytes, at: int = 0, *, elements_max: int = ELEMENTS_MAX) -> tuple[Any, int]:
    """An object of a message class and the position behind it, without a pause (see read_in_steps)."""
    return run(read_in_steps(entity, data, at, elements_max=elements_max))
