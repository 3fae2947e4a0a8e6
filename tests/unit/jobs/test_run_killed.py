"""A run that stops at any named point and is run again leaves the lake of an undisturbed run, and readers see a cut.

One lake is killed at a third of the points around files and commits that follow a write, in one run after another: a
first run, and one that goes on, both between the commits of nearly every stage. The soak takes all of the points, and a
lake of its own for each point in every situation; tests/spark/test_kill.py lets tasks fail on Spark and kills
processes.
"""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from jobs.books import MARKER
from jobs.measure import steps as measure_steps
from jobs.publish import current_versions, published_versions
from sharelens.lake import crash_points
from sharelens.lake.errors import LakeError
from sharelens.lake.lake import Lake
from sharelens.lake.scan import open_lake
from sharelens.measures.settings.over_time import DELIVERY_COUNT_LIMIT
from state_model.uuids import uuid_text
from tests.datasets import dataset
from tests.depths import in_soak
from tests.lakes import BOOKS, content, differences
from tests.logs.batch_files import broken, copy_changed, state_batches, state_directory
from tests.logs.dead_letter_logs import letter_headers, write_letters
from tests.logs.metadata_logs import group_setting, topic, write_metadata
from tests.logs.state_logs import (
    ORDERS_ID,
    START_MS,
    STATE_TOPIC,
    snapshot,
    tombstone,
    update,
    write_log_directory,
)
from tests.processes import interrupted_run
from tests.processes.in_process import make_lake, recorded_lake
from tests.processes.kills import Point, in_turn_by_write, kill, points_and_writes
from tests.settings_in_files import end_offsets, group_configs

pytestmark = pytest.mark.slow

STORY = [
    snapshot("g", start=0),
    snapshot("h", start=0),
    *(update("g", batches=[(n, n, 2, 1)], at_ms=START_MS + n) for n in range(4)),
    tombstone("h", at_ms=START_MS + 8),
    update("g", start=2, at_ms=START_MS + 9),
]
OTHER_END = [update("g", batches=[(n, n, 4, 3)], at_ms=START_MS + 50 + n) for n in range(3)]
Run = Callable[[Path], object]
PUBLISHED = "commit:gold.publication:publish:after"
MARKS = {f"commit:{table}:{stage}:after" for stage, table in MARKER.items()}
STAGES_KILLED = {"ingest", "decode", "replay", "measure", "audit"}
KILLS = 22
"""How often one lake is killed, each time some five points further on."""


def fresh_run(tmp_path: Path) -> tuple[Path | None, Run]:
    """The first run of a lake, over a broker's log (group records and user topics included) with a broken batch."""

    def damaged(folder: str, batches: list[bytes]) -> list[bytes]:
        return [broken(batches[0]), *batches[1:]] if folder.startswith(STATE_TOPIC) else batches

    logs = copy_changed(dataset("streams") / "logs", tmp_path / "logs", damaged)
    return None, lambda lake: make_lake(lake, logs)


def next_run(tmp_path: Path) -> tuple[Path | None, Run]:
    """A run that goes on from the one before, with a broken batch and a user topic."""
    before, logs = interrupted_run.lake_and_logs(tmp_path)
    return before, lambda lake: make_lake(lake, logs)


def late_evidence(tmp_path: Path) -> tuple[Path | None, Run]:
    """A run that fills in a first segment and sets aside the end of what was there."""
    batches = [*state_batches(STORY), *state_batches(OTHER_END[:2], len(STORY))]
    make_lake(tmp_path / "before", state_directory(tmp_path / "late", batches[3:]))
    winner = [*state_batches(STORY), *state_batches(OTHER_END[1:], len(STORY), leader_epoch=1)]
    logs = state_directory(tmp_path / "logs", winner)
    return tmp_path / "before", lambda lake: make_lake(lake, logs)


def start_over(tmp_path: Path) -> tuple[Path | None, Run]:
    """A rebuild from bronze."""
    make_lake(tmp_path / "before", write_log_directory(tmp_path / "logs", STORY))
    return tmp_path / "before", lambda lake: make_lake(lake, rebuild="decode")


