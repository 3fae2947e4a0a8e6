"""What the metadata log adds to a lake, beside names and settings, which runs store in tables of their own."""

from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.losses import GAP
from sharelens.lake.scan import Cut
from sharelens.measures.settings.over_time import GROUP_NAMES

if TYPE_CHECKING:
    from sharelens.evidence.metadata_events import MetadataHistory


class LakeMetadata:
    """The metadata log of a cluster as runs have read it, replayed when a question needs it."""

    def __init__(self, lake: Cut, cluster_id: str) -> None:
        self._lake = lake
        self._cluster_id = cluster_id

    @cached_property
    def history(self) -> "MetadataHistory | None":
        """The metadata over time but for partitions; None where no run has read a metadata log."""
        from sharelens.lake.metadata_log import read_history

        return read_history(self._lake, self._cluster_id)

    @cached_property
    def doubtful_groups(self) -> frozenset[str]:
        """The groups with settings that a gap of the metadata log could have changed."""
        condition = (pc.field("cluster_id") == self._cluster_id) & (pc.field("entity_type") == "group")
        condition &= pc.field("key").isin(pa.array(GROUP_NAMES)) & (pc.field("completeness_reason") == GAP)
        rows = self._lake.scan("gold.configuration_history", ["entity"], condition)
        return frozenset(rows.column("entity").to_pylist())
