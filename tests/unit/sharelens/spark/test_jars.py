"""The Delta jars: found, fetched once, and never fetched when that is forbidden."""

import pytest

from sharelens.configuration.settings import load_settings
from sharelens.spark import jars


def put_jars(folder, names=jars.JARS):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_bytes(b"PK\x03\x04 and so on")


@pytest.fixture
def settings():
    return load_settings()


@pytest.fixture
def jar_folder(tmp_path, monkeypatch):
    """The keep folder, and a resolver that must not be asked unless a test says so."""
    monkeypatch.setattr(jars, "keep_folder", lambda: tmp_path)

    def forbidden(package, scratch, excluded=()):
        raise AssertionError(f"asked the network for {package}")

    monkeypatch.setattr(jars, "resolve", forbidden)
    return tmp_path / "jars"


def test_kept_jars_are_used_without_the_network(settings, jar_folder):
    put_jars(jar_folder)
    assert [path.name for path in jars.delta_jars(settings)] == list(jars.JARS)


def test_offline_without_jars_says_which_command_to_run(settings, jar_folder):
    with pytest.raises(
        jars.JarsError,
        match="offline, and .* lacks delta-kernel-api.*run once with a network: python -m sharelens.spark.jars",
    ):
        jars.delta_jars(settings.model_copy(update={"offline": True}))


def test_file_that_is_no_jar_counts_as_missing(settings, jar_folder):
    put_jars(jar_folder)
    (jar_folder / jars.JARS[0]).write_bytes(b"")
    (jar_folder / jars.JARS[1]).write_bytes(b"<html>")
    assert jars.missing_jars(jar_folder) == jars.JARS[:2]


def test_named_folder_is_never_filled(settings, jar_folder, tmp_path):
    named_folder = tmp_path / "mine"
    put_jars(named_folder, jars.JARS[1:])
    with pytest.raises(jars.JarsError, match="jars_dir .*mine lacks delta-kernel-api.*unset jars_dir"):
        jars.delta_jars(settings.model_copy(update={"jars_dir": named_folder}))
    put_jars(named_folder)
    assert jars.delta_jars(settings.model_copy(update={"jars_dir": named_folder}))[0].parent == named_folder


def test_missing_jars_are_resolved_once_and_only_the_needed_ones_kept(settings, jar_folder, monkeypatch):
    requests = []

    def resolve(package, scratch, excluded=()):
        requests.append(scratch)
        (scratch / "jars").mkdir()
        for name in (*jars.JARS, "something-else-1.0.jar"):
            (scratch / "jars" / f"io.delta_{name}").write_bytes(b"PK\x03\x04")
        return ""

    monkeypatch.setattr(jars, "resolve", resolve)
    jars.delta_jars(settings)
    jars.delta_jars(settings)
    assert len(requests) == 1
    assert sorted(path.name for path in jar_folder.iterdir()) == sorted(jars.JARS)


def test_failed_resolution_tells_why_and_keeps_nothing(settings, jar_folder, monkeypatch):
    report = ":: loading settings\n\t\t:: io.delta#delta-spark_4.1_2.13;4.4.0: not found\nmore"
    monkeypatch.setattr(jars, "resolve", lambda package, scratch, excluded=(): report)
    with pytest.raises(jars.JarsError, match="4.4.0: not found; repeat with a network"):
        jars.delta_jars(settings)
    assert not jar_folder.exists()
