"""The run that kill tests interrupt: it goes on from an earlier one, with a broken batch and a user topic."""

from pathlib import Path

from tests.logs.batch_files import broken, state_batches, state_directory
from tests.logs.state_logs import START_MS, snapshot, tombstone, update
from tests.logs.user_topics import write_orders
from tests.processes.in_process import make_lake

STORY = [
    snapshot("g", start=12),
    snapshot("h", start=30),
    *(update("g", batches=[(12 + n, 12 + n, 2, 1)], at_ms=START_MS + n) for n in range(4)),
    tombstone("h", at_ms=START_MS + 8),
    update("g", start=14, at_ms=START_MS + 9),
]
BROKEN = 3
"""The record of STORY whose batch can't be read: quarantine has files too."""
BEFORE_MS = START_MS + 2
"""Up to here the earlier run went."""


def lake_and_logs(folder: Path) -> tuple[Path, Path]:
    """The lake of the earlier run, to be copied, and the log directory that the run reads."""
    batches = state_batches(STORY)
    batches[BROKEN] = broken(batches[BROKEN])
    logs = state_directory(folder / "logs", batches)
    make_lake(folder / "before", logs, until_ms=BEFORE_MS)
    write_orders(logs)
    return folder / "before", logs
