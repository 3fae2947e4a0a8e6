"""docs/how-to/reproduce-an-incident.md runs as printed, but for port, locks and duration: broker, clients, answers.

The command is that of a wheel; tests/docs/test_pages_run.py runs pages with that of a clone, too.
"""

import socket
from pathlib import Path

import pytest

from tests.pages import DOCS, WITHOUT_CHECKS, blocks, installed, warmed

PAGE = DOCS / "how-to" / "reproduce-an-incident.md"
BROKER = "sharelens broker start"
SHORT_LOCKS = "".join(
    f" --set group.share.min.{name}.ms={duration_ms}"
    for name, duration_ms in (("record.lock.duration", 1_000), ("heartbeat.interval", 300), ("session.timeout", 1_000))
)
"""A workload ends when locks and sessions of killed members have ended: as short as its broker allows."""
DURATION = "--duration 20s"
IN_THE_BACKGROUND = """ > broker.txt &
broker=$!
trap 'kill $broker' EXIT
until grep -q '^ready: ' broker.txt; do kill -0 $broker; sleep 0.1; done"""


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


@pytest.mark.soak
def test_the_page_runs(tmp_path: Path) -> None:
    lines = [command for block in blocks(PAGE) for command in block.commands]
    assert [line.startswith(BROKER) for line in lines].count(True) == 1
    script = "\n".join(line + SHORT_LOCKS + IN_THE_BACKGROUND if line.startswith(BROKER) else line for line in lines)
    folder = tmp_path / "empty"
    folder.mkdir()
    assert script.count(DURATION) == 1
    script = script.replace(DURATION, "--duration 5s").replace("127.0.0.1:9092", free_address())
    wheel = installed("wheel", tmp_path)
    script = script.replace(BROKER, f"{wheel.python.with_name('sharelens')} broker start")  # a process to be ended
    with warmed(wheel, tmp_path / "warm", WITHOUT_CHECKS) as warm:
        done = warm.run(script, folder)
    assert done.returncode == 0, f"{script}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    assert "workload-poison" in done.stdout
    assert "record 5: " in done.stdout
