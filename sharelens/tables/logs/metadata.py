"""What the metadata log of log directories adds to them: topic names, of deleted topics too, and group settings."""

from collections.abc import Sequence
from functools import cached_property

from sharelens.evidence.metadata_events import MetadataHistory
from sharelens.evidence.metadata_reading import TooLargeError, read_metadata
from sharelens.kafka_log.layout import LogDirectory
from sharelens.measures.settings.checkpointed_ends import checkpointed_ends
from sharelens.measures.settings.metadata import doubtful_groups, group_observations
from sharelens.measures.settings.observations import GROUP_CONFIGS, Settings, settings_of
from sharelens.source.request import Source
from state_model.metadata.history import topic_names


class LogMetadata:
    """The metadata log beside the other logs, read when a question needs it; empty when there is none.

    One that is larger than --max-bytes counts as none: every broker has one, and other answers don't depend on it.
    """

    def __init__(self, source: Source, directories: Sequence[LogDirectory]) -> None:
        self._source = source
        self._directories = directories

    @cached_property
    def history(self) -> MetadataHistory | None:
        """The metadata over time; None when there is no metadata log, or too large a one."""
        try:
            return read_metadata(self._directories, max_bytes=self._source.max_bytes)
        except TooLargeError:
            return None

    @cached_property
    def names(self) -> dict[str, str]:
        """Names by topic id."""
        return {} if self.history is None else topic_names(self.history.validities)

    @property
    def doubtful_groups(self) -> frozenset[str]:
        """The groups with settings that a gap of the metadata log could have changed."""
        return frozenset() if self.history is None else doubtful_groups(self.history.validities)

    @cached_property
    def settings(self) -> Settings:
        """The settings of groups by the files of the command line, else by a metadata log whose beginning is known."""
        files = self._source.settings_files
        if files is not None and any(entry.kind == GROUP_CONFIGS for entry in files.observations):
            return files.settings(checkpointed_ends(self._directories))
        history = self.history
        stored = checkpointed_ends(self._directories)
        if history is not None and history.has_beginning:
            stored += group_observations(history.validities, history.first_ms)
        return settings_of(stored) if files is None else files.settings(stored)
