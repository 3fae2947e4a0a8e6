"""Single batches of user partitions in evidence without a running cluster."""

from collections.abc import Mapping, Set

from sharelens.measures.topics.extents import Ints, TopicPartition
from sharelens.measures.topics.headers import NO_SAMPLES, SampledBatches
from sharelens.measures.topics.kept_samples import KeptSamples
from sharelens.measures.topics.sampled_batches import batches_of


class NoBatches:
    """The evidence has the headers or nothing."""

    partitions: Set[TopicPartition] = frozenset()

    def of(self, offsets: Mapping[TopicPartition, Ints]) -> SampledBatches:
        """None."""
        return NO_SAMPLES


NO_BATCHES = NoBatches()


class KeptBatches:
    """Those that runs kept of a cluster."""

    def __init__(self, samples: KeptSamples) -> None:
        self._samples = samples

    @property
    def partitions(self) -> Set[TopicPartition]:
        """Those that the newest run from a cluster could read."""
        return self._samples.partitions

    def of(self, offsets: Mapping[TopicPartition, Ints]) -> SampledBatches:
        """From what was kept."""
        return batches_of(self._samples, offsets)
