"""What evidence without a running cluster answers where one would answer."""

from collections.abc import Iterable, Mapping, Set
from typing import TYPE_CHECKING

from sharelens.measures.file_ends import EndOffsets
from sharelens.measures.headers import NO_SAMPLES, SampledBatches
from sharelens.measures.topics import Ints, TopicPartition
from state_model.errors import SharelensError, UsageError

if TYPE_CHECKING:
    from sharelens.live.check import LiveCheck


class WithoutCluster:
    """The part of evidence (`Evidence`) that a cluster gives."""

    def unknown_name(self, text: str, topic: str | None = None) -> SharelensError:
        """An error of usage: nothing that the evidence lacks can be meant."""
        return UsageError(text)

    @property
    def fetched(self) -> str:
        """Nothing."""
        return ""

    def coordinators(self) -> "LiveCheck | None":
        """None."""
        return None

    def stable_offsets(self) -> EndOffsets:
        """None: headers say them."""
        return {}

    def ends_at(self, moment_ms: int, topics: Iterable[str]) -> EndOffsets:
        """None: headers say them."""
        return {}

    def sampled(self, offsets: Mapping[TopicPartition, Ints]) -> SampledBatches:
        """None: the evidence has the headers or nothing."""
        return NO_SAMPLES

    def sampled_partitions(self) -> Set[TopicPartition]:
        """None."""
        return frozenset()
