"""Commits of other writers: each of ours names the stage and the run that made it, as a transaction of the table.

A lake has one writer at a time, and its tables belong together: rows that another program adds to one of them, or takes
away, would be published as if a run had computed them.
"""

import json
from collections.abc import Iterable
from typing import Any

from sharelens.lake.errors import LakeError
from sharelens.lake.lake import Lake
from sharelens.lake.transactions import commit_path, transactions_of

FILES = ("add", "remove")


def check_writers(lake: Lake, table: str, published: int) -> None:
    """Refuses a table whose versions above the published one changed rows without a transaction.

    A commit that says that it changes no data, such as one of OPTIMIZE, may be anybody's.

    Raises:
        LakeError: another writer has committed.
    """
    storage = lake.table_storage(table)
    for version in range(published + 1, lake.version(table) + 1):
        commit = storage.read(commit_path(version))
        if transactions_of(commit):
            continue
        actions = [json.loads(line) for line in commit.splitlines() if line.strip()]
        if any(_changes_rows(action) for action in actions):
            raise LakeError(
                f"{table} in {lake}: {commit_path(version)} was written by another program{_named(actions)}; move it "
                "and what lies above it out of that folder, or make a new lake from the logs"
            )


def _changes_rows(action: dict[str, Any]) -> bool:
    return any(action[kind].get("dataChange", True) for kind in FILES if kind in action)


def _named(actions: Iterable[dict[str, Any]]) -> str:
    """The program and operation that a commit names (commitInfo), in brackets; empty without them."""
    info: dict[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
    named = [str(text) for text in (info.get("engineInfo"), info.get("operation")) if text]
    return f" ({', '.join(named)})" if named else ""
