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

from state_model.columnar.keys import SHARE_PARTITION_KEY, Ints
from state_model.java import INT32_MIN, string_hash

LARGEST_COUNT: Final = 10_000
"""Kafka's default is 50; no coordinator needs more partitions than this."""
DECIDING: Final = 2000
"""Share partitions that decide on the number, at most."""
CELLS: Final = 1 << 20
"""Characters that are hashed at once, about."""
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
    texts = _coordinator_keys(keys)
    hashes = np.empty(len(texts), np.int64)
    is_ascii = pc.string_is_ascii(texts).to_numpy(zero_copy_only=False)
    for row in np.flatnonzero(~is_ascii).tolist():
        hashes[row] = string_hash(texts[row].as_py())
    utf8, begins = _utf8(texts)
    lengths = np.diff(begins)
    by_length = np.argsort(lengths, kind="stable")
    by_length = by_length[is_ascii[by_length]]
    for rows in np.split(by_length, np.flatnonzero(np.diff(lengths[by_length])) + 1) if len(by_length) else []:
        length = int(lengths[rows[0]])
        for part in np.array_split(rows, len(rows) * length // CELLS + 1):
            hashes[part] = _ascii_hashes(utf8[begins[part][:, np.newaxis] + np.arange(length)])
    return np.where(hashes == INT32_MIN, 0, np.abs(hashes))


def _ascii_hashes(codes: npt.NDArray[np.uint8]) -> npt.NDArray[np.int32]:
    """java.string_hash of texts of one length, one row of ASCII codes each."""
    # The sum of code times 31 ** (characters behind it), as Java counts: 32 bits wrap around.
    weights = np.full(codes.shape[1], 31, np.uint32)
    weights[:1] = 1
    weights = np.multiply.accumulate(weights, dtype=np.uint32)[::-1]
    hashes: npt.NDArray[np.int32] = (codes * weights).sum(axis=1, dtype=np.uint32).view(np.int32)
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
