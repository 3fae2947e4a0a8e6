"""Settings: layers in order, everything checked, every place named when something is wrong."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sharelens.configuration.limits import DEFAULT_LIMITS, Limits
from sharelens.configuration.settings import SettingsError, conf_file, load_settings
from tests.depths import in_soak

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
DAGS = (Path(__file__).parents[4] / "conf" / "base" / "dags.yaml").read_text()


ROOT = Path(__file__).parents[4]


@pytest.fixture
def conf(tmp_path, monkeypatch):
    (tmp_path / "base").mkdir()
    monkeypatch.setenv("SHARELENS_CONF_DIR", str(tmp_path))
    (tmp_path / "base" / "jobs.yaml").write_text(BASE)
    (tmp_path / "base" / "dags.yaml").write_text(DAGS)
    return tmp_path


def load(environment=None, flags=None, **variables):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        return load_settings(environment=environment, flags=flags)


def test_shipped_settings_load_and_are_frozen():
    settings = load_settings()
    assert settings.spark_conf["spark.task.maxFailures"] == "4"
    assert (settings.lock_timeout_s, settings.jars_dir, settings.dags.retries) == (60.0, None, 2)
    with pytest.raises(ValueError, match="frozen"):
        settings.master = "local"
    with pytest.raises(ValueError, match="frozen"):
        settings.dags.retries = 3
    with pytest.raises(TypeError, match="mappingproxy"):
        settings.spark_conf["spark.a"] = "1"


def test_later_layers_go_over_earlier_ones(conf):
    (conf / "prod").mkdir()
    (conf / "prod" / "jobs.yaml").write_text("lock_timeout_s: 1\nsplit_bytes: 1\nmaster: spark://a:1\n")
    settings = load("prod", {"master": "spark://c:3", "offline": None}, SHARELENS_SPLIT_BYTES="2", SHARELENS_MASTER="b")
    assert settings.environment == "prod"
    assert (settings.lock_timeout_s, settings.split_bytes, settings.master) == (1.0, 2, "spark://c:3")
    assert not settings.offline


def test_spark_settings_are_merged_key_by_key(conf):
    settings = load(flags={"spark_conf": {"spark.c": True}}, SHARELENS_SPARK_CONF='{"spark.b": "variable"}')
    assert settings.spark_conf == {"spark.a": "1", "spark.b": "variable", "spark.c": "true"}


def test_environment_variable_names_the_environment(conf):
    (conf / "prod").mkdir()
    (conf / "prod" / "x.yaml").write_text("offline: true\n")
    assert load(SHARELENS_ENV="prod").offline


@pytest.mark.parametrize(
    "url",
    ["local", "local[1]", "local[*]", "local[4, 2]", "local[*,3]", "local[2 ,3]", "local-cluster[ 2 , 1, 1024 ]",
     "yarn", "spark://a:7077,b:7077", "k8s://https://host:6443"],
)  # fmt: skip
def test_each_kind_of_master_that_spark_knows_is_taken(conf, url):
    assert load(SHARELENS_MASTER=url).master == url


def test_default_environment_need_not_exist(conf):
    assert load().environment == "local"


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("LOCK_TIMEOUT_S", "soon", "valid number, unable to parse string as a number, not 'soon'"),
        ("LOCK_TIMEOUT_S", "-1", "greater than or equal to 0, not '-1'"),
        ("LOCK_TIMEOUT_S", "inf", "a finite number, not 'inf'"),
        ("LOCK_TIMEOUT_S", "nan", "a finite number, not 'nan'"),
        ("SPLIT_BYTES", "0", "greater than 0, not '0'"),
        ("SPLIT_BYTES", "1.5", "valid integer, unable to parse string as an integer, not '1.5'"),
        ("IN_PROCESS_BYTES", "-1", "greater than or equal to 0, not '-1'"),
        ("OFFLINE", "perhaps", "valid boolean, unable to interpret input, not 'perhaps'"),
        ("MASTER", "", "at least 1 character, not ''"),
        ("MASTER", "sparc://host:7077", "or begin with spark:// or k8s://, not 'sparc://host:7077'"),
        ("MASTER", "local[0]", "should be local, local[N], local[*] or yarn"),
        ("MASTER", "local[2]x", "should be local"),
        ("MASTER", "k8s://", "should be local"),
        ("SPARK_CONF", "{", "not a JSON object"),
        ("SPARK_CONF", "[1]", "not [1]"),
        ("SPARK_CONF", '{"executor.memory": "1g"}', "spark_conf.executor.memory in"),
        ("SPARK_CONF", '{"executor.memory": "1g"}', "begin with spark."),
        ("SPARK_CONF", '{"spark.x": [1]}', "valid string, not [1]"),
    ],
)
def test_wrong_value_is_refused_and_says_where_it_stands(conf, name, value, reason):
    with pytest.raises(SettingsError) as caught:
        load(**{f"SHARELENS_{name}": value})
    message = str(caught.value)
    assert reason in message
    assert re.search(rf"setting {name.lower()}\S* in environment variables", message)
    assert "\n" not in message


def test_every_place_looked_at_is_named(conf):
    with pytest.raises(SettingsError) as caught:
        load(SHARELENS_SPLIT_BYTES="x")
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
        load()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("colour: red", "unknown setting 'colour'; there are master"),
        ("- a", "must hold settings by name, not a list"),
        ("a: [", "cannot be read as YAML"),
    ],
)
def test_file_that_holds_something_else_is_refused(conf, content, reason):
    (conf / "base" / "zz.yaml").write_text(content)
    with pytest.raises(SettingsError, match=reason):
        load()


def test_named_environment_without_settings_is_refused_with_those_there_are(conf):
    (conf / "staging").mkdir()
    (conf / "staging" / "jobs.yaml").write_text("{}")
    (conf / "kubernetes").mkdir()
    (conf / "kubernetes" / "exporter.yaml").write_text("kind: Deployment")
    (conf / "systemd").mkdir()
    with pytest.raises(SettingsError, match="environments are base, staging$"):
        load("production")


def test_missing_configuration_says_where_it_was_looked_for(tmp_path):
    with pytest.raises(SettingsError, match="looked for .*jobs.yaml; set SHARELENS_CONF_DIR"):
        load(SHARELENS_CONF_DIR=str(tmp_path))


def test_logging_setup_is_found_beside_the_settings():
    assert "rootLogger" in conf_file("log4j2.properties").read_text()


def test_dag_settings_are_merged_key_by_key(conf):
    (conf / "prod").mkdir()
    (conf / "prod" / "dags.yaml").write_text("dags: {lake: /prod/lake, log_dirs: [/a, 's3://b/c']}\n")
    dags = load("prod", SHARELENS_DAGS='{"command": "python -m sharelens", "metrics_file": null}').dags
    assert (dags.lake, dags.log_dirs) == ("/prod/lake", ("/a", "s3://b/c"))
    assert (dags.command, dags.metrics_file) == (("python", "-m", "sharelens"), None)
    assert dags.start.isoformat() == "2026-01-01T00:00:00+00:00"


def test_the_few_settings_of_the_how_to_are_enough():
    page = (Path(__file__).parents[4] / "docs" / "how-to" / "schedule.md").read_text(encoding="utf-8")
    directories, cluster = re.findall(r"SHARELENS_DAGS='(.*)'", page)
    assert set(json.loads(directories)) == {"command", "lake", "log_dirs"}
    assert set(json.loads(cluster)) == {"command", "lake", "cluster_connection", "schedule"}
    for line in (directories, cluster):
        dags = load(SHARELENS_DAGS=line).dags
        assert (dags.lake, dags.metrics_file, dags.report_file) == ("/data/lake", None, None)
    assert (dags.cluster_connection, dags.user_topics) == ("kafka_prod", "samples")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ('{"lake": "here"}', "dags.lake in environment variables SHARELENS_*: should be an absolute path, not 'here'"),
        ('{"log_dirs": []}', "dags.log_dirs in"),
        ('{"log_dirs": ["here"]}', "dags.log_dirs.0 in"),
        ('{"start": "2026-01-01T00:00:00"}', "should have timezone info"),
        ('{"start": "yesterday"}', "dags.start in"),
        ('{"retries": -1}', "dags.retries in environment variables SHARELENS_*: Input should be greater than or equal"),
        ('{"retries": true}', "dags.retries in environment variables SHARELENS_*: Input should be a valid integer"),
        ('{"timeout_s": 0}', "greater than 0"),
        ('{"catchup": "maybe"}', "valid boolean"),
        ('{"audit_blocks": "maybe"}', "'error', 'warning' or 'none'"),
        ('{"colour": "red"}', "unknown setting 'dags.colour'; there are command, lake"),
        ("[]", "not []"),
    ],
)
def test_wrong_dag_setting_is_refused_in_one_line(conf, value, reason):
    with pytest.raises(SettingsError) as caught:
        load(SHARELENS_DAGS=value)
    assert reason in str(caught.value)
    assert "environment variables" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_limits_of_the_gates_are_merged_key_by_key(conf):
    assert load(SHARELENS_CONF_DIR=str(ROOT / "conf")).quality.limits() == DEFAULT_LIMITS
    (conf / "base" / "quality.yaml").write_text("quality: {fresh_within_s: 60, stale_after_s: null, volume_low: 0.5}")
    (conf / "prod").mkdir()
    (conf / "prod" / "quality.yaml").write_text("quality: {stale_after_s: 3600}")
    limits = load("prod", SHARELENS_QUALITY='{"volume_low": 0.25}').quality.limits()
    assert limits == Limits(fresh_ms=60_000, stale_ms=3_600_000, volume_low=0.25, volume_high=10.0)


def test_blocking_severity_and_suppressions_are_merged_key_by_key(conf):
    assert load(SHARELENS_CONF_DIR=str(ROOT / "conf")).limits() == DEFAULT_LIMITS
    entry = "{rule: 10, reason: known, until: 2999-12-31}"
    (conf / "base" / "audit.yaml").write_text(f"audit: {{blocks: null, suppressions: [{entry}]}}")
    limits = load(SHARELENS_AUDIT='{"blocks": "warning"}').limits()
    assert limits.audit_blocks == "warning"
    assert [(entry.rules, entry.reason) for entry in limits.suppressions] == [(("snapshot_epoch_skips",), "known")]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ('{"block": "error"}', "unknown setting 'audit.block'; there are blocks, suppressions"),
        (
            '{"blocks": "all"}',
            "audit.blocks in environment variables SHARELENS_*: Input should be 'error' or 'warning'",
        ),
        (
            '{"suppressions": [{"rule": 10}]}',
            "audit.suppressions in environment variables SHARELENS_*: entry 1: no reason",
        ),
        ("error", "is not a JSON object"),
    ],
)
def test_wrong_settings_of_the_audit_are_refused_by_name(conf, value, message):
    with pytest.raises(SettingsError) as caught:
        load(SHARELENS_AUDIT=value)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ('{"fresh": 1}', "unknown setting 'quality.fresh'; there are fresh_within_s"),
        (
            '{"fresh_within_s": 0}',
            "quality.fresh_within_s in environment variables SHARELENS_*: Input should be greater",
        ),
        ('{"stale_after_s": "a day"}', "quality.stale_after_s in environment variables SHARELENS_*: Input should be a"),
        ('{"volume_high": true}', "quality.volume_high in environment variables SHARELENS_*: Input should be a valid"),
        ('{"volume_low": 11}', "volume_low 11 is above volume_high 10"),
        ("2h", "is not a JSON object"),
    ],
)
def test_wrong_limits_are_refused_by_name(conf, limits, message):
    with pytest.raises(SettingsError) as caught:
        load(SHARELENS_QUALITY=limits)
    assert message in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    "module", ["jobs.run", *in_soak("sharelens.cli", "jobs.spark.executors", "sharelens.tables.lakes.tables")]
)
def test_a_question_and_a_worker_import_no_validation_library(module):
    check = f"import sys, {module}; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], cwd=ROOT, check=False).returncode == 0
