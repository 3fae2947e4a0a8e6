"""A persistent map: a change returns a new map that shares most of its memory with the old one."""

from collections.abc import Hashable, ItemsView, Iterable, Iterator, Mapping, ValuesView
from itertools import chain
from typing import Any, Generic, TypeVar, overload

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
T = TypeVar("T")
BRANCHES = 32
MAX_FLAT_KEYS = 32


class KeyMap(Mapping[K, V], Generic[K, V]):
    """An immutable mapping. Up to MAX_FLAT_KEYS keys are a dict, which a change copies.

    More keys are two levels of 32 branches with dicts as leaves: a change copies two tuples and one leaf with a
    1,024th of the keys.
    """

    __slots__ = ("_branches", "_flat", "_size")
    _branches: tuple[tuple[dict[K, V], ...], ...]
    _flat: dict[K, V] | None
    _size: int

    def __init__(self, items: Iterable[tuple[K, V]] = ()) -> None:
        by_key = dict(items)
        self._size = len(by_key)
        self._flat = by_key if len(by_key) <= MAX_FLAT_KEYS else None
        self._branches = () if self._flat is not None else _branched(by_key)

    def set(self, key: K, value: V) -> "KeyMap[K, V]":
        """The map in which `key` has `value`."""
        if self._flat is not None:
            return _flat_map({**self._flat, key: value})
        outer, inner = _path(key)
        leaf = self._branches[outer][inner]
        return self._with_leaf(outer, inner, {**leaf, key: value}, self._size + (key not in leaf))

    def remove(self, key: K) -> "KeyMap[K, V]":
        """The map without `key`; the same map if it lacks the key."""
        if self._flat is not None:
            return _flat_map({k: v for k, v in self._flat.items() if k != key}) if key in self._flat else self
        outer, inner = _path(key)
        leaf = self._branches[outer][inner]
        if key not in leaf:
            return self
        return self._with_leaf(outer, inner, {k: v for k, v in leaf.items() if k != key}, self._size - 1)

    def _with_leaf(self, outer: int, inner: int, leaf: dict[K, V], size: int) -> "KeyMap[K, V]":
        new_map: KeyMap[K, V] = object.__new__(KeyMap)
        leaves = self._branches[outer]
        leaves = (*leaves[:inner], leaf, *leaves[inner + 1 :])
        new_map._branches = (*self._branches[:outer], leaves, *self._branches[outer + 1 :])
        new_map._flat = None
        new_map._size = size
        return new_map

    def __getitem__(self, key: K) -> V:
        if self._flat is not None:
            return self._flat[key]
        outer, inner = _path(key)
        return self._branches[outer][inner][key]

    @overload
    def get(self, key: K, /) -> V | None: ...
    @overload
    def get(self, key: K, /, default: V | T) -> V | T: ...
    def get(self, key: K, /, default: V | T | None = None) -> V | T | None:
        """The value of `key`, or the default; faster than Mapping.get, which raises and catches KeyError."""
        if self._flat is not None:
            return self._flat.get(key, default)
        hashed = hash(key)  # as _path
        return self._branches[hashed % BRANCHES][hashed // BRANCHES % BRANCHES].get(key, default)

    def __iter__(self) -> Iterator[K]:
        return iter(self._flat) if self._flat is not None else chain.from_iterable(self._leaves())

    def items(self) -> ItemsView[K, V]:
        """Its keys and values in the order of iteration; Mapping.items looks up each key."""
        return self._flat.items() if self._flat is not None else _Items(self)

    def values(self) -> ValuesView[V]:
        """Its values in the order of iteration; Mapping.values looks up each key."""
        return self._flat.values() if self._flat is not None else _Values(self)

    def _leaves(self) -> Iterator[dict[K, V]]:
        """The leaves with keys: most of a small map have none."""
        return filter(None, chain.from_iterable(self._branches))

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"KeyMap({dict(self)!r})"

    def __reduce__(self) -> tuple[type["KeyMap[K, V]"], tuple[list[tuple[K, V]]]]:
        """Pickled by its items: hashes of strings differ between processes."""
        return KeyMap, (list(self.items()),)


class _Items(ItemsView[K, V]):
    _mapping: KeyMap[K, V]

    def __iter__(self) -> Iterator[tuple[K, V]]:
        return chain.from_iterable(map(dict.items, self._mapping._leaves()))


class _Values(ValuesView[V]):
    _mapping: KeyMap[Any, V]

    def __iter__(self) -> Iterator[V]:
        return chain.from_iterable(map(dict.values, self._mapping._leaves()))


def _flat_map(by_key: dict[K, V]) -> KeyMap[K, V]:
    size = len(by_key)
    if size > MAX_FLAT_KEYS:
        return KeyMap(by_key.items())
    new_map: KeyMap[K, V] = object.__new__(KeyMap)
    new_map._flat, new_map._branches, new_map._size = by_key, (), size
    return new_map


def _branched(by_key: dict[K, V]) -> tuple[tuple[dict[K, V], ...], ...]:
    leaves: dict[tuple[int, int], dict[K, V]] = {}
    for key, value in by_key.items():
        leaves.setdefault(_path(key), {})[key] = value
    no_keys: dict[K, V] = {}  # shared by all empty branches: a leaf is never changed
    used = {outer for outer, _ in leaves}
    no_leaves = (no_keys,) * BRANCHES
    return tuple(
        tuple(leaves.get((outer, inner), no_keys) for inner in range(BRANCHES)) if outer in used else no_leaves
        for outer in range(BRANCHES)
    )


def _path(key: Hashable) -> tuple[int, int]:
    hashed = hash(key)
    return hashed % BRANCHES, hashed // BRANCHES % BRANCHES
