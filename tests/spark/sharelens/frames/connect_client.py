"""A client of Spark Connect, in a process without Java: prints what the DataFrame functions compute, as JSON.

python connect_client.py sc://127.0.0.1:PORT FOLDER
"""

import json
import sys

from pyspark.sql import SparkSession

from sharelens import frames


def main(remote: str, folder: str) -> None:
    """Runs every function over the log directory `folder`."""
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
        "share_records": records,
        "group_records": groups,
        "group_history": groups.transform(frames.group_history),
        "member_history": groups.transform(frames.member_history),
        "share_initialization_history": groups.transform(frames.share_initialization_history),
        "dead_letters": logs.transform(frames.dead_letters),
        "losses": losses,
        "share_partition_states": states,
        "share_partition_history": history,
        "delivery_history": deliveries,
        "audit_findings": frames.audit_findings(logs, losses=losses),
        "states_as_of": history.transform(frames.states_as_of, deliveries, last_ms),
    }
    json.dump({name: frame.toArrow().num_rows for name, frame in rows.items()}, sys.stdout)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
