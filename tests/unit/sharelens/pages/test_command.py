"""`sharelens explore` as a process: its link, its errors, hostile connections, and how it ends."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from sharelens.cli.app import main
from tests.datasets import dataset
from tests.depths import in_soak
from tests.processes.explorer import explorer

pytestmark = pytest.mark.slow
LOGS = str(dataset("dlq") / "logs")
TIMEOUT_S = 120
SLOW_CONNECTIONS = 500


def children(pid: int) -> set[int]:
    """The processes below a process."""
    tree = Path(f"/proc/{pid}/task/{pid}/children")
    direct = {int(child) for child in tree.read_text().split()} if tree.exists() else set()
    return direct.union(*map(children, direct))


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[subprocess.Popen[str], str]]:
    with explorer(LOGS, "--timeout", "60s") as started:
        yield started


def test_the_link_opens_the_first_page_and_nobody_else_does(running: tuple[subprocess.Popen[str], str]) -> None:
    _, link = running
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{43}", link)
    base = link.partition("/?")[0]
    assert httpx.get(base).status_code == 403
    assert httpx.get(f"{base}/static/style.css").status_code == 403
    with httpx.Client(timeout=TIMEOUT_S) as client:
        assert client.get(link).status_code == 200
        assert "gd-broken" in client.get(base).text
        assert client.get(base, headers={"host": "evil.example"}).status_code == 421


@pytest.mark.soak
def test_slow_and_hostile_connections_keep_nobody_waiting(running: tuple[subprocess.Popen[str], str]) -> None:
    process, link = running
    base = link.partition("/?")[0]
    port = int(base.rpartition(":")[2])
    beginnings = (
        b"",
        b"G",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
        b"\x16\x03\x01\x02",
        b"\x00" * 2000,
        b"A" * 70_000,
    )
    with ExitStack() as stack, httpx.Client(timeout=TIMEOUT_S) as client:
        for number in range(SLOW_CONNECTIONS):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), TIMEOUT_S))
            try:
                connection.sendall(beginnings[number % len(beginnings)])
            except OSError:
                continue
        client.get(link)
        assert client.get(f"{base}/groups").status_code == 200
    resident = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())
    assert resident is not None
    assert int(resident[1]) < 400 << 10
    assert process.poll() is None


@pytest.mark.one_in(2)
@pytest.mark.parametrize("number", [signal.SIGINT, *in_soak(signal.SIGTERM)])
def test_it_ends_with_its_processes(number: int) -> None:
    with explorer(LOGS) as (process, link):
        assert link
        below = children(process.pid)
        assert len(below) >= 2
        process.send_signal(number)
        process.wait(TIMEOUT_S)
        end_s = time.monotonic() + TIMEOUT_S
        while any(map(is_running, below)) and time.monotonic() < end_s:
            time.sleep(0.05)
        assert not any(map(is_running, below))


@pytest.mark.soak
def test_it_ends_when_nobody_asks() -> None:
    with explorer(LOGS, "--idle-exit", "1s") as (process, link):
        assert link
        assert process.wait(TIMEOUT_S) == 0


def test_pages_need_no_library_that_draws_charts() -> None:
    script = (
        "import sys, sharelens.pages.site; print([name for name in ('altair', 'vl_convert') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_an_address_that_is_taken_and_wrong_evidence_are_one_line(running, tmp_path: Path, capsys) -> None:
    port = running[1].partition("/?")[0].rpartition(":")[2]
    assert main(["explore", "--log-dir", LOGS, "--port", port]) == 1
    assert "Address already in use; give another --port" in capsys.readouterr().err
    assert main(["explore", "--lake", str(tmp_path / "absent"), "--port", "0"]) in (1, 2)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "absent" in printed.err
    assert len(printed.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--listen", "0.0.0.0:0"], "add --allow-remote to allow it"),
        (["--listen", "0.0.0.0:0", "--allow-remote"], "--allow-remote needs --token-file"),
        (["--allow-remote"], "--allow-remote goes with --listen"),
        (["--listen", "127.0.0.1:0", "--port", "1"], "leave out --port"),
        (["--port", "70000"], "70000 is not in the range"),
        (["--timeout", "0s"], "--timeout"),
    ],
)
def test_nonsense_is_refused_before_anything_is_read(options: list[str], words: str, capsys) -> None:
    assert main(["explore", "--log-dir", os.devnull, *options]) == 2
    assert words in capsys.readouterr().err
