"""`describe --as-of` over recorded logs against what the brokers' Admin API answered at each checkpoint."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from sharelens.cli import main
from sharelens.lake.scan import Cut, open_lake
from tests.compat.test_log_dir_answers import lines
from tests.datasets import dataset, scenarios
from tests.depths import in_soak
from tests.processes.in_process import recorded_lake

pytestmark = pytest.mark.usefixtures("evidence_opened_once")

Json = dict[str, Any]
Ask = Callable[..., list[Json]]
WITHOUT_GROUPS = ("big-small",)
"""Data sets without a described group."""
PRUNED = "pruned"
"""Its oldest state records are below the log start offset, so that share state of early checkpoints is gone."""


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """Runs `describe` with --output json and returns its rows."""

    def describe(*words: str) -> list[Json]:
        code = main(["describe", *words, "--output", "json"])
        out, err = capsys.readouterr()
        assert code == 0, err
        rows = json.loads(out)
        assert isinstance(rows, list)
        return rows

    return describe


def failure(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """Exit code and the only line on stderr; stdout is empty."""
    code = main(["describe", *words])
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    return code, line


def moments(folder: Path) -> Iterator[tuple[int, Json]]:
    """Each checkpoint with its time, which is not before the newest record that its answers know."""
    records = [
        *(("logEndOffsets", row) for row in lines(folder / "formatter.jsonl")),
        *(("consumerOffsetsEnd", row) for row in lines(folder / "formatter-offsets.jsonl")),
    ]
    for checkpoint in lines(folder / "checkpoints.jsonl"):
        newest = [
            row["timestamp"]
            for name, row in records
            if row["offset"] < checkpoint.get(name, {}).get(str(row["partition"]), 0)
        ]
        yield max([checkpoint["wallMs"], *newest]), checkpoint


def group_after_group(folder: Path) -> list[tuple[str, int, Json]]:
    """Each group at each checkpoint that describes it; one group after the other, so that its records are read once."""
    described = [(group, moment) for moment in moments(folder) for group in moment[1].get("describeShareGroups", {})]
    return [(group, *moment) for group, moment in sorted(described, key=lambda pair: pair[0])]


def group_of(row: Json) -> Json:
    return {
        "state": row["state"].title(),
        "groupEpoch": row["group_epoch"],
        "targetAssignmentEpoch": row["assignment_epoch"],
    }


def member_of(row: Json) -> tuple[str, str, int, list[str]]:
    assigned = [f"{of['topic']}-{number}" for of in row["assigned_partitions"] for number in of["partitions"]]
    assert row["partition_count"] == len(assigned)
    return row["member_id"], row["client_id"], row["member_epoch"], sorted(assigned)


def offsets_of(rows: list[Json]) -> dict[str, tuple[int, int] | None]:
    return {
        f"{row['topic']}-{row['partition']}": None
        if row["start_offset"] is None
        else (row["start_offset"], row["leader_epoch"])
        for row in rows
    }


def compare_offsets(rows: list[Json], listed: Json) -> int:
    """Compares partitions, start offsets, leader epochs and known lags; returns the number of lags."""
    assert offsets_of(rows) == {
        place: None if entry is None else (entry.get("startOffset", entry.get("offset")), entry["leaderEpoch"])
        for place, entry in listed.items()
    }
    lags = 0
    for row in rows:
        entry = listed[f"{row['topic']}-{row['partition']}"]
        lag = row["lag_inferred"] if row["lag"] is None else row["lag"]
        if entry is not None and entry.get("lag") is not None and lag is not None:
            assert lag == entry["lag"]
            lags += 1
    return lags


@pytest.mark.one_in(2)
@pytest.mark.parametrize("step", [4, *in_soak(1)])
@pytest.mark.parametrize("name", [name for name in scenarios() if name not in WITHOUT_GROUPS])
def test_each_checkpoint_is_described_as_the_admin_api_did(
    name: str, step: int, ask: Ask, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each `step`th pair of a group and a checkpoint, and the last."""
    logs = ["--log-dir", str(dataset(name) / "logs")]
    described = lags = 0
    for group, at_ms, checkpoint in group_after_group(dataset(name))[::-1][::step]:
        answer = checkpoint["describeShareGroups"][group]
        words = [*logs, "--group", group, "--as-of", str(at_ms)]
        if not isinstance(answer, dict):
            code, line = failure(capsys, *words, "--state")
            assert code
            assert re.search(
                "has no record up to|did not exist at|no share (or streams )?group|no record in __consumer", line
            )
            continue
        (row,) = ask(*words, "--state")
        assert group_of(row) == {key: answer[key] for key in group_of(row)}
        members = ask(*words, "--members")
        assert row["member_count"] == len(members) == len(answer["members"])
        assert [member_of(member) for member in members] == sorted(
            (of["memberId"], of["clientId"], of["epoch"], sorted(of["assignment"])) for of in answer["members"]
        )
        assert {of["completeness"] for of in (row, *members)} == {"complete"}, "the logs were never compacted"
        described += 1
        listed = checkpoint.get("listShareGroupOffsets", {}).get(group)
        if isinstance(listed, dict) and name != PRUNED:
            lags += compare_offsets(ask(*words), listed)
    assert described
    assert lags or name in ("v41", PRUNED), "4.1 listed no lag"


