"""The settings of groups in answers from a lake: those that runs stored, and those of the command line."""

from collections.abc import Sequence
from functools import cached_property

from sharelens.measures.settings.observations import SAMPLED_BATCHES, Observation, Settings, settings_of
from sharelens.settings.files import NO_SETTINGS_FILES, SettingsFiles


class LakeSettings:
    """The settings that runs stored for a cluster, and those of the files that a command line names."""

    def __init__(self, stored: Sequence[Observation], files: SettingsFiles) -> None:
        self.stored = stored
        self._files = files

    @cached_property
    def measured(self) -> Settings:
        """The stored ones: a run measures after it stores them."""
        return settings_of(self.stored)

    @property
    def sampled_ms(self) -> int | None:
        """When a run sampled batches of a cluster last and they said something new."""
        return max(
            (observation.from_ms for observation in self.stored if observation.kind == SAMPLED_BATCHES), default=None
        )

    @cached_property
    def answering(self) -> Settings:
        """Those of the files, and the stored ones of the kinds that no file has."""
        return self.measured if self._files == NO_SETTINGS_FILES else self._files.settings(self.stored)
