"""State topics of two ids: of two clusters where their times overlap, else one of them is older and named."""

from pathlib import Path

import pytest

from jobs.options import RunOptions
from jobs.refusals import check_sources
from sharelens.evidence.state_topics import StateTopicLog, check_one_cluster
from sharelens.kafka_log.errors import MixedClustersError
from sharelens.lake.lake import Lake
from sharelens.lake.scan import open_lake
from sharelens.questions.answers.completeness import closing_line
from sharelens.source.request import Source
from sharelens.tables.logs.tables import LogTables, open_log_tables
from sharelens.tables.missing import LeftOut
from sharelens.tables.opening import open_cut
from sharelens.tables.reading import read_share_partitions
from tests.logs.metadata_logs import topic, write_metadata
from tests.logs.state_logs import START_MS, STATE_TOPIC, snapshot, write_log_directory
from tests.processes.in_process import TO_STATE, make_lake

OLD_ID, NEW_ID = "AAAAAAAAAAAAAAAAAAAAAg", "AAAAAAAAAAAAAAAAAAAAAw"
LATER_MS = START_MS + 3_600_000


def directories(folder: Path, starts_ms: tuple[int, int], cluster_id: str | None = None) -> list[Path]:
    """Two log directories, each with a state topic of its own, two records a minute apart."""
    return [
        write_log_directory(
            folder / name,
            [snapshot(name, at_ms=start_ms), snapshot(name, epoch=1, at_ms=start_ms + 60_000)],
            state_topic_id=topic_id,
            cluster_id=cluster_id,
        )
        for name, topic_id, start_ms in zip(("old", "new"), (OLD_ID, NEW_ID), starts_ms, strict=True)
    ]


def opened(folders: list[Path]) -> LogTables:
    return open_log_tables(Source(log_dirs=tuple(map(str, folders))))


def groups(tables: LogTables) -> list[str]:
    return list(read_share_partitions(tables).column("group_id").to_pylist())


@pytest.mark.parametrize("starts_ms", [(START_MS, START_MS), (START_MS, START_MS + 60_000), (START_MS + 1, START_MS)])
def test_overlapping_logs_of_two_ids_are_refused_and_both_named(starts_ms: tuple[int, int], tmp_path: Path) -> None:
    folders = directories(tmp_path, starts_ms)
    options = RunOptions(lake=Lake(tmp_path / "lake"), log_dirs=tuple(map(str, folders)))
    for ask in (lambda: opened(folders), lambda: check_sources(options)):
        with pytest.raises(MixedClustersError) as refused:
            ask()
        for folder, topic_id in zip(folders, (OLD_ID, NEW_ID), strict=True):
            assert f"{folder} ({topic_id})" in str(refused.value)


def test_an_older_log_of_another_id_is_left_out_and_named(tmp_path: Path) -> None:
    folders = directories(tmp_path, (START_MS, LATER_MS))
    tables = opened(folders)
    assert groups(tables) == ["new"]
    assert tables.missing.left_out == (LeftOut(OLD_ID, START_MS + 60_000, (str(folders[0]),)),)
    assert f"; left out: state topic {OLD_ID} of {folders[0]}, which ends at 2026-" in closing_line(tables)


@pytest.mark.slow
def test_a_lake_names_what_it_leaves_out(tmp_path: Path) -> None:
    folders = directories(tmp_path, (START_MS, LATER_MS))
    make_lake(tmp_path / "lake", *folders, stages=TO_STATE)
    missing = open_cut(open_lake(tmp_path / "lake"), None).missing
    assert missing.left_out == opened(folders).missing.left_out


def test_directories_that_name_one_cluster_are_of_one(tmp_path: Path) -> None:
    tables = opened(directories(tmp_path, (START_MS, START_MS + 1), cluster_id="a-cluster"))
    assert groups(tables) == ["new"]
    assert [left_out.topic_id for left_out in tables.missing.left_out] == [OLD_ID]


@pytest.mark.parametrize("current_id", [OLD_ID, NEW_ID])
@pytest.mark.parametrize("second_ms", [START_MS, LATER_MS])
def test_the_metadata_log_decides(current_id: str, second_ms: int, tmp_path: Path) -> None:
    folders = directories(tmp_path, (START_MS, second_ms))
    write_metadata(folders[0], [(START_MS, topic(STATE_TOPIC, current_id))])
    tables = opened(folders)
    assert groups(tables) == ["old" if current_id == OLD_ID else "new"]
    assert [left_out.topic_id for left_out in tables.missing.left_out] == [{OLD_ID: NEW_ID, NEW_ID: OLD_ID}[current_id]]


def test_topics_in_one_directory_are_of_one_cluster() -> None:
    logs = [StateTopicLog(name, 1, 9, frozenset({"/disk"}), frozenset({None})) for name in (OLD_ID, NEW_ID)]
    check_one_cluster(logs, None)
    with pytest.raises(MixedClustersError):
        check_one_cluster([logs[0], logs[1]._replace(directories=frozenset({"/other"}))], None)
