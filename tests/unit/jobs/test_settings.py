"""Settings: layers in order, everything checked, every place named when something is wrong."""

from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import pytest

from jobs.quality.limits import DEFAULT_LIMITS, Limits
from jobs.settings import Settings, SettingsError, conf_file, load_settings

BASE = """
master: "local[*]"
offline: false
jars_dir: null
lock_timeout_s: 60
split_bytes: 1000
in_process_bytes: 0
spark_conf:
  spark.a: 1
  spark.b: base
"""
DAGS = (Path(__file__).parents[3] / "conf" / "base" / "dags.yaml").read_text()


@pytest.fixture
def conf(tmp_path):
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "jobs.yaml").write_text(BASE)
    (tmp_path / "base" / "dags.yaml").write_text(DAGS)
    return tmp_path


def load(conf: Path, environment=None, flags=None, **variables):
    known = {"SHARELENS_CONF_DIR": str(conf), **variables}
    return load_settings(environment=environment, flags=flags, variables=known)


def test_shipped_settings_load_and_have_the_types_of_their_fields():
    settings = load_settings(variables={})
    hints = get_type_hints(Settings)
    checked = [
        isinstance(getattr(settings, field.name), hints[field.name])
        for field in fields(Settings)
        if field.name != "spark_conf"
    ]
    assert len(checked) == len(fields(Settings)) - 1
    assert all(checked)
    assert ("spark.task.maxFailures", "4") in settings.spark_conf


def test_later_layers_go_over_earlier_ones(conf):
    (conf / "prod").mkdir()
    (conf / "prod" / "jobs.yaml").write_text("lock_timeout_s: 1\nsplit_bytes: 1\nmaster: spark://a:1\n")
    settings = load(
        conf, "prod", {"master": "spark://c:3", "offline": None}, SHARELENS_SPLIT_BYTES="2", SHARELENS_MASTER="b"
    )
    assert settings.environment == "prod"
    assert (settings.lock_timeout_s, settings.split_bytes, settings.master) == (1.0, 2, "spark://c:3")
    assert not settings.offline


def test_spark_settings_are_merged_key_by_key(conf):
    settings = load(conf, flags={"spark_conf": {"spark.c": True}}, SHARELENS_SPARK_CONF='{"spark.b": "variable"}')
    assert settings.spark_conf == (("spark.a", "1"), ("spark.b", "variable"), ("spark.c", "true"))


def test_environment_variable_names_the_environment(conf):
    (conf / "prod").mkdir()
    (conf / "prod" / "x.yaml").write_text("offline: true\n")
    assert load(conf, SHARELENS_ENV="prod").offline


def test_default_environment_need_not_exist(conf):
    assert load(conf).environment == "local"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("LOCK_TIMEOUT_S", "soon", "'soon' is not a number of seconds"),
        ("LOCK_TIMEOUT_S", "-1", "from 0 on"),
        ("LOCK_TIMEOUT_S", "inf", "from 0 on"),
        ("LOCK_TIMEOUT_S", "nan", "from 0 on"),
        ("SPLIT_BYTES", "0", "above 0"),
        ("SPLIT_BYTES", "1.5", "not a number of bytes"),
        ("IN_PROCESS_BYTES", "-1", "not a number of bytes"),
        ("OFFLINE", "perhaps", "neither true nor false"),
        ("MASTER", "", "not a text"),
        ("SPARK_CONF", "{", "not a JSON object"),
        ("SPARK_CONF", "[1]", "does not map settings"),
        ("SPARK_CONF", '{"executor.memory": "1g"}', "begin with spark."),
        ("SPARK_CONF", '{"spark.x": [1]}', "not a text, number or truth value"),
    ],
)
def test_wrong_value_is_refused_and_says_where_it_stands(conf, name, value, said):
    with pytest.raises(SettingsError) as caught:
        load(conf, **{f"SHARELENS_{name}": value})
    message = str(caught.value)
    assert said in message
    assert f"setting {name.lower()} in environment variables" in message
    assert "\n" not in message


def test_every_place_looked_at_is_named(conf):
    with pytest.raises(SettingsError) as caught:
        load(conf, SHARELENS_SPLIT_BYTES="x")
    for place in (
        "flags: unset",
        "environment variables SHARELENS_*: 'x'",
        "local/*.yaml (none): unset",
        "jobs.yaml: 1000",
    ):
        assert place in str(caught.value)


