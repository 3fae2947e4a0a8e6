"""The log that the demo makes; the whole of it runs in tests/broker/test_demonstration.py."""

import json
from pathlib import Path

import pytest

from sharelens.cli import live
from sharelens.cli.live import DemoError, make_incident, missing_packages, most_delivered


def journal(tmp_path: Path, *deliveries: tuple[int, int]) -> Path:
    path = tmp_path / "journal.jsonl"
    entries = [{"event": "begin", "topic": "t"}] + [
        {"event": "delivery", "group": "g", "topic": "t", "partition": 1, "offset": offset, "delivery_count": count}
        for offset, count in deliveries
    ]
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")
    return path


def test_the_record_that_was_delivered_most_often_is_chosen(tmp_path: Path):
    assert most_delivered(journal(tmp_path, (4, 1), (5, 3), (6, 3), (5, 2))) == ("g", "t", 1, 5)


def test_a_journal_without_deliveries_fails_the_demo(tmp_path: Path):
    with pytest.raises(DemoError, match="no consumer received a record; .*--set basic"):
        most_delivered(journal(tmp_path))


def test_what_is_installed_is_not_missing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(live, "NEEDED", ("json", "no_such_package", "struct"))
    assert missing_packages() == ["no_such_package"]


@pytest.mark.slow
def test_a_broker_that_does_not_start_fails_the_demo_with_its_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(live, "FAULT", "nonsense")
    with pytest.raises(DemoError, match="the broker did not start: sharelens: --fault 'nonsense'"):
        make_incident(tmp_path)
