"""Lakes that older versions wrote become what this version would have written, wherever the upgrade is killed."""

import hashlib
import json
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema

from jobs import books, publish, retained
from jobs.audit import standing
from jobs.errors import JobError
from jobs.upkeep.maintain import MaintainOptions, maintain
from jobs.upkeep.upgrade import Upgraded, UpgradeOptions, upgrade
from jobs.upkeep.upgrade_plan import Kind, look
from sharelens.lake import crash_points, lock, scan
from sharelens.lake.commit import create_tables
from sharelens.lake.errors import LakeError, LakeLockedError, LakeVersionError
from sharelens.lake.lake import SCHEMA_VERSION_PROPERTY, Lake
from sharelens.lake.lock import hold
from sharelens.lake.parquet import DataFile
from sharelens.lake.tables import SCHEMA_VERSION, TABLES
from sharelens.lake.view_columns import OLD_NAMES
from tests.datasets import dataset
from tests.depths import in_soak, rows_in_soak
from tests.lakes import assert_same, content, differences
from tests.logs.state_logs import START_MS, snapshot, update, write_log_directory
from tests.old_lakes import NAMES, SCENARIO, age, old_lake, with_old_names
from tests.once import made_once
from tests.processes.in_process import ANY_SIZE, make_lake, no_session, recorded_lake, story_lake
from tests.processes.kills import Point, in_turn, kill, points_of

pytestmark = pytest.mark.slow

LATER_EVIDENCE = ("first-1",)
"""Lakes of versions that took less of a log: the next run over it brings the rest."""


def brought(lake: Path, *, dry_run: bool = False) -> Upgraded:
    options = UpgradeOptions(lake=Lake(lake), dry_run=dry_run, in_process_bytes=ANY_SIZE, lock_timeout_s=0)
    return upgrade(options, no_session)


@pytest.fixture(scope="module")
def fresh() -> Path:
    """What this version writes from the log that the old lakes hold."""
    return recorded_lake(SCENARIO)


SMALL = [snapshot(), update(batches=[(0, 3, 2, 1)])]