def as_of(lake: Cut, table: str, group: str, at_ms: int) -> list[Json]:
    """The rows of a history of a group that are valid at a time."""
    rows = lake.scan(table, None, (pc.field("group_id") == group) & (pc.field("valid_from_ms") <= at_ms))
    return list(rows.filter(pc.field("valid_to_ms").is_null() | (pc.field("valid_to_ms") > at_ms)).to_pylist())


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ["admin", "timeouts", "dlq"])
def test_histories_of_a_lake_are_what_the_admin_api_answered_at_each_checkpoint(name: str) -> None:
    lake = open_lake(recorded_lake(name))
    names = dict(
        zip(*(lake.scan("silver.name").column(field).to_pylist() for field in ("topic_id", "topic")), strict=True)
    )
    described = members = 0
    for at_ms, checkpoint in moments(dataset(name)):
        for group, answer in checkpoint.get("describeShareGroups", {}).items():
            rows = as_of(lake, "gold.group_history", group, at_ms)
            if not isinstance(answer, dict):
                assert {row["state"] for row in rows} <= {"DEAD"}
                continue
            (row,) = rows
            assert group_of(row) == {key: answer[key] for key in group_of(row)}
            described += 1
            of_members = [
                (
                    of["member_id"],
                    of["client_id"],
                    of["member_epoch"],
                    sorted(
                        f"{names[part['topic_id']]}-{n}"
                        for part in of["assigned_partitions"]
                        for n in part["partitions"]
                    ),
                )
                for of in as_of(lake, "gold.member_history", group, at_ms)
            ]
            assert sorted(of_members) == sorted(
                (of["memberId"], of["clientId"], of["epoch"], sorted(of["assignment"])) for of in answer["members"]
            )
            members += len(of_members)
            listed = checkpoint.get("listShareGroupOffsets", {}).get(group)
            if isinstance(listed, dict):
                initialized = as_of(lake, "gold.share_initialization_history", group, at_ms)
                places = {
                    f"{of['topic'] or names[of['topic_id']]}-{of['partition']}"
                    for of in initialized
                    if of["status"] == "INITIALIZED"
                }
                assert places == set(listed)
    assert described
    assert members or name != "timeouts"


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ["admin", "timeouts"])
@pytest.mark.parametrize("view", ["--state", "--members", "--offsets"])
def test_a_lake_describes_as_its_log_does(name: str, view: str, ask: Ask) -> None:
    *_, (middle_ms, checkpoint), _, (_, _) = moments(dataset(name))
    groups = [group for group, answer in checkpoint["describeShareGroups"].items() if isinstance(answer, dict)]
    for group in groups:
        words = ["--group", group, view, "--as-of", str(middle_ms)]
        of_logs = ask("--log-dir", str(dataset(name) / "logs"), *words)
        assert ask("--lake", str(recorded_lake(name)), *words) == of_logs
    assert groups


