"""Offsets and lag of a streams group before it has read anything."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from measures.file_ends import EndOffsets
from sharelens.questions.describe import View, describe
from sharelens.questions.opening import open_evidence
from sharelens.request import Source
from tests.dispatched_broker import DispatchedBroker

NULL = dict.fromkeys(("client_tags", "task_offsets", "task_end_offsets"))
NO_TASKS = dict.fromkeys(("active_tasks", "standby_tasks", "warmup_tasks"), ())
TOPOLOGY = {"epoch": 0, "subtopologies": [{"subtopology_id": "0", "source_topics": ["in"]}]}
AT_ONCE = {"group_streams_initial_rebalance_delay_ms": 0, "group_streams_assignment_interval_ms": 0}


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A group with one member, which reads a topic of which the log directory has no segments."""
    folder = tmp_path_factory.mktemp("streams") / "log"
    broker = DispatchedBroker(folder, **AT_ONCE)
    broker.create("in", 2)
    joined = {"member_id": "m", "member_epoch": 0, "process_id": "p", "topology": TOPOLOGY, "rebalance_timeout": 9_000}
    assert broker.call(88, 0, group_id="g", **NULL, **NO_TASKS, **joined)["error_code"] == 0
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
