"""A persistent map: a change gives a new map that shares nearly everything with the old one, which stays as it was."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar, overload

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
T = TypeVar("T")
WIDTH = 32


class KeyMap(Mapping[K, V], Generic[K, V]):
    """Two levels of 32 branches, dicts as leaves: a change copies two tuples and one leaf of a 1,024th of the keys."""

    __slots__ = ("_branches", "_size")

    def __init__(self, items: Iterable[tuple[K, V]] = ()) -> None:
        leaves: dict[tuple[int, int], dict[K, V]] = {}
        for key, value in items:
            leaves.setdefault(_path(key), {})[key] = value
        nothing: dict[K, V] = {}  # shared by all empty branches: a leaf is never changed
        touched = {outer for outer, _ in leaves}
        bare = (nothing,) * WIDTH
        self._branches = tuple(
            tuple(leaves.get((outer, inner), nothing) for inner in range(WIDTH)) if outer in touched else bare
            for outer in range(WIDTH)
        )
        self._size = sum(map(len, leaves.values()))

    def set(self, key: K, value: V) -> "KeyMap[K, V]":
        """The map in which `key` has `value`."""
        outer, inner = _path(key)
        leaf = self._branches[outer][inner]
        return self._with_leaf(outer, inner, {**leaf, key: value}, self._size + (key not in leaf))

    def remove(self, key: K) -> "KeyMap[K, V]":
        """The map without `key`; itself if it lacks it."""
        outer, inner = _path(key)
        leaf = self._branches[outer][inner]
        if key not in leaf:
            return self
        return self._with_leaf(outer, inner, {k: v for k, v in leaf.items() if k != key}, self._size - 1)

    def _with_leaf(self, outer: int, inner: int, leaf: dict[K, V], size: int) -> "KeyMap[K, V]":
        made: KeyMap[K, V] = object.__new__(KeyMap)
        leaves = self._branches[outer]
        leaves = (*leaves[:inner], leaf, *leaves[inner + 1 :])
        made._branches = (*self._branches[:outer], leaves, *self._branches[outer + 1 :])
        made._size = size
        return made

    def __getitem__(self, key: K) -> V:
        outer, inner = _path(key)
        return self._branches[outer][inner][key]

    @overload
    def get(self, key: K, /) -> V | None: ...
    @overload
    def get(self, key: K, /, default: V | T) -> V | T: ...
    def get(self, key: K, /, default: V | T | None = None) -> V | T | None:
        """The value of `key`, or the default; without the exception that Mapping's own would cost."""
        hashed = hash(key)  # as _path
        return self._branches[hashed % WIDTH][hashed // WIDTH % WIDTH].get(key, default)

    def __iter__(self) -> Iterator[K]:
        for leaves in self._branches:
            for leaf in leaves:
                yield from leaf

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"KeyMap({dict(self)!r})"

    def __reduce__(self) -> tuple[type["KeyMap[K, V]"], tuple[list[tuple[K, V]]]]:
        """Pickled by its items: hashes of strings differ between processes."""
        return KeyMap, (list(self.items()),)


def _path(key: Hashable) -> tuple[int, int]:
    hashed = hash(key)
    return hashed % WIDTH, hashed // WIDTH % WIDTH
