"""Evidence straight from a running cluster: its logs, fetched into log directories."""

from collections.abc import Iterable, Mapping, Sequence, Set

import pyarrow as pa

from sharelens.evidence.as_of import LogPrefix
from sharelens.kafka_log.layout import LogDirectory
from sharelens.live.check import LiveCheck
from sharelens.live.cluster import LiveCluster
from sharelens.measures.file_ends import EndOffsets
from sharelens.measures.headers import SampledBatches
from sharelens.measures.topics import Ints, TopicPartition
from sharelens.output import say_warnings
from sharelens.questions.evidence import Keys
from sharelens.questions.known_groups import live_groups
from sharelens.questions.log_evidence import LogEvidence
from sharelens.source.request import Source
from state_model.errors import SharelensError


class LiveEvidence(LogEvidence):
    """Log directories that a cluster's logs were fetched into; now is when they were fetched."""

    def __init__(self, source: Source, directories: Sequence[LogDirectory], cluster: LiveCluster) -> None:
        super().__init__(source, directories)
        self._live = cluster

    @property
    def place(self) -> str:
        """The address of the cluster."""
        return self._live.address.bootstrap_server

    def read_until_ms(self) -> int | None:
        """When the logs were fetched."""
        return self._live.read_until_ms

    def states(self, keys: Keys, prefix: LogPrefix) -> pa.Table:
        """As of log directories. Warns of groups and topics that the cluster does not list."""
        states = super().states(keys, prefix)
        self._compare(states)
        return states

    def places(self, keys: Keys) -> pa.Table:
        """As of log directories. Warns of groups and topics that the cluster does not list."""
        places = super().places(keys)
        groups, topic_ids = (set(places.column(name).to_pylist()) for name in ("group_id", "topic_id"))
        for chosen in (
            Keys(groups=frozenset(groups - self._live.left_out.groups)),
            Keys(topics=dict.fromkeys(topic_ids - self._live.left_out.topic_ids)),
        ):
            if chosen.groups or chosen.topics:  # deleted ones have no state
                self._compare(super().states(chosen, LogPrefix()))
        return places

    def group_records(self, groups: frozenset[str] | None = None) -> pa.Table:
        """As of log directories. Warns of share and streams groups that the cluster does not list."""
        records = super().group_records(groups)
        say_warnings(self._live.left_out.lines(live_groups(records), ()))
        return records

    def _compare(self, states: pa.Table) -> None:
        groups, topic_ids = (set(states.column(name).to_pylist()) for name in ("group_id", "topic_id"))
        say_warnings(self._live.left_out.lines(groups, topic_ids))

    def unknown_name(self, text: str, topic: str | None = None) -> SharelensError:
        """A failure, as names in a cluster come and go; where one may not describe a topic, that is the error."""
        if topic is not None:
            self._live.ensure_visible(topic)
        return SharelensError(text)

    @property
    def fetched(self) -> str:
        """Bytes of the command so far."""
        logs, topics = self._live.fetched_bytes
        return f"; fetched {logs} bytes of logs, {topics} of user topics"

    def coordinators(self) -> LiveCheck:
        """Those of the cluster."""
        return self._live.check()

    def stable_offsets(self) -> EndOffsets:
        """By the cluster, with --user-topics samples."""
        return {(place.topic, place.partition): offset for place, offset in self._live.stable_offsets.items()}

    def ends_at(self, moment_ms: int, topics: Iterable[str]) -> EndOffsets:
        """By the cluster, with --user-topics samples."""
        ends = self._live.ends_at(moment_ms, frozenset(topics))
        return {(place.topic, place.partition): offset for place, offset in ends.items()}

    def sampled(self, offsets: Mapping[TopicPartition, Ints]) -> SampledBatches:
        """From single batches of the cluster, with --user-topics samples."""
        return self._live.samples.of(offsets)

    def sampled_partitions(self) -> Set[TopicPartition]:
        """Those that the cluster lists, with --user-topics samples."""
        return self._live.samples.partitions
