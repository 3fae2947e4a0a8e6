"""Rules 2 and 7: the state partitions of share partitions against the number of state partitions.

That number is not in the log. The one that fits most share partitions counts, if no other fits as many; a healthy log
has one that fits all.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from state_model.columnar.kernels import kernel
from state_model.columnar.keys import SHARE_PARTITION_KEY, Ints
from state_model.java import INT32_MIN

LARGEST_COUNT: Final = 10_000
"""Kafka's default is 50; no coordinator needs more partitions than this."""
DECIDING: Final = 2000
"""Share partitions that decide on the number, at most."""
FEWEST: Final = 3
"""Share partitions that a number must fit to count."""


FEW: Final = 100
"""Numbers that are compared with all deciding share partitions at once, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The number of state partitions (None: undecided), another one that fits the rest (None: none), and the rest.

    `misplaced`: rows that the number does not fit. `expected`: for each row the state partition by the number.
    """

    count: int | None
    other_count: int | None
    misplaced: Ints
    expected: Ints


def placement(keys: pa.Table, state_partitions: Ints) -> Placement:
    """The placement of share partitions (group_id, topic_id, partition), each with its state partition."""
    hashes = _hashes(keys)
    count = count_of(hashes, state_partitions)
    if count is None:
        none = np.empty(0, np.int64)
        return Placement(count=None, other_count=None, misplaced=none, expected=none)
    expected = hashes % count
    misplaced = np.flatnonzero(expected != state_partitions)
    other = _count_of_all(hashes[misplaced], state_partitions[misplaced]) if len(misplaced) >= FEWEST else None
    return Placement(count=count, other_count=other, misplaced=misplaced, expected=expected)


def count_of_keys(keys: pa.Table, state_partitions: Ints) -> int | None:
    """The number of state partitions that puts most share partitions where they lie; None: undecided."""
    return count_of(_hashes(keys), state_partitions)


def _hashes(keys: pa.Table) -> Ints:
    """java.magnitude of the hash of each coordinator key."""
    hashes = _string_hashes(*_utf8(_coordinator_keys(keys)))
    return np.where(hashes == INT32_MIN, 0, np.abs(hashes))


@kernel
def _string_hashes(utf8: npt.NDArray[np.uint8], begins: npt.NDArray[np.int32]) -> Ints:
    """java.string_hash of each text, over its UTF-16 code units; `begins`: of the texts, with the end of the last."""
    # Arrow's text is valid UTF-8, so sequences are not checked. Java hashes UTF-16 code units: a code point above
    # U+FFFF counts as two. The mask is Java's overflow of 32 bits.
    hashes = np.empty(len(begins) - 1, np.int64)
    for text in range(len(hashes)):
        hashed = point = following = 0
        for place in range(begins[text], begins[text + 1]):
            byte = int(utf8[place])
            if byte < 0x80:
                point, following = byte, 0
            elif byte < 0xC0:
                point, following = point << 6 | (byte & 0x3F), following - 1
            elif byte < 0xE0:
                point, following = byte & 0x1F, 1
            elif byte < 0xF0:
                point, following = byte & 0x0F, 2
            else:
                point, following = byte & 0x07, 3
            if following == 0:
                if point >= 0x10000:  # a surrogate pair
                    hashed = (hashed * 31 + 0xD800 + ((point - 0x10000) >> 10)) & 0xFFFFFFFF
                    point = 0xDC00 + (point & 0x3FF)
                hashed = (hashed * 31 + point) & 0xFFFFFFFF
        hashes[text] = hashed - (1 << 32) if hashed >= 1 << 31 else hashed
    return hashes


def _coordinator_keys(keys: pa.Table) -> pa.Array:
    """java.coordinator_key of each share partition."""
    columns = [keys.column(name).cast(pa.string()) for name in SHARE_PARTITION_KEY]
    texts = pc.binary_join_element_wise(*columns, ":")
    return pa.concat_arrays(texts.chunks) if texts.num_chunks else pa.array([], pa.string())


def _utf8(texts: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
    """The bytes of all texts, and where each text begins, with the end of the last."""
    begins = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    data = texts.buffers()[2]
    return np.frombuffer(b"" if data is None else data, np.uint8), begins


def count_of(hashes: Ints, partitions: Ints) -> int | None:
    """The number of partitions that puts most of the hashes where they lie; None: undecided."""
    counts = _best_counts(hashes, partitions)
    if len(counts) != 1:
        return None
    count = int(counts[0])
    fitting = int(np.count_nonzero(hashes % count == partitions))
    return count if fitting >= FEWEST and 2 * fitting > len(hashes) else None


def _best_counts(hashes: Ints, state_partitions: Ints) -> Ints:
    """The numbers that fit most of (some of) the share partitions."""
    if not len(hashes):
        return np.empty(0, np.int64)
    chosen = np.linspace(0, len(hashes) - 1, min(DECIDING, len(hashes))).astype(np.int64)
    hashed, state_partition = hashes[chosen], state_partitions[chosen]
    fitting = np.arange(1, LARGEST_COUNT + 1, dtype=np.int64)
    for place in range(len(chosen)):
        if len(fitting) <= FEW:
            fitting = fitting[(hashed[:, None] % fitting == state_partition[:, None]).all(axis=0)]
            break
        fitting = fitting[hashed[place] % fitting == state_partition[place]]
    if len(fitting):  # a healthy log has one that fits all
        return fitting
    fits = _fits(hashed, state_partition)
    return np.flatnonzero(fits == fits.max()) + 1


def _count_of_all(hashes: Ints, state_partitions: Ints) -> int | None:
    counts = np.flatnonzero(_fits(hashes, state_partitions) == len(hashes)) + 1
    return int(counts[0]) if len(counts) == 1 else None


def _fits(hashes: Ints, state_partitions: Ints) -> npt.NDArray[np.int64]:
    """For each number from 1 on, how many share partitions it puts where they are."""
    counts = np.arange(1, LARGEST_COUNT + 1, dtype=np.int64)
    fits = np.zeros(LARGEST_COUNT, np.int64)
    for hashed, state_partition in zip(hashes.tolist(), state_partitions.tolist(), strict=True):
        fits += hashed % counts == state_partition
    return fits
