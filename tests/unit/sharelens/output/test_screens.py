"""Every answer on terminals of 80, 120 and 200 columns, over recorded logs: screens-N.txt beside this file.

`python -m tests.unit.sharelens.output.test_screens` writes the files again, for somebody to read what changed.
"""

import re
import shlex
import tempfile
from pathlib import Path

import pytest

from sharelens.output.terminal import text_width
from tests.datasets import dataset
from tests.once import computed_once
from tests.processes.in_process import recorded_lake
from tests.processes.terminals import screens_of_widths

FOLDER = Path(__file__).parent
WIDTHS = (80, 120, 200)
LOGS = ("basic", "dlq", "edge", "timeouts")
LAKE = "lake"
AGE = re.compile(r"\b[0-9]+ d( [0-9]+ h)? ago")
COMMANDS = """
timeline --log-dir dlq --group gd-copy --topic tasks:1 --min-duration 5s --limit 12
overview --log-dir dlq --no-color
overview --log-dir timeouts --now 2026-11-21T03:30:00Z --limit 4 --no-color
timeline --log-dir timeouts --group g-never --now 2026-11-21T03:30:00Z
overview --log-dir basic --group g-explicit --no-color
state --log-dir dlq --limit 6
state --log-dir basic --group g-implicit --partition 1
state --log-dir dlq --columns group,partition,Log_Offset --limit 4
lag --log-dir basic
lag --log-dir basic --as-of 2026-11-21T03:12:45Z --limit 4
lag --log-dir basic --every 5s --limit 5
stalled --log-dir dlq --min-duration 0 --limit 6
pinned --log-dir dlq --min-duration 0
poison --log-dir dlq --limit 6
dlq --log-dir dlq --limit 6
dlq --log-dir dlq --bursts
redelivered --log-dir timeouts --limit 6
records --log-dir basic --limit 6
trace --log-dir dlq --group gd-auto --topic tasks --partition 0 --offset 7
trace --log-dir dlq --group gd-auto --topic tasks --partition 0 --offset 7 --members
diff --log-dir basic --from 2026-11-21T03:12:42Z --to 2026-11-21T03:12:46Z --limit 5
locate --log-dir basic --topic orders:0 --limit 3 --around 2026-11-21T03:12:44Z
latency --log-dir basic
latency --log-dir basic --ranges --limit 3
attempts --log-dir basic --limit 7
groups --log-dir dlq
account --log-dir dlq --limit 6
life --log-dir edge --limit 6
cost --log-dir basic --limit 5
cost --log-dir basic --state-partitions
what-if --log-dir basic --snapshot-update-records 20 --limit 7
status --log-dir dlq --columns state-partition,gap-offsets,quarantined,held_back,to
audit --log-dir dlq --group gd-copy
audit --log-dir edge --kafka-version 4.3 --group plain --limit 3
audit --log-dir edge --kafka-version 4.3 --group plain --topic edge:0 --rule acquired_state_written
sql --lake lake --limit 4 "SELECT * FROM gold.share_partition_state ORDER BY group_id, topic_id, partition"
sql --lake lake "SELECT count(*) AS rows, sum(partition) AS partitions FROM gold.share_partition_state"
sql --lake lake --list --limit 4
tables --lake lake gold.stall
"""


def places() -> dict[str, str]:
    """The log directories and the lake of the commands."""
    return {**{name: str(dataset(name) / "logs") for name in LOGS}, LAKE: str(recorded_lake("dlq"))}


def shown() -> dict[int, str]:
    """All screens of each width, each below its command."""
    commands = COMMANDS.strip().splitlines()
    with tempfile.TemporaryDirectory() as folder:
        for name, place in places().items():
            (Path(folder) / name).symlink_to(place)
        outputs = screens_of_widths([shlex.split(command) for command in commands], WIDTHS, Path(folder))
    parts = {
        width: [f"$ sharelens {command}\n{output}" for command, output in zip(commands, of_width, strict=True)]
        for width, of_width in outputs.items()
    }
    return {width: AGE.sub("2 d 3 h ago", "\n".join(of_width)) for width, of_width in parts.items()}


@pytest.mark.slow
@pytest.mark.parametrize("columns", WIDTHS)
def test_screens_are_as_they_were_reviewed(columns: int) -> None:
    screens = computed_once("screens", shown)
    assert screens[columns] == (FOLDER / f"screens-{columns}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("columns", WIDTHS)
def test_no_line_is_wider_than_its_screen(columns: int) -> None:
    lines = (FOLDER / f"screens-{columns}.txt").read_text(encoding="utf-8").splitlines()
    # A command stays whole, so that it can be copied.
    text = [line for line in lines if not line.lstrip(" $").startswith("sharelens ")]
    assert [line for line in text if text_width(line) > columns] == []


if __name__ == "__main__":
    for width, text in shown().items():
        (FOLDER / f"screens-{width}.txt").write_text(text, encoding="utf-8")
