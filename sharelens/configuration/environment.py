"""Variables of this process's environment for the length of a block."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


@contextmanager
def variables_set(variables: Mapping[str, str]) -> Iterator[None]:
    """In the block these variables have these values; afterwards they are as they were, and others are untouched."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
