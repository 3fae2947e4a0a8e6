"""The topics that streams groups read: their offsets are committed, so that the ends of these topics give a lag.

All headers of these topics are read, from the first one on: which of them lie above a committed offset depends on when
records were read.
"""

import json

import pyarrow.compute as pc

from sharelens.lake.lake import Lake
from state_model.streams.records import TOPOLOGY

GROUP_RECORDS = "silver.group_record"


def topics_of_streams_groups(lake: Lake, cluster_id: str) -> frozenset[str]:
    """Names of the source and repartition topics in all topologies of decoded group records."""
    is_topology = (pc.field("cluster_id") == cluster_id) & (pc.field("record_type") == TOPOLOGY)
    values = lake.snapshot(GROUP_RECORDS).rows(["value_json"], is_topology).column("value_json").drop_null()
    return frozenset(
        topic
        for value in values.to_pylist()
        for subtopology in json.loads(value)["subtopologies"]
        for topic in (
            *subtopology["sourceTopics"],
            *(source["name"] for source in subtopology["repartitionSourceTopics"]),
        )
    )
