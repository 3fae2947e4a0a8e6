"""Settings that are given once answer alike in every command, and printed commands carry them."""

import csv
import html
import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from sharelens.cli import main
from sharelens.settings.folder import read_settings_folder
from tests.dataset_settings import given_settings
from tests.datasets import dataset
from tests.depths import in_soak
from tests.logs.state_logs import (
    ORDERS_ID,
    START_MS,
    snapshot,
    tombstone,
    update,
    write_log_directory,
    write_state_partition,
)
from tests.processes.in_process import make_lake, recorded_lake, story_lake
from tests.report_pages import leave_out_charts

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of settings with those of the recorded log `dlq`."""
    single, folder = (tmp_path_factory.mktemp(name) for name in ("single", "settings"))
    given_settings(dataset("dlq"), single)
    (single / "groups.txt").rename(folder / "group-configs.txt")
    (single / "server.properties").rename(folder / "broker.properties")
    return folder


@pytest.fixture(scope="module")
def lake(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lake of that log, which keeps the settings of the folder."""
    lake = tmp_path_factory.mktemp("lake") / "lake"
    make_lake(lake, dataset("dlq") / "logs", observations=read_settings_folder(str(folder)).observations)
    return lake


def logs() -> list[str]:
    return ["--log-dir", str(dataset("dlq") / "logs")]


def statuses(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["dlq", *words, "--output", "text"]) == 0
    return next(line for line in capsys.readouterr().out.splitlines() if line.startswith("record offsets"))


