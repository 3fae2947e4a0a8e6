"""An answer without rows says what it has none of, so that its summary does not contradict it."""

from pathlib import Path

import pytest

from sharelens.cli import main
from tests.logs.dead_letter_logs import letter_headers, write_letters
from tests.logs.state_logs import snapshot, update, write_log_directory
from tests.logs.user_topics import write_orders

pytestmark = pytest.mark.slow

EMPTY = {
    "dlq --status duplicate": ("no record offset is duplicate", "matched 1,"),
    "dlq --status duplicate --status unexpected": ("no record offset is duplicate or unexpected", "matched 1,"),
    "account --class skipped_by_reset": ("no offset is skipped_by_reset", "archived 3"),
    "life --event deleted": ("no event deleted", "events: none"),
    "redelivered --kind start_went_back": ("no outcome of a second delivery", "record offsets: start_went_back 0\n"),
}


@pytest.fixture
def logs(tmp_path: Path) -> str:
    """Group g gave up orders-0 @ 3 to 5; a dead letter is there for 3."""
    folder = write_log_directory(
        tmp_path / "logs", [snapshot(), *(update(start=0, batches=[(3, 5, state, 1)]) for state in (3, 4))]
    )
    write_orders(folder)
    write_letters(folder, [(None, b"v", letter_headers(3))])
    return str(folder)


@pytest.mark.parametrize("words", EMPTY)
def test_an_empty_answer_and_its_summary_agree(words: str, logs: str, capsys: pytest.CaptureFixture[str]) -> None:
    none, summary = EMPTY[words]
    assert main([*words.split(), "--log-dir", logs]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == none
    assert summary in out + err


@pytest.mark.parametrize("command", ["timeline --group g", "stalled", "poison", "redelivered"])
def test_a_window_after_the_evidence_is_a_warning(command: str, logs: str, capsys: pytest.CaptureFixture[str]) -> None:
    late = "lies after the evidence, which ends at "
    assert main([*command.split(), "--log-dir", logs, "--from", "2099-01-01T00:00:00Z"]) == 0
    assert f"warning: --from 2099-01-01T00:00:00.000Z {late}" in capsys.readouterr().err
    assert main([*command.split(), "--log-dir", logs, "--from", "1970-01-02T00:00:00Z"]) == 0
    assert late not in capsys.readouterr().err
