"""Every offset of the recorded topics in one class, against what clients settled and what the topics hold."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sharelens.cli import main
from sharelens.measures.account import CLASSES
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.accounting import account
from sharelens.source.request import CutChoice, Source
from sharelens.tables.logs.tables import open_log_tables
from sharelens.tables.where import Span
from tests.compat.test_redelivered import journal
from tests.datasets import dataset
from tests.processes.in_process import recorded_lake

pytestmark = pytest.mark.usefixtures("evidence_opened_once")

Classes = dict[tuple[str, str, int, int], tuple[str, str | None]]
SETTLED = {"ACCEPT", "IMPLICIT"}


def accounted(folder: Path) -> Classes:
    """Class and reason by (group, topic, partition, offset)."""
    with open_log_tables(Source(log_dirs=(str(folder / "logs"),))) as evidence:
        rows = account(evidence, KeyFilter(), CutChoice(), Span(), listed=CLASSES).table.to_pylist()
    classes: Classes = {}
    for row in rows:
        for offset in range(row["first_offset"], row["last_offset"] + 1):
            place = (row["group_id"], row["topic"], row["partition"], offset)
            assert place not in classes
            classes[place] = (row["class"], row["reason"])
    return classes


def topic_records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "topics.jsonl").open()]


@pytest.mark.parametrize("name", ["basic", "timeouts", "transactions", "v44"])
def test_what_clients_settled_last_is_the_class(name: str) -> None:
    folder = dataset(name)
    last: dict[tuple[str, str, int, int], str] = {}
    for line in journal(folder):
        if "o" in line and line.get("ack") in SETTLED | {"REJECT"}:
            last[(line["g"], line["topic"], line["p"], line["o"])] = line["ack"]
    accounts = accounted(folder)
    by_ack = Counter((ack in SETTLED, accounts[place][0].split("_")[0]) for place, ack in last.items())
    assert by_ack.keys() <= {(True, "acknowledged"), (False, "archived")}, by_ack


def test_what_was_passed_without_an_outcome_is_aborted_or_a_marker() -> None:
    folder = dataset("transactions")
    reasons = Counter(reason for kind, reason in accounted(folder).values() if kind == "passed_without_outcome")
    assert reasons["aborted"] > 0
    assert reasons.keys() <= {"aborted", "control"}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ["basic", "timeouts", "transactions", "dlq", "edge", "v41", "pruned", "crash"])
def test_the_counts_add_up_to_the_offsets_of_the_topics(name: str) -> None:
    with open_log_tables(Source(log_dirs=(str(dataset(name) / "logs"),))) as evidence:
        rows = account(evidence, KeyFilter(), CutChoice(), Span()).table.to_pylist()
    sums: Counter[tuple[Any, ...]] = Counter()
    sizes = {}
    for row in rows:
        place = (row["group_id"], row["topic_id"], row["partition"], row["state_partition"])
        sums[place] += row["offsets"]
        sizes[place] = row["window_offsets"]
        assert row["difference"] in (0, None), row
    assert dict(sums) == sizes


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ["admin", "transactions"])
@pytest.mark.parametrize("words", [("account",), ("account", "--class", "open"), ("redelivered",)])
def test_a_lake_answers_as_its_logs_do(name: str, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    logs = dataset(name) / "logs"
    lake = recorded_lake(name)
    answers = []
    for source in (["--log-dir", str(logs)], ["--lake", str(lake)]):
        assert main([*words, *source, "--output", "json"]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    assert answers[0]
    assert answers[0] == answers[1]


def test_state_beyond_the_end_of_its_topic_is_said() -> None:
    with open_log_tables(Source(log_dirs=(str(dataset("edge") / "logs"),))) as evidence:
        warnings = account(evidence, KeyFilter(), CutChoice(), Span()).warnings
    assert any("at or above the end of edge:0" in warning for warning in warnings)
