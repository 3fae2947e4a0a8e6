"""`rebalances` over recorded logs: its rows add up to what the brokers' Admin API answered at each checkpoint."""

import json
from typing import Any

import pytest

from sharelens.cli import main
from tests.compat.test_describe import moments
from tests.datasets import dataset
from tests.processes.in_process import recorded_lake

pytestmark = pytest.mark.usefixtures("evidence_opened_once")

Json = dict[str, Any]


def rebalances(capsys: pytest.CaptureFixture[str], *words: str) -> list[Json]:
    code = main(["rebalances", *words, "--output", "json"])
    out, err = capsys.readouterr()
    assert code == 0, err
    rows = json.loads(out)
    assert isinstance(rows, list)
    return rows


def members_and_targets(rows: list[Json]) -> tuple[set[str], dict[str, set[str]]]:
    """Members, and partitions by member, after rebalances from the first on."""
    members: set[str] = set()
    partitions: dict[str, set[str]] = {}
    for row in rows:
        members = (members | {of["member_id"] for of in row["joined"]}) - {of["member_id"] for of in row["removed"]}
        assert row["member_count"] == len(members)
        for move in row["moved"]:
            place = f"{move['topic']}-{move['partition']}"
            for member in move["from_members"]:
                partitions[member["member_id"]].remove(place)
            for member in move["to_members"]:
                partitions.setdefault(member["member_id"], set()).add(place)
    return members, {member: places for member, places in partitions.items() if places}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["admin", "crash", "timeouts", "upgrade"])
def test_joined_removed_and_moved_add_up_to_what_the_admin_api_described(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = ["--log-dir", str(dataset(name) / "logs")]
    described = settled = 0
    for at_ms, checkpoint in moments(dataset(name)):
        for group, answer in checkpoint["describeShareGroups"].items():
            if not isinstance(answer, dict):
                continue
            rows = rebalances(capsys, *logs, "--group", group, "--to", str(at_ms + 1))
            members, partitions = members_and_targets(rows)
            assert rows[-1]["group_epoch"] == answer["groupEpoch"]
            assert rows[-1]["state"].title() == answer["state"]
            assert members == {of["memberId"] for of in answer["members"]}
            for of in answer["members"]:
                if of["epoch"] == answer["targetAssignmentEpoch"]:
                    assert partitions.get(of["memberId"], set()) == set(of["assignment"])
                    settled += 1
            assert set(partitions) <= members
            described += 1
    assert described
    assert settled or name in ("admin", "upgrade"), "their checkpoints have no members"


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["admin", "timeouts"])
def test_a_lake_and_its_log_answer_alike(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    *_, (_, last) = moments(dataset(name))
    for group in last["describeShareGroups"]:
        of_logs = rebalances(capsys, "--log-dir", str(dataset(name) / "logs"), "--group", group)
        assert of_logs
        assert rebalances(capsys, "--lake", str(recorded_lake(name)), "--group", group) == of_logs


def test_a_window_has_the_rebalances_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--log-dir", str(dataset("timeouts") / "logs"), "--group", "g-never"]
    rows = rebalances(capsys, *words)
    within = rebalances(capsys, *words, "--from", str(rows[2]["at_ms"]), "--to", str(rows[4]["at_ms"]))
    assert within == rows[2:4]


def test_the_text_says_from_whom_to_whom(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rebalances", "--log-dir", str(dataset("timeouts") / "logs"), "--group", "g-never"]) == 0
    out, err = capsys.readouterr()
    assert "jobs:2 from child0(FTRGQ42JSkKadFmh0N4fkQ) to child1(3IFbqofQQ4a4ZOkM0VWmoQ)" in out
    assert "9 rebalances: 5 members joined, 3 removed (left or fenced), 18 partitions moved" in out
    assert err == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--group", "nope"], "no consumer, share or streams group nope in "),
        (["--group", "g-never", "--from", "now", "--to", "5"], "--to lies before --from"),
        ([], "--group"),
    ],
)
def test_nonsense_is_one_line(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rebalances", "--log-dir", str(dataset("timeouts") / "logs"), *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert message in line