def test_the_offsets_are_the_default_and_the_lag_is_that_of_lag(ask: Ask, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--log-dir", str(dataset("timeouts") / "logs"), "--group", "g-never"]
    rows = ask(*words)
    assert ask(*words, "--offsets") == rows
    assert main(["lag", *words, "--output", "json"]) == 0
    lags = {(row["topic_id"], row["partition"]): row["lag"] for row in json.loads(capsys.readouterr().out)}
    assert {(row["topic_id"], row["partition"]): row["lag"] for row in rows} == lags


def test_end_offsets_of_a_file_count_as_in_lag(ask: Ask, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--log-dir", str(dataset("timeouts") / "logs"), "--group", "g-never"]
    (topic,) = {row["topic"] for row in ask(*words)}
    ends = tmp_path / "ends.txt"
    ends.write_text("".join(f"{topic}:{partition}:1000\n" for partition in range(3)))
    words += ["--end-offsets", str(ends)]
    lags = {row["partition"]: row["lag"] for row in ask(*words)}
    assert all(lag > 500 for lag in lags.values())
    assert main(["lag", *words, "--output", "json"]) == 0
    assert {row["partition"]: row["lag"] for row in json.loads(capsys.readouterr().out)} == lags
    assert failure(capsys, *words, "--members") == (
        2,
        "sharelens: describe: --end-offsets is for the lag; leave it out with --members, --tasks and --state",
    )


def test_a_share_partition_whose_state_is_gone_is_incomplete(ask: Ask) -> None:
    at_ms, _ = next(moments(dataset(PRUNED)))
    rows = ask("--log-dir", str(dataset(PRUNED) / "logs"), "--group", "gq", "--as-of", str(at_ms))
    assert [(row["start_offset"], row["completeness"], row["completeness_reason"]) for row in rows] == [
        (None, "incomplete", "no_share_state")
    ]


def test_the_text_has_the_columns_of_the_tool_without_the_coordinator(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["describe", "--log-dir", str(dataset("timeouts") / "logs"), "--group", "g-never"]
    texts = []
    for view in ("--offsets", "--members", "--state"):
        assert main([*words, view]) == 0
        texts.append(capsys.readouterr().out)
    headings = [text.split("\n", 1)[0].split() for text in texts]
    assert headings[0] == ["GROUP", "TOPIC", "PARTITION", "LEADER-EPOCH", "START-OFFSET", "LAG", "COMPLETENESS"]
    assert headings[1][:7] == [
        "GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", "MEMBER-EPOCH", "ASSIGNMENT",
    ]  # fmt: skip
    assert headings[2][:5] == ["GROUP", "STATE", "GROUP-EPOCH", "ASSIGNMENT-EPOCH", "#MEMBERS"]
    assert "jobs:0,1,2" in texts[1]
    assert all("the coordinator is not in the logs" in text for text in texts)


@pytest.mark.parametrize(
    ("words", "expected", "message"),
    [
        (["--group", "nope"], 2, "no consumer, share or streams group nope in "),
        (["--group", "g-never", "--as-of", "5"], 1, "has no record up to 1970-01-01"),
        (
            ["--group", "g-never", "--members", "--state"],
            2,
            "--offsets, --members, --tasks and --state exclude each other",
        ),
        (["--group", "g-never", "--as-of", "never"], 2, "--as-of"),
        ([], 2, "--group"),
    ],
)
def test_nonsense_is_one_line(
    words: list[str], expected: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, line = failure(capsys, "--log-dir", str(dataset("timeouts") / "logs"), *words)
    assert code == expected
    assert message in line


def test_a_deleted_group_is_named_with_its_tombstone(capsys: pytest.CaptureFixture[str]) -> None:
    code, line = failure(capsys, "--log-dir", str(dataset("admin") / "logs"), "--group", "gD")
    assert code == 1
    assert "gD is deleted: its tombstone is of 2026-11-21T03:36:03.213Z (__consumer_offsets-1 @ 138)" in line


def test_a_share_group_has_no_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    code, line = failure(capsys, "--log-dir", str(dataset("timeouts") / "logs"), "--group", "g-never", "--tasks")
    assert code == 2
    assert "g-never is a share group, which has no tasks" in line
