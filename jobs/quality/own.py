"""Classes of Great Expectations for suites that are made, judged and forgotten within one check.

Before every step the library compares a checkpoint, its validation and its suite with what its stores hold, and each
of the thousands of looks at an expectation makes its configuration anew, in case somebody changed them meanwhile. That
is most of the time of a small check. What a check makes in its own memory nobody else can change.

Importing this module imports the library.
"""

from functools import cache
from typing import Any

import great_expectations as gx
from great_expectations.compatibility import pydantic
from great_expectations.core.freshness_diagnostics import (
    CheckpointFreshnessDiagnostics,
    ValidationDefinitionFreshnessDiagnostics,
)


class Definition(gx.ValidationDefinition):
    """A suite and the data it judges, in no store."""

    def is_fresh(self) -> ValidationDefinitionFreshnessDiagnostics:
        """Always: there is no other copy."""
        return ValidationDefinitionFreshnessDiagnostics(errors=[])


class Nothing:
    """Stands for the store of results where nobody reads them again: writing them down takes as long as judging."""

    cloud_mode = False

    def store_validation_results(self, **_result: object) -> bool:
        """Keeps nothing."""
        return True


class Passing(Definition):
    """A definition whose results are for the caller alone."""

    @property
    def _validation_results_store(self) -> Any:
        return Nothing()


class Checkpoint(gx.Checkpoint):
    """What runs definitions, in no store."""

    def is_fresh(self) -> CheckpointFreshnessDiagnostics:
        """Always: there is no other copy."""
        return CheckpointFreshnessDiagnostics(errors=[])


@cache
def expectation(name: str) -> Any:
    """The library's class of expectations of that name, as one that makes its configuration once.

    It has a name of its own: the library finds classes by their names when it reads a suite from its store.
    """
    original = getattr(gx.expectations, name)

    def configuration(self: Any) -> Any:
        if self._made is None:
            self._made = original.configuration.fget(self)
        return self._made

    def change(self: Any, field: str, value: Any) -> None:
        original.__setattr__(self, field, value)
        if field != "_made":
            self._made = None

    members = {
        "__module__": __name__,
        "__doc__": original.__doc__,
        "__setattr__": change,
        "_made": pydantic.PrivateAttr(default=None),
        "configuration": property(configuration),
    }
    return type(original)(f"{name}Once", (original,), members)
