"""What-if with the setting that was in force is the history itself, on every recorded log."""

import json

import pytest

from sharelens.cli import main
from tests.datasets import KINDS, dataset, kinds_first
from tests.logs.state_logs import update, write_log_directory
from tests.processes.in_process import recorded_lake

pytestmark = pytest.mark.usefixtures("evidence_opened_once")

INTERVAL = "share.coordinator.snapshot.update.records.per.snapshot"
RAW = ("edge", "edge44", "big-small")
"""Logs of requests that no leader sends: their delivery counts know no limit."""
WITHOUT_CREATION = ("pruned",)
"""Logs whose records begin in the middle of a history: figures are bounds."""


def answer_of(capsys, *words):
    assert main([*words, "--output", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def config(name):
    return json.loads((dataset(name) / "meta.json").read_text())["brokerConfig"]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", kinds_first(KINDS))
def test_the_snapshot_interval_in_force_gives_the_history(name, capsys):
    limit = config(name).get(INTERVAL, "500")
    rows = answer_of(capsys, "what-if", "--snapshot-update-records", limit, "--log-dir", str(dataset(name) / "logs"))
    assert rows
    assert all(row["at_least"] <= row["in_history"] <= row["at_most"] for row in rows)
    if name not in WITHOUT_CREATION:
        assert {row["certainty"] for row in rows} == {"exact"}
        assert all(row["at_least"] == row["at_most"] for row in rows)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", kinds_first(KINDS, but=RAW))
def test_the_delivery_count_limit_in_force_gives_the_history(name, tmp_path, capsys):
    limit = config(name).get("group.share.delivery.count.limit", "5")
    (tmp_path / "broker.properties").write_text(f"group.share.delivery.count.limit={limit}\n")
    logs = ("--log-dir", str(dataset(name) / "logs"), "--broker-config", str(tmp_path / "broker.properties"))
    rows = answer_of(capsys, "what-if", "--delivery-count-limit", limit, *logs)
    assert rows
    assert all(row["at_least"] == row["in_history"] == row["at_most"] for row in rows)
    assert {row["certainty"] for row in rows} == {"exact"}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", kinds_first(KINDS))
def test_the_lock_duration_in_force_gives_the_history(name, tmp_path, capsys):
    broker = {key: value for key, value in config(name).items() if key.startswith("group.share.")}
    (tmp_path / "broker.properties").write_text("".join(f"{key}={value}\n" for key, value in broker.items()))
    duration = broker.get("group.share.record.lock.duration.ms", "30000")
    logs = ("--log-dir", str(dataset(name) / "logs"), "--broker-config", str(tmp_path / "broker.properties"))
    rows = answer_of(capsys, "what-if", "--lock-duration", duration, *logs)
    outcomes = [row for row in rows if row["figure"] != "timed_out"]
    assert outcomes
    assert all(row["at_least"] == row["in_history"] == row["at_most"] for row in outcomes)
    assert {row["certainty"] for row in outcomes} == {"exact"}
    assert all(row["at_least"] == 0 for row in rows if row["figure"] == "timed_out")


LEVELS = {"g-rc": "read_committed", "g-ru": "read_uncommitted"}
"""The two groups of the recorded transactions, which read the same topic."""


@pytest.mark.parametrize("level", LEVELS.values())
@pytest.mark.parametrize("knows_settings", [True, False])
def test_the_isolation_level_in_force_gives_the_history(level, knows_settings, tmp_path, capsys):
    (tmp_path / "groups.txt").write_text(GROUP_CONFIGS)
    files = ("--group-configs", str(tmp_path / "groups.txt")) if knows_settings else ()
    logs = ("--log-dir", str(dataset("transactions") / "logs"))
    rows = answer_of(capsys, "what-if", "--isolation-level", level, *logs, *files)
    rows = [row for row in rows if LEVELS[row["group_id"]] == level]
    assert rows
    assert all(row["at_least"] == row["in_history"] == row["at_most"] for row in rows)
    assert {row["certainty"] for row in rows} <= {"exact"} | ({"inferred"} if not knows_settings else set())


GROUP_CONFIGS = "".join(
    f"Dynamic configs for group {group} are:\n  share.isolation.level={level} sensitive=false synonyms={{}}\n"
    for group, level in LEVELS.items()
)


def test_each_level_gives_the_offsets_that_a_group_with_the_other_one_really_got(capsys):
    logs = ("--log-dir", str(dataset("transactions") / "logs"))
    committed, uncommitted = (
        answer_of(capsys, "what-if", "--isolation-level", level, *logs) for level in LEVELS.values()
    )

    def offsets(rows, group, bound):
        settled = [
            row
            for row in rows
            if row["group_id"] == group and row["figure"] in ("acknowledged_offsets", "archived_offsets")
        ]
        return {number: sum(row[bound] for row in settled if row["partition"] == number) for number in range(3)}

    def figure(rows, group, name, bound):
        return {row["partition"]: row[bound] for row in rows if row["group_id"] == group and row["figure"] == name}

    assert offsets(committed, "g-ru", "at_least") == offsets(committed, "g-rc", "in_history")
    new = figure(uncommitted, "g-rc", "newly_delivered_offsets", "at_least")
    before, after = offsets(uncommitted, "g-rc", "in_history"), offsets(uncommitted, "g-ru", "in_history")
    assert {number: before[number] + new[number] for number in before} == after
    assert sum(new.values()) > 0


def test_offsets_of_aborted_transactions_are_listed_with_what_the_history_did_with_them(capsys):
    logs = ("--log-dir", str(dataset("transactions") / "logs"))
    listed = answer_of(capsys, "what-if", "--isolation-level", "read_committed", "--list", *logs)
    assert {(row["group_id"], row["change"], row["certainty"]) for row in listed} == {
        ("g-ru", "not_delivered_aborted", "exact")
    }
    rows = answer_of(capsys, "what-if", "--isolation-level", "read_committed", *logs)
    sums = sum(row["at_least"] for row in rows if row["figure"] == "not_delivered_offsets")
    assert sum(row["last_offset"] - row["first_offset"] + 1 for row in listed) == sums


def test_a_history_without_headers_of_its_topics_has_no_figure_about_isolation(tmp_path, capsys):
    for folder in (dataset("transactions") / "logs").glob("__share_group_state-*"):
        (tmp_path / "logs").mkdir(exist_ok=True)
        (tmp_path / "logs" / folder.name).symlink_to(folder)
    assert main(["what-if", "--isolation-level", "read_committed", "--log-dir", str(tmp_path / "logs")]) == 1
    out, error = capsys.readouterr()
    assert out == ""
    assert "batch headers" in error
    assert error.count("\n") == 1


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", kinds_first(KINDS))
def test_the_number_of_state_partitions_in_force_leaves_every_share_partition_in_its_place(name, capsys):
    number = config(name).get("share.coordinator.state.topic.num.partitions", "50")
    logs = ("--log-dir", str(dataset(name) / "logs"))
    rows = answer_of(capsys, "what-if", "--state-partitions", number, "--list", *logs)
    assert rows
    assert all(row["in_history"] == row["what_if"] for row in rows)
    balance = answer_of(capsys, "what-if", "--state-partitions", number, *logs)
    assert all(row["in_history"] == row["what_if"] for row in balance)


def test_another_number_of_state_partitions_moves_records_and_loses_none(capsys):
    logs = ("--log-dir", str(dataset("admin") / "logs"))
    balance = answer_of(capsys, "what-if", "--state-partitions", "3", *logs)
    assert {row["state_partition"] for row in balance if row["what_if"]} == {0, 1, 2}
    for figure in ("share_partitions", "records", "bytes"):
        rows = [row for row in balance if row["figure"] == figure]
        assert sum(row["in_history"] for row in rows) == sum(row["what_if"] for row in rows) > 0


def test_figures_of_the_history_are_those_of_cost(capsys):
    logs = str(dataset("edge") / "logs")
    rows = answer_of(capsys, "what-if", "--snapshot-update-records", "7", "--log-dir", logs)
    key = ("group_id", "topic_id", "partition")
    figures = {(*(row[name] for name in key), row["figure"]): row["in_history"] for row in rows}
    costs = answer_of(capsys, "cost", "--log-dir", logs)
    assert costs
    for row in costs:
        for figure in ("records", "snapshots", "updates", "cold_snapshots", "bytes"):
            assert figures[(*(row[name] for name in key), figure)] == row[figure]


def test_a_lake_answers_as_its_logs_do(capsys):
    words = ("what-if", "--snapshot-update-records", "5")
    straight = answer_of(capsys, *words, "--log-dir", str(dataset("admin") / "logs"))
    assert straight
    assert answer_of(capsys, *words, "--lake", str(recorded_lake("admin"))) == straight


def test_a_group_alone_has_the_figures_that_it_has_among_all(capsys):
    words = ("what-if", "--snapshot-update-records", "5", "--log-dir", str(dataset("admin") / "logs"))
    alone = answer_of(capsys, *words, "--group", "gE")
    assert alone
    assert alone == [row for row in answer_of(capsys, *words) if row["group_id"] == "gE"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--snapshot-update-records", "-1"), "0 to 500"),
        (("--snapshot-update-records", "501"), "0 to 500"),
        (("--delivery-count-limit", "1"), "2 to 25"),
        (("--state-partitions", "0"), "1 to 2147483647"),
        (("--lock-duration", "999ms"), "1s to 1h"),
        (("--lock-duration", "3600001"), "1s to 1h"),
        (("--lock-duration", "soon"), "no duration"),
        (("--isolation-level", "serializable"), "read_uncommitted or read_committed"),
        (("--lock-duration", "30s", "--list"), "has no --list"),
        ((), "name one setting"),
        (("--delivery-count-limit", "3", "--state-partitions", "3"), "name one setting"),
        (("--snapshot-update-records", "3", "--list"), "has no --list"),
        (("--state-partitions", "3", "--group", "g-explicit"), "whole state partitions"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(words, reason, capsys):
    assert main(["what-if", *words, "--log-dir", str(dataset("basic") / "logs")]) == 2
    error = capsys.readouterr().err
    assert reason in error
    assert error.count("\n") == 1


def test_a_history_that_lacks_its_snapshots_has_no_figure(tmp_path, capsys):
    logs = write_log_directory(tmp_path / "logs", [update(start=3), update(start=4)])
    assert main(["what-if", "--snapshot-update-records", "3", "--log-dir", str(logs)]) == 1
    out, error = capsys.readouterr()
    assert out == ""
    assert "no figure" in error
    assert error.count("\n") == 1


def test_advice_on_a_recorded_log_has_its_evidence_in_the_log(tmp_path, capsys):
    (tmp_path / "broker.properties").write_text("group.share.delivery.count.limit=5\n")
    (tmp_path / "groups.txt").write_text("")
    files = ("--broker-config", str(tmp_path / "broker.properties"), "--group-configs", str(tmp_path / "groups.txt"))
    logs = ("--log-dir", str(dataset("timeouts") / "logs"))
    rows = answer_of(capsys, "advise", *logs, *files)
    limits = {row["group_id"]: row["suggested"] for row in rows if row["setting"] == "share.delivery.count.limit"}
    assert limits == {"g-slow": "6"}
    letters = {row["group_id"] for row in rows if row["setting"] == "errors.deadletterqueue.topic.name"}
    assert letters == {"g-never", "g-poison", "g-slow"}
    assert all(row["evidence"] and row["effect"] and row["certainty"] for row in rows)
    archived = answer_of(capsys, "what-if", "--delivery-count-limit", "5", *logs, *files, "--group", "g-slow")
    assert sum(row["in_history"] for row in archived if row["figure"] == "archived_offsets") >= 4


def test_without_configurations_nothing_is_said_about_groups(capsys):
    assert answer_of(capsys, "advise", "--log-dir", str(dataset("timeouts") / "logs")) == []