def more_dead_letters(tmp_path: Path) -> tuple[Path | None, Run]:
    """A run that finds new dead letters, and nothing new in the state log."""
    records = [snapshot(), *(update(start=0, batches=[(3, 5, state, 1)], at_ms=START_MS + state) for state in (3, 4))]
    logs = write_log_directory(tmp_path / "logs", records)
    letters = [(None, b"v", letter_headers(offset)) for offset in (3, 4, 9)]
    write_letters(logs, letters[:1])
    make_lake(tmp_path / "before", logs)
    write_letters(logs, letters)
    return tmp_path / "before", lambda lake: make_lake(lake, logs)


def in_steps(tmp_path: Path) -> tuple[Path | None, Run]:
    """A run that measures a long share partition in several steps."""
    make_lake(tmp_path / "before", write_log_directory(tmp_path / "first", STORY[:3]))
    logs = write_log_directory(tmp_path / "logs", STORY)

    def run(lake: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(measure_steps, "STEP_ROWS", 2)
            make_lake(lake, logs)

    return tmp_path / "before", run


def new_settings(tmp_path: Path) -> tuple[Path | None, Run]:
    """A run that takes changed settings, a name and a new end offset beside new records, and a longer metadata log."""
    given_up = [update("g", batches=[(n, n, 4, 2)], at_ms=START_MS + 20 + n) for n in range(4, 6)]
    first = write_log_directory(tmp_path / "first", [*STORY, given_up[0]])
    names_in_log = [
        (START_MS + number, topic(f"t{number}", uuid_text(number.to_bytes(16, "big")))) for number in (1, 2, 3)
    ]
    log_of = [*names_in_log, (START_MS + 9, group_setting("h", DELIVERY_COUNT_LIMIT, "3"))]
    metadata = write_metadata(tmp_path / "first-metadata", log_of[:2])
    make_lake(tmp_path / "before", first, metadata, observations=(group_configs(g=2), end_offsets(orders=20)))
    logs = write_log_directory(tmp_path / "logs", [*STORY, *given_up])
    files = (group_configs(START_MS + 21, g=3), end_offsets(1, orders=30))
    names = {ORDERS_ID: "orders"}
    longer_metadata = write_metadata(tmp_path / "metadata", [*log_of, (START_MS + 10, b"\x01\x06\x00")])
    return tmp_path / "before", lambda lake: make_lake(
        lake, logs, longer_metadata, observations=files, topic_names=names
    )


SITUATIONS = {
    make_situation.__name__: make_situation
    for make_situation in (fresh_run, next_run, late_evidence, start_over, more_dead_letters, in_steps, new_settings)
}


class Case:
    """A run to be killed: lakes to kill it in, what readers may see, what has to come out."""

    def __init__(self, tmp_path: Path, situation: str) -> None:
        self.folder = tmp_path
        self.before, self.run = SITUATIONS[situation](tmp_path)
        self.old = None if self.before is None else published_content(self.before)
        undisturbed = self.lake("undisturbed")
        self.points, self.written = points_and_writes(lambda: self.run(undisturbed), undisturbed)
        self.new = published_content(undisturbed)
        self.books = {name: len(rows) for name, rows in books(undisturbed).items()}

    def in_turn(self, kills: int) -> list[list[Point]]:
        """For each lake the points at which it is killed, at most `kills`."""
        return in_turn_by_write(self.points, self.written, MARKS, kills)

    def lake(self, name: str) -> Path:
        """A lake as it is before the run."""
        lake = self.folder / name
        if self.before is not None:
            shutil.copytree(self.before, lake)
        return lake

    def kill_and_finish(self, points: list[Point]) -> None:
        """Kills a run and those that go on with it, each at its point; the last goes on to the end."""
        lake = self.lake("killed")
        for point in points:
            kill(point, lambda: self.run(lake))
            if point is not points[-1] and self.before is not None and has_cut_of(lake, self.before):
                continue  # reading takes as long as the run; the last kill of each lake is read all the same
            expected = self.new if point[0] == PUBLISHED else self.old
            assert same(published_content(lake), expected), f"a reader after {point} sees something else"
        self.finish(lake, points)
        shutil.rmtree(lake)

    def finish(self, lake: Path, why: object) -> None:
        """Runs again and compares with the undisturbed lake."""
        self.run(lake)
        assert self.new is not None
        assert not differences(published_content(lake) or {}, self.new), f"killed at {why}"
        assert {name: len(rows) for name, rows in books(lake).items()} == self.books, f"killed at {why}"
        assert current_versions(Lake(lake)) == published_versions(Lake(lake))


def published_content(lake: Path) -> dict[str, object] | None:
    """What a reader sees; None while nothing is published."""
    try:
        return content(lake)
    except LakeError:
        return None


def has_cut_of(lake: Path, before: Path) -> bool:
    """Whether the newest publication of a lake is that of an earlier copy, and every file of the copy is untouched."""
    publications = Path("gold", "publication", "_delta_log")
    if len(list((lake / publications).iterdir())) != len(list((before / publications).iterdir())):
        return False
    files = [path for path in before.rglob("*") if path.is_file() and path.name != ".lock"]
    return all(size_and_time(lake / path.relative_to(before)) == size_and_time(path) for path in files)


def size_and_time(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def same(left_tables: dict[str, object] | None, right: dict[str, object] | None) -> bool:
    return left_tables is right if left_tables is None or right is None else not differences(left_tables, right)


def books(lake: Path) -> dict[str, list[dict[str, object]]]:
    """The rows of the books, but those of rebuilds: who asks for one again gets another one."""
    opened = open_lake(lake)
    rows = {name: opened.scan(name).to_pylist() for name in BOOKS - {"gold.publication"}}
    return {
        name: [row for row in of_table if not row["source_id"].startswith("rebuild")] for name, of_table in rows.items()
    }


@pytest.mark.parametrize("lakes", [1, *in_soak(None)], ids=["one lake", "all"])
def test_a_run_killed_at_any_point_is_finished_by_the_next_ones(lakes: int | None, tmp_path: Path) -> None:
    case = Case(tmp_path, "fresh_run")
    assert len(case.written) >= 60
    kills = case.in_turn(KILLS)
    if lakes is not None:
        kills = sorted(kills, key=lambda points: -len(stages_of(points) & STAGES_KILLED))[:lakes]
        assert len(stages_of(kills[0]) & STAGES_KILLED) >= 4
    for points in kills:
        case.kill_and_finish(points)


@pytest.mark.soak
@pytest.mark.parametrize("lakes", [1, *in_soak(None)], ids=["one lake", "all"])
def test_a_run_that_goes_on_killed_at_any_point_is_finished_by_the_next_ones(lakes: int | None, tmp_path: Path) -> None:
    case = Case(tmp_path, "next_run")
    assert len(case.written) >= 45
    kills = case.in_turn(KILLS)
    if lakes is not None:
        kills = sorted(kills, key=lambda points: -len(stages_of(points) & STAGES_KILLED))[:lakes]
        assert len(stages_of(kills[0]) & STAGES_KILLED) >= 4
    for points in kills:
        case.kill_and_finish(points)


def stages_of(points: list[Point]) -> set[str]:
    """The stages at whose commits a lake is killed."""
    return {name.split(":")[2] for name, _ in points if name.startswith("commit:")}


OTHER_RUNS = ("new_settings", *in_soak("late_evidence", "start_over", "more_dead_letters", "in_steps"))


@pytest.mark.soak
@pytest.mark.parametrize("situation", OTHER_RUNS)
def test_other_runs_killed_again_and_again_are_finished_in_the_end(situation: str, tmp_path: Path) -> None:
    case = Case(tmp_path, situation)
    case.kill_and_finish(random.Random(20261121).choice(case.in_turn(KILLS // 3)))


@pytest.mark.soak
@pytest.mark.parametrize("situation", SITUATIONS)
def test_every_kind_of_run_killed_at_any_point_is_finished_by_the_next_one(situation: str, tmp_path: Path) -> None:
    case = Case(tmp_path, situation)
    for point in case.points:
        case.kill_and_finish([point])


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "point",
    [
        "commit:silver.group_record:decode:after",
        "commit:gold.delivery_history:replay:after",
        *in_soak("commit:silver.clock_step:decode:after", "commit:gold.share_partition_history:replay:after"),
    ],
)
def test_a_run_that_finds_more_after_a_kill_writes_no_row_twice(point: str, tmp_path: Path) -> None:
    logs = dataset("streams") / "logs"
    at_once = content(recorded_lake("streams"))
    times = sorted(at_once["silver.share_record"].column("log_time_ms").to_pylist())
    with crash_points.arm(point), pytest.raises(crash_points.CrashPointReached):
        make_lake(tmp_path / "lake", logs, until_ms=times[len(times) // 2])
    make_lake(tmp_path / "lake", logs)
    assert not differences(content(tmp_path / "lake"), at_once)
