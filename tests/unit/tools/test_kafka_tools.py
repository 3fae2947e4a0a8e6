import pytest

from tools import kafka_tools, kept_jars


def test_tools_that_cannot_be_fetched_are_a_reason_to_skip(monkeypatch, tmp_path):
    monkeypatch.setattr(kept_jars, "kept_folder", lambda name: tmp_path / "tools")
    monkeypatch.setattr(kept_jars, "resolve", lambda packages, scratch, excluded: "no network")
    with pytest.raises(kept_jars.ToolUnavailableError, match=r"kafka-tools-.* could not be fetched: no network"):
        kafka_tools.fetch_tools()
    assert not (tmp_path / "tools").exists()
