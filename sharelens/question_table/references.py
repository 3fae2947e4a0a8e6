"""References to functions and constants by name, so that the table imports none of their modules."""

from importlib import import_module
from typing import Any


def load(reference: str) -> Any:
    """What MODULE:NAME names; imports its module."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)
