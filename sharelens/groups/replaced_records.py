"""Records of groups that the state after all of them does not depend on: later ones replace their values.

A value of a key is replaced by the next one, unless a tombstone stands between them that could change another thing: a
tombstone of the same member (which keeps or removes what the value made), or one of the group itself.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Keys(NamedTuple):
    """Numbers by row: of the groups (places in `names`), of their members (0: the group itself) and of the keys."""

    names: Sequence[str]
    groups: Ints
    members: Ints
    keys: Ints


def keys_of(rows: pa.Table) -> Keys:
    """The numbers of GROUP_RECORD rows."""
    names, groups = _numbers(rows.column("group_id"))
    _, members = _numbers(rows.column("member_id"))
    has_member = rows.column("member_id").is_valid().to_numpy()
    of_members = _dense(groups << 32 | np.where(has_member, members + 1, 0))
    kinds = rows.column("record_type").to_numpy().astype(np.int64)
    return Keys(
        names=names,
        groups=groups,
        members=np.where(has_member, of_members + 1, 0),
        keys=_dense(of_members << 16 | kinds),
    )


def is_needed(rows: pa.Table, keys: Keys) -> Bools:
    """Whether the state after all rows, in their order, needs each: tombstones, and values that are not replaced.

    Undecoded values change nothing and are not needed.
    """
    is_tombstone = rows.column("is_tombstone").to_numpy()
    is_value = rows.column("value_json").is_valid().to_numpy() & ~is_tombstone
    of_group, of_member = is_tombstone & (keys.members == 0), is_tombstone & (keys.members != 0)
    before = _running(keys.groups, of_group), _running(keys.members, of_member)
    values = np.flatnonzero(is_value)
    values = values[np.argsort(keys.keys[values], kind="stable")]
    is_next = np.ones(max(0, len(values) - 1), np.bool_)
    for column in (keys.keys, *before):
        is_next &= column[values[1:]] == column[values[:-1]]
    needed: Bools = is_tombstone.copy()
    needed[values] = np.append(~is_next, np.ones(min(1, len(values)), np.bool_))
    return needed


def first_replacements(keys: Keys, whole_groups: Collection[str] = ()) -> npt.NDArray[np.int64]:
    """The row of each group, by number, from which on compaction has removed none.

    It is the first one whose key an earlier row has (`replay.CompactionBound`), of `whole_groups` the first one; the
    number of rows where there is none.
    """
    count = len(keys.keys)
    is_first = np.zeros(count, np.bool_)
    is_first[np.unique(keys.keys, return_index=True)[1]] = True
    result = np.full(len(keys.names), count, np.int64)
    rows = np.flatnonzero(~is_first)
    np.minimum.at(result, keys.groups[rows], rows)
    result[[name in whole_groups for name in keys.names]] = 0
    return result


def _running(numbers: Ints, is_counted: Bools) -> Ints:
    """By row the counted rows of lower numbers, and those of its own number so far."""
    order = np.argsort(numbers, kind="stable")
    counts = np.empty(len(numbers), np.int64)
    counts[order] = np.cumsum(is_counted[order])
    return counts


def _numbers(column: pa.ChunkedArray) -> tuple[list[str], Ints]:
    """The texts of a column and the place of each row's; null has the place of the empty text."""
    coded = column.fill_null("").combine_chunks().dictionary_encode()
    return coded.dictionary.to_pylist(), coded.indices.to_numpy().astype(np.int64)


def _dense(numbers: Ints) -> Ints:
    """The numbers as places among the different ones."""
    return np.unique(numbers, return_inverse=True)[1].astype(np.int64)
