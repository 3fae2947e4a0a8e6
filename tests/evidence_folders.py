"""Folders of evidence for tests, from a small log directory with two groups."""

from pathlib import Path
from typing import Any

from sharelens.evidence_folder.folder import Written, make_evidence
from sharelens.evidence_folder.question import Question, ask
from sharelens.measures.settings.over_time import GroupSettings
from sharelens.source.request import Source
from sharelens.tables.opening import open_evidence
from tests.logs.state_logs import START_MS, snapshot, tombstone, update, write_log_directory
from tests.logs.user_topics import write_orders

FROM_MS, TO_MS = START_MS + 1000, START_MS + 4000
STORY = [
    snapshot("g"),
    snapshot("h", 1),
    update("g", start=0, batches=[(0, 9, 0, 1)], at_ms=START_MS + 500),
    update("g", batches=[(0, 4, 2, 1), (5, 5, 4, 2)], at_ms=START_MS + 1000),
    update("h", 1, start=0, batches=[(0, 3, 2, 1)], at_ms=START_MS + 2000),
    update("g", start=6, at_ms=START_MS + 3999),
    update("g", batches=[(6, 9, 2, 2)], at_ms=START_MS + 4000),
    tombstone("h", at_ms=START_MS + 5000),
]
"""Records of group g in the window: 3 and 5 (log offsets)."""


def log_directory(folder: Path, story: list[dict[str, Any]] = STORY) -> Path:
    """A log directory of the story, with the records of the user topic."""
    logs = write_log_directory(folder, story, cluster_id="a-cluster")
    for path in (logs / "orders-0").iterdir():
        path.unlink()
    (logs / "orders-0").rmdir()
    write_orders(logs)
    return logs


def question(group: str = "g", **changed_fields: Any) -> Question:
    """About a group of the story and the window from FROM_MS to TO_MS."""
    fields = {"from_ms": FROM_MS, "to_ms": TO_MS, "topics": (), "settings": GroupSettings(), "case_id": "INC-1"}
    return ask(group_id=group, **{**fields, **changed_fields})


def write_evidence(
    out: Path, *log_dirs: Path, lake: Path | None = None, about: Question | None = None, **options: Any
) -> Written:
    """Evidence of the question in `out`."""
    source = Source(log_dirs=tuple(map(str, log_dirs)), lake=None if lake is None else str(lake))
    with open_evidence(source) as evidence:
        return make_evidence(evidence, about or question(), out, command_line=["sharelens", "evidence"], **options)
