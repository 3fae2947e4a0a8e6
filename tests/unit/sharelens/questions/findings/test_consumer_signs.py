"""The signs of consumer groups in recorded logs of Kafka 4.3.1, as `overview` lists them."""

import json
from typing import Any

import pytest

from sharelens.cli import main
from tests.datasets import dataset

pytestmark = pytest.mark.slow
KEPT_WAITS = "2026-11-30T12:40:18Z"
"""A member of group `kept` does not give up a partition for which another one waits since 12:40:16."""


@pytest.fixture
def overview(capsys: pytest.CaptureFixture[str]) -> Any:
    def answered(*words: str, scenario: str = "consumer", code: int = 0) -> dict[str, Any]:
        logs = str(dataset(scenario) / "logs")
        assert main(["overview", "--log-dir", logs, *words, "--output", "json"]) == code
        answer: dict[str, Any] = json.loads(capsys.readouterr().out)
        return answer

    return answered


def by_group(answer: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["group_id"]: row for row in answer["consumer_groups"]}


def test_consumer_groups_have_a_list_of_their_own(overview):
    answer = overview()
    assert answer["groups"] == []
    groups = by_group(answer)
    assert groups.keys() == {
        *("assigned", "bounced", "expressed", "kept", "killed", "preferring", "scaled", "transactional")
    }
    assert {name: row["lag"] for name, row in groups.items() if row["lag"] != 0} == {
        "assigned": None,
        "transactional": 2,
    }
    assert answer["findings"] == []


def test_groups_that_became_classic_ones_are_gone(overview):
    assert by_group(overview(scenario="consumer-migration")).keys() == {"eager", "killed"}


def test_members_wait_for_partitions(overview):
    rows = by_group(overview("--as-of", KEPT_WAITS))
    row = rows["kept"]
    assert (row["state"], row["members"], row["waiting_members"], row["idle_members"]) == ("RECONCILING", 2, 2, 1)
    assert (row["partitions"], row["partitions_without_owner"]) == (3, 0)
    assert {name: row["waiting_members"] for name, row in rows.items() if name != "kept"} == {
        **dict.fromkeys(("assigned", "bounced", "killed", "scaled"), 0)
    }


def test_a_wait_is_an_error_with_all_groups_alone(overview):
    words = ("--group", "kept", "--as-of", KEPT_WAITS, "--min-duration", "1s", "--fail-on", "error")
    assert overview(*words)["findings"] == []
    (finding,) = overview(*words, "--all-groups", code=3)["findings"]
    assert (finding["severity"], finding["kind"], finding["group_id"]) == ("error", "reconciliation_stuck", "kept")
    assert finding["text"].startswith("2 members wait for partitions since 12:40:16 (1.")
    assert by_group(overview(*words))["kept"]["findings"] == "reconciliation_stuck"


def test_a_group_without_members_and_with_lag_is_found_later(overview):
    words = ("--group", "transactional", "--now", "2026-11-30T12:55:00Z")
    (row,) = [row for row in overview(*words, "--all-groups")["findings"] if row["group_id"] == "transactional"]
    assert (row["severity"], row["kind"], row["size"]) == ("warning", "no_members", 2)
    assert by_group(overview(*words))["transactional"]["findings"] == "no_members"
