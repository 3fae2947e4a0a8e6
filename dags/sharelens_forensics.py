"""sharelens_forensics: a report and a verified evidence folder for one group and one window."""

from airflow.sdk import DAG, Param, chain
from sharelens_tasks import SharelensOperator, defaults, settings

DOCS = """
### Report and evidence of an incident

Trigger it with a group and a window. It writes one folder below `cases_dir`: `report.html`, and `evidence/`
with the log records, the states before and after, traces, findings and a manifest, which the last task verifies. It
reads only the published tables and never waits for the pipeline.

Settings: `cases_dir` in `conf/base/dags.yaml`.
"""

MOMENT = r"^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)$"
SETTINGS = settings()
CASE = f"{SETTINGS.cases_dir}/{{{{ params.case }}}}"
WINDOW = [
    *("--group", "{{ params.group }}", "--topic", "{{ params.topic or '' }}"),
    *("--from", "{{ params['from'] }}", "--to", "{{ params['to'] }}"),
]
LAKE = ["--lake", SETTINGS.lake, "--cluster-id", SETTINGS.cluster_id or ""]

with DAG(
    "sharelens_forensics",
    description="Report and verified evidence of one group and window",
    doc_md=DOCS,
    schedule=None,
    start_date=SETTINGS.start,
    catchup=False,
    tags=["sharelens", "kafka", "incident"],
    default_args=defaults(),
    params={
        "case": Param(
            "case-1",
            type="string",
            pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$",
            description="Name of the folder: letters, digits, dot, dash and underscore.",
        ),
        "group": Param("orders", type="string", minLength=1, description="The share group."),
        "topic": Param(None, type=["null", "string"], description="Topic name or id; empty: all topics."),
        "from": Param("2026-01-01T03:00:00Z", type="string", pattern=MOMENT, description="With a zone."),
        "to": Param("2026-01-01T04:00:00Z", type="string", pattern=MOMENT, description="Not included."),
    },
) as dag:
    chain(
        SharelensOperator(
            task_id="evidence",
            folder=CASE,
            commands=[
                ["evidence", *LAKE, *WINDOW, "--case", "{{ params.case }}", "--out", f"{CASE}/evidence"],
            ],
        ),
        SharelensOperator(task_id="report", commands=[["report", *LAKE, *WINDOW, "--out", f"{CASE}/report.html"]]),
        SharelensOperator(task_id="verify", commands=[["verify", f"{CASE}/evidence"]]),
    )
