"""An archive holds the files of its directory, for logs of every kind; lakes and answers are the same from both."""

import json
import tarfile
from pathlib import Path

import pytest
import zstandard

from sharelens.cli import main
from sharelens.kafka_log.archives import log_directories, unpacked_path
from tests.datasets import KINDS, dataset
from tests.depths import in_soak, rows_in_soak
from tests.lakes import assert_same
from tests.processes.in_process import make_lake, recorded_lake

SUFFIXES = (".tar", ".tar.gz", ".tar.zst")


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARELENS_ARCHIVES_DIR", str(tmp_path / "unpacked"))


def pack(logs: Path, archive: Path) -> Path:
    plain = archive.with_name("plain")
    with tarfile.open(plain, "w:gz" if archive.suffix == ".gz" else "w") as tar:
        tar.add(logs, arcname="kafka-logs")
    if archive.suffix == ".zst":
        plain.write_bytes(zstandard.compress(plain.read_bytes()))
    return plain.rename(archive)


def files(folder: Path) -> dict[str, Path]:
    """Each file below a folder by its path there."""
    return {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("number", "kind"), list(enumerate(KINDS)))
def test_an_archive_is_read_as_the_files_of_its_directory(number: int, kind: str, tmp_path: Path) -> None:
    logs = dataset(kind) / "logs"
    archive = pack(logs, tmp_path / f"log{SUFFIXES[number % len(SUFFIXES)]}")
    (directory,) = log_directories([str(archive)])
    unpacked, packed = files(Path(unpacked_path(directory))), files(logs)
    assert unpacked.keys() == packed.keys() != set()
    for name, path in packed.items():
        assert unpacked[name].read_bytes() == path.read_bytes()
        assert unpacked[name].stat().st_mtime == pytest.approx(path.stat().st_mtime, abs=1e-5, rel=0)


@pytest.mark.soak
@pytest.mark.parametrize(("number", "kind"), [(2, "crash"), *rows_in_soak((0, "admin"), (1, "codec-zstd"))])
def test_the_lake_of_an_archive_is_the_lake_of_its_directory(number: int, kind: str, tmp_path: Path) -> None:
    archive = pack(dataset(kind) / "logs", tmp_path / f"log{SUFFIXES[number % len(SUFFIXES)]}")
    (directory,) = log_directories([str(archive)])
    make_lake(tmp_path / "lake", directory)
    assert_same(tmp_path / "lake", recorded_lake(kind))


@pytest.mark.parametrize("command", ["overview", "status", *in_soak("state", "groups", "lag")])
def test_questions_take_an_archive(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs = dataset("dlq") / "logs"
    archive = pack(logs, tmp_path / "log.tar.gz")
    answers = []
    for place in (logs, archive):
        main([command, "--log-dir", str(place), "--output", "json"])
        answers.append(json.loads(capsys.readouterr().out))
    (inside,) = log_directories([str(archive)])
    assert answers[0]
    as_named = json.dumps(answers[1]).replace(f"--log-dir {archive}", f"--log-dir {logs}")
    assert f"--log-dir {inside}" not in as_named
    assert f"--log-dir '{inside}" not in as_named
    assert json.loads(as_named.replace(inside, str(logs))) == answers[0]


@pytest.mark.soak
def test_a_run_and_the_next_one_take_an_archive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = pack(dataset("dlq") / "logs", tmp_path / "log.tar.zst")
    for expected in (1, None):
        assert main(["run", "--log-dir", str(archive), "--lake", str(tmp_path / "lake")]) == 0
        assert json.loads(capsys.readouterr().out)["run_id"] == expected
    assert_same(tmp_path / "lake", recorded_lake("dlq"))
    assert main(["doctor", "--log-dir", str(archive), "--output", "json"]) in (0, 1)
    checks = json.loads(capsys.readouterr().out)
    assert '"log-dir"' in json.dumps(checks)
