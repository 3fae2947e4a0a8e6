"""What a running cluster says of the states that a run replayed."""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from jobs.books import MARKER
from jobs.incarnations import newest_incarnations
from jobs.lake_settings import stored_settings
from jobs.options import Observed
from sharelens.lake.lake import Lake
from sharelens.measures.stalls.waiting import STATES
from sharelens.measures.topics.kept_samples import KeptSamples


def observed(lake: Lake, cluster_id: str, observe: Callable[[pa.Table, KeptSamples], Observed]) -> Observed:
    """What `observe` says of the live states (STATES) of a cluster's newest state topic, misplaced ones left out."""
    log_topic_id = newest_incarnations(lake).get(cluster_id)
    if log_topic_id is None:
        return Observed((), 0)
    in_newest_topic = (pc.field("cluster_id") == cluster_id) & (pc.field("log_topic_id") == log_topic_id)
    states = lake.snapshot(MARKER["replay"]).rows(STATES, in_newest_topic & ~pc.field("misplaced"))
    return observe(states, stored_settings(lake, cluster_id).samples)
