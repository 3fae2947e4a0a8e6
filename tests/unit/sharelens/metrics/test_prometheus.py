"""The text for Prometheus: what its own parser and promtool read in it."""

import shutil
import subprocess
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from sharelens.metrics import catalog
from sharelens.metrics.figures import Figures
from sharelens.metrics.prometheus import prometheus_text
from sharelens.metrics.samples import export

TOPIC = "AAAAAAAAAAAAAAAAAAAABQ"
TOOLS = Path(__file__).parents[4] / ".venv" / "tools"
HOSTILE = (
    "plain",
    'quote"',
    "line\nfeed",
    "back\\slash",
    "</script>",
    "\x1b[31m",
    " ",
    "",
    "-x",
    "名前",
    "\u2028",
    "a\rb",
)


def text(*groups: str) -> bytes:
    figures = Figures(
        cluster="c",
        first_ms=1,
        data_ms=2,
        read_ms=3,
        of_cluster={catalog.DATA_TIMESTAMP: 1_790_000_000.123},
        of_groups={group: {catalog.GROUP_LAG: 7, catalog.GROUP_ARCHIVED: 3} for group in groups},
        of_share_partitions={(group, TOPIC, 0): {catalog.LAG: 2**53, catalog.ARCHIVED: 3} for group in groups},
        topics={TOPIC: "orders"},
    )
    return prometheus_text(export([figures]))


def samples(page: bytes) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(page.decode())
        for sample in family.samples
    }


def test_names_labels_and_values_come_through():
    parsed = samples(text("g"))
    assert parsed["kafka_sharegroup_group_archived_records_total", "c", "g"] == 3
    assert parsed["sharelens_data_timestamp_seconds", "c"] == 1_790_000_000.123
    assert parsed["kafka_sharegroup_lag", "c", "g", "0", "orders"] == 2**53


def test_hostile_names_stay_inside_their_quotes():
    groups = {sample.labels["group"] for family in text_string_to_metric_families(text(*HOSTILE).decode())
              for sample in family.samples if "group" in sample.labels}  # fmt: skip
    assert groups == set(HOSTILE)
    lines = text(*HOSTILE).decode().split("\n")
    assert all(line.startswith(("# ", "kafka_", "sharelens_")) or not line for line in lines)


def test_promtool_finds_no_fault_in_it():
    promtool = shutil.which("promtool") or shutil.which("promtool", path=str(TOOLS))
    if promtool is None:
        pytest.skip("no promtool here; `make promtool` gets it")
    page = text("g", 'quote"', "line\nfeed")
    done = subprocess.run([promtool, "check", "metrics"], input=page, capture_output=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")
