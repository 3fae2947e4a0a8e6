"""Upkeep: the same rows in fewer files, old rows gone and nothing derived from them changed, nothing lost by a kill."""

import errno
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from jobs import retained
from jobs.errors import JobError
from jobs.publish import current_versions, published_versions
from jobs.upkeep.compaction import RUN_BYTES, order_of, rewrite
from jobs.upkeep.maintain import MaintainOptions, Upkeep, maintain
from sharelens.lake import lock, scan
from sharelens.lake.commit import create_tables
from sharelens.lake.errors import LakeError, LakeLockedError
from sharelens.lake.lake import Lake
from sharelens.lake.scan import open_lake
from sharelens.lake.tables import TABLES
from tests.depths import in_soak
from tests.lakes import BOOKS, OF_THE_AUDIT, content, differences, shared_content
from tests.logs.state_logs import START_MS, snapshot, tombstone, update, write_log_directory
from tests.once import made_once
from tests.processes.in_process import make_lake, recorded_lake
from tests.processes.kills import Point, in_turn, kill, points_of

pytestmark = pytest.mark.slow

HOUR = 3_600_000
DAY = 24 * HOUR
AGES = dict.fromkeys(retained.GROUPS, 4 * HOUR)
FULL_HOUR = (START_MS + 9 * HOUR) // HOUR * HOUR
"""Where the histories are cut, by AGES."""
KILLS = 6
"""How often one lake's upkeep is killed, each time some points further on."""
DERIVED = ("gold.share_partition_state", "gold.share_partition_history", "gold.delivery_history", "gold.lag")


def story() -> list[dict[str, Any]]:
    """Share partitions that are deleted, stand still with a snapshot, go on from an old one, and begin late."""
    records = [snapshot(group, start=0) for group in ("busy", "gone", "quiet")]
    records += [update("busy", batches=[(n, n, 2, 1)], at_ms=START_MS + n * HOUR) for n in range(1, 4)]
    records += [
        update("quiet", batches=[(0, 3, 0, 2)], at_ms=START_MS + 3 * HOUR),
        snapshot("quiet", start=0, epoch=1, batches=[(0, 3, 0, 2)], at_ms=START_MS + 4 * HOUR),
        update("quiet", epoch=1, batches=[(5, 5, 4, 3)], at_ms=START_MS + 4 * HOUR),
        tombstone("gone", at_ms=START_MS + 5 * HOUR),
        snapshot("busy", start=2, epoch=1, batches=[(2, 3, 2, 1)], at_ms=START_MS + 6 * HOUR),
    ]
    records += [update("busy", epoch=1, batches=[(n, n, 0, 1)], at_ms=START_MS + n * HOUR) for n in range(7, 10)]
    records += [
        update("busy", epoch=1, start=8, batches=[(8, 9, 2, 2)], at_ms=START_MS + 11 * HOUR),
        snapshot("late", start=0, at_ms=START_MS + 12 * HOUR),
        update("late", batches=[(0, 1, 4, 5)], at_ms=START_MS + 13 * HOUR),
    ]
    return records


ENDS = (4, 7, 10, 14, 17)


def grown(lake: Path, logs: Path, ends: tuple[int, ...] = ENDS) -> Path:
    """A lake made of one run for each of the ends of the story."""
    opened = Lake(lake)
    for end in ends:
        make_lake(opened, write_log_directory(logs / str(end), story()[:end]))
    return lake


def three_runs() -> Path:
    """A lake of the first three runs; tests copy it, and the lakes below."""
    return made_once("upkeep/three", lambda folder: grown(folder / "lake", folder / "logs", ENDS[:3])) / "lake"


def five_runs() -> Path:
    """A lake of five small runs."""
    return changed_once("five", three_runs(), lambda lake: grown(lake, lake.with_name("logs"), ENDS[3:]))


def joined() -> Path:
    """A lake of five runs after its upkeep."""
    return changed_once("joined", five_runs(), run_upkeep)


def dropped() -> Path:
    """A lake of five runs after upkeep with retention."""
    return changed_once("dropped", five_runs(), lambda lake: run_upkeep(lake, retain=AGES))


def changed_once(name: str, source: Path, change: Callable[[Path], object]) -> Path:
    def make(folder: Path) -> None:
        change(copied(source, folder))

    return made_once(f"upkeep/{name}", make) / "lake"


