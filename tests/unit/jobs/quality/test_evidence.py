"""Gates of evidence: a lake without the state log, or with records that can't be decoded, is not published."""

import shutil
from pathlib import Path

import pytest

from jobs.quality.check import CheckOptions, check
from jobs.quality.evidence import RULES
from jobs.quality.rule import EVIDENCE
from sharelens.lake.lake import Lake
from tests.datasets import dataset
from tests.logs.state_logs import STATE_TOPIC, snapshot, update, write_log_directory
from tests.processes.in_process import TO_STATE, make_lake, recorded_lake

pytestmark = pytest.mark.slow


def verdicts(lake: Path) -> dict[str, tuple[bool, str]]:
    """By the name of each rule of evidence whether it is met, and the detail."""
    checked = check(CheckOptions(lake=Lake(lake), tables=("gold.share_partition_state",)))
    rows = [row for row in checked.results.to_pylist() if row["kind"] == EVIDENCE]
    assert {row["expectation"] for row in rows} == {name for name, _, _ in RULES.values()}
    assert bool(checked.closed) == any(row["level"] == "blocking" and not row["success"] for row in rows)
    return {row["expectation"]: (row["success"], row["details"]) for row in rows}


def unmet(lake: Path) -> set[str]:
    return {name for name, (is_met, _) in verdicts(lake).items() if not is_met}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ["admin", "dlq", "streams"])
def test_gates_of_whole_copies_stay_open(name: str, tmp_path: Path) -> None:
    shutil.copytree(recorded_lake(name), tmp_path / "lake")
    assert unmet(tmp_path / "lake") == set()


def test_a_copy_without_the_state_log_closes_the_gate(tmp_path: Path) -> None:
    logs = shutil.copytree(dataset("basic") / "logs", tmp_path / "logs")
    shutil.rmtree(logs / f"{STATE_TOPIC}-1")
    make_lake(tmp_path / "part", logs, stages=TO_STATE)
    by_rule = verdicts(tmp_path / "part")
    assert by_rule["initialized_partitions_have_state"] == (False, "2 of 9 initialized share partitions: no_folder 2")
    assert by_rule["state_log_is_there"][0]
    for folder in logs.glob(f"{STATE_TOPIC}-*"):
        shutil.rmtree(folder)
    make_lake(tmp_path / "without", logs, stages=TO_STATE)
    assert unmet(tmp_path / "without") == {"state_log_is_there", "initialized_partitions_have_state"}


def test_a_state_log_that_cannot_be_decoded_closes_the_gate(tmp_path: Path) -> None:
    undecodable = [{**update("g"), "damage": "value_version"} for _ in range(3)]
    make_lake(tmp_path / "none", write_log_directory(tmp_path / "logs", undecodable), stages=TO_STATE)
    is_met, detail = verdicts(tmp_path / "none")["state_log_is_decoded"]
    assert (is_met, detail.split(" is unknown")[0]) == (False, "none of 3 records could be decoded: value version 9")
    make_lake(tmp_path / "some", write_log_directory(tmp_path / "more", [snapshot(), *undecodable]), stages=TO_STATE)
    assert unmet(tmp_path / "some") == set()
