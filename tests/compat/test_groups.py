"""Share groups by the recorded logs against what the Admin API described at the end."""

import json

import pytest

from sharelens.cli import main
from tests.compat.test_log_dir_answers import lines
from tests.datasets import dataset
from tests.processes.in_process import recorded_lake


@pytest.mark.parametrize("words", [[], ["--group", "g-rc"]])
def test_before_the_first_record_nothing_is_told_but_when_it_is(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["groups", "--log-dir", str(dataset("transactions") / "logs"), "--as-of", "5", *words]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("no consumer, share or streams group\n")
    assert "the first record of these groups has the timestamp 2026-11-21T03:18:" in err
    assert "copy" not in err


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ["admin", "basic", "dlq", "timeouts", "edge", "upgrade", "v41"])
def test_state_epochs_and_members_are_what_the_broker_described(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    logs = dataset(name) / "logs"
    *_, last = lines(dataset(name) / "checkpoints.jsonl")
    assert main(["groups", "--log-dir", str(logs), "--output", "json"]) == 0
    straight = json.loads(capsys.readouterr().out)
    rows_by_group = {row["group_id"]: row for row in straight}
    described = {group: answer for group, answer in last["describeShareGroups"].items() if isinstance(answer, dict)}
    assert described
    assert {
        group: (
            rows_by_group[group]["state"].title(),
            rows_by_group[group]["group_epoch"],
            rows_by_group[group]["assignment_epoch"],
            rows_by_group[group]["member_count"],
        )
        for group in described
    } == {
        group: (answer["state"], answer["groupEpoch"], answer["targetAssignmentEpoch"], len(answer["members"]))
        for group, answer in described.items()
    }
    undescribed = [rows_by_group[group] for group in rows_by_group.keys() - described.keys()]
    assert {row["state"] for row in undescribed if row["group_type"] == "share"} <= {"DEAD"}
    lake = recorded_lake(name)
    assert main(["groups", "--lake", str(lake), "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == straight


def test_a_window_leaves_the_groups_whose_last_change_lies_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["groups", "--log-dir", str(dataset("admin") / "logs"), "--output", "json"]
    assert main(words) == 0
    every = json.loads(capsys.readouterr().out)
    moments = sorted({row["last_change_ms"] for row in every})
    assert len(moments) > 2
    assert main([*words, "--from", str(moments[1]), "--to", str(moments[-1])]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows == [row for row in every if moments[1] <= row["last_change_ms"] < moments[-1]]
