"""The command configurations: its rows, filters, and one line for what it can't read."""

import json
from pathlib import Path

import pytest

from sharelens.cli import main
from tests.datasets import dataset
from tests.logs.metadata_logs import group_setting, topic, write_metadata
from tests.logs.state_logs import snapshot, write_log_directory
from tests.processes.in_process import make_lake, story_lake

pytestmark = pytest.mark.slow

LIMIT = "share.delivery.count.limit"


@pytest.fixture
def logs(tmp_path: Path) -> str:
    records = [
        (1000, topic("orders", "ot2ELlJ2QmSYXs6by5iwOw")),
        (2000, group_setting("g", LIMIT, "3")),
        (3000, group_setting("g", LIMIT, "7")),
        (4000, group_setting("h", "plugin.option", "planted")),
    ]
    return str(write_metadata(tmp_path / "logs", records))


def rows(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, object]]:
    assert main(["configurations", *words, "--output", "json"]) == 0
    document: list[dict[str, object]] = json.loads(capsys.readouterr().out)
    return document


def test_each_value_has_the_time_in_which_it_was_in_force(logs: str, capsys: pytest.CaptureFixture[str]) -> None:
    of_group = rows(capsys, "--log-dir", logs, "--group", "g")
    assert [(row["value"], row["valid_from_ms"], row["valid_to_ms"]) for row in of_group] == [
        ("3", 2000, 3000),
        ("7", 3000, None),
    ]
    assert [row["value"] for row in rows(capsys, "--log-dir", logs, "--group", "g", "--as-of", "2999")] == ["3"]
    assert rows(capsys, "--log-dir", logs, "--as-of", "1999") == []


def test_value_of_an_unlisted_key_is_hidden(logs: str, capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = rows(capsys, "--log-dir", logs, "--group", "h")
    assert (row["value"], row["hidden_length"]) == (None, 7)
    assert main(["configurations", "--log-dir", logs]) == 0
    assert "planted" not in capsys.readouterr().out


def test_log_without_voters_is_not_surely_committed(logs: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert {row["completeness"] for row in rows(capsys, "--log-dir", logs)} == {"uncommitted"}
    assert main(["configurations", "--log-dir", logs, "--require-complete"]) == 1
    assert "surely committed below 0" in capsys.readouterr().out


def test_topics_go_by_name_or_id_and_unknown_ones_are_refused(logs: str, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("orders", "ot2ELlJ2QmSYXs6by5iwOw"):
        assert rows(capsys, "--log-dir", logs, "--topic", text) == []
    assert main(["configurations", "--log-dir", logs, "--topic", "nope"]) == 2
    assert "no topic nope in the metadata log; topics there, deleted ones too: orders" in capsys.readouterr().err


def test_broker_default_is_called_so(capsys: pytest.CaptureFixture[str]) -> None:
    node = str(dataset("metadata") / "node1")
    chosen = rows(capsys, "--log-dir", node, "--broker", "default")
    assert {(row["resource_type"], row["resource"]) for row in chosen} == {("broker", "")}
    assert main(["configurations", "--log-dir", node, "--broker", "default", "--as-of", "2026-11-22T22:31:00Z"]) == 0
    assert "broker  default" in capsys.readouterr().out


def test_nonsense_and_missing_logs_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "bad" / "__cluster_metadata-0"
    folder.mkdir(parents=True)
    (folder / "00000000000000000000.log").write_bytes(bytes(range(256)) * 20)
    (folder / "00000000000000000009-0000000001.checkpoint").write_bytes(bytes(range(255, 0, -1)) * 20)
    for place, problem in (
        (tmp_path / "bad", "can be read (incomplete_snapshot 1): copy the folder again"),
        (dataset("dlq") / "logs", "no __cluster_metadata-0 in "),
    ):
        assert main(["configurations", "--log-dir", str(place)]) == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert problem in err
        assert err.count("\n") == 1


def test_lake_answers_as_its_log_does(logs: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = str(tmp_path / "lake")
    make_lake(tmp_path / "lake", Path(logs))
    assert rows(capsys, "--lake", lake, "--group", "g") == [
        row | {"cluster_id": "unknown"} for row in rows(capsys, "--log-dir", logs, "--group", "g")
    ]
    (row,) = rows(capsys, "--lake", lake, "--group", "h")
    assert (row["value"], row["hidden_length"], row["hidden_digest"]) == (None, 7, None)
    for words in ([], ["--lake", lake, "--log-dir", logs]):
        assert main(["configurations", *words]) == 2
    assert "give either --lake DIR" in capsys.readouterr().err
    empty = story_lake("without a metadata log", [snapshot("g")])
    assert main(["configurations", "--lake", str(empty)]) == 1
    assert f"no record of __cluster_metadata in lake {empty}" in capsys.readouterr().err


def test_status_warns_of_damage_in_the_metadata_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = [(1000, topic("orders", "ot2ELlJ2QmSYXs6by5iwOw")), (2000, b"\x01\x06\x00")]
    logs = write_log_directory(write_metadata(tmp_path / "logs", records), [snapshot("g")])
    make_lake(tmp_path / "lake", logs)
    for words in (["--lake", str(tmp_path / "lake")], ["--log-dir", str(logs)]):
        assert main(["status", *words, "--output", "json"]) == 0
        out, err = capsys.readouterr()
        (part,) = json.loads(out)["metadata_log"]
        assert (part["known_from_ms"], part["end_offset"], part["committed_end"]) == (None, 2, 0)
        assert "the metadata log has damage or gaps (unknown_value_version 1)" in err
