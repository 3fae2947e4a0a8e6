"""The test suite of franz-go's client, as its authors wrote it, against a light broker."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker import running
from tests.broker.running import RunningBroker
from tests.processes.go_programs import go_environment

CLIENT = Path(__file__).parent / "clients" / "franz_go"
"""Its go.mod names the version of franz-go."""
MODULE = "github.com/twmb/franz-go"
BUILD_S, SUITE_S = 900, 1_800
RECORDS = 20_000
"""Of each test that produces and consumes; franz-go's own default is half a million."""
NOT_RUN = "SCRAM|OAuth|BrokerTooOld"
"""Tests that need listeners with a login, or a broker that lists no Produce before version 3 (Kafka 4.3 does)."""
ENDED = re.compile(r"^ *--- (PASS|FAIL|SKIP): (\S+)", re.MULTILINE)
FEWEST = 300
"""Tests of the suite; those of each input of a fuzz test count."""
OF_CONSUMER_GROUPS = 10
"""Tests of the suite that are about groups of KIP-848."""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RunningBroker]:
    broker = running.start(tmp_path / "log")
    yield broker
    assert broker.stop() == 0, broker.problems.read_text()[-2000:]


def _go(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["go", *words], cwd=folder, env=go_environment(), capture_output=True, text=True, timeout=BUILD_S
    )
    if done.returncode:
        pytest.skip(f"go {words[0]} of franz-go fails: {done.stderr.strip().splitlines()[-1:]}")
    return done.stdout.strip()


@pytest.mark.soak
def test_the_client_passes_its_own_suite(broker: RunningBroker, tmp_path: Path) -> None:
    if shutil.which("go") is None:
        pytest.skip("no Go here; install the version that clients/franz_go/go.mod names, or a newer one")
    _go(CLIENT, "mod", "download")
    sources = Path(_go(CLIENT, "list", "-m", "-f", "{{.Dir}}", MODULE))
    suite = tmp_path / "suite"
    _go(sources, "test", "-c", "-o", str(suite), "./pkg/kgo")
    settings = {"KGO_SEEDS": broker.bootstrap, "KGO_TEST_RF": "1", "KGO_TEST_RECORDS": str(RECORDS)}
    done = subprocess.run(
        [str(suite), "-test.v", f"-test.timeout={SUITE_S}s"],
        cwd=sources / "pkg" / "kgo",
        env=os.environ | settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    ends = {name: end for end, name in ENDED.findall(done.stdout)}
    assert [name for name, end in ends.items() if end == "FAIL"] == []
    assert [name for name, end in ends.items() if end == "SKIP" and not re.search(NOT_RUN, name)] == []
    assert done.returncode == 0, done.stdout[-2000:]
    assert len(ends) > FEWEST
    assert sum(end == "PASS" for name, end in ends.items() if "848" in name) >= OF_CONSUMER_GROUPS
