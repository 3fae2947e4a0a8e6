"""Upgrades of lakes in a bucket."""

from pathlib import Path

import pytest

from jobs.upkeep.upgrade import Upgraded, UpgradeOptions, upgrade
from sharelens.lake import crash_points, lease
from sharelens.lake.errors import LakeError
from sharelens.lake.lake import Lake
from sharelens.lake.scan import open_lake
from tests.datasets import dataset
from tests.lakes import content, differences
from tests.old_lakes import NAMES, SCENARIO, old_lake
from tests.processes.in_process import ANY_SIZE, make_lake, no_session, recorded_lake

POINTS = ("carry:gold.lag:before", "exchange:gold:between", "exchange:bronze:between", "exchange:done")


def upload(folder: Path, lake: str) -> None:
    """Puts the files of a lake on a path into a bucket."""
    storage = Lake(lake).storage
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.startswith(".lock"):
            with storage.create(path.relative_to(folder).as_posix()) as file:
                file.write(path.read_bytes())


def upgraded(lake: str) -> Upgraded:
    """Upgrades a lake in this process."""
    return upgrade(UpgradeOptions(lake=Lake(lake), dry_run=False, in_process_bytes=ANY_SIZE), no_session)


@pytest.mark.soak
@pytest.mark.parametrize("name", NAMES)
def test_an_old_lake_becomes_what_this_version_would_have_written(name: str, bucket: str, tmp_path: Path) -> None:
    upload(old_lake(name, tmp_path / "old"), bucket)
    assert upgraded(bucket).is_needed
    assert not upgraded(bucket).is_needed
    make_lake(bucket, dataset(SCENARIO) / "logs")  # evidence that an old lake did not keep
    assert not differences(content(bucket), content(recorded_lake(SCENARIO)))
    assert sorted(Lake(bucket).storage.names()) == [".lease", "bronze", "gold", "silver"]


@pytest.mark.soak
def test_an_upgrade_that_was_killed_is_finished_by_the_next_one(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "TERM_S", 1.0)
    upload(old_lake(NAMES[-1], tmp_path / "old"), bucket)
    for point in POINTS:
        with crash_points.arm(point), pytest.raises(crash_points.CrashPointReached, match=point):
            upgraded(bucket)
        if point.startswith("exchange"):
            with pytest.raises(LakeError, match="an upgrade was cut off; finish it with `sharelens upgrade"):
                open_lake(bucket)
    upgraded(bucket)
    make_lake(bucket, dataset(SCENARIO) / "logs")
    assert not differences(content(bucket), content(recorded_lake(SCENARIO)))
