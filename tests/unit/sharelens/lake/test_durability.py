"""A power cut: what is on the disk before what, and what is made of a log that it tore."""

import os
import shutil
from pathlib import Path

import pytest

from jobs.options import RunOptions
from jobs.run import run
from sharelens.lake import crash_points, durability, local_storage
from sharelens.lake.durability import set_aside_torn
from sharelens.lake.errors import LakeError
from sharelens.lake.lake import Lake
from sharelens.lake.scan import open_lake
from tests.depths import rows_in_soak
from tests.lakes import assert_same, content, differences
from tests.logs.state_logs import START_MS, snapshot, update, write_log_directory
from tests.once import made_once
from tests.processes.in_process import make_lake, no_session, run_here, story_lake

pytestmark = pytest.mark.slow

STORY = [snapshot(), *(update(batches=[(n, n, 2, 1)], at_ms=START_MS + n) for n in range(5))]
LATER_RECORDS = [*STORY, update(batches=[(7, 9, 4, 1)], at_ms=START_MS + 9)]
PUBLICATION = "gold.publication"
CUT_EVERY = 14
"""Points of commits from one power cut to the next."""


class Disk:
    """What is on the disk: files and entries of folders that were synced, as they were then."""

    def __init__(self, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lake = lake
        self.disk_folder = lake.with_name("disk")
        self.files: dict[Path, bytes] = {}
        self.folders: dict[Path, set[str]] = {}
        real = local_storage._fsync

        def noted(name: str) -> None:
            real(name)
            path = Path(os.path.realpath(name))
            if path.is_dir():
                self.folders[path] = set(os.listdir(path))
            else:
                self.files[path] = path.read_bytes()

        monkeypatch.setattr(local_storage, "_fsync", noted)

    def cut_power(self) -> Path:
        """The lake after a power cut: only what was synced, in folders whose entries were."""
        shutil.rmtree(self.disk_folder, ignore_errors=True)
        self.disk_folder.mkdir()
        for path, text in self.files.items():
            steps = [path, *path.parents]
            steps = steps[: steps.index(self.lake)]
            if all(step.name in self.folders.get(step.parent, set()) for step in steps):
                target = self.disk_folder / path.relative_to(self.lake)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(text)
        return self.disk_folder


def torn(lake: Path, table: str, text: str = "") -> tuple[Path, int]:
    """Tears the newest commit of a table; its file and version."""
    newest = max((Lake(lake).table_storage(table).path / "_delta_log").glob("*.json"))
    newest.write_text(text, encoding="utf-8")
    return newest, int(newest.stem)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return write_log_directory(tmp_path / "logs", STORY)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return Path(shutil.copytree(story_lake("power cut", STORY), tmp_path / "lake"))


@pytest.mark.soak
def test_a_power_cut_after_a_run_leaves_what_it_published(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(tmp_path / "lake", monkeypatch)
    run_here(tmp_path / "lake", logs)
    assert not differences(content(disk.cut_power()), content(tmp_path / "lake"))
    make_lake(tmp_path / "lake", write_log_directory(tmp_path / "more", LATER_RECORDS))
    assert not differences(content(disk.cut_power()), content(tmp_path / "lake"))


@pytest.mark.soak
def test_a_power_cut_at_any_commit_is_made_good_by_the_next_run(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each commit the disk holds a lake that the next run makes whole; a publication that it shows is whole."""
    disk = Disk(tmp_path / "lake", monkeypatch)
    commits: list[str] = []
    lakes: dict[frozenset[tuple[Path, bytes]], Path] = {}

    def passing(point: str) -> None:
        if point.startswith("commit:"):
            if len(commits) % CUT_EVERY == 0:
                cut_lake = disk.cut_power()
                files = frozenset(
                    (path.relative_to(cut_lake), path.read_bytes()) for path in cut_lake.rglob("*.*") if path.is_file()
                )
                if files not in lakes:
                    lakes[files] = Path(shutil.copytree(cut_lake, tmp_path / f"cut-{len(lakes)}"))
            commits.append(point)

    with monkeypatch.context() as patch:
        patch.setattr(crash_points, "passing", passing)
        run_here(tmp_path / "lake", logs)
    assert len(commits) > 50
    assert len(lakes) > 3
    for cut in lakes.values():
        make_lake(cut, logs)
        assert_same(cut, story_lake("power cut", STORY))


def unpublished_lake() -> Path:
    """A lake that two stages took beyond its publication, made once a test run: copy it."""

    def make(folder: Path) -> None:
        lake = shutil.copytree(story_lake("power cut", STORY), folder / "lake")
        make_lake(lake, write_log_directory(folder / "more", LATER_RECORDS), stages=("ingest", "decode"))

    return made_once("unpublished", make) / "lake"


TORN = '{"commitInfo":{"times'


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("table", "text"),
    [
        ("bronze.ingest_extent", ""),
        ("bronze.log_record", TORN),
        *rows_in_soak(
            ("bronze.ingest_extent", TORN),
            ("bronze.log_record", ""),
            ("silver.share_record", ""),
            ("silver.share_record", TORN),
        ),
    ],
)
def test_a_torn_commit_above_the_publication_is_set_aside_and_made_again(table: str, text: str, tmp_path: Path) -> None:
    lake = Path(shutil.copytree(unpublished_lake(), tmp_path / "lake"))
    path, version = torn(lake, table, text)
    summary = make_lake(lake, write_log_directory(tmp_path / "again", LATER_RECORDS))
    first, *further_lines = summary.as_dict()["set_aside"]
    assert first == f"{table}: {path.name} was torn by a power cut: set aside"
    # A power cut leaves no mark without what it stands for; other damage does, and then all that rests on it goes too.
    assert bool(further_lines) == (table == "bronze.log_record")
    aside = set(lake.rglob("*.torn")) - {path.with_name(path.name + ".torn")}
    assert {line.partition(":")[0] for line in further_lines} == {
        ".".join(file.relative_to(lake).parts[:2]) for file in aside
    }
    assert path.with_name(path.name + ".torn").read_text(encoding="utf-8") == text
    assert Lake(lake).version(table) >= version - 1
    assert_same(lake, story_lake("power cut and more", LATER_RECORDS))


@pytest.mark.parametrize("text", ["", '{"commitInfo":{"times'], ids=["empty", "torn"])
def test_a_torn_publication_is_set_aside_and_made_again(text: str, lake: Path, tmp_path: Path) -> None:
    before = content(lake)
    torn(lake, PUBLICATION, text)
    summary = make_lake(lake)
    assert len(summary.set_aside) == 1
    assert not differences(content(lake), before)


@pytest.mark.parametrize("text", ["", "{"], ids=["empty", "torn"])
def test_a_torn_commit_that_is_published_stops_the_run_in_one_line(text: str, lake: Path, logs: Path) -> None:
    path, version = torn(lake, "silver.share_record", text)
    before = sorted(lake.rglob("*"))
    with pytest.raises(LakeError, match=f"commit of its published version {version} is damaged") as caught:
        run(RunOptions(lake=Lake(lake), log_dirs=(str(logs),)), no_session)
    assert "\n" not in str(caught.value)
    assert path.read_text(encoding="utf-8") == text
    assert sorted(lake.rglob("*")) == before


def test_a_torn_checkpoint_is_set_aside_and_the_commits_are_read(lake: Path) -> None:
    opened = Lake(lake)
    folder = opened.table_storage("silver.name").path / "_delta_log"
    checkpoint = folder / f"{opened.version('silver.name'):020d}.checkpoint.parquet"
    opened.write_checkpoint("silver.name", opened.version("silver.name"))
    checkpoint.write_bytes(b"")
    assert len(set_aside_torn(Lake(lake), "silver.name", -1)) == 2
    assert sorted(path.suffix for path in folder.iterdir() if path.suffix != ".json") == [".torn", ".torn"]
    assert Lake(lake).snapshot("silver.name").version == opened.version("silver.name")


def test_a_whole_log_stays_as_it_is(lake: Path) -> None:
    before = sorted(lake.rglob("*"))
    assert not [line for table in ("silver.name", PUBLICATION) for line in set_aside_torn(Lake(lake), table, -1)]
    assert set_aside_torn(Lake(lake), "silver.nothing", -1) == []
    assert sorted(lake.rglob("*")) == before


def test_marks_and_publications_come_after_what_they_stand_for(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing waits to be synced when a mark is committed, and nothing at all after a run."""
    waiting: dict[str, set[str]] = {}
    lake = Lake(tmp_path / "lake")
    real = durability.sync

    def noted(of: Lake) -> None:
        real(of)
        waiting[str(len(waiting))] = set(of.unsynced)

    monkeypatch.setattr(durability, "sync", noted)
    run(RunOptions(lake=lake, log_dirs=(str(logs),), in_process_bytes=1 << 60), no_session)
    assert len(waiting) >= 6
    assert not lake.unsynced
    assert open_lake(lake).scan("silver.share_record").num_rows == len(STORY)
