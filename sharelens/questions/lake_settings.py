"""The settings of groups in answers from a lake: those that runs stored, and those of the command line."""

from collections.abc import Sequence
from functools import cached_property

from measures.observed_settings import Observation, Settings, overlaid, settings_of


class LakeSettings:
    """The settings that runs stored for a cluster (`stored`), and those that a command line names (`chosen`)."""

    def __init__(self, stored: Sequence[Observation], chosen: Sequence[Observation]) -> None:
        self._stored = stored
        self._chosen = chosen

    @cached_property
    def measured(self) -> Settings:
        """The stored ones: a run measures after it stores them."""
        return settings_of(self._stored)

    @cached_property
    def answering(self) -> Settings:
        """The chosen ones, and the stored ones of the kinds that none is chosen of."""
        return settings_of(overlaid(self._stored, self._chosen)) if self._chosen else self.measured
