"""A persistent map: a change gives a new map that shares nearly everything with the old one, which stays as it was."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar, overload

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
T = TypeVar("T")
WIDTH = 32
FEW = 32


class KeyMap(Mapping[K, V], Generic[K, V]):
    """A dict while there are few keys: a change copies it.

    Beyond that two levels of 32 branches, dicts as leaves: a change copies two tuples and one leaf of a 1,024th of the
    keys.
    """

    __slots__ = ("_branches", "_few", "_size")
    _branches: tuple[tuple[dict[K, V], ...], ...]
    _few: dict[K, V] | None
    _size: int

    def __init__(self, items: Iterable[tuple[K, V]] = ()) -> None:
        held = dict(items)
        self._size = len(held)
        self._few = held if len(held) <= FEW else None
        self._branches = () if self._few is not None else _branched(held)

    def set(self, key: K, value: V) -> "KeyMap[K, V]":
        """The map in which `key` has `value`."""
        if self._few is not None:
            return _small({**self._few, key: value})
        outer, inner = _path(key)
        leaf = self._branches[outer][inner]
        return self._with_leaf(outer, inner, {**leaf, key: value}, self._size + (key not in leaf))

    def remove(self, key: K) -> "KeyMap[K, V]":
        """The map without `key`; itself if it lacks it."""
        if self._few is not None:
            return _small({k: v for k, v in self._few.items() if k != key}) if key in self._few else self
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
        made._few = None
        made._size = size
        return made

    def __getitem__(self, key: K) -> V:
        if self._few is not None:
            return self._few[key]
        outer, inner = _path(key)
        return self._branches[outer][inner][key]

    @overload
    def get(self, key: K, /) -> V | None: ...
    @overload
    def get(self, key: K, /, default: V | T) -> V | T: ...
    def get(self, key: K, /, default: V | T | None = None) -> V | T | None:
        """The value of `key`, or the default; without the exception that Mapping's own would cost."""
        if self._few is not None:
            return self._few.get(key, default)
        hashed = hash(key)  # as _path
        return self._branches[hashed % WIDTH][hashed // WIDTH % WIDTH].get(key, default)

    def __iter__(self) -> Iterator[K]:
        if self._few is not None:
            yield from self._few
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


def _small(held: dict[K, V]) -> KeyMap[K, V]:
    size = len(held)
    if size > FEW:
        return KeyMap(held.items())
    made: KeyMap[K, V] = object.__new__(KeyMap)
    made._few, made._branches, made._size = held, (), size
    return made


def _branched(held: dict[K, V]) -> tuple[tuple[dict[K, V], ...], ...]:
    leaves: dict[tuple[int, int], dict[K, V]] = {}
    for key, value in held.items():
        leaves.setdefault(_path(key), {})[key] = value
    nothing: dict[K, V] = {}  # shared by all empty branches: a leaf is never changed
    touched = {outer for outer, _ in leaves}
    bare = (nothing,) * WIDTH
    return tuple(
        tuple(leaves.get((outer, inner), nothing) for inner in range(WIDTH)) if outer in touched else bare
        for outer in range(WIDTH)
    )


def _path(key: Hashable) -> tuple[int, int]:
    hashed = hash(key)
    return hashed % WIDTH, hashed // WIDTH % WIDTH
