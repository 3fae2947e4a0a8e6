"""The workers' parent imports what its workers need, and searches no archives where pyspark comes without one."""

import subprocess
import sys

import pytest

from jobs.spark.worker_daemon import path_without_archives

PATH = "/spark/python/lib/pyspark.zip:/spark/jars/spark-core.jar:/mine"


def test_archives_leave_the_path_where_pyspark_is_installed() -> None:
    pytest.importorskip("pyspark")
    assert path_without_archives(PATH) == "/mine"
    assert path_without_archives("/mine") == "/mine"


def test_the_path_stays_where_pyspark_comes_from_an_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["/spark/python/lib/pyspark.zip"])
    assert path_without_archives(PATH) == PATH


def imported_for(kind: str) -> set[str]:
    """Those of our modules that the parent of workers of a kind has imported."""
    script = (
        f"import sys; from jobs.spark import worker_daemon; worker_daemon.import_code_of({kind!r}); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {"jobs.run", "sharelens.kafka_log.reader"} & set(done.stdout.split())


@pytest.mark.soak
@pytest.mark.slow
def test_workers_that_plan_a_data_source_inherit_no_stages() -> None:
    pytest.importorskip("pyspark")
    assert imported_for("pyspark.worker") == {"jobs.run", "sharelens.kafka_log.reader"}
    assert imported_for("pyspark.sql.worker.plan_data_source_read") == {"sharelens.kafka_log.reader"}
