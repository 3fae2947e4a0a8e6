"""The command dlq from outside: what it refuses, what it exits with, and the files of a plan."""

import json
import stat
from pathlib import Path

import pytest

from sharelens.cli import main
from tests.logs.dead_letter_logs import letter_headers, write_cut_letters, write_letters
from tests.logs.state_logs import START_MS, snapshot, update, write_log_directory
from tests.logs.user_topics import write_orders
from tests.processes.in_process import make_lake

FINDINGS, USAGE, FAILURE = 3, 2, 1


@pytest.fixture
def logs(tmp_path: Path) -> str:
    """Group g gave up orders-0 @ 3 to 5; dead letters speak of 3, twice, and the first one has a broken twin."""
    folder = tmp_path / "logs"
    states = [[(3, 5, 3, 1)], [(3, 5, 4, 1)]]
    write_log_directory(folder, [snapshot(), *(update(start=0, batches=state_batches) for state_batches in states)])
    write_orders(folder)
    write_letters(
        folder,
        [
            (None, b"v", letter_headers(3)),
            (None, None, letter_headers(3)),
            (None, b"v", letter_headers(4, message="Offset delivery count exceeded the threshold.")),
            (None, b"v", letter_headers(7)[:2]),
        ],
    )
    return str(folder)


def run_dlq(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["dlq", *words])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.slow
def test_findings_are_an_exit_code_when_they_are_asked_for(logs: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run_dlq(capsys, "--log-dir", logs, "--fail-on", "--output", "json")
    assert code == FINDINGS
    assert [row["status"] for row in json.loads(out)] == ["matched", "duplicate", "matched", "missing"]
    assert "2 rows missing, duplicate or unexpected" in err
    assert "headers that can't be read in 1 dead letters: dlq.orders-0 @ 3 (" in err
    assert run_dlq(capsys, "--log-dir", logs, "--fail-on", "--status", "matched")[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("source", ["--log-dir", "--lake"])
def test_a_group_is_judged_alone_as_among_others(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The topic for dead letters was cut; how far back it reaches shows its oldest dead letter, of whatever group."""
    states = [update(start=0, batches=[(3, 5, state, 1)], at_ms=START_MS + at) for state, at in ((3, 10), (4, 20))]
    write_log_directory(tmp_path / "logs", [snapshot(), *states, snapshot("other", at_ms=START_MS + 25)])
    write_orders(tmp_path / "logs")
    letters = [(1, "other"), (1, "other"), (3, "g")]
    write_cut_letters(tmp_path / "logs", [(None, b"v", letter_headers(at, group=group)) for at, group in letters])
    place = str(tmp_path / "logs")
    if source == "--lake":
        place = str(tmp_path / "lake")
        make_lake(tmp_path / "lake", tmp_path / "logs")
    of_all = json.loads(run_dlq(capsys, source, place, "--output", "json")[1])
    alone = json.loads(run_dlq(capsys, source, place, "--group", "g", "--output", "json")[1])
    assert [row["status"] for row in alone] == ["matched", "missing"]
    assert alone == [row for row in of_all if row["group_id"] == "g"]


@pytest.mark.slow
def test_text_begins_with_sums_and_lists_what_is_wrong_first(logs: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run_dlq(capsys, "--log-dir", logs)
    digest, _, rows = out.partition("\n\n")
    sums = [line.split() for line in digest.splitlines()]
    assert code == 0
    assert sums[0] == ["STATUS", "GROUP", "REASON", "CAUSE", "RECORDS", "PARTITIONS", "LAST"]
    assert [(line[0], line[1], line[4], line[5]) for line in sums[1:]] == [
        ("missing", "g", "1", "1"),
        ("duplicate", "g", "1", "1"),
        ("matched", "g", "1", "1"),
        ("matched", "g", "1", "1"),
    ]
    assert [line.split()[0] for line in rows.splitlines()[1:5]] == ["missing", "duplicate", "matched", "matched"]


@pytest.mark.slow
def test_the_sums_are_of_the_statuses_that_are_listed(logs: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = run_dlq(capsys, "--log-dir", logs, "--status", "missing")[1]
    assert [line.split()[0] for line in out.partition("\n\n")[0].splitlines()] == ["STATUS", "missing"]
    assert run_dlq(capsys, "--log-dir", logs, "--columns", "status")[1].splitlines()[0] == "STATUS"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--status", "lost"], "'lost' is no status; there are matched, duplicate, missing"),
        (["--gap", "5s"], "--gap goes with --bursts"),
        (["--bursts", "--fail-on"], "leave out --status and --fail-on"),
        (["--dlq-prefix", ""], "name the topics with --dlq-topic NAME"),
        (["--dlq-topic", "__share_group_state"], "can hold no dead letters"),
        (["plan", "--out", "x.json"], "options follow the subcommand: sharelens dlq plan"),
        (["--group", "nobody"], "no share group nobody"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_to_type(
    logs: str, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run_dlq(capsys, "--log-dir", logs, *words)
    assert (code, out) == (USAGE, "")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.slow
def test_a_plan_is_for_its_owner_alone_and_replaced_only_when_told_to(
    logs: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "plan.json"
    words = ["plan", "--log-dir", logs, "--out", str(out)]
    code, output, _ = run_dlq(capsys, *words)
    assert code == 0
    assert {key: json.loads(output)[key] for key in ("rows", "redrive", "check", "do_not")} == {
        "rows": 4,
        "redrive": 1,
        "check": 2,
        "do_not": 1,
    }
    for path in (out, tmp_path / "plan.json.sha256"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = out.read_bytes()
    code, _, err = run_dlq(capsys, *words)
    assert code == FAILURE
    assert "is there already" in err
    assert run_dlq(capsys, *words, "--force")[0] == 0
    assert out.read_bytes() == before
    rows = json.loads(before)["rows"]
    assert [(row["offset"], row["advice"], row["read_from"]) for row in rows] == [
        (3, "check", "dead_letter"),
        (3, "do_not", None),
        (4, "redrive", "dead_letter"),
        (5, "check", "source"),
    ]


@pytest.mark.parametrize("name", ["plan.txt", "plan", "nowhere/plan.json"])
def test_a_plan_needs_an_ending_and_a_folder(
    logs: str, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run_dlq(capsys, "plan", "--log-dir", logs, "--out", str(tmp_path / name))
    assert code == (FAILURE if "/" in name else USAGE)
    assert ("no folder" if "/" in name else "ends in neither .json nor .csv") in err


@pytest.mark.slow
def test_a_directory_without_topics_for_dead_letters_says_how_to_supply_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_log_directory(tmp_path / "logs", [snapshot()])
    code, out, err = run_dlq(capsys, "--log-dir", str(tmp_path / "logs"))
    assert (code, out.splitlines()[0]) == (0, "no dead letter, and none was due")
    assert "copy the topics' folders too, or name them with --dlq-topic" in err


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("--bursts",)])
def test_a_topic_that_nobody_looked_into_is_named_with_those_that_were(
    logs: str, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run_dlq(capsys, *words, "--log-dir", logs, "--dlq-topic", "nosuch")
    assert code == 0
    assert "no topic nosuch was searched for dead letters" in err
    assert "searched topics: dlq.orders" in err
    searched_result = run_dlq(capsys, *words, "--log-dir", logs, "--dlq-topic", "dlq.orders")
    assert "was searched for dead letters" not in searched_result[2]
