"""Blocks of batches from one copy of a log, and the damage between them."""

from dataclasses import dataclass

from sharelens.kafka_log.files import Bytes
from sharelens.kafka_log.segment_file import Table

KEPT_BYTES = 64 << 10
"""How many bytes of a damage are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """Bytes of one file that could not be read as records. first > last: bytes were skipped, no offset is missing."""

    file: str
    position: int
    end_position: int
    first_offset: int
    last_offset: int
    reason: str
    detail: str
    raw: bytes = b""

    @property
    def loses_offsets(self) -> bool:
        """Whether offsets are missing."""
        return self.first_offset <= self.last_offset


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Batches of one file in one buffer: `headers` is a header table whose positions point into `data`.

    `walked_to`: each offset below it is in this block, in an earlier block, in a damage, or in no batch of this copy.
    """

    file: str
    data: Bytes
    data_position: int
    headers: Table
    walked_to: int
    damages: tuple[Damage, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where to begin: a segment (index in the copy) and a position in it that holds a batch."""

    segment: int
    position: int
