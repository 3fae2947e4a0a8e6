import pytest

from tools import kafka_tools


def test_tools_that_cannot_be_fetched_are_a_reason_to_skip(monkeypatch, tmp_path):
    monkeypatch.setattr(kafka_tools, "tools_folder", lambda: tmp_path / "tools")
    monkeypatch.setattr(kafka_tools, "resolve", lambda packages, scratch: "no network")
    with pytest.raises(kafka_tools.ToolUnavailableError, match=r"kafka-tools-.* could not be fetched: no network"):
        kafka_tools.fetch_tools()
    assert not (tmp_path / "tools").exists()
