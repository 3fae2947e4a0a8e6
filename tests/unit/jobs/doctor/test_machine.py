"""What the doctor looks at, and what it says is to be done."""

import shutil
from importlib import metadata
from pathlib import Path

import pytest

from jobs.doctor import machine as doctor
from sharelens.cli import main
from tests.datasets import dataset


def test_healthy_machine_with_a_readable_log_directory_passes_what_concerns_it(tmp_path):
    checks = doctor.run_checks(lake=str(tmp_path / "lake"), log_dirs=[str(dataset("basic") / "logs")])
    by_name = {check.name: check for check in checks}
    assert {"python", "spark", "java", "jars", "memory", "lake", "disk-lake", "log-dir"} <= set(by_name)
    assert by_name["lake"].ok
    assert by_name["lake"].detail.endswith("can be made")
    assert by_name["log-dir"].ok
    assert "12 partitions" in by_name["log-dir"].detail
    assert not (tmp_path / "lake").exists()


def test_every_failed_check_says_what_to_do(tmp_path):
    (tmp_path / "file").write_text("")
    failed = [
        doctor.check_python((3, 10)),
        doctor.check_spark(lambda name: "3.5.1"),
        doctor.check_lake_folder("s3://bucket/lake")[0],
        doctor.check_lake(tmp_path / "file"),
        doctor.check_log_dir(str(tmp_path / "nothing")),
        doctor.check_memory(_file(tmp_path, "meminfo", "MemTotal: 9 kB\nMemAvailable:  1000 kB\n")),
    ]
    assert [check.ok for check in failed] == [False] * 6
    assert all(check.what_to_do for check in failed)


def test_without_pyspark_nothing_fails_and_java_is_not_needed(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "has_spark", lambda: False)
    monkeypatch.setattr(doctor.check_spark, "__defaults__", (_not_installed,))
    checks = {check.name: check for check in doctor.run_checks()}
    assert not {"java", "jars"} & set(checks)
    assert checks["spark"].ok
    assert "pip install 'sharelens[spark]'" in checks["spark"].what_to_do
    monkeypatch.setattr(doctor, "check_memory", lambda: doctor.Check(name="memory", ok=True, detail=""))
    assert main(["doctor"]) == 0
    assert "pyspark is not installed" in capsys.readouterr().out


def test_container_limit_counts_when_it_is_less_than_the_memory(tmp_path):
    plenty = _file(tmp_path, "meminfo", f"MemAvailable: {64 << 20} kB\n")
    assert doctor.check_memory(plenty, _file(tmp_path, "max", "max\n")).ok
    limited = doctor.check_memory(plenty, _file(tmp_path, "limit", f"{1 << 30}\n"))
    assert not limited.ok
    assert limited.detail == "1.0 GiB available"


def test_unknown_memory_is_no_failure(tmp_path):
    assert doctor.check_memory(tmp_path / "none", tmp_path / "none").ok


def test_full_disk_is_found_at_the_nearest_folder_that_exists(tmp_path, monkeypatch):
    folders: list[Path] = []

    def usage(place):
        folders.append(place)
        return shutil._ntuple_diskusage(10, 9, 1)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    check = doctor.check_disk("lake", tmp_path / "a" / "b")
    assert folders == [tmp_path]
    assert not check.ok


@pytest.mark.parametrize("rights", [False, True])
def test_rights_decide_about_an_existing_lake(tmp_path, monkeypatch, rights):
    monkeypatch.setattr(doctor.os, "access", lambda place, mode: rights)
    assert doctor.check_lake(tmp_path).ok is rights


def test_unreadable_segment_is_named(monkeypatch):
    monkeypatch.setattr(doctor.os, "access", lambda place, mode: False)
    check = doctor.check_log_dir(str(dataset("basic") / "logs"))
    assert not check.ok
    assert ".log and 11 more" in check.detail


def _not_installed(name: str) -> str:
    raise metadata.PackageNotFoundError(name)


def _file(folder: Path, name: str, content: str) -> Path:
    (folder / name).write_text(content)
    return folder / name
