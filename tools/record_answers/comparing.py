"""Compare two recordings, call by call."""

import difflib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from tools.record_answers.answers import read_sections
from tools.record_answers.questions import JSON, TEXT


class Verdict(Enum):
    """How two answers to one call compare. ORDER: they differ in the order of rows or lines alone."""

    SAME = "the same"
    ORDER = "in another order"
    DIFFERENT = "different"


@dataclass(slots=True)
class Comparison:
    """The calls of two recordings by verdict, and those that one recording alone has; names sorted."""

    verdicts: dict[str, Verdict] = field(default_factory=dict)
    only_before: list[str] = field(default_factory=list)
    only_after: list[str] = field(default_factory=list)

    def names(self, verdict: Verdict) -> list[str]:
        """The calls with a verdict."""
        return [name for name, actual in self.verdicts.items() if actual is verdict]

    @property
    def is_equal(self) -> bool:
        """Whether both recordings have the same calls, and no answer differs in more than order."""
        return not (self.names(Verdict.DIFFERENT) or self.only_before or self.only_after)

    def summary(self) -> str:
        """One line with the counts."""
        counts = ", ".join(f"{len(self.names(verdict))} {verdict.value}" for verdict in Verdict)
        only = f"{len(self.only_before)} only before, {len(self.only_after)} only after"
        return f"{len(self.verdicts)} calls compared: {counts}; {only}"


def compare(before: Path, after: Path) -> Comparison:
    """Compare all calls of two recordings."""
    names_before, names_after = _names(before), _names(after)
    comparison = Comparison(
        only_before=sorted(names_before - names_after), only_after=sorted(names_after - names_before)
    )
    for name in sorted(names_before & names_after):
        comparison.verdicts[name] = compare_answers(before / name, after / name)
    return comparison


def _names(recording: Path) -> set[str]:
    """The calls of a recording, as paths below it."""
    return {
        path.relative_to(recording).as_posix()
        for form in (TEXT, JSON)
        for path in recording.rglob(f"*.{form}")
        if path.is_file()
    }


def compare_answers(before: Path, after: Path) -> Verdict:
    """Compare two recorded answers."""
    if before.read_bytes() == after.read_bytes():
        return Verdict.SAME
    sections_before, sections_after = read_sections(before), read_sections(after)
    if sections_before.keys() != sections_after.keys():
        return Verdict.DIFFERENT
    verdicts = {compare_texts(text, sections_after[title]) for title, text in sections_before.items()}
    return next(verdict for verdict in (Verdict.DIFFERENT, Verdict.ORDER, Verdict.SAME) if verdict in verdicts)


def compare_texts(before: str, after: str) -> Verdict:
    """Compare two texts: as JSON documents if both are, else line by line."""
    if before == after:
        return Verdict.SAME
    try:
        document_before, document_after = json.loads(before), json.loads(after)
    except ValueError:
        is_reordered = sorted(before.splitlines()) == sorted(after.splitlines())
        return Verdict.ORDER if is_reordered else Verdict.DIFFERENT
    if document_before == document_after:
        return Verdict.SAME
    return Verdict.ORDER if _in_order(document_before) == _in_order(document_after) else Verdict.DIFFERENT


def _in_order(document: Any) -> Any:
    """The document with the elements of every array sorted by their JSON."""
    if isinstance(document, dict):
        return {name: _in_order(value) for name, value in document.items()}
    if isinstance(document, list):
        return sorted(map(_in_order, document), key=lambda value: json.dumps(value, sort_keys=True))
    return document


def differences(before: Path, after: Path, max_lines: int) -> Iterator[str]:
    """The first lines of a unified diff of each part of two recorded answers that differs."""
    sections_before, sections_after = read_sections(before), read_sections(after)
    titles = [*sections_before, *(title for title in sections_after if title not in sections_before)]
    for title in titles:
        old, new = (sections.get(title, "").splitlines() for sections in (sections_before, sections_after))
        diff = list(difflib.unified_diff(old, new, f"{title} before", f"{title} after", lineterm="", n=1))
        yield from diff[:max_lines]
        if len(diff) > max_lines:
            yield f"... {len(diff) - max_lines} more lines"
