"""The class archive is used when it is there and fits, and never needed."""

import os

import pytest

from sharelens.spark import class_archive
from sharelens.spark.java import Java


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setattr(class_archive, "keep_folder", lambda: tmp_path)
    return tmp_path


@pytest.fixture
def jar(tmp_path):
    (tmp_path / "a.jar").write_bytes(b"PK")
    return tmp_path / "a.jar"


def java(home, version=21):
    return Java(home=home, version=version, origin="test")


def test_missing_archive_means_no_options(kept, jar):
    assert class_archive.archive_options(java(kept), [jar]) == ()


def test_archive_is_used_quietly(kept, jar):
    path = class_archive.archive_path(java(kept), [jar])
    path.write_bytes(b"x")
    options = class_archive.archive_options(java(kept), [jar])
    assert options[0] == f"-XX:SharedArchiveFile={path}"
    assert "-Xshare:auto" in options


def test_other_java_or_changed_jars_need_another_archive(kept, jar):
    first = class_archive.archive_path(java(kept), [jar])
    assert class_archive.archive_path(java(kept, 17), [jar]) != first
    assert class_archive.archive_path(java(kept / "other"), [jar]) != first
    (kept / "release").write_text('JAVA_VERSION="21.0.9"')
    second = class_archive.archive_path(java(kept), [jar])
    assert second != first
    os.utime(jar, ns=(1, 1))
    assert class_archive.archive_path(java(kept), [jar]) != second
