"""The line that closes an answer."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from sharelens.cli import main
from sharelens.parameters.times import time_text
from state_model.topics import OFFSETS_TOPIC
from tests.datasets import dataset
from tests.logs.group_files import GroupEntry, epoch, write_group_partition
from tests.processes.in_process import TO_SILVER, make_lake, recorded_lake
from tools.log_writer.writer import write_checkpoints

SCENARIO = "streams-basic"


@pytest.mark.slow
@pytest.mark.parametrize(
    "question", [["describe", "--group", "app-wc"], ["rebalances", "--group", "app-wc"], ["audit"]]
)
def test_without_a_state_log_it_says_what_there_is_of_the_group_log(
    question: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    records = (dataset(SCENARIO) / "formatter-offsets.jsonl").read_text(encoding="utf-8").splitlines()
    times = [json.loads(line)["timestamp"] for line in records]
    expected = f"evidence: 1 partition of __consumer_offsets, {time_text(min(times))} to {time_text(max(times))}"
    for source in (["--lake", str(recorded_lake(SCENARIO))], ["--log-dir", str(dataset(SCENARIO) / "logs")]):
        assert main([*question, *source]) in (0, None)
        assert capsys.readouterr().out.splitlines()[-1].startswith(expected)


@pytest.mark.parametrize(("committed", "last", "rest"), [(2, 1_100, "; held back 3"), (5, 1_400, "")])
def test_without_a_state_log_it_ends_with_the_newest_committed_record(
    committed: int, last: int, rest: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs, lake = tmp_path / "logs", tmp_path / "lake"
    logs.mkdir()
    write_group_partition(logs, [GroupEntry(1_000 + n * 100, 11, epoch(n + 1)) for n in range(5)], number=1)
    write_checkpoints(logs, high_watermarks={(OFFSETS_TOPIC, 1): committed})
    make_lake(lake, logs, stages=TO_SILVER, cluster_id="c")
    expected = f"evidence: 1 partition of {OFFSETS_TOPIC}, {time_text(1_000)} to {time_text(last)}{rest}"
    for source in (["--log-dir", str(logs)], ["--lake", str(lake)]):
        assert main(["groups", *source]) in (0, None)
        assert capsys.readouterr().out.splitlines()[-1] == expected
    assert main(["groups", "--log-dir", str(logs), "--include-uncommitted"]) in (0, None)
    assert f"to {time_text(1_400)}" in capsys.readouterr().out.splitlines()[-1]
