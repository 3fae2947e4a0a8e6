"""Until when log directories were read, by the times of their files."""

import os
from pathlib import Path

import pytest

from sharelens.evidence.read_until import IN_USE_MS, LOST_TIME_MS, METADATA_DELAY_MS, read_until
from sharelens.kafka_log import reader
from sharelens.kafka_log.layout import scan_log_directory
from sharelens.kafka_log.union import unite
from state_model.topics import STATE_TOPIC
from tests.logs.file_times import set_times
from tests.logs.group_files import GroupEntry, epoch, write_group_partition
from tests.logs.metadata_logs import NO_OP, write_metadata
from tests.logs.state_logs import START_MS, snapshot, write_log_directory

HOUR_MS = 3_600_000
LATER_MS = START_MS + 1000 * HOUR_MS


def directory(folder: Path, *, appended_ms: int = START_MS, checkpoint_ms: int, created_ms: int = 0) -> Path:
    """A copy of a log directory whose only record was appended at START_MS."""
    logs = write_log_directory(folder, [snapshot() | {"timestamp_ms": START_MS}], committed=1)
    return set_times(logs, appended_ms=appended_ms, checkpoint_ms=checkpoint_ms, created_ms=created_ms)


def answer(*directories: Path, clock_ms: int = LATER_MS) -> int | None:
    scanned = [scan_log_directory(str(logs)) for logs in directories]
    return read_until(scanned, unite(scanned), reader.log_end, clock_ms)


def test_a_copy_was_read_until_its_newest_checkpoint(tmp_path: Path) -> None:
    assert answer(directory(tmp_path, checkpoint_ms=START_MS + 84_000)) == START_MS + 84_000


def test_of_several_copies_the_newest_counts(tmp_path: Path) -> None:
    copies = [directory(tmp_path / str(hour), checkpoint_ms=START_MS + hour * HOUR_MS) for hour in (2, 3, 1)]
    assert answer(*copies) == START_MS + 3 * HOUR_MS


@pytest.mark.parametrize(("age_ms", "is_present"), [(0, True), (IN_USE_MS, True), (IN_USE_MS + 1, False)])
def test_a_directory_in_use_is_read_until_the_present(tmp_path: Path, age_ms: int, is_present: bool) -> None:
    logs = directory(tmp_path, checkpoint_ms=LATER_MS - age_ms)
    assert answer(logs) == (LATER_MS if is_present else LATER_MS - age_ms)


@pytest.mark.parametrize(("delay_ms", "is_known"), [(LOST_TIME_MS, True), (LOST_TIME_MS + 1, False)])
def test_a_copy_that_lost_its_times_says_nothing(tmp_path: Path, delay_ms: int, is_known: bool) -> None:
    logs = directory(tmp_path, appended_ms=START_MS + delay_ms, checkpoint_ms=START_MS + HOUR_MS)
    assert answer(logs) == (START_MS + HOUR_MS if is_known else None)


@pytest.mark.parametrize(("created_ms", "is_known"), [(START_MS, True), (START_MS + 1, False)])
def test_a_copy_whose_folders_are_younger_than_their_records_says_nothing(
    tmp_path: Path, created_ms: int, is_known: bool
) -> None:
    logs = directory(tmp_path, checkpoint_ms=START_MS + 20_000, created_ms=created_ms)
    assert answer(logs) == (START_MS + 20_000 if is_known else None)


def test_one_folder_older_than_the_records_shows_that_times_were_kept(tmp_path: Path) -> None:
    logs = directory(tmp_path, checkpoint_ms=START_MS + 20_000, created_ms=START_MS + 1)
    old = write_metadata(tmp_path / "old", [(1, NO_OP)])
    for path in old.glob("*/partition.metadata"):
        os.utime(path, (1, 1))
    assert answer(logs, old) == START_MS + 20_000


@pytest.mark.parametrize(
    ("metadata_ms", "until_ms"),
    [
        (START_MS + HOUR_MS, START_MS + HOUR_MS),
        (START_MS - METADATA_DELAY_MS, START_MS - METADATA_DELAY_MS),
        (START_MS - METADATA_DELAY_MS - 1, None),
    ],
)
def test_without_times_the_metadata_log_is_the_clock(tmp_path: Path, metadata_ms: int, until_ms: int | None) -> None:
    logs = directory(tmp_path, checkpoint_ms=LATER_MS, created_ms=LATER_MS)
    write_metadata(logs, [(metadata_ms - 500, NO_OP), (metadata_ms, NO_OP)])
    set_times(logs, appended_ms=LATER_MS, checkpoint_ms=LATER_MS, created_ms=LATER_MS)
    assert answer(logs) == until_ms


def test_without_checkpoints_the_metadata_log_is_the_clock(tmp_path: Path) -> None:
    logs = write_metadata(directory(tmp_path, checkpoint_ms=START_MS), [(START_MS + HOUR_MS, NO_OP)])
    for path in logs.glob("*-offset-checkpoint"):
        path.unlink()
    assert answer(logs) == START_MS + HOUR_MS


def test_times_that_were_kept_come_before_the_metadata_log(tmp_path: Path) -> None:
    logs = write_metadata(directory(tmp_path, checkpoint_ms=START_MS), [(START_MS + HOUR_MS, NO_OP)])
    set_times(logs, appended_ms=START_MS, checkpoint_ms=START_MS + 20_000)
    assert answer(logs) == START_MS + 20_000


def test_without_checkpoints_nothing_is_known(tmp_path: Path) -> None:
    logs = directory(tmp_path, checkpoint_ms=START_MS)
    for path in logs.glob("*-offset-checkpoint"):
        path.unlink()
    assert answer(logs) is None


def test_a_directory_without_records_has_no_times_to_lose(tmp_path: Path) -> None:
    logs = directory(tmp_path, appended_ms=LATER_MS, checkpoint_ms=START_MS + HOUR_MS)
    for path in logs.glob(f"{STATE_TOPIC}-*/*.log"):
        path.write_bytes(b"")
    assert answer(logs) == START_MS + HOUR_MS


@pytest.mark.parametrize(("delay_ms", "is_known"), [(LOST_TIME_MS, True), (LOST_TIME_MS + 1, False)])
def test_without_state_the_log_of_the_group_coordinator_has_the_times(
    tmp_path: Path, delay_ms: int, is_known: bool
) -> None:
    logs = write_log_directory(tmp_path, [snapshot()], committed=0)
    (logs / f"{STATE_TOPIC}-0" / "00000000000000000000.log").write_bytes(b"")
    write_group_partition(logs, [GroupEntry(START_MS, 11, epoch(1), "g")])
    set_times(logs, appended_ms=START_MS + delay_ms, checkpoint_ms=START_MS + HOUR_MS)
    assert answer(logs) == (START_MS + HOUR_MS if is_known else None)
