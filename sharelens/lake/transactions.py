"""Transactions of a table: the newest version that each application committed, read from the commits once.

delta-rs reads all commits of a log for each application that it is asked for, which in a store is a request for each.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote

from sharelens.lake.storage import Storage

if TYPE_CHECKING:
    from deltalake import DeltaTable

LOG = "_delta_log"
MARK = b'{"txn":'


def commit_path(version: int) -> str:
    """The file of a commit, below the table's folder."""
    return f"{LOG}/{version:020d}.json"


@dataclass(slots=True, kw_only=True)
class Transactions:
    """The transactions of the commits [read_from, version] by application; None: of delta-rs, which knows of none."""

    version: int
    read_from: int = -1
    newest: dict[str, int | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.read_from < 0:
            self.read_from = self.version + 1

    def followed_by(self, transactions: Mapping[str, int]) -> "Transactions":
        """The transactions after the next version, which commits `transactions`."""
        newest = {**self.newest, **transactions}
        return Transactions(version=self.version + 1, read_from=self.read_from, newest=newest)

    def newest_of(self, application: str, storage: Storage, opened: Callable[[], "DeltaTable"]) -> int | None:
        """The newest version committed for an application; None when there is none.

        Commits are read from the newest one down to the first that has the application. Where upkeep removed commits,
        delta-rs reads the checkpoint in their place: of the table that `opened` returns.
        """
        while application not in self.newest and self.read_from > 0:
            try:
                content = storage.read(commit_path(self.read_from - 1))
            except FileNotFoundError:
                self.newest[application] = opened().transaction_version(application)
                break
            self.read_from -= 1
            for name, version in transactions_of(content).items():
                self.newest.setdefault(name, version)
        return self.newest.get(application)


def transactions_of(commit: bytes) -> dict[str, int]:
    """The versions of applications in a commit."""
    actions = (json.loads(line)["txn"] for line in commit.splitlines() if line.startswith(MARK))
    return {str(action["appId"]): int(action["version"]) for action in actions}


def paths_in(commit: bytes, *kinds: str) -> set[str]:
    """The paths of the files of a commit's actions of some kinds, "add" or "remove"."""
    marks = tuple(f'{{"{kind}":'.encode() for kind in kinds)
    lines = (line for line in commit.splitlines() if line.startswith(marks))
    return {unquote(fields["path"]) for line in lines for fields in json.loads(line).values()}
