"""Runs in Airflow's own environment: loads the DAGs as Airflow does, or runs one, and prints what came of it as JSON.

python tests/dags/driver.py structure
python tests/dags/driver.py run DAG_ID [LOGICAL_DATE|-[=JSON]] ... [DAG_ID ...]  (`-`: a run without a logical date)
"""

import importlib
import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

DAGS = Path(__file__).parents[2] / "dags"


def structure() -> object:
    from airflow.dag_processing.dagbag import BundleDagBag

    begun = time.perf_counter()
    bag = BundleDagBag(bundle_path=DAGS, dag_folder=DAGS)
    seconds = time.perf_counter() - begun
    heavy = [name for name in ("pyspark", "pyarrow", "numpy", "duckdb", "deltalake") if name in sys.modules]
    return {
        "errors": bag.import_errors,
        "seconds": seconds,
        "heavy": heavy,
        "backwards": {dag.dag_id: backfill_backwards(dag) for dag in bag.dags.values()},
        "dags": {
            dag.dag_id: {
                "tasks": {task.task_id: sorted(task.downstream_task_ids) for task in dag.tasks},
                "assets": {task.task_id: sorted(asset.uri for asset in task.outlets) for task in dag.tasks},
                "depends_on_past": [task.task_id for task in dag.tasks if task.depends_on_past],
                "retries": sorted({task.retries for task in dag.tasks}),
                "timeouts": sorted({task.execution_timeout.total_seconds() for task in dag.tasks}),
                "owners": sorted({task.owner for task in dag.tasks}),
                "has_docs": bool(dag.doc_md and dag.description),
                "tags": sorted(dag.tags),
                "max_active_runs": dag.max_active_runs,
                "catchup": dag.catchup,
                "params": sorted(dag.params),
            }
            for dag in bag.dags.values()
        },
    }


def backfill_backwards(dag: Any) -> str:
    """What Airflow says to a backfill of two days that begins with the last."""
    from airflow.models.backfill import _validate_backfill_params

    try:
        _validate_backfill_params(
            dag, True, datetime(2026, 11, 20, tzinfo=UTC), datetime(2026, 11, 21, tzinfo=UTC), None
        )
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "taken"


def run(words: list[str]) -> object:
    sys.path.append(str(DAGS))
    dag, outcomes = None, []
    for word in words:
        if word.isidentifier():
            dag = importlib.import_module(word).dag
            continue
        date, _, conf = word.partition("=")
        logical_date = None if date == "-" else datetime.fromisoformat(date)
        done = dag.test(logical_date=logical_date, run_conf=json.loads(conf) if conf else None)
        outcomes.append(
            {
                "state": str(done.state),
                "tasks": {str(task.task_id): str(task.state) for task in done.get_task_instances()},
                "tries": {str(task.task_id): task.try_number for task in done.get_task_instances()},
            }
        )
        if outcomes[-1]["state"] != "success":
            break  # a later run might wait for it for ever
    return outcomes


if __name__ == "__main__":
    does, *arguments = sys.argv[1:]
    answer = run(arguments) if does == "run" else structure()
    sys.stdout.write(f"\n{json.dumps(answer)}\n")
