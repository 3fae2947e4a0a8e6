"""The demo with its own broker: from a fault to the answers."""

import re
from unittest import mock

import pytest

from jobs.commands import demonstration
from sharelens.cli import live, main
from sharelens.spark.engine import IN_PROCESS
from tests.processes.in_process import no_session

pytestmark = pytest.mark.broker


@pytest.mark.soak
def test_the_demo_makes_an_incident_and_reads_it(capsys: pytest.CaptureFixture[str]):
    with (
        mock.patch("tempfile.tempdir", "/tmp"),  # a longer path takes more columns
        mock.patch("sharelens.cli.options.spark.session_of", return_value=no_session),
        mock.patch.object(demonstration, "_engine", return_value=IN_PROCESS),
    ):
        assert main(["demo"]) == 0
    out, err = capsys.readouterr()
    steps = [line.split()[2] for line in err.splitlines() if line.startswith("$")]
    assert steps == ["broker", "workload", "run", "overview", "trace", "report", "run"]
    assert max(map(len, (out + err).splitlines())) <= live.WIDTH
    assert out.startswith("ready: 127.0.0.1:")
    assert "no findings" in out
    assert int(re.findall(r"acks_ambiguous (\d+)", out)[0]) > 0, "the fault struck nobody"
    trace = out.partition("share partition created")[2]
    # On a slow machine locks end before consumers do, so another record may have more deliveries than the poison.
    assert re.search(r"(ARCHIVED|ACKNOWLEDGED)/[2-9]", trace), "the end of the record with the most deliveries"
    assert re.search(r"archived \d+ records", out), "the end of poison records"
    assert "gaps 0, quarantined 0" in " ".join(out.split())
