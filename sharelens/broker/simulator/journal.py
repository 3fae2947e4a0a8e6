"""The members' journal: deliveries, and answers to acknowledgements.

One JSON object a line, in the order of events. `d`: a delivery; `a`: an acknowledgement, with its error
code, and for each of its batches the first offset, the last and the types.
"""

import json
from collections.abc import Iterable, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Final

from sharelens.broker.share.acknowledgement import AcknowledgementBatch
from sharelens.broker.share.acquisition import AcquiredRange

DELIVERIES_FILE: Final = "deliveries.jsonl"


class Journal:
    """A file that is written event by event; `close` ends it."""

    def __init__(self, path: Path, *, is_kept: bool) -> None:
        self._file: TextIOWrapper | None = path.open("w", encoding="utf-8") if is_kept else None
        self._names: dict[str, str] = {}
        self.delivered = 0

    def deliveries(self, at_ms: int, member: str, place: tuple[str, int], ranges: Iterable[AcquiredRange]) -> None:
        """Write a delivery of ranges of one partition to a member."""
        texts = []
        for first, last, count in ranges:
            self.delivered += last - first + 1
            texts.append(f"[{first},{last},{count}]")
        if self._file is not None:
            self._file.write(
                f'{{"d":{at_ms},"member":{self._quoted(member)},"topic":"{place[0]}","partition":{place[1]},'
                f'"ranges":[{",".join(texts)}]}}\n'
            )

    def acknowledged(
        self, at_ms: int, member: str, place: tuple[str, int], batches: Sequence[AcknowledgementBatch], error: int
    ) -> None:
        """Write a member's acknowledgements of one partition and their error code."""
        if self._file is None:
            return
        text = ",".join([f"[{first},{last},[{_types(types)}]]" for first, last, types in batches])
        self._file.write(
            f'{{"a":{at_ms},"member":{self._quoted(member)},"topic":"{place[0]}","partition":{place[1]},'
            f'"error":{error},"batches":[{text}]}}\n'
        )

    def event(self, at_ms: int, name: str, **about: object) -> None:
        """Write another event: members that join and leave, operations of the admin."""
        if self._file is not None:
            self._file.write(json.dumps({"e": at_ms, "what": name, **about}) + "\n")

    def close(self) -> None:
        """Flush and close the file."""
        if self._file is not None:
            self._file.close()

    def _quoted(self, text: str) -> str:
        quoted = self._names.get(text)
        if quoted is None:
            quoted = self._names[text] = json.dumps(text)
        return quoted


def _types(types: Sequence[int]) -> str:
    return str(types[0]) if len(types) == 1 else ",".join(map(str, types))
