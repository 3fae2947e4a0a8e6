"""Compiled kernels that came with the package: extension modules for any processor of a machine's kind.

They need no compiler, neither to be loaded nor to be called (`tools.ship_kernels` writes them). They count for the
source and the Python that they were compiled with; with another one numba compiles, as without them.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

import numpy as np

INDEX = "index.json"
"""The file that says what lies in a folder of compiled kernels: for each kernel the digest of its source, and for each
list of argument types the extension module and the name of the function in it."""

ArgumentTypes = tuple[object, ...]
"""What a compiled function depends on: for an array dtype number, byte order, dimensions and FLAGS; for a tuple its
class and the types in it; for a number the name of its type."""

C_CONTIGUOUS, FLAGS = 0x1, 0x1 | 0x2 | 0x100 | 0x400
"""Flags of NumPy arrays: contiguous in C's order and in Fortran's, aligned, writable."""
FORTRAN = 0x2
_NUMBERS: Mapping[type, str] = MappingProxyType(
    {bool: "bool", np.bool_: "bool", float: "float64", np.float64: "float64", np.int64: "int64"}
)


def types_of(arguments: Iterable[object]) -> ArgumentTypes:
    """The types of the arguments of a call."""
    return tuple(map(_type_of, arguments))


def _type_of(value: Any) -> object:
    kind: Any = type(value)
    if kind is np.ndarray or isinstance(value, np.ndarray):
        flags = value.flags.num & FLAGS
        if flags & C_CONTIGUOUS:
            flags &= ~FORTRAN
        dtype = value.dtype
        return dtype.num, dtype.byteorder, value.ndim, flags
    if kind is int:
        return "int64" if -(1 << 63) <= value < 1 << 63 else "int"
    if isinstance(value, tuple):
        return _name_of(kind), *map(_type_of, value)
    return _NUMBERS.get(kind) or _name_of(kind)


@cache
def _name_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def name_of(function: Callable[..., Any]) -> str:
    """The name of a kernel's function in INDEX."""
    return f"{function.__module__}.{function.__qualname__}"


def digest_of(function: Callable[..., Any]) -> str:
    """The digest of the file that a function stands in; empty where there is no file."""
    try:
        return hashlib.sha256(Path(function.__code__.co_filename).read_bytes()).hexdigest()
    except OSError:
        return ""


class Shipped:
    """The compiled functions of a kernel that lie in a folder; false where there are none."""

    def __init__(self, folder: Path, function: Callable[..., Any]) -> None:
        entry = _index(folder).get(name_of(function))
        functions = [] if entry is None or entry["source"] != digest_of(function) else entry["functions"]
        modules = {name: _extension(folder, name) for _, name, _ in functions}
        self._functions: dict[ArgumentTypes, Callable[..., Any]] = {
            _as_tuple(types): getattr(modules[name], symbol)
            for types, name, symbol in functions
            if modules[name] is not None
        }

    def __bool__(self) -> bool:
        return bool(self._functions)

    def function_for(self, arguments: Iterable[object]) -> Callable[..., Any] | None:
        """The function for arguments of their types; None: there is none."""
        return self._functions.get(types_of(arguments))


def are_shipped(folder: Path) -> bool:
    """Whether a folder has compiled kernels that this Python loads."""
    names = {name for entry in _index(folder).values() for _, name, _ in entry["functions"]}
    return bool(names) and all(_extension(folder, name) is not None for name in names)


@cache
def _index(folder: Path) -> Mapping[str, Any]:
    try:
        index: Mapping[str, Any] = json.loads((folder / INDEX).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return index


@cache
def _extension(folder: Path, name: str) -> ModuleType | None:
    spec = spec_from_file_location(name, folder / f"{name}{EXTENSION_SUFFIXES[0]}")
    if spec is None or spec.loader is None:
        return None
    try:
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError:  # of another Python, machine or C library
        return None
    return module


def _as_tuple(types: object) -> Any:
    return tuple(map(_as_tuple, types)) if isinstance(types, list) else types
