"""Reading a lake: the published cut and nothing beyond it, with the conditions pushed into the scan."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from jobs import books
from sharelens.lake import lake as lake_module
from sharelens.lake import scan
from sharelens.lake.commit import create_tables
from sharelens.lake.errors import LakeError, LakeVersionError
from sharelens.lake.lake import Lake
from sharelens.lake.tables import SCHEMA_VERSION, TABLES
from tests.depths import in_soak
from tests.logs.state_logs import START_MS, snapshot, update, write_log_directory
from tests.processes.in_process import TO_SILVER, make_lake, story_lake

pytestmark = pytest.mark.slow

STORY = [snapshot(), *(update(batches=[(n, n, 2, 1)], at_ms=START_MS + n) for n in range(5))]


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return Path(shutil.copytree(story_lake("scan", STORY), tmp_path / "lake"))


def test_what_is_not_published_is_not_seen(lake: Path) -> None:
    before = scan.open_lake(lake).scan("silver.share_record")
    adds, removes = books.rewritten_without(Lake(lake), "silver.share_record", pc.field("log_offset") > 1)
    books.commit(Lake(lake), "silver.share_record", "decode", 99, adds, removes)
    assert Lake(lake).snapshot("silver.share_record").dataset().count_rows() == 2
    assert scan.open_lake(lake).scan("silver.share_record").equals(before)
    assert before.num_rows == len(STORY)


def test_a_lake_that_is_open_stays_at_its_cut(lake: Path, tmp_path: Path) -> None:
    opened = scan.open_lake(lake)
    longer_logs = write_log_directory(tmp_path / "more", [*STORY, update(batches=[(9, 9, 4, 1)])])
    make_lake(lake, longer_logs, stages=TO_SILVER)
    assert opened.scan("silver.share_record").num_rows == len(STORY)
    assert scan.open_lake(lake).scan("silver.share_record").num_rows == len(STORY) + 1


def test_a_table_is_opened_once_a_cut(lake: Path, tmp_path: Path) -> None:
    opened = scan.open_lake(lake)
    rows = opened.dataset("silver.share_record")
    longer_logs = write_log_directory(tmp_path / "more", [*STORY, update(batches=[(9, 9, 4, 1)])])
    make_lake(lake, longer_logs, stages=TO_SILVER)
    assert opened.dataset("silver.share_record") is rows


def test_columns_and_conditions(lake: Path) -> None:
    opened = scan.open_lake(lake)
    rows = opened.scan("silver.share_record", ["log_offset"], pc.field("record_type") == "snapshot")
    assert rows.to_pylist() == [{"log_offset": 0}]
    nobody = opened.scan("silver.share_record", None, pc.field("group_id") == "' OR 1=1 --")
    assert (nobody.num_rows, nobody.schema) == (0, TABLES["silver.share_record"].schema)


@pytest.mark.one_in(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    "group",
    ["ü" * 3000, "\U0010ffff" * 50, *in_soak("g", "g" * 40)],
    ids=["longest", "last", "short", "long"],
)
def test_each_value_of_each_column_is_found_by_a_condition_on_it(group: str, tmp_path: Path) -> None:
    story = [snapshot(group), update(group, batches=[(0, 3, 2, 1)]), update(group, batches=[(4, 4, 4, 1)])]
    make_lake(tmp_path / "lake", write_log_directory(tmp_path / "logs", story))
    opened = scan.open_lake(tmp_path / "lake")
    questions = 0
    for name in TABLES:
        rows = opened.scan(name)
        for column in rows.column_names:
            kind = rows.schema.field(column).type
            if pa.types.is_nested(kind) or rows.num_rows == 0:
                continue
            value = rows.column(column)[0]
            where = pc.field(column) == value if value.is_valid else pc.field(column).is_null()
            assert opened.scan(name, [column], where).num_rows > 0, (name, column)
            questions += 1
    assert questions > 100


def test_a_table_that_the_cut_does_not_know_is_empty(lake: Path) -> None:
    opened = scan.open_lake(lake)
    bare = scan.Cut(lake=Lake(lake), versions={}, publication=opened.publication)
    assert bare.scan("gold.delivery_history").schema == TABLES["gold.delivery_history"].schema
    assert bare.dataset("gold.delivery_history") is None


def test_what_is_no_lake_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    for place, message in (
        ("nowhere", "not a directory"),
        ("file", "not a directory"),
        ("empty", "holds no lake"),
    ):
        with pytest.raises(LakeError, match=message) as caught:
            scan.open_lake(tmp_path / place)
        assert str(tmp_path / place) in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_lake_without_a_publication_says_how_to_finish_it(tmp_path: Path) -> None:
    create_tables(Lake(tmp_path))
    with pytest.raises(LakeError, match="nothing was published yet; finish with"):
        scan.open_lake(tmp_path)


def test_an_older_lake_is_refused_with_the_command_that_helps(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lake_module, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
    message = f"has schema version {SCHEMA_VERSION}, this sharelens reads {SCHEMA_VERSION + 1}; see what it needs with "
    with pytest.raises(LakeVersionError) as caught:
        scan.open_lake(lake)
    assert f"{message}`sharelens upgrade --lake {lake} --dry-run`" in str(caught.value)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (f"{SCHEMA_VERSION + 96}", f"has schema version {SCHEMA_VERSION + 96}, .* use a sharelens as new as"),
        ("a few", "is no table of sharelens: its schema version is 'a few'"),
        ("9" * 5000, "is no table of sharelens"),
        ("0", "is no table of sharelens"),
    ],
    ids=["newer", "text", "too long", "zero"],
)
def test_a_lake_of_a_newer_or_unknown_version_is_refused(lake: Path, written: str, message: str) -> None:
    first = Lake(lake).table_storage(scan.PUBLICATION).path / "_delta_log" / f"{0:020d}.json"
    text = first.read_text(encoding="utf-8")
    ours, theirs = (f'"{lake_module.SCHEMA_VERSION_PROPERTY}":"{number}"' for number in (SCHEMA_VERSION, written))
    assert text.count(ours) == 1
    first.write_text(text.replace(ours, theirs), encoding="utf-8")
    with pytest.raises(LakeVersionError, match=message) as caught:
        scan.open_lake(lake)
    assert len(str(caught.value)) < 400


def test_all_tables_are_made_at_once(tmp_path: Path) -> None:
    assert not Lake(tmp_path).is_lake()
    create_tables(Lake(tmp_path))
    assert Lake(tmp_path).is_lake()
    assert {Lake(tmp_path).version(name) for name in TABLES} == {0}


def test_a_table_without_files_has_no_rows_and_is_refused_as_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_tables(Lake(tmp_path))
    schema = pa.schema([TABLES["silver.name"].schema.field("topic")])
    assert Lake(tmp_path).snapshot("silver.name").rows(["topic"], pc.field("run_id") > 0).equals(schema.empty_table())
    assert Lake(tmp_path).snapshot("silver.name").rows().equals(TABLES["silver.name"].schema.empty_table())
    monkeypatch.setattr(lake_module, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
    with pytest.raises(LakeVersionError):
        Lake(tmp_path).snapshot("silver.name").rows()


def damaged(path: Path, how: str) -> None:
    content = path.read_bytes()
    if how == "missing":
        path.unlink()
    elif how == "zeroed":
        path.write_bytes(bytes(len(content)))
    elif how == "torn":
        path.write_bytes(content[: len(content) // 2])
    elif how == "page":
        path.write_bytes(content[:4] + bytes(byte ^ 0x5A for byte in content[4:200]) + content[200:])
    else:
        path.write_bytes(b"")


@contextmanager
def put_back(path: Path) -> Iterator[None]:
    """Puts the file back."""
    content = path.read_bytes()
    try:
        yield
    finally:
        path.write_bytes(content)


@pytest.mark.parametrize("how", ["empty", *in_soak("torn", "missing")])
def test_a_damaged_commit_of_any_table_is_refused_and_never_read_as_fewer_rows(lake: Path, how: str) -> None:
    versions = scan.open_lake(lake).versions
    assert len(versions) > 30
    for table, version in versions.items():
        path = lake / table.replace(".", "/") / "_delta_log" / f"{version:020d}.json"
        with put_back(path):
            damaged(path, how)
            with pytest.raises(LakeError, match=rf"^{table} in .*: the commit of its version {version} is (dam|gone)"):
                scan.open_lake(lake).scan(table)
        assert scan.open_lake(lake).scan(table).num_rows >= 0


def test_a_version_whose_commits_are_others_is_no_shorter_table(lake: Path) -> None:
    """As where commits were lost and later ones took their numbers: each of them is whole."""
    opened = scan.open_lake(lake)
    shortened = []
    for table, version in opened.versions.items():
        newest = lake / table.replace(".", "/") / "_delta_log" / f"{version:020d}.json"
        lines = newest.read_text(encoding="utf-8").splitlines(keepends=True)
        without_adds = [line for line in lines if not line.startswith('{"add"')]
        if without_adds != lines:
            shortened.append(table)
            with put_back(newest):
                newest.write_text("".join(without_adds), encoding="utf-8")
                with pytest.raises(
                    LakeError, match=rf"^{table} in .*: its version {version} .* is not the published one"
                ):
                    scan.open_lake(lake).scan(table)
    assert len(shortened) > 10


def test_a_cut_of_an_older_version_has_nothing_to_hold_tables_against(lake: Path) -> None:
    opened = scan.open_lake(lake)
    older = scan.Cut(lake=opened.lake, versions=opened.versions, publication=opened.publication | {"contents": None})
    assert older.scan("silver.share_record").equals(opened.scan("silver.share_record"))
    assert [scan.contents_of(cut.publication).keys() for cut in (opened, older)] == [opened.versions.keys(), set()]


@pytest.mark.parametrize("how", ["empty", "torn"])
def test_a_publication_that_is_damaged_is_no_older_one(lake: Path, how: str) -> None:
    path = max((lake / "gold" / "publication" / "_delta_log").glob("*.json"))
    damaged(path, how)
    with pytest.raises(LakeError, match=r"^gold\.publication in .* is damaged .* or `sharelens run` sets it aside$"):
        scan.open_lake(lake)


@pytest.mark.parametrize("how", ["page", *in_soak("empty", "zeroed", "missing")])
def test_a_damaged_data_file_of_any_table_is_named(lake: Path, how: str) -> None:
    opened = scan.open_lake(lake)
    snapshots = [opened.snapshot(table) for table in opened.versions] + [Lake(lake).snapshot(scan.PUBLICATION)]
    count = 0
    for table, paths in [(each.table, each.paths) for each in snapshots if each is not None]:
        for path in [lake / table.replace(".", "/") / name for name in paths]:
            with put_back(path):
                damaged(path, how)
                with pytest.raises(LakeError, match=rf"^{table} in .*: the data file \S*{path.name} can't be read"):
                    scan.open_lake(lake).scan(table)
            count += 1
    assert count > 10
