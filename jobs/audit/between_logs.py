"""Rules between the state log, `__consumer_offsets`, user topics and the metadata log, computed in the driver.

They compare histories that grow at both ends, so each run judges them for all logs. Of share records only those are
read that the audit keeps (gold.audit_record); group records are few.
"""

import pyarrow as pa
import pyarrow.compute as pc

from jobs.audit.records import Topics, stored_lives
from sharelens.evidence.incarnations import newest_incarnation
from sharelens.lake.lake import Lake
from state_model.audit.columnar.across import LOG_FINDING, STORED, of_log
from state_model.audit.columnar.log_pairs import LogPairs, StoredTopic, proofs_of_groups
from state_model.topics import STATE_TOPIC
from state_model.uuids import ZERO_UUID


def between_logs(lake: Lake, states: pa.Table, topics: Topics, kept_records: pa.Table) -> pa.Table:
    """LOG_FINDING rows of the rules BETWEEN.

    `states`: STATES_READ of gold.audit_state; `kept_records`: records.stored_others. Of a cluster without a state log,
    those about records of groups.
    """
    tables = [LOG_FINDING.empty_table()]
    for cluster_id, of_cluster in sorted(topics.items()):
        cluster_states = states.filter(pc.field("cluster_id") == cluster_id)
        topic = _state_topic(lake, cluster_states, topics, kept_records) if cluster_states.num_rows else None
        proofs = (
            proofs_of_groups(of_cluster) if topic is None else LogPairs(topic.topic(of_cluster), of_cluster).proofs()
        )
        topic_id = ZERO_UUID if topic is None else topic.topic_id
        tables.append(of_log(proofs.findings(STORED), cluster_id, topic_id))
    return pa.concat_tables(tables)


def _state_topic(lake: Lake, states: pa.Table, topics: Topics, kept_records: pa.Table) -> StoredTopic:
    """The state topic of a cluster; `states`, `kept_records`: as for between_logs, `states` of the cluster alone."""
    cluster_id = states.column("cluster_id")[0].as_py()
    incarnations = zip(*(states.column(name).to_pylist() for name in ("log_topic_id", "log_time_ms")), strict=True)
    topic_id = str(newest_incarnation(list(incarnations)))
    is_own = (pc.field("cluster_id") == cluster_id) & (pc.field("log_topic_id") == topic_id)
    topic_states = states.filter(is_own).sort_by("state_partition")
    extents = topics[cluster_id].extents_of(STATE_TOPIC, topic_id, topic_states.column("state_partition")[0].as_py())
    return StoredTopic(
        topic_id=topic_id,
        states=topic_states,
        earlier_states=states.filter(pc.field("log_topic_id") != topic_id),
        first_offset=min((row["from_offset"] for row in extents), default=0),
        kept_records=kept_records.filter(is_own),
        lives=lambda: stored_lives(lake).filter(is_own),
    )
