"""The class archive is used when it is there and fits, and never needed."""

import os

import pytest

from sharelens.spark import class_archive
from sharelens.spark.java import Java


@pytest.fixture
def keep_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(class_archive, "keep_folder", lambda: tmp_path)
    return tmp_path


@pytest.fixture
def jar(tmp_path):
    (tmp_path / "a.jar").write_bytes(b"PK")
    return tmp_path / "a.jar"


def java(home, version=21):
    return Java(home=home, version=version, origin="test")


def test_missing_archive_means_no_options(keep_folder, jar):
    assert class_archive.archive_options(java(keep_folder), [jar]) == ()


def test_archive_is_used_quietly(keep_folder, jar):
    path = class_archive.archive_path(java(keep_folder), [jar])
    path.write_bytes(b"x")
    options = class_archive.archive_options(java(keep_folder), [jar])
    assert options[0] == f"-XX:SharedArchiveFile={path}"
    assert "-Xshare:auto" in options


def test_other_java_or_changed_jars_need_another_archive(keep_folder, jar):
    first = class_archive.archive_path(java(keep_folder), [jar])
    assert class_archive.archive_path(java(keep_folder, 17), [jar]) != first
    assert class_archive.archive_path(java(keep_folder / "other"), [jar]) != first
    (keep_folder / "release").write_text('JAVA_VERSION="21.0.9"')
    second = class_archive.archive_path(java(keep_folder), [jar])
    assert second != first
    os.utime(jar, ns=(1, 1))
    assert class_archive.archive_path(java(keep_folder), [jar]) != second
