"""The class archive is used when it is there and fits, and never needed."""

import os
from pathlib import Path

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


@pytest.fixture
def with_base(tmp_path):
    """A Java that brings an archive of its own classes."""
    (tmp_path / "lib" / "server").mkdir(parents=True)
    (tmp_path / "lib" / "server" / "classes.jsa").write_bytes(b"x")
    return java(tmp_path)


def test_the_second_start_writes_an_archive_that_later_ones_use(keep_folder, jar, with_base):
    assert class_archive.base_options(with_base) == ()
    assert class_archive.archive_options(with_base, [jar]) == ()
    *_, option = class_archive.archive_options(with_base, [jar])
    name, _, written = option.partition("=")
    assert name == "-XX:ArchiveClassesAtExit"
    Path(written).write_bytes(bytes(4) + b"regions")  # the JVM is writing
    assert option in class_archive.archive_options(with_base, [jar])
    Path(written).write_bytes(b"\xa8\xba\x0b\xf0regions")
    path = class_archive.archive_path(with_base, [jar])
    assert class_archive.archive_options(with_base, [jar])[0] == f"-XX:SharedArchiveFile={path}"
    assert not Path(written).exists()


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
