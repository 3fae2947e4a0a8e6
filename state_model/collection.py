"""When Python's garbage collector runs: not while objects are made that stay, because it would walk through them."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_collection() -> Iterator[None]:
    """No garbage collection meanwhile: for work that makes millions of objects without cycles."""
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_enabled:
            gc.enable()


@contextmanager
def lasting_objects() -> Iterator[None]:
    """The same for imports; no later collection looks at the objects that there are at the end (`gc.freeze`)."""
    with paused_collection():
        yield
        gc.freeze()
