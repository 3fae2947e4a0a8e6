"""A log of share state alone still gives all that it can say, and every answer names what is missing, how to get it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sharelens.cli import main
from sharelens.questions.answers.missing import lacking
from tests.logs.state_logs import ORDERS_ID, START_MS, snapshot, tombstone, update, write_log_directory
from tests.once import made_once
from tests.processes.in_process import make_lake

pytestmark = pytest.mark.slow

Outcome = tuple[int, str, str]
HOSTILE = "x\n'; DROP TABLE g; --\x1b[2J</script>"
ARCHIVED = 4
RECORD = ["--topic", ORDERS_ID, "--partition", "0"]
WINDOW = ["--from", str(START_MS), "--to", str(START_MS + 5_000)]
ANSWERED = {
    "state": [],
    "records": [],
    "lag": [],
    "stalled": [],
    "poison": [],
    "redelivered": [],
    "account": [],
    "life": [],
    "cost": [],
    "latency": [],
    "attempts": [],
    "diff": WINDOW,
    "trace": ["--group", "g", *RECORD, "--offset", "2"],
}
NAMES = "the names of 1 topics are not in the evidence, their ids are shown: copy the topics' folders"
SUPPLY = {
    "lag": "no end offset of 2 user partitions is known, so their lag is unknown: copy their TOPIC-N folders",
    "stalled": "a silent stall and an idle share partition look alike there; copy their folders too",
    "poison": "there an archived offset may be a gap",
    "account": "copy the topics' folders too",
    "latency": "copy their folders too",
    "latency --ranges": "copy their folders too",
    "groups": "copy the brokers' __consumer_offsets-N folders too; groups with share state: g, ",
    "life --event deleted": "who deleted is unknown, no record of the group is in __consumer_offsets: copy",
    "status": "no folder of a user topic: lags, ages, gaps and silent stalls are unknown; copy the TOPIC-N folders too",
}


@pytest.fixture(scope="module", params=["--log-dir", "--lake"])
def source(request: pytest.FixtureRequest) -> list[str]:
    """Share state, and nothing else: no user topic, no __consumer_offsets."""
    folder = made_once("missing", make_bare)
    return [request.param, str(folder / ("logs" if request.param == "--log-dir" else "lake"))]


def make_bare(folder: Path) -> None:
    story = [
        snapshot(start=0),
        snapshot(HOSTILE, 1, start=0),
        update(batches=[(0, 2, ARCHIVED, 5)], delivery_complete_count=3, at_ms=START_MS + 1_000),
        snapshot("gone", start=0, at_ms=START_MS + 1_000),
        tombstone("gone", at_ms=START_MS + 1_000),
    ]
    logs = write_log_directory(folder / "logs", story)
    for file in (logs / "orders-0").iterdir():
        file.unlink()
    (logs / "orders-0").rmdir()
    make_lake(folder / "lake", logs)


@pytest.fixture
def ask(source: list[str], capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    def run_command(command: str, *words: str) -> Outcome:
        code = main([command, *source, *words])
        return code, *capsys.readouterr()

    return run_command


def test_a_user_partition_of_which_only_a_deletion_is_known_is_not_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    logs = write_log_directory(tmp_path, [snapshot(start=0), tombstone("h", 5)])
    assert main(["stalled", "--log-dir", str(logs)]) == 0
    assert "user partitions are not in the evidence" not in capsys.readouterr().err


@pytest.mark.one_in(4)
@pytest.mark.parametrize("command", ANSWERED)
def test_a_question_is_answered_and_the_missing_names_are_told(ask: Callable[..., Outcome], command: str):
    code, out, err = ask(command, *ANSWERED[command], "--output", "jsonl")
    assert code == 0
    if out:
        assert NAMES in err


@pytest.mark.parametrize("command", SUPPLY)
def test_what_can_not_be_told_names_how_to_supply_it(ask: Callable[..., Outcome], command: str):
    code, _, err = ask(*command.split())
    assert code == 0
    assert SUPPLY[command] in err


def test_members_can_not_be_told_without_the_group_coordinators_log(ask: Callable[..., Outcome]):
    code, _, err = ask("trace", *ANSWERED["trace"], "--members")
    assert code == 0
    assert "members are unknown, no record of the group is in __consumer_offsets: copy the brokers'" in err


def test_metrics_name_what_is_missing(ask: Callable[..., Outcome], tmp_path: Path):
    code, _, err = ask("metrics", "--output-file", str(tmp_path / "metrics.prom"))
    assert code == 0
    assert SUPPLY["lag"] in err
    assert NAMES in err


@pytest.mark.parametrize("options", [["--key", "k"], ["--around", str(START_MS)]])
def test_a_record_can_not_be_located_and_it_is_said_what_to_copy(ask: Callable[..., Outcome], options: list[str]):
    code, out, err = ask("locate", "--topic", "orders", *options)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "folders" in err


def test_the_place_of_a_record_of_a_topic_by_id_is_not_silently_unknown(ask: Callable[..., Outcome]):
    code, _, err = ask("locate", "--topic", ORDERS_ID, "--around", str(START_MS), "--output", "json")
    assert (code, "copy the TOPIC-N folders, with" in err) in {(0, True), (2, True)}


@pytest.mark.parametrize("command", sorted(set(ANSWERED) - {"trace"}))
def test_an_unknown_group_is_one_line_with_those_that_are_there(ask: Callable[..., Outcome], command: str):
    code, out, err = ask(command, *ANSWERED[command], "--group", HOSTILE + "?")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "no share group" in err
    assert "groups there: g, " in err
    assert "\x1b" not in err


@pytest.mark.parametrize("command", sorted(set(ANSWERED) - {"trace"}))
def test_an_unknown_topic_is_one_line_that_says_how_names_come_in(ask: Callable[..., Outcome], command: str):
    code, out, err = ask(command, *ANSWERED[command], "--topic", "orders")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "no topic orders in" in err
    assert f"topics with share state: {ORDERS_ID}; names of those shown by id: copy the topics' folders" in err


@pytest.mark.one_in(4)
@pytest.mark.parametrize("command", sorted(ANSWERED))
def test_hostile_names_move_no_terminal(ask: Callable[..., Outcome], command: str):
    code, out, err = ask(command, *ANSWERED[command])
    assert code == 0
    assert "\x1b" not in out + err


def test_a_group_with_share_state_alone_is_not_unknown(ask: Callable[..., Outcome]):
    code, out, err = ask("groups", "--group", "g")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "share group g has share state in" in err
    assert "copy the brokers' __consumer_offsets-N folders too" in err


def test_only_what_is_not_there_is_told():
    assert lacking({"__share_group_state", "__consumer_offsets", "orders"}) == []
    assert [line.split(":")[0] for line in lacking(set())] == [
        "no partition of __share_group_state",
        "no partition of __consumer_offsets",
        "no folder of a user topic",
    ]
