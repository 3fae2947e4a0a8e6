"""Names of settings that Kafka does not have, in files that have many names which sharelens does not read."""

import difflib
from collections.abc import Iterable

from sharelens.output import name_cell

PREFIXES = ("group.share.", "share.", "errors.deadletterqueue.")
"""Where a setting of share groups begins; of other settings no name is judged."""
NAMED = 3
LONGEST_NAME = 100


class UnknownNames:
    """Collects names in a file, and says of which Kafka has no setting."""

    def __init__(self, known_names: Iterable[str]) -> None:
        """`known_names`: names of settings that Kafka has, at least those that begin with PREFIXES."""
        self._known_names = [name for name in known_names if name.startswith(PREFIXES)]
        self._first: list[tuple[int, str]] = []
        self._count = 0

    def add(self, line: int, name: str) -> None:
        """Adds the name in a line."""
        if not name.startswith(PREFIXES) or name in self._known_names:
            return
        self._count += 1
        if self._count <= NAMED:
            self._first.append((line, name[:LONGEST_NAME]))

    def warning(self, where: str) -> str | None:
        """One line about the file `where`; None: every name is known."""
        if self._count == 0:
            return None
        remainder_text = f" and {self._count - NAMED} more" if self._count > NAMED else ""
        named = ", ".join(f"line {line}: {name_cell(name)}{self._nearest(name)}" for line, name in self._first)
        return f"{where} has settings of unknown names, which count for nothing: {named}{remainder_text}"

    def _nearest(self, name: str) -> str:
        near = difflib.get_close_matches(name, self._known_names, n=1)
        return f" (nearest: {near[0]})" if near else ""
