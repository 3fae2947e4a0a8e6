"""maintain from outside: forms of the summary, exit codes, what later answers say of what was dropped."""

import errno
import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sharelens.cli import main
from sharelens.lake.commit import commit
from sharelens.lake.lake import Lake
from sharelens.lake.parquet import write_rows
from sharelens.lake.scan import open_lake
from sharelens.lake.tables import TABLES
from tests.logs.state_logs import START_MS, snapshot, update, write_log_directory
from tests.processes.in_process import make_lake

pytestmark = pytest.mark.slow

HOUR = 3_600_000


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of two runs; tests copy it."""
    folder = tmp_path_factory.mktemp("two-runs")
    story = [snapshot("g", start=0), update("g", start=5, at_ms=START_MS + HOUR)]
    story += [snapshot("g", start=6, epoch=1, at_ms=START_MS + 2 * HOUR)]
    story += [update("g", start=7, epoch=1, at_ms=START_MS + 9 * HOUR)]
    for end in (2, 4):
        make_lake(folder / "lake", write_log_directory(folder / str(end), story[:end], cluster_id="c"))
    return folder / "lake"


@pytest.fixture
def lake(two_runs: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(two_runs, tmp_path / "lake"))


def run_maintain(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


def test_the_summary_is_one_line_of_json(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run_maintain(capsys, "maintain", "--lake", str(lake), "--execute")
    assert (code, out.count("\n")) == (0, 1)
    summary = json.loads(out)
    assert (summary["command"], summary["dry_run"], summary["dropped_rows"]) == ("maintain", False, 0)
    assert summary["files_after"] < summary["files_before"]
    assert summary["versions"].keys() == summary["seconds"].keys() >= {"silver.share_record", "gold.publication"}


def test_text_has_a_row_a_table_and_a_dry_run_changes_nothing(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = open_lake(lake).versions
    code, out, _ = run_maintain(capsys, "maintain", "--lake", str(lake), "--dry-run", "--output", "text")
    assert code == 0
    heading, *rows = out.splitlines()
    assert heading.split()[:3] == ["TABLE", "FILES-BEFORE", "FILES-AFTER"]
    assert any(row.startswith("silver.share_record ") for row in rows)
    assert rows[-1].startswith("would rewrite ")
    assert open_lake(lake).versions == before


def test_answers_say_what_retention_dropped(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, *_ = run_maintain(capsys, "maintain", "--lake", str(lake), "--retain", "history=5h, silver=5h", "--execute")
    assert code == 0
    code, out, _ = run_maintain(capsys, "state", "--lake", str(lake))
    assert code == 0
    assert "gaps 0" in out
    assert "; dropped by retention: history before 2026-09-21T18:00:00.000Z, silver before 2026-09-21T18:13:20" in out
    code, out, err = run_maintain(capsys, "state", "--lake", str(lake), "--as-of", "2026-09-21T14:13:21Z")
    assert (code, out) == (1, "")
    assert "begins at 2026-09-21T18:00:00.000Z; dropped by retention: history before" in err


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give --dry-run to list the work, or --execute to do it"),
        (["--dry-run", "--execute"], "give --dry-run"),
        (["--execute", "--retain", "gold=90d"], "'gold=90d' is no age of bronze, silver, history, measures"),
        (["--execute", "--retain", "bronze=90"], "'90' is no duration"),
        (["--execute", "--retain", "bronze=1d,bronze=2d"], "bronze is given twice"),
        (["--execute", "--retain", "bronze"], "'bronze' is no age"),
    ],
)
def test_nonsense_is_refused_in_one_line(
    arguments: list[str], message: str, lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run_maintain(capsys, "maintain", "--lake", str(lake), *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_a_folder_that_is_no_lake_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run_maintain(capsys, "maintain", "--lake", str(tmp_path / "none"), "--execute")
    assert (code, err.count("\n")) == (1, 1)
    assert "is not a directory" in err


@pytest.mark.soak
def test_a_closed_gate_stops_upkeep_and_retention_closes_none(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ages = ",".join(f"{group}=5h" for group in ("bronze", "silver", "history", "measures"))
    check = ["check", "--lake", str(lake), "--whole", "--published", "--level", "blocking"]
    assert run_maintain(capsys, "maintain", "--lake", str(lake), "--retain", ages, "--execute")[0] == 0
    assert run_maintain(capsys, *check)[0] == 0
    files = write_rows(
        Lake(lake), TABLES["silver.share_record"], open_lake(lake).scan("silver.share_record").slice(0, 1), {}
    )
    commit(Lake(lake), "silver.share_record", stage="plant", run=1, adds=files)
    assert run_maintain(capsys, "check", "--lake", str(lake), "--whole", "--table", "silver.share_record")[0] == 3
    code, out, err = run_maintain(capsys, "maintain", "--lake", str(lake), "--execute")
    assert (code, out) == (3, "")
    assert "closed gates: silver.share_record (key_is_unique)" in err


def test_a_full_disk_is_one_line_that_says_what_to_do(
    lake: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    code, _, err = run_maintain(capsys, "maintain", "--lake", str(lake), "--execute")
    assert code == 1
    assert err.splitlines()[-1].startswith("sharelens: no space left on the disk at /")