@pytest.mark.parametrize(
    ("option", "words"),
    [("--broker-config", ["poison"]), ("--settings", ["lag"]), ("--settings", ["audit"]), ("--settings", ["run"])],
)
def test_a_misspelt_setting_is_one_line_on_stderr(
    option: str, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = write_log_directory(tmp_path / "logs", [snapshot()])
    (tmp_path / "settings").mkdir()
    file = tmp_path / "settings" / "broker.properties"
    file.write_text("group.share.delivery.cout.limit=3\n", encoding="utf-8")
    where = ["--lake", str(tmp_path / "lake")] if words == ["run"] else []
    named = file if option == "--broker-config" else file.parent
    assert not main([*words, *where, "--log-dir", str(logs), option, str(named)])
    lines = [line for line in capsys.readouterr().err.splitlines() if "group.share.delivery.cout.limit" in line]
    assert lines == [
        (
            f"warning: {option}: {file} has settings of unknown names, which count for nothing: line 1: "
            "group.share.delivery.cout.limit (nearest: group.share.delivery.count.limit)"
        )
    ]


def test_a_folder_answers_as_its_files_do(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    single = ["--group-configs", str(folder / "group-configs.txt")]
    of_folder = statuses(capsys, *logs(), "--settings", str(folder))
    assert "missing 69" in of_folder
    assert of_folder == statuses(capsys, *logs(), *single)


@pytest.mark.parametrize("option", ["--settings", *in_soak("--group-configs")])
def test_an_evidence_folder_judges_dead_letters_as_dlq_does(folder: Path, tmp_path: Path, option: str) -> None:
    path = folder if option == "--settings" else folder / "group-configs.txt"
    out = tmp_path / "case"
    words = ["evidence", *logs(), "--group", "gd-broken", "--from", "2026-11-21T00:00:00Z"]
    words += ["--to", "2026-11-22T00:00:00Z", "--case", "C", "--out", str(out), option, str(path)]
    assert main([*words, "--output", "json"]) == 0
    table = next(out.rglob("dlq.csv"))
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    sizes: dict[str, int] = {}
    for row in rows:
        sizes[row["status"]] = sizes.get(row["status"], 0) + int(row["last_offset"]) - int(row["offset"]) + 1
    assert sizes == {"missing": 69}
    assert main(["verify", str(out), *logs(), "--output", "json"]) == 0


@pytest.mark.soak
def test_the_commands_of_an_overview_carry_the_settings(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--settings", str(folder), "--broker-config", str(folder / "broker.properties")]
    assert main(["overview", *logs(), *options, "--output", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["findings"]
    assert {row["kind"] for row in rows} >= {"dead_letters_missing", "records_archived"}
    for row in rows:
        words = shlex.split(row["command"])
        assert f"--settings={folder}" in words
        takes_files = words[1] in ("dlq", "poison", "stalled")
        assert (f"--broker-config={folder / 'broker.properties'}" in words) == takes_files
        assert main([*words[1:], "--limit", "1"]) == 0
    capsys.readouterr()


@pytest.mark.soak
def test_the_commands_of_a_report_carry_the_settings(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_out_charts(monkeypatch)
    out = tmp_path / "report.html"
    assert main(["report", *logs(), "--settings", str(folder), "--out", str(out)]) == 0
    text = html.unescape(out.read_text(encoding="utf-8"))
    commands = re.findall(r"sharelens [a-z]+ --log-dir [^<]*", text)
    assert len(commands) > 5
    assert all(f"--settings={folder}" in command for command in commands)


def rows_of(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, object]]:
    assert main([*words, "--output", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    return [{name: value for name, value in row.items() if name != "cluster_id"} for row in rows]


@pytest.mark.soak
@pytest.mark.parametrize("command", ["dlq", *in_soak("poison", "stalled --min-duration 1s", "poison --near-limit")])
def test_a_lake_with_settings_answers_without_an_option_as_the_log_with_them(
    lake: Path, folder: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = rows_of(capsys, *command.split(), *logs(), "--settings", str(folder))
    assert rows_of(capsys, *command.split(), "--lake", str(lake)) == expected
    bare = str(recorded_lake("dlq"))
    assert rows_of(capsys, *command.split(), "--lake", bare, "--settings", str(folder)) == expected
    assert rows_of(capsys, *command.split(), "--lake", bare) != expected


def test_settings_of_a_command_line_count_before_those_of_the_lake(
    lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "group-configs.txt").write_text("Dynamic configs for group gd-none are:\n", encoding="utf-8")
    words = ["poison", "--group", "gd-none"]
    expected = rows_of(capsys, *words, *logs(), "--settings", str(tmp_path))
    typed = rows_of(capsys, *words, "--lake", str(lake), "--settings", str(tmp_path))
    assert {row["delivery_count_limit"] for row in expected} == {None}
    assert {row["delivery_count_limit"] for row in typed} == {5}, "the brokers' limit is that of the lake"


def test_gold_tables_have_the_causes_that_poison_says(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = "select cause, count(*) as records from gold.poison_record group by cause order by cause"
    by_cause = {row["cause"]: row["records"] for row in rows_of(capsys, "sql", query, "--lake", str(lake))}
    assert set(by_cause) == {"delivery_limit", "rejected"}
    states = rows_of(capsys, "poison", "--lake", str(lake))
    assert {cause: sum(row["cause"] == cause for row in states) for cause in by_cause} == by_cause


@pytest.mark.soak
def test_evidence_from_a_lake_with_settings_is_judged_by_them(lake: Path, tmp_path: Path) -> None:
    words = ["evidence", "--lake", str(lake), "--group", "gd-broken", "--from", "2026-11-21T00:00:00Z"]
    out = tmp_path / "case"
    assert main([*words, "--to", "2026-11-22T00:00:00Z", "--case", "C", "--out", str(out), "--output", "json"]) == 0
    table = next(out.rglob("dlq.csv"))
    with table.open(encoding="utf-8", newline="") as file:
        assert {row["status"] for row in csv.DictReader(file)} == {"missing"}
    assert main(["verify", str(out), "--lake", str(lake), "--output", "json"]) == 0


@pytest.fixture
def nameless(tmp_path: Path) -> Path:
    """A lake whose logs, beside it, have neither the name nor the end of the topic."""
    story = [
        snapshot(start=0),
        update(batches=[(3, 4, 4, 2)]),
        update(batches=[(6, 6, 0, 1)], at_ms=START_MS + 120_000),
    ]
    shutil.copytree(story_lake("nameless", story).parent, tmp_path, dirs_exist_ok=True)
    return tmp_path / "lake"


@pytest.fixture
def names_and_ends(tmp_path: Path) -> Path:
    """A folder of settings with the topic's name and the end of its partition."""
    folder = tmp_path / "names"
    folder.mkdir()
    (folder / "topics.txt").write_text(f"{ORDERS_ID} orders\n", encoding="utf-8")
    (folder / "end-offsets.txt").write_text("orders:0:50\n", encoding="utf-8")
    return folder


@pytest.mark.soak
@pytest.mark.parametrize("stored", [True, *in_soak(False)])
def test_names_and_ends_of_a_folder_count_in_every_answer(
    stored: bool,
    nameless: Path,
    names_and_ends: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leave_out_charts(monkeypatch)
    words = ["--lake", str(nameless), "--settings", str(names_and_ends)]
    if stored:
        assert main(["measure", *words]) == main(["publish", *words[:2]]) == 0
        capsys.readouterr()
        words = words[:2]
    for command in ("lag", "stalled --min-duration 1m", "poison"):
        assert {row["topic"] for row in rows_of(capsys, *command.split(), *words)} == {"orders"}
    (row,) = rows_of(capsys, "lag", *words)
    assert (row["lag"], row["end_offset"], row["end_offset_source"]) == (50, 50, "end_offsets_file")
    (row,) = rows_of(capsys, "stalled", "--min-duration", "1m", *words)
    assert (row["end_offset"], row["end_offset_source"]) == (50, "end_offsets_file")
    assert main(["overview", *words, "--output", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [group["lag"] for group in answer["groups"]] == [50]
    assert main(["metrics", *words, "--output-file", str(tmp_path / "metrics")]) == 0
    metrics = (tmp_path / "metrics").read_text(encoding="utf-8")
    assert re.search(r'kafka_sharegroup_lag\{[^}]*topic="orders"[^}]*\} 50', metrics), metrics
    assert main(["report", *words, "--out", str(tmp_path / "report.html")]) == 0
    assert "orders" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("source", ["log directory", "stored in the lake", *in_soak("lake")])
def test_the_end_of_a_topic_that_was_created_again_is_that_of_the_new_one(
    source: str, names_and_ends: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = "AAAAAAAAAAAAAAAAAAAABg"
    story = [
        snapshot(start=0, batches=[(0, 3, 2, 1)]),
        tombstone(at_ms=START_MS + 1_000),
        snapshot(start=0, topic_id=new, at_ms=START_MS + 2_000),
        update(topic_id=new, batches=[(1, 8, 2, 1)], delivery_complete_count=8, at_ms=START_MS + 3_000),
        update(topic_id=new, batches=[(9, 9, 2, 1)], delivery_complete_count=9, at_ms=START_MS + 123_000),
    ]
    logs, lake = tmp_path / "logs", tmp_path / "lake"
    logs.mkdir()
    write_state_partition(logs, story)
    (names_and_ends / "topics.txt").write_text(f"{ORDERS_ID} orders\n{new} orders\n", encoding="utf-8")
    words = ["--log-dir", str(logs), "--settings", str(names_and_ends)]
    if source != "log directory":
        make_lake(lake, logs)
        words = ["--lake", str(lake), "--settings", str(names_and_ends)]
    if source == "stored in the lake":
        assert main(["measure", *words]) == main(["publish", *words[:2]]) == 0
        capsys.readouterr()
        words = words[:2]
    (row,) = rows_of(capsys, "lag", *words)
    assert (row["topic_id"], row["end_offset"], row["lag"]) == (new, 50, 41)
    (row,) = rows_of(capsys, "stalled", "--min-duration", "1m", *words)
    assert (row["topic_id"], row["end_offset"], row["first_incomplete_offset"]) == (new, 50, 0)


@pytest.mark.soak
def test_an_evidence_folder_depends_on_no_end_offset_of_settings(
    nameless: Path, names_and_ends: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--lake", str(nameless), "--settings", str(names_and_ends)]
    assert main(["measure", *words]) == main(["publish", *words[:2]]) == 0
    out = tmp_path / "case"
    window = ["--group", "g", "--from", str(START_MS), "--to", str(START_MS + 999_999), "--case", "C"]
    assert main(["evidence", *words, *window, "--out", str(out), "--output", "json"]) == 0
    sources = (words[:2], ["--log-dir", str(tmp_path / "logs")])
    assert [main(["verify", str(out), *source, "--output", "json"]) for source in sources] == [0, 0]
    capsys.readouterr()
