"""A running cluster as the source of runs: what a lake lacks is fetched, and records that wait are sampled."""

from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from jobs.fetched import fetch_folder, remove_fetched
from jobs.ingest.first_missing import first_missing
from jobs.options import Observed, RunOptions
from sharelens.kafka_live.errors import ClusterError
from sharelens.live.cluster import Address, LiveCluster, UserTopics
from sharelens.live.left_out import LeftOut
from sharelens.live.samples import LiveSamples
from sharelens.measures.settings.observations import SAMPLED_BATCHES, Entry, Observation
from sharelens.measures.stalls.intervals import MOST_SAMPLES
from sharelens.measures.stalls.waiting import waiting_offsets
from sharelens.measures.topics.headers import begins_of
from sharelens.measures.topics.kept_samples import KeptSamples
from sharelens.measures.topics.sampled_batches import with_batches
from sharelens.output import say, say_warnings
from sharelens.settings.files import SettingsFiles
from sharelens.source.request import Source
from sharelens.tables.limits import size_text
from sharelens.tables.opening import in_directories
from sharelens.tables.reading import read_group_records

DEFAULT_FETCHED_BYTES = 4 << 30
"""What a run fetches at most, one answer aside, so that it bounds its disk and its time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOfRuns:
    """A cluster for the runs of a process, each of which connects to it.

    `most_bytes`: about what a run fetches.
    """

    address: Address
    user_topics: UserTopics
    most_bytes: int
    _left_out: LeftOut = field(default_factory=LeftOut)
    _samples: LiveSamples = field(default_factory=LiveSamples)

    def fetch(self, options: RunOptions, opened: ExitStack) -> RunOptions:
        """Fetches what the lake lacks of the cluster's logs, into a folder of the lake, for its run to read.

        The rest above the limit is for the next run.
        """
        folder = fetch_folder(options.lake)
        remove_fetched(options.lake, but_folders=options.goes_on)
        folder.mkdir(mode=0o700, exist_ok=options.goes_on)
        self._samples.fetched_bytes = 0
        cluster = LiveCluster(
            self.address,
            self.user_topics,
            most_bytes=self.most_bytes,
            folder=folder,
            begin_of=lambda cluster_id: first_missing(
                options.lake, cluster_id, is_named=options.cluster_id is not None
            ),
            left_out=self._left_out,
            samples=self._samples,
        )
        opened.enter_context(closing(cluster))
        files = SettingsFiles(observations=options.observations)
        source = in_directories(
            Source(cluster_id=options.cluster_id, settings_files=files, takes_group_log=True, live=cluster)
        )
        if cluster.is_cut_short:
            say(f"fetched {size_text(self.most_bytes)}, the most of one run (--max-bytes); run again for the rest")
        if cluster.has_group_records:
            self._name_left_out_groups(source)
        assert source.settings_files is not None
        return replace(
            options,
            log_dirs=source.log_dirs,
            fetched_bytes=dict(zip(("logs", "user_topics"), cluster.fetched_bytes, strict=True)),
            observations=source.settings_files.observations,
            observe=lambda states, kept_samples: self._observed(cluster, states, kept_samples),
            topic_names=dict(source.settings_files.topic_names) | options.topic_names,
        )

    def _name_left_out_groups(self, source: Source) -> None:
        """Warns of groups with records among those that were fetched, which the cluster does not list."""
        from sharelens.tables.known_groups import live_groups
        from sharelens.tables.logs.tables import open_log_tables

        with open_log_tables(replace(source, needs_state_log=False)) as evidence:
            say_warnings(self._left_out.lines(live_groups(read_group_records(evidence)), ()))

    def _observed(self, cluster: LiveCluster, states: pa.Table, kept_samples: KeptSamples) -> Observed:
        """Samples the batches of records that wait; warns of topics with states that the cluster does not list.

        States that the next run goes on with say nothing of what waits now.
        """
        say_warnings(self._left_out.lines((), states.column("topic_id").unique().to_pylist()))
        if self.user_topics is not UserTopics.SAMPLES or cluster.is_cut_short:
            return Observed((), 0)
        try:
            now = sampled_now(self._samples, states, kept_samples)
        except ClusterError as error:
            say_warnings([f"ages of records that wait are unknown: {error}"])
            return Observed((), self._samples.fetched_bytes)
        entries = tuple(sorted(Entry(*line) for line in now.lines()))
        observation = Observation(kind=SAMPLED_BATCHES, from_ms=cluster.read_until_ms, entries=entries)
        return Observed((observation,), self._samples.fetched_bytes)


def sampled_now(samples: LiveSamples, states: pa.Table, kept_samples: KeptSamples) -> KeptSamples:
    """What to keep of single batches for these states (sharelens.measures.stalls.waiting.STATES).

    What is kept is not read again.

    Raises:
        ClusterError: the cluster does not answer.
    """
    for _ in range(MOST_SAMPLES):
        waiting = waiting_offsets(states, kept_samples.no_records)
        unknown = {
            place: sorted(offsets - kept_samples.times.get(place, {}).keys()) for place, offsets in waiting.items()
        }
        batches = samples.of(
            {
                place: np.array(unknown_offsets, np.int64)
                for place, unknown_offsets in unknown.items()
                if unknown_offsets
            }
        )
        kept_samples = with_batches(kept_samples, batches)
        if batches.no_records.num_rows == 0:
            break
    return kept_samples.needed(waiting, begins_of(states), samples.partitions)
