"""The members' journal: what was delivered to whom, and what was answered to their acknowledgements.

One JSON object a line, in the order of events. `d`: a delivery; `a`: an acknowledgement, with the error code that it
got, and for each of its batches the first offset, the last and the types.
"""

import json
from collections.abc import Iterable, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Final

from broker.share.acknowledgement import AcknowledgementBatch
from broker.share.acquisition import AcquiredRange

DELIVERIES_FILE: Final = "deliveries.jsonl"


class Journal:
    """Written as it comes; nothing is kept in memory. `close` ends it."""

    def __init__(self, path: Path, *, is_kept: bool) -> None:
        self._file: TextIOWrapper | None = path.open("w", encoding="utf-8") if is_kept else None
        self._names: dict[str, str] = {}
        self.delivered = 0

    def deliveries(self, at_ms: int, member: str, place: tuple[str, int], ranges: Iterable[AcquiredRange]) -> None:
        """Ranges of one partition went to a member."""
        told = []
        for first, last, count in ranges:
            self.delivered += last - first + 1
            told.append(f"[{first},{last},{count}]")
        if self._file is not None:
            self._file.write(
                f'{{"d":{at_ms},"member":{self._quoted(member)},"topic":"{place[0]}","partition":{place[1]},'
                f'"ranges":[{",".join(told)}]}}\n'
            )

    def acknowledged(
        self, at_ms: int, member: str, place: tuple[str, int], batches: Sequence[AcknowledgementBatch], error: int
    ) -> None:
        """A member's acknowledgements of one partition were taken, or refused with an error code."""
        if self._file is None:
            return
        told = ",".join([f"[{first},{last},[{_types(types)}]]" for first, last, types in batches])
        self._file.write(
            f'{{"a":{at_ms},"member":{self._quoted(member)},"topic":"{place[0]}","partition":{place[1]},'
            f'"error":{error},"batches":[{told}]}}\n'
        )

    def event(self, at_ms: int, what: str, **about: object) -> None:
        """Anything else: members that come and go, works of the admin."""
        if self._file is not None:
            self._file.write(json.dumps({"e": at_ms, "what": what, **about}) + "\n")

    def close(self) -> None:
        """Write what is left."""
        if self._file is not None:
            self._file.close()

    def _quoted(self, text: str) -> str:
        quoted = self._names.get(text)
        if quoted is None:
            quoted = self._names[text] = json.dumps(text)
        return quoted


def _types(types: Sequence[int]) -> str:
    return str(types[0]) if len(types) == 1 else ",".join(map(str, types))
