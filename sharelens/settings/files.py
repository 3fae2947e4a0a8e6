"""What the files of settings say that a command line names: --settings, --group-configs and --broker-config."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sharelens.measures.settings.observations import Observation, Settings, overlaid, settings_of
from sharelens.measures.topics.kept_samples import NO_KEPT_SAMPLES


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsFiles:
    """The files that a command line names, and what they say.

    `folder`: --settings; `group_configs`, `broker_config`: the options of these names; `topics`: the file of topics in
    the folder. `warnings`: a line about each file with unknown names of settings. `topic_names`: names by topic id.
    `takes_end_offsets`: whether end offsets and sampled batches, those of a lake too, count.
    """

    folder: str | None = None
    group_configs: str | None = None
    broker_config: str | None = None
    topics: str | None = None
    observations: tuple[Observation, ...] = ()
    warnings: tuple[str, ...] = ()
    topic_names: tuple[tuple[str, str], ...] = ()
    takes_end_offsets: bool = True

    def settings(self, stored: Sequence[Observation] = ()) -> Settings:
        """What the files say, and what a lake has stored of other kinds."""
        settings = settings_of(overlaid(stored, self.observations))
        return settings if self.takes_end_offsets else replace(settings, end_offsets={}, samples=NO_KEPT_SAMPLES)


NO_SETTINGS_FILES = SettingsFiles()
