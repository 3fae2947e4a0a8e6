"""The warning about settings that gaps of the metadata log make unsure."""

from sharelens.output.wording import listed
from sharelens.tables.port import Tables


def doubtful_settings(evidence: Tables, groups: frozenset[str] | None) -> list[str]:
    """At most one line, about settings of these groups (None: all) that gaps of the metadata log make unsure."""
    if not evidence.settings.by_metadata:
        return []
    doubtful = evidence.metadata.doubtful_groups
    names = sorted(doubtful if groups is None else doubtful & groups)
    if not names:
        return []
    line = (
        f"the metadata log has gaps in which settings of {listed(names)} can have changed, so causes that rest on them "
        "are unsure: copy the folder again, with its snapshots, or give --settings DIR with group-configs.txt"
    )
    return [line]
