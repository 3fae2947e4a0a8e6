"""A cluster with streams groups alone has no state log: questions about share partitions say that there is none."""

import pyarrow as pa
import pytest

from sharelens.cli import main
from sharelens.tables.lakes.places import near_places
from state_model.columnar.schemas import PLACED_STATE
from tests.processes.in_process import recorded_lake

QUESTIONS = (
    "account", "advise", "attempts", "audit", "cost", "cost --state-partitions", "cost --compare-early-draft", "dlq",
    "lag", "lag --every 1m", "latency", "life", "overview", "pinned", "poison", "redelivered", "stalled", "state",
    "status", "timeline", "what-if --delivery-count-limit 2", "what-if --lock-duration 5s",
    "what-if --snapshot-update-records 100", "what-if --state-partitions 3",
)  # fmt: skip


@pytest.mark.one_in(4)
@pytest.mark.slow
@pytest.mark.parametrize("words", QUESTIONS)
def test_a_question_says_that_there_is_nothing(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words.split(), "--lake", str(recorded_lake("streams-basic"))]) == 0, capsys.readouterr().err
    assert "evidence: " in capsys.readouterr().out or words == "status"


def test_the_condition_of_no_place_holds_for_no_row() -> None:
    rows = pa.table({name: pa.array(["a"]) for name in ("group_id", "topic_id")} | {"state_partition": [0]})
    assert rows.filter(near_places(PLACED_STATE.empty_table())).num_rows == 0
