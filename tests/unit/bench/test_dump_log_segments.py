from types import SimpleNamespace

import pytest

from bench import dump_log_segments as tool
from bench.generate import generate
from tools.kept_jars import ToolUnavailableError


@pytest.fixture
def log(tmp_path):
    return generate(tmp_path / "log", shape="hot", records=20, share_partition_count=2, state_partitions=2).directory


def stand_in(monkeypatch, tmp_path, script):
    """Run a shell script where the Java of the tool would run, with the same arguments."""
    program = tmp_path / "java"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    monkeypatch.setattr(tool, "find_java", lambda: SimpleNamespace(program=program))
    monkeypatch.setattr(tool, "fetch_tools", lambda: tmp_path / "jars")


@pytest.mark.soak
def test_it_counts_the_record_lines_of_all_segments_that_hold_something(monkeypatch, tmp_path, log):
    stand_in(monkeypatch, tmp_path, f'echo "$@" > {tmp_path}/arguments; echo "baseOffset: 0"; echo "| offset: 0 x"')
    dumped = tool.dump(log)
    assert (dumped.records, dumped.printed_bytes) == (1, len("baseOffset: 0\n| offset: 0 x\n"))
    *_, decoder, data, files, names = (tmp_path / "arguments").read_text().split()
    assert (decoder, data, files) == ("--share-group-state-decoder", "--print-data-log", "--files")
    assert names.split(",") == sorted(str(path) for path in log.rglob("*.log") if path.stat().st_size)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("script", "message"),
    [("echo no such class >&2; exit 3", "ended with 3: .*no such class"), ("exit 0", "printed 0 records")],
)
def test_a_tool_that_fails_is_a_reason_to_skip_in_one_line(monkeypatch, tmp_path, log, capsys, script, message):
    stand_in(monkeypatch, tmp_path, script)
    with pytest.raises(ToolUnavailableError, match=message):
        tool.dump(log)
    assert tool.main([str(log)]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert (len(lines), lines[0].startswith("skipped: ")) == (1, True)
