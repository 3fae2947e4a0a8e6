"""Pages of the reference that are written from declarations: one way to write them, and to check that they are so."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path


def write_or_check(pages: Mapping[Path, str], arguments: Sequence[str] | None) -> int:
    """Writes the pages (path -> text); with --check only says by 1 that one is missing or has another text.

    `arguments`: None: those of the process.
    """
    if "--check" in (sys.argv[1:] if arguments is None else arguments):
        return int(any(not path.is_file() or path.read_text(encoding="utf-8") != text for path, text in pages.items()))
    for path, text in pages.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return 0
