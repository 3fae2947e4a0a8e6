"""Offsets and lag of a streams group before it has read anything."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sharelens.cli import main
from sharelens.measures.topics.file_ends import EndOffsets
from sharelens.questions.groups.describe import View, describe
from sharelens.source.request import Source
from sharelens.tables.opening import open_evidence
from tests.broker_parts.dispatched_broker import DispatchedBroker
from tests.depths import in_soak
from tests.processes.in_process import make_lake

NULL = dict.fromkeys(("client_tags", "task_offsets", "task_end_offsets"))
NO_TASKS = dict.fromkeys(("active_tasks", "standby_tasks", "warmup_tasks"), ())
TOPOLOGY = {"epoch": 0, "subtopologies": [{"subtopology_id": "0", "source_topics": ["in"]}]}
HIGH_WATERMARKS_MS = 6_000
"""The broker has written its high watermarks."""
AT_ONCE = {"group_streams_initial_rebalance_delay_ms": 0, "group_streams_assignment_interval_ms": 0}


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A group with one member, which reads a topic of which the log directory has no segments."""
    folder = tmp_path_factory.mktemp("streams") / "log"
    broker = DispatchedBroker(folder, **AT_ONCE)
    broker.create("in", 2)
    join(broker)
    broker.close()
    for file in (*folder.glob("in-*/*.log"), *folder.glob("*offset-checkpoint")):
        file.unlink()
    return folder


def lags(log_dir: Path, end_offsets: EndOffsets | None) -> tuple[list[int | None], Sequence[str]]:
    with open_evidence(Source(log_dirs=(str(log_dir),), include_uncommitted=True, needs_state_log=False)) as evidence:
        answer = describe(evidence, "g", None, View.OFFSETS, end_offsets=end_offsets)
    return [row["lag"] for row in answer.table.to_pylist()], answer.warnings


def test_a_topic_that_ends_where_it_began_has_no_lag(log_dir: Path) -> None:
    assert lags(log_dir, {("in", 0): 0, ("in", 1): 0}) == ([0, 0], ())


def test_without_a_commit_and_a_start_offset_the_lag_is_unknown(log_dir: Path) -> None:
    values, (warning,) = lags(log_dir, {("in", 0): 0, ("in", 1): 5})
    assert (values, "lag of 1 partition of" in warning) == ([0, None], True)


@pytest.mark.slow
@pytest.mark.parametrize("commits", [False, *in_soak(True)])
def test_a_topic_that_was_created_again_has_a_lag_where_nothing_was_committed_yet(
    commits: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, lake = tmp_path / "log", tmp_path / "lake"
    broker = DispatchedBroker(folder, **AT_ONCE)
    broker.create("in", 1)
    join(broker)
    commit(broker, 2)
    broker.timers.advance(HIGH_WATERMARKS_MS)
    make_lake(lake, shutil.copytree(folder, tmp_path / "before"))
    assert broker.call(20, 5, topic_names=["in"], timeout=1_000)["responses"][0]["error_code"] == 0
    broker.create("in", 2)
    if commits:
        commit(broker, beat(broker, 2)["member_epoch"])
    else:
        beat(broker, 2)
    broker.close()
    make_lake(lake, folder)
    rows = []
    for place in (["--log-dir", str(folder)], ["--lake", str(lake)]):
        assert main(["describe", "--group", "g", *place, "--output", "json"]) == 0
        rows.append(json.loads(capsys.readouterr().out))
    assert [(row["partition"], row["committed_offset"], row["end_offset"], row["lag"]) for row in rows[0]] == [
        (0, 0 if commits else None, 0, 0),
        (1, None, 0, 0),
    ]
    assert rows[1] == rows[0]


def join(broker: DispatchedBroker) -> None:
    joined = {"member_id": "m", "member_epoch": 0, "process_id": "p", "topology": TOPOLOGY, "rebalance_timeout": 9_000}
    assert broker.call(88, 0, group_id="g", **NULL, **NO_TASKS, **joined)["error_code"] == 0


def beat(broker: DispatchedBroker, epoch: int) -> dict[str, Any]:
    answer: dict[str, Any] = broker.call(
        88, 0, group_id="g", member_id="m", member_epoch=epoch, **NULL, **dict.fromkeys(NO_TASKS)
    )
    assert answer["error_code"] == 0
    return answer


def commit(broker: DispatchedBroker, epoch: int) -> None:
    """Offset 0 of partition 0."""
    topics = [{"name": "in", "partitions": [{"partition_index": 0, "committed_offset": 0}]}]
    answer = broker.call(8, 9, group_id="g", member_id="m", generation_id_or_member_epoch=epoch, topics=topics)
    assert answer["topics"][0]["partitions"][0]["error_code"] == 0
