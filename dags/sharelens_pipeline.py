"""sharelens_pipeline: log directories, or a running cluster, into the lake, interval by interval."""

from airflow.sdk import DAG, CronDataIntervalTimetable, chain
from sharelens_tasks import SharelensOperator, defaults, settings, table_assets

DOCS = """
### From the brokers' log directories, or a running cluster, to published tables

One task a stage: `ingest → decode → replay → measure → audit → check → publish`. A run takes the log up to the end of
its data interval (a run without one: up to now) and continues where the last run stopped, so that

* a repeated interval adds no rows, and a retry finishes a killed task;
* several intervals, one after the other, give the same tables as one run over all of them;
* an interval before a finished one adds no rows, and Airflow refuses a backfill backwards.

`check` closes the gate of a table with an unmet blocking expectation: nothing is published, questions still read the
last publication, and `sharelens status` names the gate. The task log names the failed rule; its runbook has causes and
remedies.
`publish` makes the new tables visible, updates the assets, and writes metrics and report.

Settings: `conf/base/dags.yaml`.
"""

SETTINGS = settings()
LAKE = ["--lake", SETTINGS.lake]
CLUSTER = ["--cluster-id", SETTINGS.cluster_id or ""]
FILES = ["--settings", SETTINGS.settings or ""]
BLOCKS = ["--audit-blocks", SETTINGS.audit_blocks] if SETTINGS.audit_blocks else []
UNTIL = "{{ dag_run.data_interval_end.isoformat() if dag_run.logical_date and dag_run.data_interval_end else '' }}"
SOURCES = (
    ["--user-topics", SETTINGS.user_topics]
    if SETTINGS.cluster_connection
    else [word for folder in SETTINGS.log_dirs for word in ("--log-dir", folder)]
)
STAGES = {
    "ingest": [["ingest", *LAKE, *SOURCES, *CLUSTER, *FILES, "--until", UNTIL]],
    "decode": [["decode", *LAKE]],
    "replay": [["replay", *LAKE]],
    "measure": [["measure", *LAKE]],
    "audit": [["audit-log", *LAKE]],
    "check": [["check", *LAKE, *BLOCKS]],
    "publish": [
        ["publish", *LAKE, "--require-check"],
        *([["metrics", *LAKE, "--output-file", SETTINGS.metrics_file]] if SETTINGS.metrics_file else []),
        *([["report", *LAKE, "--out", SETTINGS.report_file]] if SETTINGS.report_file else []),
    ],
}

with DAG(
    "sharelens_pipeline",
    description="Kafka share-group logs into Delta tables, measured, checked and published",
    doc_md=DOCS,
    schedule=CronDataIntervalTimetable(SETTINGS.schedule, timezone="UTC"),
    start_date=SETTINGS.start,
    catchup=SETTINGS.catchup,
    max_active_runs=1,
    tags=["sharelens", "kafka"],
    default_args=defaults(),
) as dag:
    chain(
        *(
            SharelensOperator(
                task_id=stage,
                commands=commands,
                cluster_connection=SETTINGS.cluster_connection if stage == "ingest" else None,
                outlets=table_assets() if stage == "publish" else [],
                # Intervals are read in their order, and none is left out.
                depends_on_past=stage == "ingest",
            )
            for stage, commands in STAGES.items()
        )
    )
