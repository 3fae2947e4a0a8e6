"""sharelens_upkeep: keeps the lake small and fast."""

from airflow.sdk import DAG, CronTriggerTimetable
from sharelens_tasks import SharelensOperator, defaults, settings

DOCS = """
### Compaction, retention and vacuum

`sharelens maintain` merges small files, drops rows older than the retention (never the state, open rows and the last
snapshot of a share partition), removes files that no publication inside the window needs, and writes checkpoints. It
takes the lake's lock, so upkeep and pipeline runs wait for each other. Its log has the files and bytes before and
after.

Settings: `retain` and `upkeep_schedule` in `conf/base/dags.yaml`.
"""

SETTINGS = settings()

with DAG(
    "sharelens_upkeep",
    description="Compaction, retention and vacuum of the lake",
    doc_md=DOCS,
    schedule=CronTriggerTimetable(SETTINGS.upkeep_schedule, timezone="UTC"),
    start_date=SETTINGS.start,
    catchup=False,
    max_active_runs=1,
    tags=["sharelens", "kafka"],
    default_args=defaults(),
) as dag:
    SharelensOperator(
        task_id="maintain", commands=[["maintain", "--lake", SETTINGS.lake, "--retain", SETTINGS.retain, "--execute"]]
    )
