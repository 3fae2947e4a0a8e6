"""The ACL entries of the broker: kept in the catalogue, changed by requests, asked by every guard."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from sharelens.broker.security.authorization.authorizer import Authorizer
from sharelens.broker.security.authorization.entries import AclEntry, AclFilter


class StoredAcls(Protocol):
    """Where entries survive a restart (sharelens.broker.storage.catalog.Catalog)."""

    @property
    def acls(self) -> Sequence[AclEntry]:
        """The stored entries."""

    def set_acls(self, acls: Iterable[AclEntry]) -> None:
        """Replace them. Raises StorageError; nothing has changed then."""


class AclStore:
    """The entries, and the authorizer that decides by them; a change is durable when the call returns."""

    def __init__(self, stored: StoredAcls, *, super_users: Iterable[str], allow_everyone: bool) -> None:
        self._stored = stored
        self.authorizer = Authorizer(stored.acls, super_users=frozenset(super_users), allow_everyone=allow_everyone)

    def add(self, entries: Sequence[AclEntry]) -> None:
        """Add entries; those that exist stay once. Raises StorageError."""
        self._replace((*self.authorizer.entries, *entries))

    def matching(self, condition: AclFilter) -> list[AclEntry]:
        """The entries that meet a condition."""
        return [entry for entry in self.authorizer.entries if condition.matches(entry)]

    def remove(self, entries: Iterable[AclEntry]) -> None:
        """Remove entries. Raises StorageError."""
        removed = frozenset(entries)
        self._replace(tuple(entry for entry in self.authorizer.entries if entry not in removed))

    def _replace(self, entries: Sequence[AclEntry]) -> None:
        changed = self.authorizer.with_entries(entries)
        if changed.entries != self.authorizer.entries:
            self._stored.set_acls(changed.entries)
            self.authorizer = changed