def copied(source: Path, folder: Path) -> Path:
    return Path(shutil.copytree(source, folder / "lake"))


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A lake of five small runs, to be kept."""
    return copied(five_runs(), tmp_path)


def run_upkeep(path: Path, *, dry_run: bool = False, **options: Any) -> Upkeep:
    return maintain(MaintainOptions(lake=Lake(path), dry_run=dry_run, **options))


def later(days: int = 30) -> int:
    return time.time_ns() // 1_000_000 + days * DAY


def live(path: Path, name: str) -> list[Path]:
    snapshot = Lake(path).snapshot(name)
    return [Path(snapshot.storage.root) / name for name in snapshot.paths]


def data_files(path: Path) -> set[Path]:
    return set(path.rglob("*.zstd.parquet"))


@pytest.mark.soak
def test_the_rows_stay_and_the_files_become_few(lake: Path) -> None:
    old = shared_content(five_runs())
    rows = {name: open_lake(lake).scan(name).num_rows for name in BOOKS - {"gold.publication"}}
    done = run_upkeep(lake)
    assert not differences(old, content(lake))
    assert {name: open_lake(lake).scan(name).num_rows for name in rows} == rows
    assert all(len(live(lake, name)) <= 1 for name in TABLES if not TABLES[name].partition_by and name in old)
    assert done.as_dict()["files_after"] < done.as_dict()["files_before"] / 2
    assert current_versions(Lake(lake)) == published_versions(Lake(lake))


def test_a_second_upkeep_finds_nothing_to_do_and_publishes_nothing(tmp_path: Path) -> None:
    lake = copied(joined(), tmp_path)
    publication = open_lake(lake).publication["run_id"]
    again = run_upkeep(lake)
    assert (again.run_id, {table.table for table in again.tables if table.rewritten_files}) == (
        None,
        {scan.PUBLICATION},
    )
    assert open_lake(lake).publication["run_id"] == publication
    assert run_upkeep(lake).as_dict()["rewritten_files"] == 0


@pytest.mark.soak
def test_a_dry_run_says_what_would_be_done_and_does_nothing(lake: Path) -> None:
    files, versions = data_files(lake), current_versions(Lake(lake))
    plan = run_upkeep(lake, dry_run=True, retain=AGES).as_dict()
    assert (data_files(lake), current_versions(Lake(lake))) == (files, versions)
    done = run_upkeep(lake, retain=AGES).as_dict()
    assert plan["dropped_rows"] == done["dropped_rows"] > 0
    assert plan["files_before"] == done["files_before"]


def test_a_dry_run_promises_the_files_that_the_upkeep_leaves(lake: Path) -> None:
    planned, done = run_upkeep(lake, dry_run=True), run_upkeep(lake)
    assert sum(table.rewritten_files for table in planned.tables) > 10
    for promise, table in zip(planned.tables, done.tables, strict=True):
        assert (promise.table, promise.files_before, promise.rewritten_files, promise.files_after) == (
            table.table,
            table.files_before,
            table.rewritten_files,
            table.files_after,
        )


@pytest.mark.soak
@pytest.mark.parametrize("run_bytes", [3000, *in_soak(1, 1 << 30)])
def test_files_are_sorted_however_little_memory_there_is(run_bytes: int, lake: Path) -> None:
    old = shared_content(five_runs())
    run_upkeep(lake, run_bytes=run_bytes)
    assert not differences(old, content(lake))
    for name in ("silver.share_record", "gold.share_partition_history", "bronze.log_record", "gold.delivery_history"):
        for path in live(lake, name):
            rows = pq.ParquetFile(path).read()
            order = [(column, "ascending") for column in order_of(TABLES[name]) if column in rows.column_names]
            assert rows.equals(rows.sort_by(order)), name
    assert not list(lake.rglob("run-*.parquet"))


def test_a_rewritten_row_group_holds_one_log_partition(tmp_path: Path) -> None:
    lake, table = Lake(copied(recorded_lake("streams"), tmp_path)), TABLES["silver.share_record"]
    done = rewrite(lake, table, lake.snapshot(table.name).paths, {}, lambda rows: rows, RUN_BYTES)
    (path,) = (lake.table_storage(table.name).path / file.path for file in done.files)
    with pq.ParquetFile(path) as file:
        assert file.metadata.num_row_groups > 1
        for number in range(file.metadata.num_row_groups):
            places = file.read_row_group(number, columns=["log_topic_id", "state_partition"])
            assert places.group_by(places.column_names).aggregate([]).num_rows == 1


@pytest.mark.soak
def test_the_next_run_gives_what_it_gives_without_upkeep(tmp_path: Path) -> None:
    expected = shared_content(five_runs())
    lake = copied(three_runs(), tmp_path)
    run_upkeep(lake)
    grown(lake, tmp_path / "more", ENDS[4:])
    assert not differences(expected, content(lake))
    run_upkeep(lake)
    make_lake(lake, rebuild="decode")
    assert not differences(expected, content(lake))


def test_compaction_says_that_no_row_changed_and_keeps_the_log_in_order() -> None:
    root = Lake(joined()).table_storage("silver.share_record").path
    newest = max(root.glob("_delta_log/*.json"))
    text = newest.read_text(encoding="utf-8")
    assert text.count('"dataChange":false') > 1
    assert '"dataChange":true' not in text


def only(tables: dict[str, pa.Table], names: tuple[str, ...]) -> dict[str, pa.Table]:
    return {name: tables[name] for name in names}


def test_old_rows_go_and_what_is_true_now_stays(lake: Path) -> None:
    old = shared_content(five_runs())
    done = run_upkeep(lake, retain=AGES)
    new = content(lake)
    cut = START_MS + 9 * HOUR
    assert done.cuts == dict.fromkeys(retained.GROUPS, cut) | {retained.HISTORY: FULL_HOUR}
    assert not differences(only(old, ("gold.share_partition_state", "gold.lag")), only(new, DERIVED))
    records = new["silver.share_record"]
    offsets = records.column("log_offset").to_pylist()
    # the tombstone of `gone`, the last snapshots of `quiet` and `busy` with what follows them, and what is young enough
    assert offsets == [7, 8, 9, 10, 11, 12, 13, 14, 15, 16]
    ended = new["gold.delivery_history"].filter(pc.field("valid_to_ms") < FULL_HOUR)
    # of what ended before, that of offsets which a later record may still change: `busy` had passed 0 and 1
    names = ("group_id", "first_offset", "last_offset")
    assert set(zip(*(ended.column(name).to_pylist() for name in names), strict=True)) >= {("busy", 1, 3)}
    assert pc.min(ended.column("last_offset")).as_py() >= 2
    assert (
        new["gold.delivery_history"]
        .filter(pc.field("is_open"))
        .equals(old["gold.delivery_history"].filter(pc.field("is_open")))
    )


@pytest.mark.soak
@pytest.mark.parametrize("case", ["decode", *in_soak("replay")])
def test_a_rebuild_after_retention_gives_the_same_state_and_the_same_history(case: str, tmp_path: Path) -> None:
    lake = copied(dropped(), tmp_path)
    names = (*DERIVED, "silver.share_record", "silver.topic_start", "silver.name")
    before = content(lake, names)
    make_lake(lake, rebuild=case)
    assert not differences(before, content(lake, names))


def test_retention_goes_on_from_its_own_cut(tmp_path: Path) -> None:
    once = content(dropped(), DERIVED)
    for end in ENDS[::2]:
        grown(tmp_path / "often", tmp_path / f"logs{end}", (end,))
        run_upkeep(tmp_path / "often", retain=AGES)
    assert not differences(once, content(tmp_path / "often", DERIVED))
    make_lake(tmp_path / "often", rebuild="replay")
    assert not differences(once, content(tmp_path / "often", DERIVED))


@pytest.mark.soak
def test_what_was_dropped_is_neither_read_again_nor_a_gap(tmp_path: Path) -> None:
    lake = copied(dropped(), tmp_path)
    rows = open_lake(lake).scan("bronze.log_record").num_rows
    before = content(lake, DERIVED)
    make_lake(lake, write_log_directory(tmp_path / "copy", story()))
    assert not differences(before, content(lake, DERIVED))
    opened = open_lake(lake)
    assert opened.scan("bronze.log_record").num_rows == rows
    assert all(not gaps for gaps in opened.scan("bronze.ingest_extent").column("gaps").to_pylist())
    (evidence,) = opened.publication["evidence"]  # type: ignore[attr-defined]
    assert evidence["first_log_time_ms"] == FULL_HOUR


def cut_at(path: Path, versions: dict[str, int]) -> scan.Cut:
    return scan.Cut(lake=Lake(path), versions=versions, publication={})


@pytest.mark.soak
def test_vacuum_leaves_every_cut_inside_the_window_readable(lake: Path) -> None:
    cuts = Lake(lake).snapshot(scan.PUBLICATION).dataset().to_table()
    versions = {(entry["table"], entry["version"]) for row in cuts.to_pylist() for entry in row["tables"]}
    rows_by_version = {(name, version): cut_at(lake, {name: version}).scan(name) for name, version in versions}
    assert len(rows_by_version) > len(TABLES)
    run_upkeep(lake, retain=AGES, now_ms=later(days=1))
    run_upkeep(lake, retain=AGES, now_ms=later(days=2))
    assert all(
        cut_at(lake, {name: version}).scan(name).equals(rows) for (name, version), rows in rows_by_version.items()
    )


@pytest.mark.soak
def test_the_newest_cut_of_the_time_when_the_window_began_stays_readable(lake: Path, tmp_path: Path) -> None:
    versions = open_lake(lake).versions
    rows = {name: cut_at(lake, versions).scan(name) for name in DERIVED}
    longer_logs = write_log_directory(
        tmp_path / "more", [*story(), update("late", start=2, at_ms=START_MS + 20 * HOUR)]
    )
    make_lake(lake, longer_logs, stages=("ingest", "decode", "replay", "measure"))
    time.sleep(0.01)
    begin_ms = time.time_ns() // 1_000_000
    make_lake(lake, longer_logs)  # publishes what was committed before the window
    run_upkeep(lake, now_ms=later(days=1), window_ms=later(days=1) - begin_ms)
    assert {name: cut_at(lake, versions).scan(name) for name in DERIVED} == rows


@pytest.mark.soak
def test_vacuum_removes_what_is_older_than_the_window_and_what_killed_runs_left(lake: Path) -> None:
    old = shared_content(five_runs())
    orphan = Lake(lake).table_storage("gold.stall").path / "is_final=true" / "part-0.zstd.parquet"
    orphan.parent.mkdir(parents=True, exist_ok=True)
    orphan.write_bytes(b"cut off")
    run_upkeep(lake)
    assert orphan.exists()  # a task may still be writing it
    done = run_upkeep(lake, now_ms=later()).as_dict()
    assert not orphan.exists()
    assert done["vacuumed_files"] > 30
    assert done["log_files"] > 30
    names = [*old, *BOOKS, *OF_THE_AUDIT]
    unlisted = data_files(lake / "gold" / "publication")  # was joined just now; what it replaced stays for a while
    assert data_files(lake) - unlisted == {path for name in names for path in live(lake, name)} - unlisted
    assert not differences(old, content(lake))
    for name in names:
        table = DeltaTable(Lake(lake).table_storage(name).path)
        assert table.protocol().min_reader_version == 1
        assert table.metadata().configuration["sharelens.schemaVersion"]


@pytest.mark.soak
def test_runs_go_on_after_the_log_was_cut(lake: Path, tmp_path: Path) -> None:
    run_upkeep(lake, now_ms=later())
    run_upkeep(lake, now_ms=later())
    longer_story = [*story(), update("late", start=2, at_ms=START_MS + 20 * HOUR)]
    make_lake(lake, write_log_directory(tmp_path / "more", longer_story))
    make_lake(tmp_path / "plain", write_log_directory(tmp_path / "all", longer_story))
    names = (*DERIVED, "silver.share_record")
    assert not differences(content(lake, names), content(tmp_path / "plain", names))


def test_what_is_not_published_is_not_touched(lake: Path, tmp_path: Path) -> None:
    longer_story = [*story(), update("late", start=2, at_ms=START_MS + 20 * HOUR)]
    make_lake(lake, write_log_directory(tmp_path / "more", longer_story), stages=("ingest",))
    versions = current_versions(Lake(lake))
    with pytest.raises(JobError, match="has unpublished versions; finish with `sharelens run"):
        run_upkeep(lake)
    assert current_versions(Lake(lake)) == versions


def test_a_folder_without_a_lake_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="holds no lake"):
        run_upkeep(tmp_path)
    with pytest.raises(LakeError, match="not a directory"):
        run_upkeep(tmp_path / "nothing")


def test_upkeep_beside_a_first_run_says_who_holds_the_lake(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    create_tables(Lake(tmp_path / "lake"))
    with lock.hold(Lake(tmp_path / "lake"), 0), pytest.raises(LakeLockedError, match=f"held by process {os.getpid()}"):
        run_upkeep(tmp_path / "lake", lock_timeout_s=0.0)
    with pytest.raises(LakeError, match="nothing was published yet"):
        run_upkeep(tmp_path / "lake")


def test_a_second_scheduler_waits_and_then_says_who_holds_the_lake(lake: Path) -> None:
    hold = (
        "import sys, time; from sharelens.lake import lock; from sharelens.lake.lake import Lake\n"
        "with lock.hold(Lake(sys.argv[1]), 5): print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", hold, str(lake)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(LakeLockedError, match=f"held by process {other.pid}"):
            run_upkeep(lake, lock_timeout_s=0.0)
        other.communicate("")
    assert run_upkeep(lake).run_id is not None


@pytest.mark.soak
def test_a_full_disk_breaks_nothing(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, versions = shared_content(five_runs()), published_versions(Lake(lake))
    written = 0

    def full(self: pq.ParquetWriter, *args: Any, **options: Any) -> None:
        nonlocal written
        written += 1
        if written > 5:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(self, *args, **options)

    real = pq.ParquetWriter.write_table
    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(LakeError, match="no space left on the disk at /"):
        run_upkeep(lake, retain=AGES)
    assert published_versions(Lake(lake)) == versions
    assert not differences(old, content(lake))
    monkeypatch.undo()
    run_upkeep(lake, retain=AGES)
    assert current_versions(Lake(lake)) == published_versions(Lake(lake))


class UpkeepCase:
    """An upkeep with retention to be killed: lakes to kill it in, and what has to come out."""

    def __init__(self, folder: Path) -> None:
        self.lake, self.victim = joined(), folder / "victim"
        self.old = shared_content(self.lake)
        undisturbed_lake = copied(self.lake, folder)
        self.points = points_of(lambda: self.work(undisturbed_lake))
        self.new = content(undisturbed_lake)

    def work(self, path: Path) -> Upkeep:
        return run_upkeep(path, retain=AGES, now_ms=later())

    def kill_and_finish(self, points: list[Point]) -> None:
        """Kills an upkeep and those that go on with it, each at its point; the last goes on to the end."""
        victim = Path(shutil.copytree(self.lake, self.victim))
        for point in points:
            kill(point, lambda: self.work(victim))
            victim_content = content(victim)
            assert not (differences(self.old, victim_content) and differences(self.new, victim_content))
        run_upkeep(victim, retain={group: age + HOUR for group, age in AGES.items()}, now_ms=later())
        self.work(victim)
        assert not differences(only(self.new, DERIVED), content(victim, DERIVED))
        make_lake(victim, rebuild="replay")
        assert not differences(only(self.new, DERIVED), content(victim, DERIVED))
        shutil.rmtree(self.victim)


@pytest.mark.soak
def test_an_upkeep_killed_again_and_again_is_finished_by_the_next_ones(tmp_path: Path) -> None:
    case = UpkeepCase(tmp_path)
    assert {name.split(":")[0] for name, _ in case.points} == {"vacuum", "log", "checkpoint", "file", "commit"}
    case.kill_and_finish(
        random.Random(6).choice([kill_points for kill_points in in_turn(case.points, KILLS) if len(kill_points) > 1])
    )


@pytest.mark.soak
def test_an_upkeep_killed_at_any_point_is_finished_by_the_next_one(tmp_path: Path) -> None:
    case = UpkeepCase(tmp_path)
    for point in case.points:
        if point[0].split(":")[0] not in ("vacuum", "log") or point[1] == 1:
            case.kill_and_finish([point])


def runs_finish_killed_upkeep(lake: Path, folder: Path, kills: int | None) -> None:
    """Runs in lakes whose upkeep was killed around so many of its commits (None: all) make what a run alone makes."""
    undisturbed_lake = Path(shutil.copytree(lake, folder / "whole"))
    points = [
        point for point in points_of(lambda: run_upkeep(undisturbed_lake, retain=AGES)) if point[0].startswith("commit")
    ]
    logs = write_log_directory(folder / "more", [*story(), update("late", start=2, at_ms=START_MS + 14 * HOUR)])
    make_lake(folder / "plain", logs)
    expected = content(folder / "plain", ("gold.share_partition_state", "gold.lag"))
    for point in points if kills is None else random.Random(7).sample(points, kills):
        victim = Path(shutil.copytree(lake, folder / "victim"))
        kill(point, lambda lake=victim: run_upkeep(lake, retain=AGES))
        make_lake(victim, logs)
        assert current_versions(Lake(victim)) == published_versions(Lake(victim))
        assert not differences(expected, content(victim, expected))
        make_lake(victim, rebuild="replay")
        assert not differences(expected, content(victim, expected))
        shutil.rmtree(folder / "victim")


@pytest.mark.soak
def test_a_run_finishes_what_a_killed_upkeep_left(lake: Path, tmp_path: Path) -> None:
    runs_finish_killed_upkeep(lake, tmp_path, 1)


@pytest.mark.soak
def test_a_run_finishes_what_an_upkeep_killed_at_any_commit_left(lake: Path, tmp_path: Path) -> None:
    runs_finish_killed_upkeep(lake, tmp_path, None)
