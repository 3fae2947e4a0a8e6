"""What compaction can have removed of a group: nothing where its log has a record at every offset."""

from pathlib import Path

import pytest

from sharelens.questions.groups.describe import View, describe
from sharelens.questions.groups.groups import EVER, groups
from sharelens.questions.groups.rebalances import rebalances
from sharelens.source.request import Source
from sharelens.tables.opening import open_evidence
from tests.logs.group_files import GroupEntry, epoch, write_group_partition
from tests.processes.in_process import TO_MEASURES, make_lake

pytestmark = pytest.mark.slow

MEMBER = {"rack_id": None, "client_id": "c", "client_host": "h", "subscribed_topic_names": ()}
RECORDS = [
    GroupEntry(1_000, 11, epoch(1), "other"),
    GroupEntry(1_100, 10, MEMBER, member_id="m"),
    GroupEntry(1_200, 11, epoch(1)),
    GroupEntry(1_300, 11, epoch(2)),
    GroupEntry(1_400, 11, epoch(3)),
]
EARLY_MS = 1_250
"""Before a record of the group replaces another one."""


@pytest.mark.parametrize("source", ["logs", "lake"])
@pytest.mark.parametrize(("lacking", "first"), [((), "complete"), ((0,), "incomplete")])
def test_rows_are_complete_in_a_whole_log(tmp_path: Path, source: str, lacking: tuple[int, ...], first: str) -> None:
    logs, lake = tmp_path / "logs", tmp_path / "lake"
    logs.mkdir()
    write_group_partition(logs, RECORDS, lacking=lacking)
    evidence = Source(log_dirs=(str(logs),), needs_state_log=False)
    if source == "lake":
        make_lake(lake, logs, stages=TO_MEASURES)
        evidence = Source(lake=lake)
    with open_evidence(evidence) as tables:
        answers = [
            rebalances(tables, "g", EVER),
            describe(tables, "g", EARLY_MS, View.STATE),
            groups(tables, frozenset(["g"]), EARLY_MS),
        ]
    of_rebalances, of_state, of_group = (answer.table.column("completeness").to_pylist() for answer in answers)
    assert of_rebalances == [first, "complete", "complete"]
    assert (of_state, of_group) == ([first], [first])
