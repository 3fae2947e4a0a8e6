"""The end of a log that could not be read: a later run reads it again once the directory has grown past it."""

from pathlib import Path

import pytest

from sharelens.lake.scan import open_lake
from tests.logs.batch_files import broken, state_batches, state_directory
from tests.logs.state_logs import START_MS, STATE_TOPIC, snapshot, update
from tests.processes.in_process import TO_STATE, make_lake
from tools.log_writer.writer import write_checkpoints

pytestmark = pytest.mark.slow

STORY = [snapshot("g"), *(update("g", batches=[(n, n, 2, 1)], at_ms=START_MS + n) for n in range(4))]
BATCHES = state_batches(STORY)


def offsets(lake: Path) -> list[int]:
    return sorted(open_lake(lake).scan("bronze.log_record").column("offset").to_pylist())


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("last_batch", "committed"),
    [(broken(BATCHES[3]), None), (broken(BATCHES[3]), 4), (BATCHES[3][:-9], 4)],
    ids=["a wrong checksum", "a wrong checksum below the committed end", "cut short below the committed end"],
)
def test_what_a_broker_or_a_finished_copy_puts_in_its_place_is_read(
    tmp_path: Path, last_batch: bytes, committed: int | None
) -> None:
    lake = tmp_path / "lake"
    logs = state_directory(tmp_path / "logs", [*BATCHES[:3], last_batch])
    if committed is not None:
        write_checkpoints(logs, high_watermarks={(STATE_TOPIC, 0): committed})
    first = make_lake(lake, logs, stages=TO_STATE)
    assert (offsets(lake), first.quarantined, first.gaps) == ([0, 1, 2], 1, 1)
    (state,) = open_lake(lake).scan("gold.share_partition_state").to_pylist()
    assert (state["log_offset"], state["completeness"]) == (2, "incomplete")

    again = make_lake(lake, logs, stages=TO_STATE)
    assert (again.counts.get("bronze.log_record", 0), again.gaps) == (0, 0)

    state_directory(logs, BATCHES)
    if committed is not None:
        write_checkpoints(logs, high_watermarks={(STATE_TOPIC, 0): 5})
    make_lake(lake, logs, stages=TO_STATE)
    assert offsets(lake) == [0, 1, 2, 3, 4]
    (state,) = open_lake(lake).scan("gold.share_partition_state").to_pylist()
    assert (state["log_offset"], state["completeness"]) == (4, "complete")
