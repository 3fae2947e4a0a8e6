"""Questions over log directories take topic names and group settings from the metadata log beside them."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sharelens.cli import main
from tests.dataset_settings import given_settings, lines
from tests.datasets import dataset
from tests.depths import in_soak
from tests.logs.file_contents import contents_below
from tests.logs.metadata_logs import group_setting, topic, write_metadata
from tests.once import made_once
from tests.processes.in_process import make_lake

STARTED_MS = 1_795_000_000_000


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main([*words, "--output", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def settings_in_metadata(folder: Path) -> list[tuple[int, bytes]]:
    """The groups' settings of a recorded scenario, as records of a metadata log."""
    records = []
    for line in lines(folder, "journal.jsonl"):
        words = str(line.get("note", "")).split()
        if words[:2] == ["group", "config"]:
            pairs = words[3].split(",")
            records += [
                (STARTED_MS, group_setting(words[2], name, value))
                for name, value in zip(pairs[::2], pairs[1::2], strict=True)
            ]
    assert records
    return records


def with_lake(name: str, logs: Path, records: Sequence[tuple[int, bytes]]) -> Path:
    """A folder with `metadata`, a log of these records, and `lake`, the lake of both logs; made once a test run."""

    def make(folder: Path) -> None:
        make_lake(folder / "lake", logs, write_metadata(folder / "metadata", records))

    return made_once(f"metadata-settings/{name}", make)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("command", [["poison"], ["dlq"], ["stalled", "--now", "2026-11-22T00:00:00Z"]])
@pytest.mark.parametrize("name", ["dlq", *in_soak("timeouts")])
def test_settings_in_the_metadata_log_answer_as_a_file_does(
    name: str, command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = str(dataset(name) / "logs")
    folder = with_lake(name, Path(logs), settings_in_metadata(dataset(name)))
    metadata = folder / "metadata"
    group_configs = given_settings(dataset(name), tmp_path)[:2]
    by_file = answer(capsys, *command, "--log-dir", logs, *group_configs)
    by_metadata = answer(capsys, *command, "--log-dir", logs, "--log-dir", str(metadata))
    assert by_metadata == by_file
    by_lake = answer(capsys, *command, "--lake", str(folder / "lake"))
    assert by_lake == [row | {"cluster_id": "unknown"} for row in by_metadata]
    if command == ["poison"]:
        assert by_metadata != answer(capsys, *command, "--log-dir", logs)


@pytest.mark.parametrize("command", ["dlq", *in_soak("poison")])
def test_gap_of_the_metadata_log_makes_causes_unsure(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    limit = group_setting("gd-copy", "share.delivery.count.limit", "3")
    logs = dataset("dlq") / "logs"
    folder = with_lake("gap", logs, [(STARTED_MS, limit), (STARTED_MS, b"\x01\x06\x00")])
    for words in (
        ["--lake", str(folder / "lake")],
        ["--log-dir", str(logs), "--log-dir", str(folder / "metadata")],
    ):
        answer(capsys, command, *words, "--group", "gd-broken")
        assert main([command, *words, "--output", "json"]) == 0
        assert "the metadata log has gaps in which settings of gd-copy can have changed" in capsys.readouterr().err


def test_setting_counts_from_its_time_on_and_a_file_counts_before_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = ["poison", "--log-dir", str(dataset("dlq") / "logs"), "--group", "gd-copy"]
    moments = sorted({row["last_outcome_ms"] for row in answer(capsys, *logs)})
    middle = moments[len(moments) // 2]
    name = "share.delivery.count.limit"
    records = [(STARTED_MS, group_setting("gd-copy", name, "3")), (middle, group_setting("gd-copy", name, None))]
    metadata = write_metadata(tmp_path / "metadata", records)
    rows = answer(capsys, *logs, "--log-dir", str(metadata))
    limits = {row["last_outcome_ms"] < middle: row["delivery_count_limit"] for row in rows}
    assert limits == {True: 3, False: None}
    groups = tmp_path / "groups.txt"
    synonyms = f"{{DYNAMIC_GROUP_CONFIG:{name}=4}}"
    groups.write_text(f"Dynamic configs for group gd-copy are:\n  {name}=4 sensitive=false synonyms={synonyms}\n")
    rows = answer(capsys, *logs, "--log-dir", str(metadata), "--group-configs", str(groups))
    assert {row["delivery_count_limit"] for row in rows} == {4}


def test_names_of_topics_without_a_folder_come_from_the_metadata_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = tmp_path / "logs"
    for folder in (dataset("dlq") / "logs").glob("__share_group_state-*"):
        shutil.copytree(folder, logs / folder.name)
    meta = json.loads((dataset("dlq") / "meta.json").read_text(encoding="utf-8"))
    topic_id = meta["topicIds"]["tasks"]
    topic_id = topic_id if isinstance(topic_id, str) else topic_id[0]
    metadata = write_metadata(tmp_path / "metadata", [(STARTED_MS, topic("renamed-tasks", topic_id))])
    words = ["state", "--log-dir", str(logs), "--log-dir", str(metadata)]
    rows = answer(capsys, *words)
    assert {row["topic"] for row in rows if row["topic_id"] == topic_id} == {"renamed-tasks"}
    chosen = answer(capsys, *words, "--topic", "renamed-tasks")
    assert chosen == [row for row in rows if row["topic_id"] == topic_id] != []


@pytest.mark.soak
@pytest.mark.parametrize("source", ["lake", *in_soak("log directories")])
def test_no_secret_is_in_a_lake_an_evidence_folder_or_a_report(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = (dataset("dlq") / "logs", dataset("metadata") / "node1")
    words = [word for place in places for word in ("--log-dir", str(place))]
    folder, report, lake = tmp_path / "evidence", tmp_path / "report.html", tmp_path / "lake"
    if source == "lake":
        make_lake(lake, *places)
        words = ["--lake", str(lake)]
    window = ["--group", "gd-copy", "--from", "2026-11-21T03:25:10Z", "--to", "2026-11-21T03:26:00Z"]
    assert main(["evidence", *words, *window, "--case", "c1", "--out", str(folder)]) == 0
    assert main(["verify", str(folder), *words]) == 0
    assert main(["report", *words, "--out", str(report)]) == 0
    out, err = capsys.readouterr()
    written = [content for place in (folder, lake) for content in contents_below(place)]
    assert len(written) > 20
    assert not any(
        b"Kst0re-Secret" in content for content in (*written, report.read_bytes(), out.encode(), err.encode())
    )


def test_audit_tests_the_limit_when_the_metadata_log_has_it_for_a_group(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = ["audit", "--log-dir", str(dataset("dlq") / "logs")]
    without = write_metadata(tmp_path / "without", [(STARTED_MS, topic("t", "ot2ELlJ2QmSYXs6by5iwOw"))])
    limit = group_setting("gd-copy", "share.delivery.count.limit", "3")
    untested = []
    for words in (
        [],
        ["--log-dir", str(without)],
        ["--log-dir", str(write_metadata(tmp_path / "with", [(STARTED_MS, limit)]))],
    ):
        document = answer(capsys, *logs, *words)
        assert document["findings"] == []
        untested.append(len({rule for row in document["not_tested"] for rule in row["rules"]}))
    assert untested[0] > untested[1] > untested[2]
