"""A lake from a running cluster, in several runs, holds what a lake from the broker's log directory holds."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lake.scan import open_lake
from sharelens.cli import main
from tests.broker import running
from tests.broker.running import RunningBroker
from tests.broker.share_clients import SHARE_SETTINGS, new_share_group, share_consumer
from tests.broker.test_overview import RECORDS, accept, filled
from tests.lakes import CONTENT, content, differences

OF_FILES = {"bronze.setting", "silver.name"}
"""Tables of what files of settings and the names of folders say; a cluster says more, or from another time on."""
COMPARED = tuple(name for name in CONTENT if name not in OF_FILES)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RunningBroker]:
    running_broker = running.start(tmp_path / "log", **SHARE_SETTINGS)
    yield running_broker
    assert running_broker.stop() == 0, running_broker.problems.read_text()[-2000:]


def consumed(broker: RunningBroker) -> None:
    """A new group is done with a new topic."""
    group, topic = new_share_group(broker), filled(broker)
    with share_consumer(broker, group, topic) as consumer:
        accept(consumer, RECORDS)


def run(capsys: pytest.CaptureFixture[str], lake: Path, *words: str) -> Any:
    assert main(["run", "--lake", str(lake), *words]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def test_a_lake_from_a_cluster_is_that_from_its_directory(broker, tmp_path, capsys):
    live, copied = tmp_path / "live", tmp_path / "copied"
    of_cluster = ("--bootstrap-server", broker.bootstrap, "--user-topics", "all")
    consumed(broker)
    first = run(capsys, live, *of_cluster)
    consumed(broker)
    second = run(capsys, live, *of_cluster)
    idle = run(capsys, live, *of_cluster)
    assert second["rows"]["bronze.log_record"] > 0
    assert (idle["run_id"], first["gaps"], second["gaps"]) == (None, 0, 0)
    broker.stop()
    run(capsys, copied, "--log-dir", str(broker.log_dir))
    assert differences(content(live, COMPARED), content(copied, COMPARED)) == []
    after = run(capsys, live, "--log-dir", str(broker.log_dir))
    assert after["rows"].get("bronze.log_record", 0) == 0


def test_the_lag_of_a_lake_needs_no_record_of_a_user_topic(broker, tmp_path, capsys):
    consumed(broker)
    lake = tmp_path / "lake"
    run(capsys, lake, "--bootstrap-server", broker.bootstrap)
    assert main(["lag", "--lake", str(lake), "--output", "json"]) == 0
    assert [row["lag"] for row in json.loads(capsys.readouterr().out)] == [0]


def stop(*_: object) -> None:
    """Ends a run behind its plan. Ctrl-C would end all processes that the tests started, if one has imported Spark."""
    raise MemoryError


def test_a_run_that_was_stopped_goes_on_with_the_next_one(broker, tmp_path, capsys, monkeypatch):
    consumed(broker)
    lake = tmp_path / "lake"
    with monkeypatch.context() as patch:
        patch.setattr("jobs.run.Pipeline._read", stop)
        assert main(["run", "--lake", str(lake), "--bootstrap-server", broker.bootstrap]) == 1
    capsys.readouterr()
    done = run(capsys, lake, "--bootstrap-server", broker.bootstrap)
    assert (done["gaps"], done["lost_offsets"]) == (0, 0)
    copied = tmp_path / "copied"
    run(capsys, copied, "--log-dir", str(broker.log_dir))
    state = ("silver.share_record", "gold.share_partition_state", "gold.delivery_history")
    assert differences(content(lake, state), content(copied, state)) == []


def test_a_cluster_that_is_not_there_leaves_no_lake(tmp_path, capsys):
    assert main(["run", "--lake", str(tmp_path / "lake"), "--bootstrap-server", "127.0.0.1:9"]) == 1
    assert "the cluster does not answer" in capsys.readouterr().err
    assert not (tmp_path / "lake").exists()


def test_another_cluster_than_named_is_refused(broker, tmp_path, capsys):
    consumed(broker)
    lake = tmp_path / "lake"
    run(capsys, lake, "--bootstrap-server", broker.bootstrap)
    publication = open_lake(lake).publication
    assert main(["run", "--lake", str(lake), "--bootstrap-server", broker.bootstrap, "--cluster-id", "x"]) == 1
    assert "is of cluster" in capsys.readouterr().err
    assert open_lake(lake).publication == publication
    assert not (lake / ".fetched").exists()


def test_a_run_every_second_keeps_a_lake_fresh_until_sigterm(broker, tmp_path, capsys):
    lake = tmp_path / "lake"
    words = ["run", "--lake", str(lake), "--bootstrap-server", broker.bootstrap, "--every", "1s"]
    command = [sys.executable, "-m", "sharelens", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as runs:
        assert runs.stdout is not None
        for count in (1, 2):
            consumed(broker)
            while partitions_of(lake, capsys) < count:
                assert runs.poll() is None
                time.sleep(0.2)
        runs.terminate()
        assert runs.wait(60) == 0
        summaries = [json.loads(line) for line in runs.stdout]
    assert [summary["run_id"] for summary in summaries] == list(range(1, len(summaries) + 1))
    copied = tmp_path / "copied"
    broker.stop()
    run(capsys, copied, "--log-dir", str(broker.log_dir))
    state = ("silver.share_record", "gold.share_partition_state", "gold.delivery_history")
    assert differences(content(lake, state), content(copied, state)) == []


def partitions_of(lake: Path, capsys: pytest.CaptureFixture[str]) -> int:
    """How many share partitions without incomplete records a lake shows; 0 before its first cut."""
    code = main(["lag", "--lake", str(lake), "--output", "json"])
    out = capsys.readouterr().out
    return sum(row["start_offset"] == RECORDS or row["lag"] == 0 for row in json.loads(out)) if code == 0 else 0
