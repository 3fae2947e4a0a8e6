"""Damaged files of a log directory, at the command line: what is lost is named, what is not lost is answered."""

import json
import shutil
from pathlib import Path

import pytest

from sharelens.cli import main
from tests.logs.state_logs import (
    ORDERS_ID,
    START_MS,
    STATE_TOPIC,
    snapshot,
    update,
    write_log_directory,
    write_state_partition,
)

STORY = [snapshot(), update(batches=[(0, 3, 0, 1)], at_ms=START_MS + 1000)]
SEGMENT = f"{STATE_TOPIC}-0/00000000000000000000.log"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return write_log_directory(tmp_path / "logs", STORY)


def evidence_line(capsys: pytest.CaptureFixture[str], logs: Path) -> str:
    assert main(["state", "--log-dir", str(logs)]) == 0
    return capsys.readouterr().out.splitlines()[-1]


def test_a_complete_last_batch_with_a_wrong_checksum_is_counted_as_quarantined(
    capsys: pytest.CaptureFixture[str], logs: Path
) -> None:
    data = bytearray((logs / SEGMENT).read_bytes())
    data[-1] ^= 1
    (logs / SEGMENT).write_bytes(data)
    line = evidence_line(capsys, logs)
    assert "gaps 1, quarantined 1, held back 0; 1 rows not complete" in line
    assert main(["state", "--log-dir", str(logs), "--require-complete"]) == 1


def test_bytes_of_an_incomplete_last_batch_are_counted_and_nothing_is_quarantined(
    capsys: pytest.CaptureFixture[str], logs: Path
) -> None:
    assert "unreadable" not in evidence_line(capsys, logs)
    data = (logs / SEGMENT).read_bytes()
    (logs / SEGMENT).write_bytes(data + data[:33])
    assert evidence_line(capsys, logs).endswith("gaps 0, quarantined 0, held back 0; 33 unreadable bytes at the end")


@pytest.mark.slow
def test_a_lake_counts_the_bytes_of_an_incomplete_last_batch_as_of_the_run_that_read_the_log(
    capsys: pytest.CaptureFixture[str], logs: Path, tmp_path: Path
) -> None:
    lake = str(tmp_path / "lake")
    data = (logs / SEGMENT).read_bytes()
    (logs / SEGMENT).write_bytes(data + data[:33])
    assert main(["run", "--lake", lake, "--log-dir", str(logs)]) == 0
    capsys.readouterr()
    assert main(["state", "--lake", lake]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.endswith("gaps 0, quarantined 0, held back 0; 33 unreadable bytes at the end")


def test_a_damaged_partition_metadata_of_a_user_topic_costs_the_name_of_that_topic_only(
    capsys: pytest.CaptureFixture[str], logs: Path
) -> None:
    (logs / "orders-0" / "partition.metadata").write_text("broken")
    assert main(["state", "--log-dir", str(logs), "--output", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["topic_id"], row["topic"], row["partition"]) == (ORDERS_ID, None, 0)
    assert main(["status", "--log-dir", str(logs), "--output", "json"]) == 0
    assert "orders-0/partition.metadata" in capsys.readouterr().out


def test_a_damaged_partition_metadata_of_the_state_topic_is_refused_in_one_line(
    capsys: pytest.CaptureFixture[str], logs: Path
) -> None:
    path = logs / f"{STATE_TOPIC}-0" / "partition.metadata"
    path.write_text("broken")
    assert main(["state", "--log-dir", str(logs)]) == 1
    assert capsys.readouterr().err.strip() == f"sharelens: {path} has no line `topic_id: …`: copy it again"


@pytest.mark.parametrize("damage", ["no Kafka file", "a folder"])
def test_an_unreadable_folder_of_the_state_log_costs_that_folder(
    damage: str, capsys: pytest.CaptureFixture[str], logs: Path
) -> None:
    folder = write_state_partition(logs, [snapshot("h")], number=1)
    metadata = folder / "partition.metadata"
    metadata.unlink()
    if damage == "a folder":
        metadata.mkdir()
    else:
        metadata.write_text("x")
    assert main(["state", "--log-dir", str(logs)]) == 0
    captured = capsys.readouterr()
    last_line = captured.out.splitlines()[-1]
    assert str(folder) in last_line
    assert "; left out: " in last_line
    assert str(folder) in captured.err
    assert main(["state", "--log-dir", str(logs), "-o", "json"]) == 0
    assert [row["group_id"] for row in json.loads(capsys.readouterr().out)] == ["g"]
    assert main(["locate", "--log-dir", str(logs), "--topic", "orders", "--key", "k"]) == 0
    assert "the folder is left out" in capsys.readouterr().err


def test_another_copy_stands_for_an_unreadable_folder(
    capsys: pytest.CaptureFixture[str], logs: Path, tmp_path: Path
) -> None:
    write_state_partition(logs, [snapshot("h")], number=1)
    copy = Path(shutil.copytree(logs, tmp_path / "copy"))
    (copy / f"{STATE_TOPIC}-1" / "partition.metadata").write_text("x")
    assert main(["state", "--log-dir", str(copy), "--log-dir", str(logs)]) == 0
    captured = capsys.readouterr()
    assert "left out" not in captured.out
    assert "the folder is left out" in captured.err
    assert len(captured.out.splitlines()) == 4
