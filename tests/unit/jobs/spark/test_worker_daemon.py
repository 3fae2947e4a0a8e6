"""The workers' parent searches no archives where pyspark is installed without one."""

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
