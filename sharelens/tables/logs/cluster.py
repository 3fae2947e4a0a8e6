"""Tables straight from a running cluster: its logs, fetched into log directories."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property

import pyarrow as pa

from sharelens.kafka_log.layout import LogDirectory
from sharelens.live.check import LiveCheck
from sharelens.live.cluster import LiveCluster
from sharelens.measures.topics.extents import Ints, TopicPartition
from sharelens.measures.topics.file_ends import EndOffsets
from sharelens.measures.topics.headers import SampledBatches
from sharelens.output import say_warnings
from sharelens.source.request import Source
from sharelens.tables.known_groups import live_groups
from sharelens.tables.logs.tables import LogTables
from sharelens.tables.port import GROUP_RECORDS, PLACES, STATES
from sharelens.tables.where import ALL_ROWS, Keys, Order, Where


class ClusterBatches:
    """Single batches from the cluster, with --user-topics samples."""

    def __init__(self, live: LiveCluster) -> None:
        self._live = live

    @property
    def partitions(self) -> Set[TopicPartition]:
        """Those that the cluster lists."""
        return self._live.samples.partitions

    def of(self, offsets: Mapping[TopicPartition, Ints]) -> SampledBatches:
        """Fetched now."""
        return self._live.samples.of(offsets)


class FetchedCluster:
    """The cluster that logs were fetched from (`RunningCluster`)."""

    def __init__(self, live: LiveCluster) -> None:
        self._live = live

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

    def ensure_visible(self, topic: str) -> None:
        """By the cluster's answer about the topic."""
        self._live.ensure_visible(topic)


class ClusterTables(LogTables):
    """Log directories that a cluster's logs were fetched into; now is when they were fetched."""

    def __init__(self, source: Source, directories: Sequence[LogDirectory], live: LiveCluster) -> None:
        super().__init__(source, directories)
        self._live = live
        self.cluster = FetchedCluster(live)
        self._comparisons: Mapping[str, Callable[[pa.Table], None]] = {
            STATES: self._compare,
            PLACES: self._compare_places,
            GROUP_RECORDS: lambda records: say_warnings(self._live.left_out.lines(live_groups(records), ())),
        }

    @cached_property
    def samples(self) -> ClusterBatches:  # type: ignore[override]
        """Batches from the cluster."""
        return ClusterBatches(self._live)

    @property
    def place(self) -> str:
        """The address of the cluster."""
        return self._live.address.bootstrap_server

    def read_until_ms(self) -> int | None:
        """When the logs were fetched."""
        return self._live.read_until_ms

    def scan(
        self, table: str, columns: Sequence[str] | None = None, where: Where = ALL_ROWS, order: Order = Order.ANY
    ) -> Iterator[pa.Table]:
        """As of log directories. Warns of groups and topics that the cluster does not list."""
        if table not in self._comparisons:
            yield from super().scan(table, columns, where, order)
            return
        rows = pa.concat_tables(super().scan(table, None, where, order))
        self._comparisons[table](rows)
        yield rows if columns is None else rows.select(list(columns))

    def _compare_places(self, places: pa.Table) -> None:
        groups, topic_ids = (set(places.column(name).to_pylist()) for name in ("group_id", "topic_id"))
        for chosen in (
            Keys(groups=frozenset(groups - self._live.left_out.groups)),
            Keys(topics=dict.fromkeys(topic_ids - self._live.left_out.topic_ids)),
        ):
            if chosen.groups or chosen.topics:  # deleted ones have no state
                self._compare(pa.concat_tables(super().scan(STATES, None, Where(keys=chosen))))

    def _compare(self, states: pa.Table) -> None:
        groups, topic_ids = (set(states.column(name).to_pylist()) for name in ("group_id", "topic_id"))
        say_warnings(self._live.left_out.lines(groups, topic_ids))