def small_lake() -> Path:
    """A lake of this version; tests copy it."""
    return story_lake("upgrade", SMALL)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A lake of this version, to be changed."""
    return Path(shutil.copytree(small_lake(), tmp_path / "lake"))


BRONZE_FILES = "bronze-files.json"
"""Inodes of the files of bronze.log_record by path, as they were before the upgrade."""


def upgraded(name: str) -> Path:
    """An old lake, refused before its upgrade and not after it; tests copy it. BRONZE_FILES lies beside it."""

    def make(folder: Path) -> None:
        lake = old_lake(name, folder / "lake")
        (folder / BRONZE_FILES).write_text(json.dumps(bronze_files(lake)), encoding="utf-8")
        with pytest.raises(LakeVersionError, match="sharelens upgrade --lake"):
            make_lake(lake, dataset(SCENARIO) / "logs")
        assert brought(lake).is_needed
        assert {need.kind for need in look(Lake(lake))} == {Kind.UNCHANGED}
        assert publish.is_current(Lake(lake))

    return made_once(f"upgrade/{name}", make) / "lake"


def bronze_files(lake: Path) -> dict[str, int]:
    snapshot = Lake(lake).snapshot("bronze.log_record", any_schema=True)
    return {path: (Path(snapshot.storage.root) / path).stat().st_ino for path in snapshot.paths}


def written(lake: Path, name: str) -> int:
    return Lake(lake).snapshot(name, any_schema=True).schema_version


def bytes_of(lake: Path) -> dict[str, str]:
    files = sorted(path for path in lake.rglob("*") if path.is_file())
    return {str(path.relative_to(lake)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def old_cut(lake: Path) -> dict[str, int]:
    """Rows of every table at the newest cut, as the version that wrote the lake would read them."""
    versions = publish.published_versions(Lake(lake))
    return {name: DeltaTable(Lake(lake).table_storage(name).path, version=at).count() for name, at in versions.items()}


def reshape(lake: Path, name: str, schema: pa.Schema, version: int = SCHEMA_VERSION - 1) -> None:
    """Gives a table other columns, its files as they are."""
    first = Lake(lake).table_storage(name).path / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in first.read_text(encoding="utf-8").splitlines()]
    for action in actions:
        if "metaData" in action:
            action["metaData"]["schemaString"] = Schema.from_arrow(schema).to_json()
            action["metaData"]["configuration"][SCHEMA_VERSION_PROPERTY] = str(version)
    first.write_text("\n".join(json.dumps(action) for action in actions), encoding="utf-8")


def without(name: str, column: str) -> pa.Schema:
    schema = TABLES[name].schema
    return schema.remove(schema.get_field_index(column))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", NAMES[::-1])
def test_an_old_lake_becomes_what_this_version_would_have_written(name: str, fresh: Path, tmp_path: Path) -> None:
    lake = Path(shutil.copytree(upgraded(name), tmp_path / "lake"))
    assert not brought(lake).is_needed
    if name in LATER_EVIDENCE:
        make_lake(lake, dataset(SCENARIO) / "logs")
    assert_same(lake, fresh)


@pytest.mark.soak
@pytest.mark.parametrize("name", [NAMES[0], *in_soak(*NAMES[1:])])
def test_an_upgraded_lake_goes_on_with_the_log_as_a_new_one_does(name: str, fresh: Path, tmp_path: Path) -> None:
    lake = Path(shutil.copytree(upgraded(name), tmp_path / "lake"))
    again = make_lake(lake, dataset(SCENARIO) / "logs", rebuild="decode")
    assert again.counts["replayed_records"] > 200
    assert_same(lake, fresh)


@pytest.mark.parametrize("name", NAMES)
def test_a_dry_run_says_what_is_needed_and_writes_nothing(name: str, tmp_path: Path) -> None:
    lake = old_lake(name, tmp_path / "lake")
    before = bytes_of(lake)
    needs = {need.table: need for need in brought(lake, dry_run=True).needs}
    assert bytes_of(lake) == before
    assert set(needs) == set(TABLES)
    before_3 = name not in ("last-3", "last-4", "last-8")
    assert "renames offset to first_offset" in needs["bronze.quarantine"].detail
    if name == "last-8":
        assert {table for table, need in needs.items() if need.kind is Kind.RENAMED} == set(OLD_NAMES)
    assert needs["silver.share_record"].kind is Kind.VERSION
    assert needs["silver.dlq_record"].kind is (Kind.CREATED if before_3 else Kind.VERSION)
    assert needs["bronze.log_record"].kind is (Kind.COLUMNS if before_3 else Kind.VERSION)
    assert needs["bronze.log_record"].rows == 364
    assert "drops duration_time" in needs["gold.stall"].detail or name in ("first-1", "last-8")
    kinds = {"first-1": Kind.REWRITTEN, "last-8": Kind.VERSION}
    assert needs["bronze.ingest_extent"].kind is kinds.get(name, Kind.COLUMNS)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", NAMES)
def test_an_upgrade_needs_no_log_and_keeps_every_byte_of_bronze(name: str) -> None:
    lake = upgraded(name)
    opened = Lake(lake)
    sources = opened.snapshot("bronze.ingest_extent").rows(["source_uri"]).column("source_uri")
    assert not [uri for uri in sources.to_pylist() if Path(uri).exists()]
    assert bronze_files(lake) == json.loads((lake.parent / BRONZE_FILES).read_text(encoding="utf-8"))
    assert opened.snapshot("bronze.log_record").record_count == 364
    assert not [entry.name for entry in lake.iterdir() if entry.name not in (".lock", "bronze", "silver", "gold")]


@pytest.mark.soak
def test_what_retention_has_cut_stays_as_it_is(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    hour = 3_600_000
    story = [snapshot(), *(update(batches=[(n, n, 2, 1)], at_ms=START_MS + n * hour) for n in range(1, 9))]
    story.append(snapshot(at_ms=START_MS + 9 * hour, epoch=2))
    make_lake(lake, write_log_directory(tmp_path / "logs", story))
    maintain(MaintainOptions(lake=Lake(lake), dry_run=False, retain=dict.fromkeys(retained.GROUPS, 3 * hour)))
    before = content(lake)
    age(lake, "3")
    shutil.rmtree(tmp_path / "logs")
    assert brought(lake).is_needed
    assert not differences(content(lake), before)
    make_lake(lake, rebuild="decode")
    after = content(lake)
    findings = before.pop("gold.audit_finding"), after.pop("gold.audit_finding")  # records that are gone count no more
    assert len({tuple(map(str, standing.identities(rows))) for rows in findings}) == 1
    assert not differences(after, before)


@pytest.mark.soak
def test_renamed_columns_keep_the_rows_that_retention_has_cut_the_evidence_of(tmp_path: Path) -> None:
    lake, hour = tmp_path / "lake", 3_600_000
    story = [snapshot()]
    for begin in (0, 4):
        for n in range(begin, begin + 4):
            story.append(update(start=n, batches=[(n, n, 4, 5)], at_ms=START_MS + 2 * n * hour))
        story.append(snapshot(start=begin + 4, at_ms=START_MS + 2 * (begin + 4) * hour, epoch=1))
    make_lake(lake, write_log_directory(tmp_path / "logs", story))
    maintain(MaintainOptions(lake=Lake(lake), dry_run=False, retain=dict.fromkeys(retained.GROUPS, 3 * hour)))
    shutil.rmtree(tmp_path / "logs")
    before = content(lake)
    assert before["gold.poison_record"].num_rows
    assert before["silver.share_record"].num_rows < len(story)
    with_old_names(lake)
    age(lake, "8")
    done = brought(lake)
    assert (done.stage, done.summary["rows"]) == (None, {})
    assert not differences(content(lake), before)


@pytest.mark.soak
def test_columns_that_an_old_row_lacks_are_read_as_null(tmp_path: Path) -> None:
    old, new = old_lake("last-2", tmp_path / "lake"), upgraded("last-2")
    before, after = (Lake(lake).snapshot("bronze.log_record", any_schema=True).paths for lake in (old, new))
    assert sorted(after) == sorted(before)
    rows = scan.open_lake(new).scan("bronze.log_record")
    assert (rows.num_rows, rows.column("key_sha256").null_count) == (364, 364)


class Case:
    """An old lake to be killed in its upgrade, and what has to come out."""

    def __init__(self, name: str, tmp_path: Path) -> None:
        self.folder = tmp_path
        self.old = old_lake(name, tmp_path / "old")
        self.cut = old_cut(self.old)
        undisturbed = self.lake("undisturbed")
        self.points = points_of(lambda: brought(undisturbed))
        self.new = content(undisturbed)

    def lake(self, name: str) -> Path:
        shutil.copytree(self.old, self.folder / name)
        return self.folder / name

    def kill_and_finish(self, points: list[Point]) -> None:
        """Kills an upgrade and those that go on with it, each at its point; the last goes on to the end."""
        lake = self.lake("killed")
        for point in points:
            kill(point, lambda: brought(lake))
            self.is_seen_whole(lake, point)
        brought(lake)
        assert not differences(content(lake), self.new), f"killed at {points}"
        assert publish.is_current(Lake(lake))
        assert not brought(lake).is_needed, f"killed at {points}"
        shutil.rmtree(lake)

    def is_seen_whole(self, lake: Path, point: Point) -> None:
        """What readers find after a kill: the old cut, refused; while folders are exchanged no cut at all."""
        if point[0].startswith("exchange:"):
            with pytest.raises(LakeError, match="an upgrade was cut off; finish it with `sharelens upgrade"):
                scan.open_lake(lake)
            return
        assert written(lake, scan.PUBLICATION) < SCHEMA_VERSION, f"killed at {point}"
        assert old_cut(lake) == self.cut, f"killed at {point}: the old cut is not what it was"
        with pytest.raises(LakeVersionError, match="sharelens upgrade --lake"):
            scan.open_lake(lake)


@pytest.mark.soak
@pytest.mark.parametrize("name", ["first-1", "last-2"])
def test_an_upgrade_killed_at_any_point_goes_on(name: str, tmp_path: Path) -> None:
    case = Case(name, tmp_path)
    assert len(case.points) > 50
    for point in case.points:
        case.kill_and_finish([point])


@pytest.mark.soak
@pytest.mark.parametrize("name", ["first-1", *in_soak("last-3")])
def test_an_upgrade_killed_again_and_again_goes_on(name: str, tmp_path: Path) -> None:
    case = Case(name, tmp_path)
    first, *inner_points, last = in_turn(case.points, len(case.points))[0]
    chosen = sorted(random.Random(20261121).sample(inner_points, 6), key=inner_points.index)
    case.kill_and_finish([first, *chosen, last])


def test_a_lake_of_this_version_needs_nothing(small: Path) -> None:
    before = bytes_of(small)
    done = brought(small)
    assert (done.is_needed, done.stage, done.run_id) == (False, None, None)
    assert bytes_of(small) == before


def test_a_lake_from_before_publications_had_contents_runs_on_and_an_upgrade_shows_the_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs, lake = tmp_path / "logs", tmp_path / "lake"
    write_log_directory(logs, SMALL)
    with monkeypatch.context() as older:
        older.setattr(publish, "_contents", lambda lake, names: None)
        make_lake(lake, logs)
    reshape(lake, scan.PUBLICATION, without(scan.PUBLICATION, "contents"), SCHEMA_VERSION)
    assert scan.contents_of(scan.open_lake(lake).publication) == {}
    make_lake(lake, logs, rebuild="decode")
    cut = scan.open_lake(lake)
    assert scan.contents_of(cut.publication).keys() == cut.versions.keys()
    assert [(need.table, need.kind) for need in look(Lake(lake)) if need.kind is not Kind.UNCHANGED] == [
        (scan.PUBLICATION, Kind.COLUMNS)
    ]
    assert brought(lake).is_needed
    assert not brought(lake).is_needed


def test_a_lake_in_which_nothing_ran_gets_no_cut(tmp_path: Path) -> None:
    create_tables(Lake(tmp_path))
    age(tmp_path, "2")
    assert brought(tmp_path).run_id is None
    assert {written(tmp_path, name) for name in TABLES} == {SCHEMA_VERSION}
    with pytest.raises(LakeError, match="nothing was published yet"):
        scan.open_lake(tmp_path)


@pytest.mark.soak
def test_a_run_that_was_killed_in_an_old_lake_is_finished_first(small: Path, tmp_path: Path) -> None:
    logs = write_log_directory(tmp_path / "more", [*SMALL, update(batches=[(4, 4, 4, 2)])])
    point = "commit:gold.share_partition_history:replay:after"
    with crash_points.arm(point), pytest.raises(crash_points.CrashPointReached):
        make_lake(small, logs)
    age(small, "2")
    brought(small)
    make_lake(tmp_path / "at-once", logs)
    assert_same(small, tmp_path / "at-once")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("version", ["99", "none", "-1"])
def test_a_newer_or_unknown_version_is_refused_and_nothing_is_written(small: Path, version: str) -> None:
    age(small, version)
    before = bytes_of(small)
    for dry_run in (True, False):
        with pytest.raises(LakeVersionError, match="as new as the one that wrote it|is no table of sharelens"):
            brought(small, dry_run=dry_run)
    assert bytes_of(small) == before


def test_a_source_in_a_shape_that_nothing_leads_on_from_is_refused(small: Path) -> None:
    reshape(small, "bronze.topic_batch", without("bronze.topic_batch", "record_count"))
    with pytest.raises(
        LakeVersionError, match=r"bronze\.topic_batch.*adds record_count.*write a new lake from the logs"
    ):
        brought(small)


@pytest.mark.soak
@pytest.mark.parametrize(("column", "readable"), [("log_time_ms", False), *rows_in_soak(("state_epoch", True))])
def test_a_derived_table_in_another_shape_is_derived_anew(column: str, readable: bool, small: Path) -> None:
    name = "gold.share_partition_history"
    assert TABLES[name].schema.field(column).nullable is readable
    reshape(small, name, without(name, column))
    done = brought(small)
    needs = [(need.table, need.readable) for need in done.needs if need.kind is Kind.DERIVED]
    assert (done.stage, needs) == ("replay", [(name, readable)])
    assert_same(small, small_lake())


def test_what_a_closed_gate_keeps_back_is_not_published_by_an_upgrade(small: Path, tmp_path: Path) -> None:
    row = dict.fromkeys(TABLES["gold.quality_result"].schema.names)
    row |= {"cluster_id": "unknown", "check_id": 1, "checked_ms": 1, "table_name": "gold.stall", "version": 1}
    row |= {"slice": "", "slice_rows": 0, "level": "blocking", "kind": "keys", "expectation": "key_is_unique"}
    row |= {"expectation_type": "", "success": False, "unexpected_count": 1, "observed": "", "details": "", "run_id": 1}
    rows = pa.Table.from_pylist([row], schema=TABLES["gold.quality_result"].schema)
    files = books_files(small, "gold.quality_result", rows)
    books.commit(Lake(small), "gold.quality_result", "check", 1, files)
    age(small, "2")
    with pytest.raises(JobError, match=r"behind closed gates: gold\.stall \(key_is_unique\)"):
        brought(small)
    assert written(small, "bronze.ingest_extent") == 2


def books_files(lake: Path, name: str, rows: pa.Table) -> list[DataFile]:
    from sharelens.lake.parquet import write_rows

    return write_rows(Lake(lake), TABLES[name], rows, {})


def test_a_lake_that_is_held_and_a_folder_without_one_are_refused(small: Path, tmp_path: Path) -> None:
    age(small, "2")
    with hold(Lake(small), 0), pytest.raises(LakeLockedError):
        brought(small)
    (tmp_path / "empty").mkdir()
    with pytest.raises(LakeError, match="holds no lake"):
        brought(tmp_path / "empty", dry_run=True)


def upgraded_after_waiting(lake: Path, meanwhile: Callable[[], object]) -> Upgraded:
    """An upgrade that waits for the lock, while another process, which holds it, does something."""
    pending_calls = [meanwhile]

    @contextmanager
    def waiting(*arguments: Any) -> Iterator[Any]:
        if pending_calls:
            pending_calls.pop()()
        with hold(*arguments) as writer_lock:
            yield writer_lock

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lock, "hold", waiting)
        return brought(lake)


@pytest.mark.soak
def test_an_upgrade_that_waited_for_another_one_and_a_run_changes_nothing(small: Path, tmp_path: Path) -> None:
    logs = write_log_directory(tmp_path / "more", [*SMALL, update(batches=[(4, 4, 4, 2)])])
    settings = {"group_configs": "Dynamic configs for group g are:\n  share.delivery.count.limit=7\n"}
    (tmp_path / "settings").mkdir()
    (tmp_path / "settings" / "group-configs.txt").write_text(settings["group_configs"], encoding="utf-8")
    shutil.rmtree(Lake(small).table_storage("bronze.setting").root)
    age(small, "3")
    recorded_bytes: list[dict[str, str]] = []

    def upgrade_and_run() -> None:
        assert brought(small).is_needed
        make_lake(small, logs)
        recorded_bytes.append(bytes_of(small))

    done = upgraded_after_waiting(small, upgrade_and_run)
    assert not done.is_needed
    assert bytes_of(small) == recorded_bytes[0]


@pytest.mark.parametrize("layer", ["silver", *in_soak("gold", "bronze")])
def test_an_upgrade_that_waited_for_one_that_was_killed_in_the_exchange_ends_it(layer: str, small: Path) -> None:
    before = content(small)
    age(small, "3")
    point = (f"exchange:{layer}:between", 1)
    upgraded_after_waiting(small, lambda: kill(point, lambda: brought(small)))
    assert not differences(content(small), before)
    assert sorted(entry.name for entry in small.iterdir()) == [".lock", "bronze", "gold", "silver"]
