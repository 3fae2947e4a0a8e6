"""Changes between two moments on a recorded log with groups and topics that were deleted and created again."""

import json
from collections import Counter
from typing import Any

import pytest

from sharelens.cli import main
from tests.datasets import dataset

pytestmark = pytest.mark.usefixtures("evidence_opened_once")
BEFORE_THE_GROUP_WENT, BEFORE_THE_TOPIC_WENT = "2026-11-21T03:35:34Z", "2026-11-21T03:35:44Z"
END = "2026-11-21T03:36:03Z"
LIVES = ("created", "recreated", "reset", "deleted", "leader_epoch_moved", "state_epoch_moved")
OF_GROUPS = ("member_joined", "member_changed", "member_left", "rebalanced", "group_deleted")


def ask(capsys: pytest.CaptureFixture[str], command: str, *arguments: str, form: str = "json") -> Any:
    capsys.readouterr()
    code = main([command, "--log-dir", str(dataset("admin") / "logs"), *arguments, "--output", form]) or 0
    out, err = capsys.readouterr()
    assert code == 0, err
    return json.loads(out) if form == "json" else out


@pytest.mark.soak
def test_a_group_that_was_deleted_and_created_again_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    moments = ["--from", BEFORE_THE_GROUP_WENT, "--to", END]
    rows = ask(capsys, "diff", "--group", "gL", *moments)
    assert [(row["partition"], row["change"]) for row in rows] == [
        (0, "recreated"),
        (1, "recreated"),
        (2, "recreated"),
        (3, "appeared"),
    ]
    words = Counter(changed["meaning"].split(",")[0] for row in rows for changed in row["changed_ranges"])
    assert set(words) == {"deleted and created again"}
    assert "reset" not in ask(capsys, "diff", "--group", "gL", *moments, form="text")


def test_a_topic_that_was_deleted_and_created_again_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    rows = ask(capsys, "diff", "--group", "gE", "--topic", "beta", "--from", BEFORE_THE_TOPIC_WENT, "--to", END)
    changes = sorted((row["change"], row["partition"]) for row in rows)
    assert changes == [("deleted", 0), ("deleted", 1), ("recreated", 0), ("recreated", 1), ("recreated", 2)]
    meanings = {changed["meaning"].split(",")[0] for row in rows for changed in row["changed_ranges"]}
    assert meanings == {"topic deleted and created again"}


def test_an_offset_reset_is_no_deletion(capsys: pytest.CaptureFixture[str]) -> None:
    rows = ask(capsys, "diff", "--group", "gE", "--topic", "alpha", "--from", BEFORE_THE_GROUP_WENT, "--to", END)
    by_partition = {row["partition"]: row for row in rows}
    assert by_partition[0]["change"] == "changed"
    assert by_partition[0]["changed_ranges"][0]["meaning"].startswith("offset reset")
    assert [entry["text"] for entry in by_partition[0]["entries"] if entry["event"] == "reset"] == [
        "start offset 3 to 50"
    ]


@pytest.mark.soak
def test_the_entries_are_those_of_the_timeline(capsys: pytest.CaptureFixture[str]) -> None:
    rows = ask(capsys, "diff", "--group", "gL", "--from", BEFORE_THE_GROUP_WENT, "--to", END)
    listed = [entry for row in rows for entry in row["entries"]]
    timeline = ask(capsys, "timeline", "--group", "gL", "--from", BEFORE_THE_GROUP_WENT, "--to", END)
    names = list(listed[0])
    expected = [{name: row[name] for name in names} for row in timeline if row["event"] in (*LIVES, *OF_GROUPS)]
    assert sorted(listed, key=str) == sorted(expected, key=str)
    text = ask(capsys, "diff", "--group", "gL", "--from", BEFORE_THE_GROUP_WENT, "--to", END, form="text")
    digest, _, rest = text.partition("\n\n")
    shown = [line.split()[1] for line in digest.splitlines()[1:]]
    assert shown == [row["event"] for row in timeline if row["event"] in (*LIVES, "group_deleted")]
    assert "member_joined 3, member_left 4" in rest
