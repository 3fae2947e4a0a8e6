"""The demo runs the pipeline on Spark; the tables equal those of one process."""

import pytest
from pyspark.sql import SparkSession

from sharelens.cli import main

pytestmark = pytest.mark.spark


@pytest.mark.soak
@pytest.mark.usefixtures("spark")
def test_the_demo_computes_on_spark_and_shows_that_one_process_writes_equal_tables(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert SparkSession.getActiveSession() is not None
    assert main(["demo", "--set", "basic"]) == 0
    out, err = capsys.readouterr()
    assert "--engine spark" in err
    assert "stages in Spark: ingest" in out
    assert "stages in this process: ingest" in out
    assert "both engines wrote equal tables: 35 tables with " in out
