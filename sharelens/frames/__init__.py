"""DataFrame API: the functions of the pipeline as `DataFrame -> DataFrame`, chained with `.transform`.

    from sharelens import frames

    logs = spark.read.format("kafka_log").load(folder).transform(frames.log_records)
    records = logs.transform(frames.share_records)
    states = records.transform(frames.share_partition_states)

Nothing here reads, writes or knows a session, and nothing calls the JVM, so all of it runs over Spark Connect; the
cluster needs sharelens installed, because tasks run its functions. They are those that the pipeline's stages run.
Input that would give wrong rows is refused, before a job where that can be seen, or by the first task that reads it
(`sharelens.frames.refusals`).
"""

from sharelens.frames.audited import audit_findings
from sharelens.frames.groups import group_history, member_history, share_initialization_history, task_history
from sharelens.frames.logs import (
    dead_letters,
    early_draft_records,
    group_records,
    log_records,
    log_records_of_kafka_source,
    share_records,
)
from sharelens.frames.lost import losses
from sharelens.frames.measures import (
    account,
    attempts,
    cost,
    lag,
    lag_over_time,
    latency,
    life,
    poison_records,
    progress,
    redelivered_records,
    stalls,
)
from sharelens.frames.moments import states_as_of
from sharelens.frames.other_logs import other_logs, untested_rules
from sharelens.frames.reconciled import dlq_reconciliation
from sharelens.frames.replayed import delivery_history, share_partition_history, share_partition_states
from sharelens.frames.settings import group_settings
from sharelens.frames.state_partitions import pruning
from sharelens.frames.what_if import (
    what_if_delivery_count_limit,
    what_if_isolation_level,
    what_if_lock_duration,
    what_if_snapshot_update_records,
    what_if_state_partitions,
)

__all__ = [
    "account",
    "attempts",
    "audit_findings",
    "cost",
    "dead_letters",
    "delivery_history",
    "dlq_reconciliation",
    "early_draft_records",
    "group_history",
    "group_records",
    "group_settings",
    "lag",
    "lag_over_time",
    "latency",
    "life",
    "log_records",
    "log_records_of_kafka_source",
    "losses",
    "member_history",
    "other_logs",
    "poison_records",
    "progress",
    "pruning",
    "redelivered_records",
    "share_initialization_history",
    "share_partition_history",
    "share_partition_states",
    "share_records",
    "stalls",
    "states_as_of",
    "task_history",
    "untested_rules",
    "what_if_delivery_count_limit",
    "what_if_isolation_level",
    "what_if_lock_duration",
    "what_if_snapshot_update_records",
    "what_if_state_partitions",
]
