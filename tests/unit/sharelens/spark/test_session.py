"""Which runs may do without a session."""

import pytest

from sharelens.configuration.settings import load_settings
from sharelens.spark.session import in_process_bytes


@pytest.mark.parametrize(
    ("master", "allowed"),
    [("local", 7), ("local[*]", 7), ("local[2]", 7), ("spark://host:7077", 0), ("yarn", 0), ("k8s://https://host", 0)],
)
def test_only_where_the_driver_does_all_the_work_may_small_stages_run_in_it(master: str, allowed: int) -> None:
    settings = load_settings(flags={"master": master, "in_process_bytes": 7})
    assert in_process_bytes(settings) == allowed


def test_what_was_submitted_to_spark_runs_on_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert in_process_bytes(load_settings(flags={"in_process_bytes": 7})) == 0
