"""The session we start is as we need it; one that is not is refused and left alone."""

import pytest

from sharelens.configuration.settings import load_settings
from sharelens.spark.session import (
    JVM_OPTIONS,
    QUICK_COMPILER,
    REQUIRED_CONF,
    SessionError,
    check_session,
    spark_session,
    started_conf,
)

TEST_SETTINGS = load_settings(environment="test")


def test_session_has_our_name_and_what_answers_rely_on(spark):
    assert spark.sparkContext.appName == "sharelens:tests"
    assert {key: spark.conf.get(key) for key in REQUIRED_CONF} == dict(REQUIRED_CONF)
    assert spark.conf.get("spark.ui.enabled") == "false"
    assert spark.conf.get("spark.driver.host") == "127.0.0.1"


def test_existing_session_is_used_as_it_is(spark):
    assert spark_session("other", TEST_SETTINGS) is spark
    assert spark.sparkContext.appName == "sharelens:tests"


@pytest.mark.parametrize(
    ("key", "value"), [("spark.sql.session.timeZone", "Europe/Berlin"), ("spark.sql.ansi.enabled", "false")]
)
def test_session_that_would_answer_differently_is_refused_and_left_alone(spark, key, value):
    before = spark.conf.get(key)
    spark.conf.set(key, value)
    try:
        with pytest.raises(SessionError, match=f"{key} is '{value}', must be '{before}'"):
            check_session(spark)
        assert spark.conf.get(key) == value
    finally:
        spark.conf.set(key, before)


def test_workers_import_our_packages(spark):
    def names(batches):
        import state_model.errors

        for batch in batches:
            yield batch.rename_columns([state_model.errors.SharelensError.__name__])

    rows = spark.range(0, 2, 1, 2).mapInArrow(names, "SharelensError bigint").collect()
    assert sorted(row.SharelensError for row in rows) == [0, 1]


def test_workers_are_forks_of_a_process_that_has_imported_the_stages(spark):
    def rows_if_imported(batches):
        import sys

        stages = ("ingest.stage", "decode.stage", "replay.stage", "measure.stage", "measure.reconcile", "audit.tasks")
        has_all = all(f"jobs.{stage}" in sys.modules for stage in stages)
        yield from (batch.slice(0, int(has_all)) for batch in batches)

    assert spark.range(0, 2, 1, 2).mapInArrow(rows_if_imported, "id bigint").count() == 2


def test_delta_tables_are_written_and_read_without_a_network(spark, tmp_path):
    spark.range(3).write.format("delta").save(str(tmp_path / "table"))
    assert spark.read.format("delta").load(str(tmp_path / "table")).count() == 3


def test_settings_go_over_ours_but_not_over_what_answers_rely_on():
    settings = load_settings(
        environment="test",
        flags={
            "spark_conf": {
                "spark.ui.enabled": "true",
                "spark.sql.ansi.enabled": "false",
                "spark.sql.extensions": "com.example.Other",
                "spark.driver.extraJavaOptions": "-Dx=y",
            }
        },
    )
    conf = started_conf(settings)
    assert conf["spark.ui.enabled"] == "true"
    assert conf["spark.sql.ansi.enabled"] == "true"
    assert conf["spark.sql.extensions"] == "com.example.Other,io.delta.sql.DeltaSparkSessionExtension"
    assert conf["spark.driver.extraJavaOptions"].startswith("-Dlog4j2.configurationFile=file:")
    assert conf["spark.driver.extraJavaOptions"].endswith(" -Dx=y")


def test_a_session_that_only_hands_out_tasks_compiles_quickly_unless_the_settings_say_otherwise():
    settings = load_settings(environment="test", flags={"spark_conf": {JVM_OPTIONS: "-XX:TieredStopAtLevel=4"}})
    handing_out, computing = (started_conf(settings, hands_out=quick)[JVM_OPTIONS] for quick in (True, False))
    assert handing_out.endswith(f" {QUICK_COMPILER} -XX:TieredStopAtLevel=4")  # of two the JVM takes the last
    assert QUICK_COMPILER not in computing


def test_jars_travel_to_a_cluster():
    conf = started_conf(load_settings(environment="test", flags={"master": "spark://127.0.0.1:7077"}))
    assert len(conf["spark.jars"].split(",")) == 5
    assert not {"spark.driver.bindAddress", "spark.python.daemon.module"} & set(conf)