def test_setting_that_is_nowhere_is_named(conf):
    (conf / "base" / "jobs.yaml").write_text(BASE.replace("offline: false", ""))
    with pytest.raises(SettingsError, match="setting offline is nowhere: looked at flags: unset"):
        load(conf)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("colour: red", "unknown setting 'colour'; there are master"),
        ("- a", "must hold settings by name, not a list"),
        ("a: [", "cannot be read as YAML"),
    ],
)
def test_file_that_holds_something_else_is_refused(conf, content, said):
    (conf / "base" / "zz.yaml").write_text(content)
    with pytest.raises(SettingsError, match=said):
        load(conf)


def test_named_environment_without_settings_is_refused_with_those_there_are(conf):
    with pytest.raises(SettingsError, match="environments there are base"):
        load(conf, "production")


def test_missing_configuration_says_where_it_was_looked_for(tmp_path):
    with pytest.raises(SettingsError, match="looked for .*jobs.yaml; set SHARELENS_CONF_DIR"):
        load(tmp_path)


def test_logging_setup_is_found_beside_the_settings():
    assert "rootLogger" in conf_file("log4j2.properties", {}).read_text()


def test_dag_settings_are_merged_key_by_key(conf):
    (conf / "prod").mkdir()
    (conf / "prod" / "dags.yaml").write_text("dags: {lake: /prod/lake, log_dirs: [/a, 's3://b/c']}\n")
    dags = load(conf, "prod", SHARELENS_DAGS='{"command": "python -m sharelens", "metrics_file": null}').dags
    assert (dags.lake, dags.log_dirs) == ("/prod/lake", ("/a", "s3://b/c"))
    assert (dags.command, dags.metrics_file) == (("python", "-m", "sharelens"), None)
    assert dags.start.isoformat() == "2026-01-01T00:00:00+00:00"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ('{"lake": "here"}', "dags.lake: 'here' is not an absolute path"),
        ('{"log_dirs": []}', "dags.log_dirs: [] is not a list of texts"),
        ('{"start": "2026-01-01T00:00:00"}', "is not a moment with a zone"),
        ('{"start": "yesterday"}', "dags.start"),
        ('{"retries": -1}', "dags.retries: -1 is not a number from 0 on"),
        ('{"timeout_s": 0}', "above 0"),
        ('{"catchup": "maybe"}', "neither true nor false"),
        ('{"colour": "red"}', "dags has no 'colour'; there are command, lake"),
        ("[]", "does not map settings to values"),
    ],
)
def test_wrong_dag_setting_is_refused_in_one_line(conf, value, said):
    with pytest.raises(SettingsError) as caught:
        load(conf, SHARELENS_DAGS=value)
    assert said in str(caught.value)
    assert "environment variables" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_limits_of_the_gates_are_merged_key_by_key(conf):
    assert load_settings(variables={}).quality == DEFAULT_LIMITS
    (conf / "base" / "quality.yaml").write_text("quality: {fresh_within_s: 60, stale_after_s: null, volume_low: 0.5}")
    (conf / "prod").mkdir()
    (conf / "prod" / "quality.yaml").write_text("quality: {stale_after_s: 3600}")
    told = load(conf, "prod", SHARELENS_QUALITY='{"volume_low": 0.25}').quality
    assert told == Limits(fresh_ms=60_000, stale_ms=3_600_000, volume_low=0.25, volume_high=10.0)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ('{"fresh": 1}', "quality has no 'fresh'; there are fresh_within_s"),
        ('{"fresh_within_s": 0}', "quality.fresh_within_s: 0 is not a number above 0"),
        ('{"stale_after_s": "a day"}', "quality.stale_after_s: 'a day' is not a number above 0"),
        ('{"volume_high": true}', "quality.volume_high: True is not a number above 0"),
        ('{"volume_low": 11}', "quality.volume_low: 11 lies above volume_high, 10"),
        ("2h", "is not a JSON object"),
    ],
)
def test_wrong_limits_are_refused_by_name(conf, told, message):
    with pytest.raises(SettingsError) as caught:
        load(conf, SHARELENS_QUALITY=told)
    assert message in str(caught.value)
