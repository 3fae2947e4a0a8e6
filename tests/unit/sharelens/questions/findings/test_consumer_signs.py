"""The signs of consumer groups in recorded logs of Kafka 4.3.1, as `overview` lists them."""

import json
from typing import Any

import pytest

from sharelens.broker.coordinators.classic_records import CommittedOffset, offset_key, offset_value
from sharelens.cli import main
from tests.datasets import dataset
from tests.logs.consumer_logs import SCALED_OUT, entries
from tools.log_writer.writer import encode_log, record_columns, write_partition

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


def test_commits_of_a_topic_whose_id_is_unknown_say_nothing_of_owners(tmp_path, capsys):
    keys = [(offset_key("c", "orders", number), offset_value(CommittedOffset(offset=3))) for number in range(3)]
    encoded = [entry.encoded() for entry in entries(SCALED_OUT)]
    columns = record_columns(*zip(*encoded, *keys, strict=True), range(100, 100 + len(encoded) + len(keys)))
    write_partition(tmp_path, "__consumer_offsets", 0, encode_log(columns, records_per_batch=1))
    assert main(["overview", "--log-dir", str(tmp_path), "--output", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["consumer_groups"]
    assert (row["state"], row["partitions"], row["partitions_without_owner"]) == ("STABLE", 2, 0)
    assert (row["lag"], row["lag_unknown"]) == (None, 3)
