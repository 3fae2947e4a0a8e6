"""The timeline over recorded logs: the same from a lake and its log, in order, each entry proven by a record."""

import json
from collections import Counter
from typing import Any

import pytest

from sharelens.cli import main
from sharelens.source.request import Source
from sharelens.tables.opening import open_evidence
from sharelens.tables.reading import read_share_partitions
from state_model.topics import OFFSETS_TOPIC, STATE_TOPIC
from tests.datasets import dataset, scenarios
from tests.processes.in_process import recorded_lake

pytestmark = pytest.mark.usefixtures("evidence_opened_once")


def ask(capsys: pytest.CaptureFixture[str], command: str, *arguments: str) -> Any:
    capsys.readouterr()
    try:
        code = main([command, *arguments, "--output", "json"]) or 0
    except SystemExit as stop:
        code = int(stop.code or 0)
    out, err = capsys.readouterr()
    assert code == 0, err
    return json.loads(out)


def logs(scenario: str) -> str:
    return str(dataset(scenario) / "logs")


def first_group(scenario: str) -> str:
    """The group with the most share partitions."""
    with open_evidence(Source(log_dirs=(logs(scenario),))) as evidence:
        counts = Counter(read_share_partitions(evidence).column("group_id").to_pylist())
    return min(counts, key=lambda group: (-counts[group], group))


@pytest.mark.soak
@pytest.mark.parametrize("scenario", scenarios())
def test_a_lake_and_its_log_tell_the_same_in_order(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    group = ["--group", first_group(scenario), "--min-duration", "60s"]
    of_logs = ask(capsys, "timeline", "--log-dir", logs(scenario), *group)
    of_lake = ask(capsys, "timeline", "--lake", str(recorded_lake(scenario)), *group)
    assert of_lake == of_logs
    assert [row["at_ms"] for row in of_logs] == sorted(row["at_ms"] for row in of_logs)
    assert {row["group_id"] for row in of_logs} == {group[1]}
    assert all(row["log_offset"] >= 0 and row["log_partition"] >= 0 for row in of_logs)


def test_what_it_sums_up_is_what_the_questions_answer(capsys: pytest.CaptureFixture[str]) -> None:
    group = ["--log-dir", logs("dlq"), "--group", "gd-copy"]
    entries = ask(capsys, "timeline", *group, "--min-duration", "5s")
    by_event: Counter[str] = Counter()
    for row in entries:
        by_event[row["event"]] += row["records"] or 1
    sizes = [row["last_offset"] - row["offset"] + 1 for row in ask(capsys, "poison", *group)]
    assert by_event["archived"] == sum(sizes) == by_event["dead_letters"]
    stalls = ask(capsys, "stalled", *group, "--min-duration", "5s")
    assert by_event["stall_began"] == len(stalls)
    assert by_event["stall_ended"] == sum(row["until_ms"] is not None for row in stalls)
    life = ask(capsys, "life", *group)
    assert sum(by_event[event] for event in {row["event"] for row in life}) == len(life)


def test_members_come_and_go_as_the_coordinator_wrote(capsys: pytest.CaptureFixture[str]) -> None:
    entries = ask(capsys, "timeline", "--log-dir", logs("timeouts"), "--group", "g-never")
    members: set[str] = set()
    for row in entries:
        name = row["text"].split(" ")[0]
        if row["event"] == "member_joined":
            members.add(name)
        elif row["event"] == "member_left":
            members.remove(name)
        assert row["log_topic"] == (OFFSETS_TOPIC if row["event"].startswith(("member", "rebal")) else STATE_TOPIC)
    (group,) = ask(capsys, "groups", "--log-dir", logs("timeouts"), "--group", "g-never")
    assert {member["member_id"] for member in group["members"]} == members


def test_a_span_bounds_the_entries(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["timeline", "--log-dir", logs("timeouts"), "--group", "g-never", "--min-duration", "5s"]
    entries = ask(capsys, *words)
    middle = entries[len(entries) // 2]["at_ms"]
    before, after = ask(capsys, *words, "--to", str(middle)), ask(capsys, *words, "--from", str(middle))
    assert {row["event"] for row in before + after} <= {row["event"] for row in entries}
    assert all(row["at_ms"] < middle for row in before)
    assert all(row["at_ms"] >= middle for row in after)
    points = {"member_joined", "member_left", "rebalanced", "created"}
    assert [row for row in before + after if row["event"] in points] == [
        row for row in entries if row["event"] in points
    ]


def test_gaps_have_the_time_of_the_first_record_behind_them(capsys: pytest.CaptureFixture[str]) -> None:
    entries = ask(capsys, "timeline", "--log-dir", logs("pruned"), "--group", "gp")
    gaps = [row for row in entries if row["event"] == "evidence_gap"]
    assert [row["text"] for row in gaps] == [
        "2,272 offsets of the state log missing: pruned",
        "2,714 offsets of the state log missing: pruned",
    ]
    for row in gaps:
        at = ["--state-partition", str(row["log_partition"]), "--from-offset", str(row["log_offset"]), "--limit", "1"]
        (record,) = ask(capsys, "records", "--log-dir", logs("pruned"), *at)
        assert (record["log_offset"], record["timestamp_ms"]) == (row["log_offset"], row["at_ms"])
    (of_other,) = (
        row
        for row in ask(capsys, "timeline", "--log-dir", logs("pruned"), "--group", "gq")
        if row["event"] == "evidence_gap"
    )
    assert of_other["log_partition"] in {row["log_partition"] for row in gaps}
