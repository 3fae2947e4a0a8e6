"""A client of Spark Connect, in a process without Java: prints what the DataFrame functions give, as JSON.

`rows`: how many rows a function computes. `columns`: of the others the server analyzes the plan alone, which shows that
they call no JVM; what they compute is shown without Spark Connect.

python connect_client.py sc://127.0.0.1:PORT FOLDER
"""

import json
import sys

from pyspark.sql import SparkSession

from sharelens import frames
from sharelens.frames.shapes import spark_schema
from sharelens.kafka_log.schemas import TOPIC_BATCH

OF_KAFKA = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int, "
    "headers array<struct<key: string, value: binary>>"
)
SEARCHED = "dlq_topic string, dlq_topic_id string, dlq_partition int, log_start_offset bigint, held_back bigint"


def main(remote: str, folder: str) -> None:
    """Calls every function over the log directory `folder`."""
    spark = SparkSession.builder.remote(remote).getOrCreate()
    logs = spark.read.format("kafka_log").load(folder).transform(frames.log_records).cache()
    records = logs.transform(frames.share_records).cache()
    problems = spark.read.format("kafka_log").option("rows", "problems").load(folder)
    losses = frames.losses(logs, problems=problems).cache()
    states = frames.share_partition_states(records, losses=losses).cache()
    history = frames.share_partition_history(records, losses=losses).cache()
    deliveries = frames.delivery_history(records, losses=losses).cache()
    groups = logs.transform(frames.group_records).cache()
    last_ms = history.agg({"log_time_ms": "max"}).toArrow().column(0)[0].as_py()
    rows = {
        "log_records": logs,
        "share_records": records,
        "group_records": groups,
        "group_history": groups.transform(frames.group_history, log_records=logs),
        "member_history": groups.transform(frames.member_history, log_records=logs),
        "share_initialization_history": groups.transform(frames.share_initialization_history, log_records=logs),
        "dead_letters": logs.transform(frames.dead_letters),
        "losses": losses,
        "share_partition_states": states,
        "share_partition_history": history,
        "delivery_history": deliveries,
        "audit_findings": frames.audit_findings(logs, losses=losses),
        "states_as_of": history.transform(frames.states_as_of, deliveries, last_ms),
    }
    histories = (history, deliveries)
    headers = spark.createDataFrame([], spark_schema(TOPIC_BATCH))
    other = {
        "log_records_of_kafka_source": spark.createDataFrame([], OF_KAFKA).transform(
            frames.log_records_of_kafka_source
        ),
        "dlq_reconciliation": frames.dlq_reconciliation(
            frames.poison_records(*histories),
            logs.transform(frames.dead_letters),
            history,
            topic_names=spark.createDataFrame([], "topic_id string, topic string"),
            searched=spark.createDataFrame([], SEARCHED),
        ),
        "early_draft_records": logs.transform(frames.early_draft_records),
        "task_history": groups.transform(frames.task_history),
        "account": frames.account(*histories, headers=headers, losses=losses),
        "attempts": frames.attempts(*histories),
        "cost": frames.cost(records, *histories),
        "lag": states.transform(frames.lag),
        "lag_over_time": frames.lag_over_time(*histories, headers=headers),
        "latency": frames.latency(*histories, headers=headers),
        "life": frames.life(*histories),
        "poison_records": frames.poison_records(*histories),
        "progress": frames.progress(*histories),
        "pruning": frames.pruning(records),
        "redelivered_records": frames.redelivered_records(*histories),
        "stalls": frames.stalls(*histories),
        "what_if_delivery_count_limit": frames.what_if_delivery_count_limit(*histories, 3),
        "what_if_isolation_level": frames.what_if_isolation_level(*histories, "read_committed", headers=headers),
        "what_if_lock_duration": frames.what_if_lock_duration(*histories, 5_000),
        "what_if_snapshot_update_records": frames.what_if_snapshot_update_records(records, *histories, 7),
        "what_if_state_partitions": frames.what_if_state_partitions(records, 7),
    }
    counts = {name: frame.toArrow().num_rows for name, frame in rows.items()}
    json.dump({"rows": counts, "columns": {name: len(frame.columns) for name, frame in other.items()}}, sys.stdout)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
