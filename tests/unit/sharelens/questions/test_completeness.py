"""The line that closes an answer."""

import json
from collections.abc import Sequence

import pytest

from sharelens.cli import main
from sharelens.times import time_text
from tests.datasets import dataset
from tests.in_process import recorded_lake

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
